"""Write a report as HTML, as a Word document (DOCX), or as PDF.

HTML is a single file without scripts or remote content; all text is escaped. A PDF embeds its fonts. Its text is set in
the largest of several sizes in which the report fits two pages.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from core.experiment.report.parts import (
    BOLD,
    MISSING,
    REGULAR,
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
    body,
    further,
    glyphs,
    leftwards,
    settable,
    visual_order,
)
from core.shown import shown

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1d1f24, #e6e6e6); background: light-dark(#fff, #15171c); color-scheme: light dark; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 1.4rem; }
.word { font-size: 1.9rem; font-weight: 700; margin: .4rem 0 0; }
.answer { font-size: 1.3rem; line-height: 1.35; margin: .3rem 0 .6rem; }
.about { font-size: .9em; margin-top: .2rem; } p { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.leading { border-left: 5px solid #0072B2; padding-left: 1rem; }
blockquote { margin: .8rem 0 .2rem; font-style: italic; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92em; } div { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8888; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { overflow-wrap: anywhere; font-size: .85em; } svg { width: 100%; height: auto; } svg text { fill: currentColor; }
.second { border-top: 1px solid #8888; margin-top: 2.5rem; }
h2 { break-after: avoid; } svg, tr, dl { break-inside: avoid; }
@page { margin: 16mm; }
@media print { body { margin: 0; max-width: none; font-size: 10.5px; line-height: 1.35; padding: 0; }
  h2 { margin: .7rem 0 .2rem; font-size: 13px; }
  .word { font-size: 20px; } .answer { font-size: 15px; }
  p, dl, ul, blockquote { margin: .25rem 0; } svg { width: 80%; }
  th, td { padding: .1rem .5rem; } code { font-size: 9px; }
  .second { break-before: page; border-top: 0; margin-top: 0; } }
"""


def html(document: Document) -> str:
    """Return the report as one HTML document."""
    about = "".join(f'<p class="about">{_escaped(line)}</p>' for line in (document.cover.line, document.about) if line)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_escaped(document.title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>{_escaped(document.title)}</h1>"
        f'{_html_word(document)}<p class="answer">{_escaped(document.answer)}</p>{about}'
        f"{''.join(map(_html_part, document.first))}"
        f'<section class="second">{"".join(map(_html_part, document.second))}</section></body></html>\n'
    )


def _html_word(document: Document) -> str:
    if not document.word:
        return ""
    return f'<p class="word" style="color: light-dark({", ".join(document.colours)})">{_escaped(document.word)}</p>'


def _html_part(part: Part) -> str:
    if isinstance(part, Picture):
        return _svg(part.drawing, part.words)
    if isinstance(part, Table):
        return _html_table(part)
    if isinstance(part, Facts | Items):
        return _named(part)
    text = _escaped(part.text)
    if isinstance(part, Heading):
        return f"<h2>{text}</h2>"
    if isinstance(part, Quote):
        return f"<blockquote>{text}</blockquote>"
    if isinstance(part, Code):
        text = f"<code>{text}</code>"
    elif part.strong:
        text = f"<strong>{text}</strong>"
    return f"<p>{text}</p>"


def _named(part: Facts | Items) -> str:
    pairs = [(_escaped(name), _escaped(words)) for name, words in part.rows]
    if isinstance(part, Items):
        return f"<ul>{''.join(f'<li><strong>{name}</strong>: {words}</li>' for name, words in pairs)}</ul>"
    rows = "".join(f"<dt>{name}</dt><dd>{words}</dd>" for name, words in pairs)
    return f'<dl class="leading">{rows}</dl>' if part.leading else f"<dl>{rows}</dl>"


def _html_table(part: Table) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if i in part.numbers else ''}>{_escaped(value)}</{tag}>"
            for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in part.rows)
    return f"<div><table><thead><tr>{cells('th', part.heads)}</tr></thead><tbody>{body}</tbody></table></div>"


def _svg(drawing: Drawing, words: str) -> str:
    size = f'viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    return f'<svg role="img" aria-label="{_escaped(words)}" {size}>{"".join(map(_html_shape, drawing.shapes))}</svg>'


