"""Read the text layer of a PDF, letter by letter with its position, with PDFium (the PDF reader of Chromium).

Some fonts map ligatures to no character. Such an unmapped letter appears as U+FFFD or as a private-use character.
`restore` counts the unmapped letters within words. It replaces such a letter if exactly one ligature gives a word that
occurs elsewhere in the document. `restore_from` also uses words of other documents of the same import.
"""

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import pairwise, product
from statistics import median
from typing import Any, BinaryIO

from core.corpora.documents.extract import MAX_CHARACTERS, Extract, Paragraph, sound
from core.corpora.documents.layout import Piece, laid_out
from core.errors import ReadError

UNMAPPED = "\ufffd"
_LIGATURES = ("fi", "fl", "ff", "ffi", "ffl", "ft", "fft", "fj", "tt", "ti", "tti", "tf", "ct", "st", "sp", "Th", "Qu")
# Maximum number of different unmapped letters in a word; a word with more is not restored.
_MOST = 2
# A private-use character is restored in all words if at least two words show that it is the same ligature.
_ENOUGH = 2
_HOLE = "\ufffd\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_HOLES = re.compile(f"[{_HOLE}]")
_RUN = re.compile(rf"[\w{_HOLE}]+")
_WORD, _LETTER = re.compile(r"[^\W\d_]+"), re.compile(r"[^\W\d_]")
# Scripts from right to left: Hebrew, Arabic, Syriac, Thaana and N'Ko, with presentation forms of the first two.
_LEFTWARDS = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
MAX_PAGES = 5_000
# Characters that PDFium returns if a word is divided at the end of a line.
_HYPHENS = "\x02\ufffe\xad"
# A gap wider than the height of a letter separates columns or cells.
_GAP = 1.0


def restore(extract: Extract) -> None:
    """Restore the unmapped letters of a document that exactly one ligature can replace, and count all unmapped letters.

    The text and the counts of `extract` are changed.
    """
    words = Counter[str](word for each in extract.paragraphs for word in _broken(each.text))
    if words:
        left = _restored(extract, words, vocabulary(extract))
        extract.unmapped = _n_holes(words)
        extract.restored = extract.unmapped - left


def restore_from(extract: Extract, known: Set[str]) -> None:
    """Restore further unmapped letters of `extract`, in place. known: words of other documents, in lower case."""
    words = Counter[str](word for each in extract.paragraphs for word in _broken(each.text))
    if words:
        extract.restored = extract.unmapped - _restored(extract, words, vocabulary(extract) | known)


def vocabulary(extract: Extract) -> set[str]:
    """Return the words of a document in lower case, without words that have an unmapped letter."""
    texts = (
        _RUN.sub(lambda run: " " if _is_broken(run[0]) else run[0], text) if _HOLES.search(text) else text
        for text in (each.text for each in extract.paragraphs)
    )
    return {word.lower() for text in texts for word in _WORD.findall(text)}


def _restored(extract: Extract, words: Counter[str], known: Set[str]) -> int:
    """Restore unmapped letters that exactly one ligature can replace. Return the number of letters not restored.

    words: counts of the words that have unmapped letters. known: words without unmapped letters, in lower case.
    """
    readings = _readings(words, known)
    for paragraph in extract.paragraphs:
        _rewrite(paragraph, readings)
    return _n_holes(Counter({readings.get(word, word): n for word, n in words.items()}))


def _n_holes(words: Counter[str]) -> int:
    return sum(n * len(_HOLES.findall(word)) for word, n in words.items())


def _broken(text: str) -> list[str]:
    """Return the words that have an unmapped letter."""
    return [run for run in _RUN.findall(text) if _is_broken(run)] if _HOLES.search(text) else []


def _is_broken(run: str) -> bool:
    return bool(_HOLES.search(run) and _LETTER.search(run))


def _readings(words: Mapping[str, int], known: Set[str]) -> dict[str, str]:
    """Return {word: restored word} for the words in which unmapped letters can be restored.

    A word can be restored if exactly one choice of ligatures gives a known word. A private-use character is restored in
    all words if at least `_ENOUGH` words show that it is the same ligature.
    words: counts of the words that have unmapped letters. known: words without unmapped letters, in lower case.
    """
    readings, letters = dict[str, str](), defaultdict[str, Counter[str]](Counter)
    for word in words:
        holes = list(dict.fromkeys(_HOLES.findall(word)))
        if len(holes) > _MOST:
            continue
        fitting = [
            dict(zip(holes, chosen, strict=True))
            for chosen in product(_LIGATURES, repeat=len(holes))
            if _filled(word, dict(zip(holes, chosen, strict=True))).lower() in known
        ]
        if len(fitting) == 1:
            readings[word] = _filled(word, fitting[0])
            for hole, ligature in fitting[0].items():
                letters[hole][ligature] += 1
    sure = {
        hole: next(iter(counts))
        for hole, counts in letters.items()
        if hole != UNMAPPED and len(counts) == 1 and counts.total() >= _ENOUGH
    }
    return {word: _filled(word, sure) for word in words if not sure.keys().isdisjoint(word)} | readings


