"""Write files, read them, and return the sentences with the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from core.corpora.formats.ledger import Format
from core.corpora.readers import ReadOptions, ReadReport, read
from core.text.sentence import Sentence
from tests.conftest import entities_of


class Options(TypedDict, total=False):
    """Fields of `ReadOptions` that tests set."""

    format: Format
    text_column: str
    tag_column: str
    scheme: str
    split: bool
    unit: Literal["line", "paragraph"]
    encoding: str
    repair: bool
    part: str | None
    keep_lost: bool
    annotator: str | None
    others: tuple[str, ...]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def load(path: Path, **options: Unpack[Options]) -> tuple[list[Sentence], ReadReport]:
    """Read a file; every row must be kept, rejected or skipped."""
    report = ReadReport()
    found = list(read(path, ReadOptions(**options), report=report))
    assert (report.read, report.sentences) == (report.kept + report.rejected + report.skipped, len(found))
    return found, report


def spans(sentence: Sentence) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of each entity, in tokens."""
    return [(e.start, e.end, e.type) for e in entities_of(sentence)]


def surfaces(sentence: Sentence) -> list[tuple[str, str]]:
    """Return (words, type) of each entity."""
    return [(" ".join(sentence.tokens[start:end]), kind) for start, end, kind in spans(sentence)]


def all_surfaces(sentences: Sequence[Sentence]) -> list[list[tuple[str, str]]]:
    return [surfaces(sentence) for sentence in sentences]