def _html_shape(shape: Shape) -> str:
    match shape:
        case Stroke():
            ends = f'x1="{shape.x1:.1f}" x2="{shape.x2:.1f}" y1="{shape.y1:.1f}" y2="{shape.y2:.1f}"'
            dashes = ' stroke-dasharray="4"' if shape.dashed else ""
            return f'<line {ends} stroke="{shape.colour}" stroke-width="{shape.width:g}"{dashes}/>'
        case Dot():
            return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" fill="{shape.colour}"/>'
        case Label():
            weight = ' font-weight="bold"' if shape.bold else ""
            place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" text-anchor="{shape.anchor}"'
            return f'<text {place} font-size="{shape.size:g}"{weight}>{_escaped(shape.text)}</text>'


def _escaped(text: str) -> str:
    return escape(shown(text))


if TYPE_CHECKING:
    from docx.document import Document as Word

SHARP = 3  # pixels per unit of a drawing, for pictures in DOCX
INK = "#1d1f24"


def docx(document: Document) -> bytes:
    """Return the report as a Word document (DOCX)."""
    from docx import Document as new
    from docx.shared import Mm, Pt, RGBColor

    word = new()
    section = word.sections[0]
    section.page_width, section.page_height = Mm(210), Mm(297)
    section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Mm(18)
    word.styles["Normal"].font.size = Pt(9.5)
    word.styles["Normal"].paragraph_format.space_after = Pt(3)
    word.core_properties.title, word.core_properties.author = document.title, shown(document.cover.author)
    word.core_properties.comments = ""
    word.add_heading(document.title, 0)
    if document.word:
        run = word.add_paragraph().add_run(document.word)
        run.bold, run.font.size, run.font.color.rgb = True, Pt(19), RGBColor.from_string(document.colours[0][1:])
    word.add_paragraph().add_run(shown(document.answer)).font.size = Pt(13)
    for line in (document.cover.line, document.about):
        if line:
            word.add_paragraph(shown(line))
    for part in document.first:
        _add(word, part)
    word.add_paragraph().paragraph_format.page_break_before = True
    for part in document.second:
        _add(word, part)
    file = BytesIO()
    word.save(file)
    return file.getvalue()


def _add(word: "Word", part: Part) -> None:
    match part:
        case Heading():
            word.add_heading(part.text, 1)
        case Text():
            word.add_paragraph().add_run(shown(part.text)).bold = part.strong
        case Quote():
            word.add_paragraph().add_run(f"“{shown(part.text)}”").italic = True
        case Code():
            word.add_paragraph().add_run(shown(part.text)).font.name = "Courier New"
        case Facts():
            _rows(word, part.rows)
        case Items():
            for name, words in part.rows:
                line = word.add_paragraph(style="List Bullet")
                line.add_run(shown(name)).bold = True
                line.add_run(f": {shown(words)}")
        case Picture():
            _picture(word, part)
        case Table():
            _table(word, part)


def _rows(word: "Word", rows: Sequence[tuple[str, str]]) -> None:
    from docx.shared import Mm

    table = word.add_table(rows=0, cols=2)
    for name, words in rows:
        left, right = table.add_row().cells
        left.width, right.width = Mm(32), Mm(142)
        left.paragraphs[0].add_run(shown(name)).bold = True
        right.paragraphs[0].add_run(shown(words))


def _table(word: "Word", part: Table) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    table = word.add_table(rows=0, cols=len(part.heads), style="Light List")
    for values in (part.heads, *part.rows):
        for number, (cell, value) in enumerate(zip(table.add_row().cells, values, strict=True)):
            cell.paragraphs[0].add_run(shown(value))
            if number in part.numbers:
                cell.paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.RIGHT


def _picture(word: "Word", part: Picture) -> None:
    from docx.shared import Mm

    width = min(170.0, 230.0 * part.drawing.width / part.drawing.height)  # mm; the picture must fit on a page
    inline = word.add_picture(BytesIO(_png(part.drawing)), width=Mm(width))
    inline._inline.docPr.set("descr", shown(part.words))


