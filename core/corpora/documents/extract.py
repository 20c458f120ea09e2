"""Result of a document reader: paragraphs in reading order with their pages, and counts of text that was left out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from core.errors import ReadError

# Maximum size of a document, in bytes.
MAX_DOCUMENT = 200 << 20
# Maximum number of characters in the text of one document.
MAX_CHARACTERS = 50_000_000
# A table row of up to 300 characters becomes one paragraph; a longer row becomes one paragraph per cell.
_ROW = 300
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


@dataclass(slots=True)
class Paragraph:
    """A paragraph of a document.

    pages: (position in `text` at which a page begins, page number from 1) for each page; [] for a document without
    pages.
    """

    text: str
    pages: list[tuple[int, int]] = field(default_factory=list)

    def page(self, at: int) -> int | None:
        """Return the number of the page that has character `at` of `text`; None if the document has no pages."""
        return next((page for start, page in reversed(self.pages) if start <= at), None)


@dataclass(slots=True)
class Extract:
    """Paragraphs of a document, and counts for the report.

    pages: number of pages, None if the document has no fixed pages. blank: page numbers (from 1) of the pages without
    text. margins: number of lines that were left out because they are running heads or page numbers. remarks: notes on
    other content that was left out. unmapped: number of letters (within words) that the font maps to no character.
    restored: number of these letters that were restored (see `pdf`).
    """

    paragraphs: list[Paragraph] = field(default_factory=list)
    pages: int | None = None
    blank: list[int] = field(default_factory=list)
    margins: int = 0
    remarks: list[str] = field(default_factory=list)
    unmapped: int = 0
    restored: int = 0

    def written(self) -> dict[str, Any]:
        """Return the extract as JSON values, to send it to another process."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "paragraphs": [[each.text, each.pages] for each in self.paragraphs]}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        """Return the extract from the JSON values that `written` returned."""
        paragraphs = [
            Paragraph(str(text), [(int(at), int(page)) for at, page in pages]) for text, pages in written["paragraphs"]
        ]
        return cls(**{**written, "paragraphs": paragraphs})


class Flow:
    """Collects the paragraphs of a document.

    A document reader calls its methods for text, and for the start and end of each paragraph, table row and cell.
    name: name of the file, for errors. page: number of the current page; None if the document has no pages.
    """

    def __init__(self, name: str) -> None:
        self.page: int | None = None
        self._name, self._room = name, MAX_CHARACTERS
        self._paragraphs: list[Paragraph] = []
        self._open: list[list[str]] = [[]]
        self._rows: list[list[list[Paragraph]]] = []

    def add(self, text: str) -> None:
        """Add text to the open paragraph. Errors: ReadError for more than `MAX_CHARACTERS` in the document."""
        self._room -= len(text)
        if self._room < 0:
            raise ReadError(self._name, None, f"more than {MAX_CHARACTERS:,} characters of text; divide the file.")
        self._open[-1].append(text)

    def begin(self) -> None:
        """Begin a paragraph, which may be inside another paragraph (a text box)."""
        self._open.append([])

    def end(self) -> None:
        """End the innermost open paragraph."""
        if len(self._open) > 1:
            self._keep(self._open.pop())

    def flush(self) -> None:
        """End the open paragraph and begin the next one."""
        self._keep(self._open[-1])
        self._open[-1] = []

    def row(self) -> None:
        self._rows.append([])

    def cell(self) -> None:
        if self._rows:
            self._rows[-1].append([])

    def end_row(self) -> None:
        if not self._rows:
            return
        cells = self._rows.pop()
        inside = [paragraph for cell in cells for paragraph in cell]
        short = all(len(cell) <= 1 for cell in cells) and sum(len(each.text) for each in inside) <= _ROW
        if short and inside:
            inside = [Paragraph("\t".join(each.text for each in inside), inside[0].pages)]
        self._target().extend(inside)

    def paragraphs(self) -> list[Paragraph]:
        """End the document and return all its paragraphs, including those that a damaged file did not end."""
        while len(self._open) > 1:
            self.end()
        self.flush()
        while self._rows:
            self.end_row()
        return self._paragraphs

    def _keep(self, parts: list[str]) -> None:
        if text := sound("".join(parts)).strip():
            self._target().append(Paragraph(text, [] if self.page is None else [(0, self.page)]))

    def _target(self) -> list[Paragraph]:
        return self._rows[-1][-1] if self._rows and self._rows[-1] else self._paragraphs


def sound(text: str) -> str:
    """Return `text` without control characters, and with "?" for each half of a surrogate pair."""
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode()
