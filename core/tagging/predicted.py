"""Entities that a `predict` run found, at their place in the user's file."""

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from core.corpora.corpus import Corpus
from core.corpora.readers import ReadReport as ReadReport
from core.corpora.readers import read
from core.corpora.writers import harmless
from core.errors import CorpusError, RunError, WinnowError
from core.files import replacing
from core.importing.add import AddConfig, reading
from core.projects.audit import exporting
from core.projects.home import library, store
from core.tagging import predictions
from core.text.sentence import Sentence
from core.text.source import Places, Source

ENDINGS = (".jsonl", ".csv", ".conll")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntity:
    """Entity. start, end: characters of its sentence's `text`, so that `text[start:end]` is the entity.

    line: line of the file where it begins. file_start, file_end: characters of the whole file, None unless that is
    plain text. first_token, end_token: tokens of the sentence. All ends are exclusive.
    """

    start: int
    end: int
    text: str
    type: str
    confidence: float
    line: int | None
    file_start: int | None
    file_end: int | None
    first_token: int
    end_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSentence:
    """Sentence with its entities. text: as in the file. file, line, page: where it begins, None if unknown."""

    id: str
    file: str | None
    line: int | None
    page: int | None
    text: str
    tokens: tuple[str, ...]
    entities: tuple[FoundEntity, ...]


@exporting
def write(run_id: str, path: Path, given: str = "", report: ReadReport | None = None) -> None:
    """Write the entities of a finished `predict` run: sentences as .jsonl, entities as .csv. Arguments: see `found`."""
    with replacing(path) as out:
        if path.suffix == ".csv":
            _write_csv(found(run_id, given, report), out)
        else:
            lines = (json.dumps(asdict(each), ensure_ascii=False) for each in found(run_id, given, report))
            out.writelines(line.encode() + b"\n" for line in lines)


@exporting
def exported(run_id: str, given: str = "", report: ReadReport | None = None) -> Iterator[FoundSentence]:
    """Return the sentences of `found` for standard output, and log the export."""
    return found(run_id, given, report)


def found(run_id: str, given: str = "", report: ReadReport | None = None) -> Iterator[FoundSentence]:
    """Yield the sentences that a finished `predict` run tagged, in order.

    given: tagged file or folder. It is read again, because a corpus keeps cleaned text. Without it, or if it has
    changed, places refer to the cleaned text. report: counts unreadable rows, complete after the last sentence.
    """
    run = store().get(run_id)
    lines = predictions.lines(run)
    corpus = library().find(str(run.manifest.config["corpus"]))
    for sentence, line in zip(_sentences(corpus, given, report or ReadReport()), lines, strict=False):
        yield _found(sentence, line)


def _sentences(corpus: Corpus, given: str, report: ReadReport) -> Iterator[Sentence]:
    """Yield the corpus's sentences, with their source while the file still has the same text."""
    stored = chain.from_iterable(corpus.batches())
    again = _read_again(corpus, given, report)
    for sentence in stored:
        # The file also has sentences that the import left out, for example because a label was lost.
        own = next((each for each in again if each.id == sentence.id), None)
        yield own or sentence
    deque(again, maxlen=0)  # read to the end, so that the report is complete


def _read_again(corpus: Corpus, given: str, report: ReadReport) -> Iterator[Sentence]:
    """Yield the sentences of a corpus's file; none if it is gone or cannot be read."""
    with suppress(WinnowError, OSError):
        config = AddConfig(path=str(Path(given).absolute())) if given else _import(corpus)
        if config and Path(config.path).exists():
            yield from read(Path(config.path), reading(config), report=report, sources=True)


def _import(corpus: Corpus) -> AddConfig | None:
    """Return the options of the import that made a corpus."""
    try:
        run = store().get(str(corpus.origin.get("run", "")))
    except RunError:
        return None
    return AddConfig(**run.manifest.config) if run.manifest.kind == "add" else None


def _found(sentence: Sentence, line: predictions.Line) -> FoundSentence:
    source = sentence.source or Source(text=sentence.text)
    places = Places(sentence.text, source)
    tokens = _token_places(sentence.text, line.tokens)
    entities = []
    for entity in line.entities:
        start, end = places.span(tokens[entity.start][0], tokens[entity.end - 1][1])
        entities.append(
            FoundEntity(
                start=start,
                end=end,
                text=source.text[start:end],
                type=entity.type,
                confidence=entity.confidence,
                line=source.line_at(start),
                file_start=None if source.at is None else source.at + start,
                file_end=None if source.at is None else source.at + end,
                first_token=entity.start,
                end_token=entity.end,
            )
        )
    return FoundSentence(
        id=line.id,
        file=sentence.file or source.file,
        line=source.line_at(source.start),
        page=sentence.page,
        text=source.text.rstrip("\r\n"),
        tokens=line.tokens,
        entities=tuple(entities),
    )


def _token_places(text: str, tokens: Iterable[str]) -> list[tuple[int, int]]:
    """Return start and end of each token, in characters. Errors: CorpusError if a token is not in the text."""
    places, at = list[tuple[int, int]](), 0
    for token in tokens:
        start = text.find(token, at)
        if start < 0:
            raise CorpusError("a sentence's tokens are not in its text; import the file again, then predict again.")
        at = start + len(token)
        places.append((start, at))
    return places


_COLUMNS = ("file", "line", "page", "start", "end", "text", "type", "confidence", "file_start", "file_end", "sentence")


def _write_csv(sentences: Iterable[FoundSentence], out: BinaryIO) -> None:
    """Write one entity per row. Text that a spreadsheet would run as a formula gets a quote in front."""
    text = TextIOWrapper(out, encoding="utf-8-sig", newline="")  # Excel recognises UTF-8 by this mark alone
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for sentence in sentences:
        where = {"file": sentence.file, "page": sentence.page, "sentence": sentence.id}
        for entity in sentence.entities:
            row = {**asdict(entity), **where}
            writer.writerow({name: harmless(value) for name, value in row.items()})
    text.detach()