def _png(drawing: Drawing) -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (round(drawing.width * SHARP), round(drawing.height * SHARP)), "white")
    pen = ImageDraw.Draw(image)
    for shape in drawing.shapes:
        match shape:
            case Stroke():
                ends = [value * SHARP for value in (shape.x1, shape.y1, shape.x2, shape.y2)]
                pen.line(ends, fill=shape.colour, width=round(shape.width * SHARP))
            case Dot():
                x, y, r = shape.x * SHARP, shape.y * SHARP, shape.radius * SHARP
                pen.ellipse((x - r, y - r, x + r, y + r), fill=shape.colour)
            case Label():
                font = ImageFont.truetype(str(BOLD if shape.bold else REGULAR), round(shape.size * SHARP))
                anchor = "rs" if shape.anchor == "end" else "ms"
                pen.text((shape.x * SHARP, shape.y * SHARP), settable(shape.text), fill=INK, font=font, anchor=anchor)
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


if TYPE_CHECKING:
    from fpdf import FPDF
    from fpdf.fonts import FontFace
    from fpdf.table import Table as Grid

# Font sizes to try, in points. If the last is too large for two pages, use more pages.
SIZES = (9.5, 8.8, 8.2, 7.6)
# Widths in mm: of the margin, and of the column of questions.
MARGIN, NAMES = 16.0, 30.0
# Length of a typographic point in mm.
POINT = 25.4 / 72
BLUE = (0, 114, 178)


def pdf(document: Document) -> bytes:
    """Return the report as a PDF file, in the largest size that fits two pages."""
    for size in SIZES[:-1]:
        with closing(_Pages(document, size)) as pages:
            if pages.n <= 2:
                return pages.data()
    with closing(_Pages(document, SIZES[-1])) as pages:
        return pages.data()


class _Pages:
    """The pages of a report as PDF, set in one font size. n: number of pages."""

    def __init__(self, document: Document, size: float) -> None:
        from fpdf import FPDF

        self._size, self._line, self._missing = size, size * POINT * 1.32, 0
        self._pdf = FPDF()
        self._more: dict[tuple[Path, int], frozenset[int]] = {}  # {(file, index) of a further font: its code points}
        _prepare(self._pdf, document)
        self._pdf.add_page()
        self._font(size + 5, bold=True)
        self._write(document.title, size + 5)
        if document.word:
            self._font(size + 8, bold=True)
            self._pdf.set_text_color(document.colours[0])
            self._write(document.word, size + 8)
            self._pdf.set_text_color(0)
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
                    f"{MISSING} replaces {self._missing:,} characters that no font of Winnow or of this machine has, "
                    "or that are in a picture. The HTML and DOCX reports contain these characters."
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
        """Return `text` on one line, and add the fonts that it needs. Characters that no font has become `MISSING`."""
        ready = "".join(char if self._has(char) else MISSING for char in shown(text))
        if leftwards(ready) or self._more:
            self._pdf.set_text_shaping(True)  # In some scripts, the shape of a letter depends on its neighbours.
        return self._counted(text, visual_order(ready))

    def _counted(self, text: str, ready: str) -> str:
        self._missing += ready.count(MISSING) - text.count(MISSING)
        return ready

    def _has(self, char: str) -> bool:
        code = ord(char)
        if code in body() or any(code in has for has in self._more.values()):
            return True
        for path, number in further(char):
            if code in (has := glyphs(path, number)):
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
        # Limit the width of columns with long text, which is then wrapped, so that numbers fit on one line.
        kept = [min(each, 60.0) + 3.2 for each in wide]
        sides = ["RIGHT" if i in part.numbers else "LEFT" for i in range(len(kept))]
        with self._grid(kept, "HORIZONTAL_LINES", sides) as table:
            for number, values in enumerate(cells):
                row = table.row()
                for value in values:
                    row.cell(value, style=None if number else self._bold())

    def _drawing(self, drawing: Drawing) -> None:
        page = self._pdf
        scale = min(page.epw / drawing.width, (page.eph - 3) / drawing.height)  # The drawing must fit on a page.
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
                words = self._counted(shape.text, settable(shape.text))  # `FPDF.text` does not use fallback fonts.
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
