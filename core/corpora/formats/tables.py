"""Rows of CSV and TSV files, one at a time."""

import csv
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from core.corpora.formats.ledger import TOO_LONG, Ledger, Record, short
from core.corpora.formats.source import MAX_TEXT, lines, open_stream


def table(
    path: Path, encoding: str, ledger: Ledger, separator: str | None = None, *, gaps: bool = False
) -> Iterator[Record]:
    """Rows of a CSV or TSV. A quoted cell may hold line breaks; a quote that never closes costs its row alone.

    gaps: whether an empty line is a row without values, as it is where tokens have a row each.
    A first row with a cell of five words or more, or with a tag (O, B-PER), is no header; its columns are named 1, 2,
    ...
    """
    with open_stream(path, encoding, ledger.tick) as stream:
        rows = _table_rows(_Pushback(lines(stream)), separator, ledger, gaps=gaps)
        line, header = next(rows, (0, []))
        if any(len(cell.split()) >= 5 or _TAG.fullmatch(cell.strip()) for cell in header):
            names, first = [str(i + 1) for i in range(len(header))], [(line, header)]
        else:
            names, first = [cell.strip() for cell in header], []
        for line, cells in first:
            yield line, dict(zip(names, cells, strict=True))
        for line, cells in rows:
            if not cells:
                yield line, {}
            elif len(cells) == len(names):
                yield line, dict(zip(names, cells, strict=True))
            else:
                ledger.reject(line, f"{len(cells)} columns where the header has {len(names)}", "\t".join(cells))


_TAG = re.compile(r"O|[BI]-[A-Z]{2,}\w*")  # E-mail is a column's name


class _Pushback:
    """An iterator that takes lines back."""

    def __init__(self, source: Iterator[tuple[int, bytes, bool]]) -> None:
        self._source, self.returned = source, deque[tuple[int, bytes, bool]]()

    def __iter__(self) -> Iterator[tuple[int, bytes, bool]]:
        return self

    def __next__(self) -> tuple[int, bytes, bool]:
        return self.returned.popleft() if self.returned else next(self._source)


def _table_rows(
    source: _Pushback, separator: str | None, ledger: Ledger, *, gaps: bool
) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(MAX_TEXT)
    begun = False
    for line, raw, fits in source:
        if not fits:
            ledger.reject(line, TOO_LONG.format(MAX_TEXT), raw.decode("utf-8", "replace"))
            continue
        if raw.isspace():
            if gaps and begun:
                yield line, []
            continue
        begun = True
        try:
            text = raw.decode()
            separator = separator or guess_separator(text)
            if b'"' in raw and _quote(text, separator, inside=False) == "open":
                text = _rest_of_row(text, separator, source, line, ledger)
            if text:
                yield line, next(csv.reader([text], delimiter=separator, strict=True))
        except UnicodeDecodeError as error:
            ledger.undecodable(line, error, raw)
        except csv.Error as error:
            ledger.reject(line, f"not a row of a table ({short(error)})", raw.decode("utf-8", "replace"))


def _rest_of_row(text: str, separator: str, source: _Pushback, line: int, ledger: Ledger) -> str:
    """`text` and the lines up to its closing quote; "" and the lines given back if it is not closed as it should be."""
    taken: list[tuple[int, bytes, bool]] = []
    size, state = 0, "open"
    for item in source:
        taken.append(item)
        size += len(item[1])
        state = _quote(item[1].decode("utf-8", "replace"), separator, inside=True)
        if not item[2] or size > MAX_TEXT or state != "open":
            break
    if state == "closed":
        try:
            return text + b"".join(raw for _, raw, _ in taken).decode()
        except UnicodeDecodeError as error:
            ledger.undecodable(line, error, text.encode())
            return ""
    source.returned.extendleft(reversed(taken))
    ledger.reject(line, "a quote opens a cell and is not closed before a separator or a line's end", text)
    return ""


def _quote(text: str, separator: str, *, inside: bool) -> Literal["open", "closed", "broken"]:
    """State of the quoted cells at the end of `text`; quotes within an unquoted cell mean nothing.

    broken: a quote within a quoted cell that is neither doubled nor its last character. Taken at its word,
    a quote that never closes ends here, at the next row's first, and not after that row.
    """
    at = 0
    if not inside and text.startswith('"'):
        at, inside = 1, True
    while True:
        if inside:
            at = text.find('"', at) + 1
            if not at:
                return "open"
            if text.startswith('"', at):
                at += 1
                continue
            if not text.startswith((separator, "\r", "\n"), at) and at < len(text):
                return "broken"
            inside = False
        at = text.find(separator + '"', at)
        if at < 0:
            return "closed"
        at, inside = at + 2, True


def guess_separator(header: str) -> str:
    """The one of tab, comma, semicolon and bar that the header uses most."""
    return max("\t,;|", key=header.count)
