"""A report as PDF with embedded fonts: two pages, in a smaller size if needed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING

from core.experiment.report import fonts
from core.experiment.report.fonts import BOLD, MISSING, REGULAR, settable
from core.experiment.report.parts import (
    Code,
    Document,
    Dot,
    Drawing,
    Facts,
    Heading,
    Items,
    Label,
    Part,
    Picture,
    Quote,
    Shape,
    Stroke,
    Table,
    Text,
)
from core.shown import shown

if TYPE_CHECKING:
    from fpdf import FPDF
    from fpdf.fonts import FontFace
    from fpdf.table import Table as Grid

SIZES = (9.5, 8.8, 8.2, 7.6)  # points; a report that does not fit two pages in the last size takes more pages
MARGIN, NAMES = 16.0, 30.0  # mm; widths of the margin and of the column of questions
POINT = 25.4 / 72  # mm
BLUE = (0, 114, 178)


def pdf(document: Document) -> bytes:
    """Return the report as a file."""
    for size in SIZES[:-1]:
        with closing(_Pages(document, size)) as pages:
            if pages.n <= 2:
                return pages.data()
    with closing(_Pages(document, SIZES[-1])) as pages:
        return pages.data()


class _Pages:
    """A document set in one font size. n: number of pages."""

    def __init__(self, document: Document, size: float) -> None:
        from fpdf import FPDF

        self._size, self._line, self._missing = size, size * POINT * 1.32, 0
        self._pdf = FPDF()
        self._more: dict[tuple[Path, int], frozenset[int]] = {}  # further fonts and their characters
        _prepare(self._pdf, document)
        self._pdf.add_page()
        self._font(size + 5, bold=True)
        self._write(document.title, size + 5)
        self._font(size + 3)
        self._write(document.answer, size + 3)
        self._pdf.ln(self._line * 0.3)
        for line in (document.cover.line, document.about):
            if line:
                self._font(size - 1)
                self._write(line, size - 1)
        for part in document.first:
            self._part(part)
        self._pdf.add_page()
        for part in document.second:
            self._part(part)
        if self._missing:
            self._part(
                Text(
                    f"{MISSING} stands for {self._missing:,} characters that neither Winnow's fonts nor this "
                    "machine's have, or that are in a picture; the HTML and DOCX reports have them."
                )
            )

    @property
    def n(self) -> int:
        return int(self._pdf.pages_count)

    def data(self) -> bytes:
        return bytes(self._pdf.output())

    def close(self) -> None:
        from fpdf.fonts import TTFFont

        for font in self._pdf.fonts.values():
            if isinstance(font, TTFFont):
                font.ttfont.close()

    def _font(self, size: float, *, bold: bool = False) -> None:
        self._pdf.set_font("body", "B" if bold else "", size)

    def _settable(self, text: str) -> str:
        """Return `text` on one line and add fonts for it; `MISSING` for characters that no font has."""
        ready = "".join(char if self._has(char) else MISSING for char in shown(text))
        if fonts.leftwards(ready) or self._more:
            self._pdf.set_text_shaping(True)  # shapes of letters depend on their neighbours
        return self._counted(text, fonts.visual_order(ready))

    def _counted(self, text: str, ready: str) -> str:
        self._missing += ready.count(MISSING) - text.count(MISSING)
        return ready

    def _has(self, char: str) -> bool:
        code = ord(char)
        if code in fonts.body() or any(code in has for has in self._more.values()):
            return True
        for path, number in fonts.further(char):
            if code in (has := fonts.glyphs(path, number)):
                self._pdf.add_font(f"further{len(self._more)}", "", path, collection_font_number=number)
                self._more[path, number] = has
                families = [f"further{i}" for i in range(len(self._more))]
                self._pdf.set_fallback_fonts(families, exact_match=False)
                return True
        return False

    def _write(self, text: str, size: float = 0.0) -> None:
        line = size * POINT * 1.32 if size else self._line
        self._pdf.multi_cell(0, line, self._settable(text), align="L", new_x="LMARGIN", new_y="NEXT")

    def _part(self, part: Part) -> None:
        match part:
            case Heading():
                self._pdf.ln(self._line * 0.55)
                self._font(self._size + 1.6, bold=True)
                self._write(part.text, self._size + 1.6)
            case Text() | Quote() | Code():
                if isinstance(part, Quote):
                    self._pdf.ln(self._line * 0.4)
                smaller = self._size - isinstance(part, Code)
                self._font(smaller, bold=isinstance(part, Text) and part.strong)
                self._write(f"“{part.text}”" if isinstance(part, Quote) else part.text)
            case Facts():
                self._facts(part.rows, leading=part.leading)
            case Items():
                self._facts(part.rows, leading=False)
            case Picture():
                self._drawing(part.drawing)
            case Table():
                self._table(part)

    def _facts(self, rows: Sequence[tuple[str, str]], *, leading: bool) -> None:
        self._pdf.ln(self._line * 0.3)
        page, top, width = self._pdf.page, self._pdf.get_y(), self._pdf.epw
        with self._grid((NAMES, width - NAMES), "NONE") as table:
            for name, words in rows:
                row = table.row()
                row.cell(self._settable(name), style=self._bold())
                row.cell(self._settable(words))
        if leading and page == self._pdf.page:
            self._pdf.set_draw_color(*BLUE)
            self._pdf.set_line_width(0.9)
            self._pdf.line(MARGIN - 2.5, top, MARGIN - 2.5, self._pdf.get_y())

    def _bold(self) -> "FontFace":
        from fpdf.fonts import FontFace

        return FontFace(emphasis="BOLD")

    def _grid(self, widths: Sequence[float], lines: str, align: Sequence[str] = ()) -> "AbstractContextManager[Grid]":
        self._font(self._size)
        self._pdf.set_draw_color(150)
        self._pdf.set_line_width(0.15)
        return self._pdf.table(
            col_widths=tuple(widths),
            borders_layout=lines,
            first_row_as_headings=False,
            line_height=self._line,
            text_align=tuple(align) or "LEFT",
            padding=(0.25, 1.2),
            v_align="TOP",
        )

    def _table(self, part: Table) -> None:
        self._pdf.ln(self._line * 0.3)
        self._font(self._size)
        cells = [[self._settable(value) for value in row] for row in (part.heads, *part.rows)]
        wide = [max(self._pdf.get_string_width(row[i]) for row in cells) for i in range(len(part.heads))]
        # Long columns are wrapped; columns of numbers stay on one line if there is room.
        kept = [min(each, 60.0) + 3.2 for each in wide]
        sides = ["RIGHT" if i in part.numbers else "LEFT" for i in range(len(kept))]
        with self._grid(kept, "HORIZONTAL_LINES", sides) as table:
            for number, values in enumerate(cells):
                row = table.row()
                for value in values:
                    row.cell(value, style=None if number else self._bold())

    def _drawing(self, drawing: Drawing) -> None:
        page = self._pdf
        scale = min(page.epw / drawing.width, (page.eph - 3) / drawing.height)  # at most a page
        if page.get_y() + drawing.height * scale > page.page_break_trigger:
            page.add_page()
        top = page.get_y() + 1.5
        with page.local_context():
            for shape in drawing.shapes:
                self._shape(shape, scale, top)
        page.set_y(top + drawing.height * scale)

    def _shape(self, shape: Shape, scale: float, top: float) -> None:
        page = self._pdf

        def at(x: float, y: float) -> tuple[float, float]:
            return MARGIN + x * scale, top + y * scale

        match shape:
            case Stroke():
                page.set_draw_color(shape.colour)
                page.set_line_width(shape.width * scale)
                page.set_dash_pattern(*((0.8, 0.8) if shape.dashed else (0, 0)))
                page.line(*at(shape.x1, shape.y1), *at(shape.x2, shape.y2))
            case Dot():
                page.set_fill_color(shape.colour)
                page.circle(*at(shape.x, shape.y), shape.radius * scale, style="F")
            case Label():
                self._font(shape.size * scale / POINT, bold=shape.bold)
                words = self._counted(shape.text, settable(shape.text))  # `FPDF.text` does not use further fonts
                x, y = at(shape.x, shape.y)
                page.text(x - page.get_string_width(words) / (1 if shape.anchor == "end" else 2), y, words)


def _prepare(page: "FPDF", document: Document) -> None:
    page.set_margin(MARGIN)
    page.set_auto_page_break(auto=True, margin=MARGIN)
    page.add_font("body", "", REGULAR)
    page.add_font("body", "B", BOLD)
    page.set_title(document.title)
    page.set_creator("Winnow")
    page.set_lang("en")
    page.set_author(settable(document.cover.author))
