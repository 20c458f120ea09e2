"""What a reader takes from a document: its paragraphs in reading order, each with its pages, and what was left out."""

import re
from dataclasses import dataclass, field
from typing import Self, TypedDict

from core.errors import ReadError

MAX_DOCUMENT = 200 << 20  # bytes of one document
MAX_CHARACTERS = 50_000_000  # of its text
_ROW = 300  # characters: a table's row of short cells is one paragraph, cells of prose are one each
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


class Written(TypedDict):
    """An `Extract` as JSON holds it."""

    paragraphs: list[list[object]]
    pages: int | None
    blank: list[int]
    margins: int
    remarks: list[str]
    unmapped: int
    restored: int


@dataclass(slots=True)
class Paragraph:
    """pages: (character, page) from where on `text` stands on a page; empty where the document has none."""

    text: str
    pages: list[tuple[int, int]] = field(default_factory=list)

    def page(self, at: int) -> int | None:
        """The page on which character `at` stands."""
        return next((page for start, page in reversed(self.pages) if start <= at), None)


@dataclass(slots=True)
class Extract:
    """pages: how many there are, None where a document has no fixed ones. blank: those without text, from 1.

    margins: lines that were left out as running heads and page numbers. remarks: ends of sentences on what else was.
    unmapped: letters within words that map to no character; restored: how many of these `letters.restore` put right.
    """

    paragraphs: list[Paragraph] = field(default_factory=list)
    pages: int | None = None
    blank: list[int] = field(default_factory=list)
    margins: int = 0
    remarks: list[str] = field(default_factory=list)
    unmapped: int = 0
    restored: int = 0

    def written(self) -> Written:
        """The same as JSON holds it, for another process."""
        return {
            "paragraphs": [[each.text, each.pages] for each in self.paragraphs],
            "pages": self.pages,
            "blank": self.blank,
            "margins": self.margins,
            "remarks": self.remarks,
            "unmapped": self.unmapped,
            "restored": self.restored,
        }

    @classmethod
    def read(cls, written: Written) -> Self:
        """Document that `written` was made of."""
        paragraphs = [
            Paragraph(str(text), [(int(at), int(page)) for at, page in pages])  # type: ignore[attr-defined]
            for text, pages in written["paragraphs"]
        ]
        return cls(
            paragraphs,
            written["pages"],
            written["blank"],
            written["margins"],
            written["remarks"],
            written["unmapped"],
            written["restored"],
        )


class Flow:
    """Paragraphs as a document that flows brings them: text between a beginning and an end, in rows of cells or not."""

    def __init__(self, name: str) -> None:
        self.page: int | None = None
        self._name, self._room = name, MAX_CHARACTERS
        self._paragraphs: list[Paragraph] = []
        self._open: list[list[str]] = [[]]
        self._rows: list[list[list[Paragraph]]] = []

    def say(self, text: str) -> None:
        """More text. Errors: ReadError for more than a document may have."""
        self._room -= len(text)
        if self._room < 0:
            raise ReadError(self._name, None, f"more than {MAX_CHARACTERS:,} characters of text; divide the file.")
        self._open[-1].append(text)

    def begin(self) -> None:
        """A paragraph begins, perhaps within another (a text box)."""
        self._open.append([])

    def end(self) -> None:
        """It ends."""
        if len(self._open) > 1:
            self._keep(self._open.pop())

    def flush(self) -> None:
        """A paragraph ends if one is open; the next begins."""
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
        """All of them, once the document has ended, however it did."""
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
    """`text` without what is no character: controls, halves of surrogate pairs."""
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode()
