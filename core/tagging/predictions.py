"""The text that a `predict` run tagged.

artifacts/predictions.jsonl    id, tokens, entities with their confidence, a sentence a line
          predictions.conll    IOB2
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter

from core.corpora.writers import write_conll
from core.files import read_back, replacing
from core.runs.run import Run
from core.text.sentence import Entity, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictResult:
    """Result of a `predict` run: counts; types: of entities by type, frequent ones first."""

    sentences: int
    entities: int
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedEntity:
    """An entity of tokens start to end, end excluded. confidence: 0 to 1."""

    start: int
    end: int
    type: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A sentence of the file."""

    id: str
    tokens: tuple[str, ...]
    entities: tuple[PredictedEntity, ...]


_LINE = TypeAdapter(Line)


def file(run: Run, suffix: str) -> Path:
    """The path of the sentences. suffix: `.jsonl` or `.conll`."""
    return run.artifacts / f"predictions{suffix}"


def write(run: Run, tagged: Iterable[tuple[Sentence, Sequence[float]]]) -> None:
    """tagged: sentences with what was found in them, and the confidence of each entity; never all in memory."""

    def written(out: BinaryIO) -> Iterator[Sentence]:
        for sentence, confidence in tagged:
            out.write(_line(sentence, confidence))
            yield sentence

    with replacing(file(run, ".jsonl")) as out:
        write_conll(written(out), file(run, ".conll"))


def read(run: Run) -> list[Sentence]:
    """The sentences with what was found in them."""
    return [_sentence(line) for line in lines(run)]


def lines(run: Run) -> Iterator[Line]:
    """The same with how sure the tagger was; never all in memory."""
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
