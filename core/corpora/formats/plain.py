"""One sentence (or document) a line, or a paragraph a document."""

from collections.abc import Iterator
from pathlib import Path

from core.corpora.formats.ledger import TOO_LONG, Ledger
from core.corpora.formats.sentences import from_text
from core.corpora.formats.source import MAX_TEXT, lines, open_stream
from core.text.sentence import Sentence


def read_lines(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """A row is a line."""
    for line, text, at in _decoded(path, ledger):
        yield from from_text(text, line, ledger.doc, ledger, at)


def read_paragraphs(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """A row is the lines up to an empty one. One of more than `MAX_TEXT` characters is cut between lines."""
    first, begins, parts, size = 1, None, list[str](), 0
    for line, text, at in _decoded(path, ledger):
        if parts and (not text.strip() or size + len(text) > MAX_TEXT):
            if text.strip():
                ledger.repair(first, 1, f"a paragraph of more than {MAX_TEXT:,} characters was cut")
            yield from from_text("".join(parts), first, ledger.doc, ledger, begins)
            parts, size = [], 0
        if text.strip():
            first, begins = (first, begins) if parts else (line, at)
            parts.append(text)
            size += len(text)
    if parts:
        yield from from_text("".join(parts), first, ledger.doc, ledger, begins)


def _decoded(path: Path, ledger: Ledger) -> Iterator[tuple[int, str, int | None]]:
    """Lines: number, text, and the characters of the file before it, None behind a line that was too long to read."""
    at: int | None = 0
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        for line, raw, fits in lines(stream):
            if not fits:
                at = None
                ledger.reject(line, TOO_LONG.format(MAX_TEXT), raw.decode("utf-8", "replace"))
                continue
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                ledger.undecodable(line, error, raw)
                at = None if at is None else at + len(raw.decode("utf-8", "replace"))
                continue
            yield line, text, at
            at = None if at is None else at + len(text)
