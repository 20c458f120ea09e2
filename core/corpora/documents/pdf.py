"""The text layer of a PDF, letter by letter with its place on the page, by PDFium (Chromium's reader)."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, BinaryIO

from core.corpora.documents.extract import MAX_CHARACTERS, Extract, sound
from core.corpora.documents.layout import laid_out
from core.corpora.documents.letters import UNMAPPED, restore
from core.corpora.documents.pieces import Piece
from core.errors import ReadError

MAX_PAGES = 5_000
_HYPHENS = "\x02\ufffe\xad"  # as PDFium marks a word that is divided at the end of its line
_GAP = 1.0  # of a letter's height: a wider one parts columns and cells


def read_pdf(file: BinaryIO, name: str, most: int | None = None) -> Extract:
    """The text of a PDF's pages. most: how many of them, all if left out. Errors: ReadError."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(file.read())
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise ReadError(name, None, "is protected by a password; save it without one.") from error
        raise ReadError(
            name, None, "is damaged or was cut off, or is no PDF; copy it again, or print it anew."
        ) from error
    with document:
        n = len(document)
        if n > MAX_PAGES:
            raise ReadError(name, None, f"has {n:,} pages, more than {MAX_PAGES:,}; divide it.")
        if not n:
            raise ReadError(name, None, "has no pages; print it anew.")
        pages, room = list[list[Piece]](), MAX_CHARACTERS
        for number in range(n if most is None else min(n, most)):
            pages.append(_pieces(document, number))
            room -= sum(len(piece.text) for piece in pages[-1])
            if room < 0:
                raise ReadError(name, None, f"more than {MAX_CHARACTERS:,} characters of text; divide the file.")
    extract = laid_out(pages)
    extract.pages = len(pages)
    restore(extract)
    return extract


def _pieces(document: Any, number: int) -> list[Piece]:
    """The pieces of text of page `number` from 0, in the order of the file; none where it is damaged."""
    import pypdfium2 as pdfium

    try:
        page = document[number]
    except pdfium.PdfiumError:
        return []
    try:
        text = page.get_textpage()
        try:
            return _upright(list(_runs(text.raw, _letters(text.raw))))
        finally:
            text.close()
    except pdfium.PdfiumError:
        return []
    finally:
        page.close()


def _letters(text: object) -> Iterator[tuple[int, Piece | None]]:
    """(index, letter); a line's end is None."""
    from pypdfium2 import raw

    box = raw.FS_RECTF()
    place = ctypes.byref(box)
    for index in range(raw.FPDFText_CountChars(text)):
        code = raw.FPDFText_GetUnicode(text, index)
        letter = chr(code) if 0 < code < 0x110000 else UNMAPPED  # PDFium says 0 of a letter without a character
        if letter in "\r\n":
            yield index, None
        elif raw.FPDFText_GetLooseCharBox(text, index, place):
            letter = "\xad" if letter in _HYPHENS else letter
            if letter.isspace() or box.right > box.left or box.top > box.bottom:
                yield index, Piece(letter, box.left, box.bottom, box.right, box.top)


def _runs(text: object, letters: Iterator[tuple[int, Piece | None]]) -> Iterator[tuple[int, Piece]]:
    """(angle in quarters of a turn, piece) of letters that follow each other closely on one line."""
    from pypdfium2 import raw

    piece: Piece | None = None
    angle, blank = 0, ""
    boxes = list[tuple[float, float, float, float]]()
    for index, letter in letters:
        if letter and letter.text.isspace():
            blank = " "
            continue
        if piece and letter and _follows(piece, letter, angle):
            piece.text += blank + letter.text
            piece.left, piece.right = min(piece.left, letter.left), max(piece.right, letter.right)
            piece.bottom, piece.top = min(piece.bottom, letter.bottom), max(piece.top, letter.top)
        else:
            if piece:
                yield angle, _as_most(piece, boxes, angle)
            piece, boxes = letter, []
            if letter:
                angle = round(raw.FPDFText_GetCharAngle(text, index) / 1.5708) % 4
        if letter:
            boxes.append((letter.left, letter.bottom, letter.right, letter.top))
        blank = ""
    if piece:
        yield angle, _as_most(piece, boxes, angle)


def _as_most(piece: Piece, boxes: Sequence[tuple[float, float, float, float]], angle: int) -> Piece:
    """The piece as high as most of its letters are: not as its highest bracket, nor as low as LaTeX's E."""
    left, bottom, right, top = (median(sides) for sides in zip(*boxes, strict=True))
    if angle % 2:
        piece.left, piece.right = left, right
    else:
        piece.bottom, piece.top = bottom, top
    return piece


def _follows(piece: Piece, letter: Piece, angle: int) -> bool:
    if angle % 2:  # upwards or downwards
        wide = min(piece.right - piece.left, letter.right - letter.left)
        side = min(piece.right, letter.right) - max(piece.left, letter.left)
        return side > 0.5 * wide and max(letter.bottom - piece.top, piece.bottom - letter.top) < _GAP * 2 * wide
    high = min(piece.top - piece.bottom, letter.top - letter.bottom)
    level = min(piece.top, letter.top) - max(piece.bottom, letter.bottom)
    return level > 0.5 * high and -2 * high < letter.left - piece.right < _GAP * (piece.top - piece.bottom)


def _upright(runs: list[tuple[int, Piece]]) -> list[Piece]:
    """The pieces that run as most letters of the page do, turned upright: a stamp along the margin is no text."""
    letters: Counter[int] = Counter()
    for angle, piece in runs:
        letters[angle] += len(piece.text)
    if not letters:
        return []
    most = letters.most_common(1)[0][0]
    turn: Callable[[Piece], tuple[float, float, float, float]] = (
        lambda p: (p.left, p.bottom, p.right, p.top),
        lambda p: (p.bottom, -p.right, p.top, -p.left),
        lambda p: (-p.right, -p.top, -p.left, -p.bottom),
        lambda p: (-p.top, p.left, -p.bottom, p.right),
    )[most]
    return [Piece(text, *turn(piece)) for angle, piece in runs if angle == most and (text := sound(piece.text))]