def _filled(word: str, letters: Mapping[str, str]) -> str:
    return "".join(letters.get(letter, letter) for letter in word)


def _rewrite(paragraph: Paragraph, readings: Mapping[str, str]) -> None:
    """Replace words of a paragraph by restored words, and adjust the positions at which its pages begin."""
    if not _HOLES.search(paragraph.text):
        return
    starts = [0, *(start for start, _ in paragraph.pages if start), len(paragraph.text)]
    parts = [paragraph.text[a:b] for a, b in pairwise(starts)]
    parts = [_RUN.sub(lambda found: readings.get(found[0], found[0]), part) for part in parts]
    moved = {start: sum(map(len, parts[:i])) for i, start in enumerate(starts)}
    paragraph.pages = [(moved[start], page) for start, page in paragraph.pages]
    paragraph.text = "".join(parts)


def read_pdf(file: BinaryIO, name: str, most: int | None = None) -> Extract:
    """Read the text of a PDF. most: number of pages to read, None for all. Errors: ReadError."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(file.read())
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise ReadError(name, None, "is protected by a password; save it without one.") from error
        raise ReadError(
            name, None, "is damaged, cut off or not a PDF; copy it again, or print it to PDF again."
        ) from error
    with document:
        n = len(document)
        if n > MAX_PAGES:
            raise ReadError(name, None, f"has {n:,} pages, more than {MAX_PAGES:,}; divide it.")
        if not n:
            raise ReadError(name, None, "has no pages; print it to PDF again.")
        pages, room = list[list[Piece]](), MAX_CHARACTERS
        for number in range(n if most is None else min(n, most)):
            pages.append(_pieces(document, number))
            room -= sum(len(piece.text) for piece in pages[-1])
            if room < 0:
                raise ReadError(name, None, f"has more than {MAX_CHARACTERS:,} characters of text; divide the file.")
    extract = laid_out(pages)
    extract.pages = len(pages)
    restore(extract)
    if n := sum(len(_LEFTWARDS.findall(each.text)) for each in extract.paragraphs):
        # PDFs store such letters in different orders, and lines are put together from left to right.
        extract.remarks.append(
            f"{n:,} letters of a script from right to left, which are probably in the wrong order; import the document "
            "as .docx, .html or .txt instead"
        )
    return extract


def _pieces(document: Any, number: int) -> list[Piece]:
    """Return the pieces of text on page `number` (from 0), in the file's order; [] if the page is damaged."""
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
    """Yield (index, letter) for each letter, and (index, None) for each line break."""
    from pypdfium2 import raw

    box = raw.FS_RECTF()
    place = ctypes.byref(box)
    for index in range(raw.FPDFText_CountChars(text)):
        code = raw.FPDFText_GetUnicode(text, index)
        letter = chr(code) if 0 < code < 0x110000 else UNMAPPED  # PDFium returns 0 for a glyph without a character
        if letter in "\r\n":
            yield index, None
        elif raw.FPDFText_GetLooseCharBox(text, index, place):
            letter = "\xad" if letter in _HYPHENS else letter
            if letter.isspace() or box.right > box.left or box.top > box.bottom:
                yield index, Piece(letter, box.left, box.bottom, box.right, box.top)


def _runs(text: object, letters: Iterator[tuple[int, Piece | None]]) -> Iterator[tuple[int, Piece]]:
    """Join letters that are close to each other on a line into pieces. Yield (angle in quarter turns, piece)."""
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
                yield angle, _with_median_height(piece, boxes, angle)
            piece, boxes = letter, []
            if letter:
                angle = round(raw.FPDFText_GetCharAngle(text, index) / 1.5708) % 4
        if letter:
            boxes.append((letter.left, letter.bottom, letter.right, letter.top))
        blank = ""
    if piece:
        yield angle, _with_median_height(piece, boxes, angle)


def _with_median_height(piece: Piece, boxes: Sequence[tuple[float, float, float, float]], angle: int) -> Piece:
    """Set a piece's height to the median height of its letters, to ignore tall brackets or the low E in "LaTeX"."""
    left, bottom, right, top = (median(sides) for sides in zip(*boxes, strict=True))
    if angle % 2:
        piece.left, piece.right = left, right
    else:
        piece.bottom, piece.top = bottom, top
    return piece


def _follows(piece: Piece, letter: Piece, angle: int) -> bool:
    if angle % 2:  # the text runs upwards or downwards
        wide = min(piece.right - piece.left, letter.right - letter.left)
        side = min(piece.right, letter.right) - max(piece.left, letter.left)
        return side > 0.5 * wide and max(letter.bottom - piece.top, piece.bottom - letter.top) < _GAP * 2 * wide
    high = min(piece.top - piece.bottom, letter.top - letter.bottom)
    level = min(piece.top, letter.top) - max(piece.bottom, letter.bottom)
    return level > 0.5 * high and -2 * high < letter.left - piece.right < _GAP * (piece.top - piece.bottom)


def _upright(runs: list[tuple[int, Piece]]) -> list[Piece]:
    """Return the pieces in the reading direction of most letters, rotated upright. Stamps in margins are dropped."""
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
