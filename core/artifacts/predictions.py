"""The text that a `predict` run tagged.

artifacts/predictions.jsonl    id, tokens, entities with their confidence, a sentence a line
          predictions.conll    IOB2
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from core.corpora.writers import write_conll
from core.files import replacing
from core.runs.run import Run
from core.text.sentence import Entity, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictResult:
    """What a `predict` run came to: counts; types: of entities by type, frequent ones first."""

    sentences: int
    entities: int
    types: Mapping[str, int]


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
    with file(run, ".jsonl").open(encoding="utf-8") as lines:
        return [_sentence(json.loads(line)) for line in lines]


def _line(sentence: Sentence, confidence: Sequence[float]) -> bytes:
    entities = [
        {"start": e.start, "end": e.end, "type": e.type, "confidence": round(sure, 4)}
        for e, sure in zip(sentence.entities or (), confidence, strict=True)
    ]
    record = {"id": sentence.id, "tokens": sentence.tokens, "entities": entities}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _sentence(record: Mapping[str, Any]) -> Sentence:
    entities: Sequence[Mapping[str, Any]] = record["entities"]
    return Sentence(
        id=record["id"],
        tokens=tuple(record["tokens"]),
        text=" ".join(record["tokens"]),
        entities=tuple(Entity(start=e["start"], end=e["end"], type=e["type"]) for e in entities),
    )
