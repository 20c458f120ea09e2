"""Entities that `tag` and `predict` runs found.

artifacts/  spans.npy            of `tag`: (m,) of dtype `selection.evidence.SPAN`, sentence by sentence
            predictions.jsonl    of `predict`: a sentence per line, with id, tokens, and entities with confidences
            predictions.conll    of `predict`: the same sentences and entities in IOB2
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from core.corpora.writers import write_conll
from core.files import read_back, replacing
from core.runs import result
from core.runs.run import Run
from core.selection.evidence import Spans
from core.text.sentence import Entity, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class TagResult:
    """Result of a `tag` run.

    types: entity types of the tagger; the `type` of a stored span is an index into this list. sentences, entities:
    number of tagged sentences and of entities found.
    """

    types: Sequence[str]
    sentences: int
    entities: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictResult:
    """Result of a `predict` run. types: {entity type: number of entities found}, the most frequent first."""

    sentences: int
    entities: int
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedEntity:
    """Entity that consists of the tokens from `start` up to, but not including, `end`. confidence: 0 to 1."""

    start: int
    end: int
    type: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A sentence of the output file of a `predict` run, with the entities found in it."""

    id: str
    tokens: tuple[str, ...]
    entities: tuple[PredictedEntity, ...]


_LINE = TypeAdapter(Line)
_SPANS = "spans.npy"


def write_spans(run: Run, spans: npt.NDArray[np.void]) -> None:
    """Write the spans of a `tag` run, `(m,)` of dtype `SPAN`."""
    np.save(run.artifacts / _SPANS, spans)


def read_spans(run: Run) -> Spans:
    """Read the spans of a finished `tag` run, memory-mapped."""
    counts = result.read(run, TagResult)
    with read_back(path := run.artifacts / _SPANS):
        return Spans.make(counts.types, np.load(path, mmap_mode="r"), counts.sentences)


def file(run: Run, suffix: str) -> Path:
    """Return the path of a `predict` run's output file. suffix: `.jsonl` or `.conll`."""
    return run.artifacts / f"predictions{suffix}"


def write(run: Run, tagged: Iterable[tuple[Sentence, Sequence[float]]]) -> None:
    """Write the output files of a `predict` run. tagged: sentences with found entities, and their confidences."""

    def written(out: BinaryIO) -> Iterator[Sentence]:
        for sentence, confidence in tagged:
            out.write(_line(sentence, confidence))
            yield sentence

    with replacing(file(run, ".jsonl")) as out:
        write_conll(written(out), file(run, ".conll"))


def read(run: Run) -> list[Sentence]:
    """Return the sentences of a `predict` run's output file, with the entities found."""
    return [_sentence(line) for line in lines(run)]


def lines(run: Run) -> Iterator[Line]:
    """Yield the sentences of a `predict` run's output file, with the confidence of each entity."""
    with read_back(path := file(run, ".jsonl")), path.open(encoding="utf-8") as texts:
        for text in texts:
            yield _LINE.validate_json(text)


def _line(sentence: Sentence, confidence: Sequence[float]) -> bytes:
    entities = tuple(
        PredictedEntity(start=e.start, end=e.end, type=e.type, confidence=round(sure, 4))
        for e, sure in zip(sentence.entities or (), confidence, strict=True)
    )
    line = Line(id=sentence.id, tokens=sentence.tokens, entities=entities)
    return json.dumps(asdict(line), ensure_ascii=False).encode() + b"\n"


def _sentence(line: Line) -> Sentence:
    entities = tuple(Entity(start=e.start, end=e.end, type=e.type) for e in line.entities)
    return Sentence(id=line.id, tokens=line.tokens, text=" ".join(line.tokens), entities=entities)
