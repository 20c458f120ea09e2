"""A report as a Word document."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from core.experiment.report.fonts import BOLD, REGULAR, settable
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
    Stroke,
    Table,
    Text,
)
from core.shown import shown

if TYPE_CHECKING:
    from docx.document import Document as Word

SHARP = 3  # pixels per unit of a drawing
INK = "#1d1f24"


def docx(document: Document) -> bytes:
    """Return the report as a file."""
    from docx import Document as new
    from docx.shared import Mm, Pt

    word = new()
    section = word.sections[0]
    section.page_width, section.page_height = Mm(210), Mm(297)
    section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Mm(18)
    word.styles["Normal"].font.size = Pt(9.5)
    word.styles["Normal"].paragraph_format.space_after = Pt(3)
    word.core_properties.title, word.core_properties.author = document.title, shown(document.cover.author)
    word.core_properties.comments = ""
    word.add_heading(document.title, 0)
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

    width = min(170.0, 230.0 * part.drawing.width / part.drawing.height)  # at most a page
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
