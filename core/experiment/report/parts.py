"""The parts of a report, independent of its format: text, tables, and drawings of intervals."""

import re
import subprocess
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.shown import shown

# Sizes in units of a drawing. WIDTH: width of the drawing. ROW: height of a row whose name has one line. BELOW: height
# of the scale below the rows. LABELS: width of the column of names. GAP: gap between names and scale. REACH: length of
# the scale. NAME: font size of a name. LINE: additional height per further line of a name.
WIDTH, ROW, BELOW = 700, 28, 44
LABELS, GAP, REACH = 250, 10, 435
NAME, LINE = 14.0, 17

# A name may take up only this share of LABELS, because fonts of browsers are wider.
ROOM = 0.84
# Share of the scale that is left empty at each end.
EDGE = 0.04
GREY = "#888888"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A straight line in a drawing, from (x1, y1) to (x2, y2)."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str = GREY
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A filled circle in a drawing."""

    x: float
    y: float
    radius: float
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label in a drawing, in the colour of the text. x: position of its end or its middle, depending on `anchor`."""

    x: float
    y: float
    text: str
    anchor: Literal["end", "middle"]
    size: float = NAME
    bold: bool = False


Shape = Stroke | Dot | Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A drawing: shapes in a rectangle. The y axis points downwards."""

    width: float
    height: float
    shapes: Sequence[Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A row of an interval plot: a value and its interval. bold: True for the main row, and for means of other rows."""

    name: str
    value: float
    low: float
    high: float
    colour: str
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Cover of a report. Empty fields are left out. date: a text that is printed unchanged."""

    firm: str = ""
    project: str = ""
    author: str = ""
    date: str = ""

    @property
    def line(self) -> str:
        """All fields that are not empty, on one line."""
        return " · ".join(part for part in (self.firm, self.project, self.author, self.date) if part)


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a section of a report."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph of a report. strong: True to print it in bold."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows (question, answer) of a report. leading: True for the main answers, which are set off by a blue line."""

    rows: Sequence[tuple[str, str]]
    leading: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A bullet list of a report: rows (name, text)."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a corpus, quoted in a report."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command line, printed in a report."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report. numbers: columns with numbers, which are aligned to the right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing in a report. words: its content in words, for readers who cannot see it."""

    drawing: Drawing
    words: str


Part = Heading | Text | Facts | Items | Quote | Code | Table | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report of two pages, independent of its format.

    title: a question. word, answer: answer to this question, in one word and in a sentence. about: text of the line
    below the answer. first: content of the page for decision-makers. second: content of the technical page.
    colours: colours of `word` on paper and on a dark page.
    """

    title: str
    answer: str
    about: str
    cover: Cover
    first: Sequence[Part]
    second: Sequence[Part]
    word: str = ""
    colours: tuple[str, str] = ("#000000", "#FFFFFF")


def intervals(rows: Sequence[Interval], unit: str) -> Drawing | None:
    """Return a drawing with one interval per row, on an axis that always includes zero; None if there are no rows.

    Long names are broken into lines. unit: label of the axis.
    """
    if not rows:
        return None
    low, high = min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows))
    step = _round_step((high - low) / 6)
    low, high = low - EDGE * (high - low), high + EDGE * (high - low)  # Keep the ends of intervals off the border.
    names = [_broken(row.name, bold=row.bold) for row in rows]
    heights = [ROW + LINE * (len(lines) - 1) for lines in names]
    factor, bottom = REACH / ((high - low) or 1), sum(heights)

    def x(value: float) -> float:
        return LABELS + GAP + (value - low) * factor

    shapes: list[Shape] = [Stroke(x1=x(0), y1=0, x2=x(0), y2=bottom, dashed=True)]
    for number, (row, lines) in enumerate(zip(rows, names, strict=True)):
        y = sum(heights[:number]) + heights[number] / 2
        first = y + 5 - LINE * (len(lines) - 1) / 2
        shapes += [
            *(
                Label(x=LABELS, y=first + LINE * i, text=line, anchor="end", bold=row.bold)
                for i, line in enumerate(lines)
            ),
            Stroke(x1=x(row.low), y1=y, x2=x(row.high), y2=y, colour=row.colour, width=4),
            Dot(x=x(row.value), y=y, radius=7 if row.bold else 6, colour=row.colour),
        ]
    shapes.append(Stroke(x1=x(low), y1=bottom, x2=x(high), y2=bottom))
    for mark in (step * i for i in range(ceil(low / step), floor(high / step) + 1)):
        shapes.append(Stroke(x1=x(mark), y1=bottom, x2=x(mark), y2=bottom + 5))
        words = f"{mark:+.4g}" if mark else "0"
        shapes.append(Label(x=x(mark), y=bottom + 19, text=words, anchor="middle", size=13))
    shapes.append(Label(x=x((low + high) / 2), y=bottom + 38, text=unit, anchor="middle", size=13))
    return Drawing(width=WIDTH, height=bottom + BELOW, shapes=shapes)


def _broken(name: str, *, bold: bool) -> list[str]:
    """Break a name into lines that fit the column. Words are broken only if they are longer than a line."""
    lines = [""]
    for word in name.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if _fits(longer, bold=bold):
            lines[-1] = longer
            continue
        lines += [""] * bool(lines[-1])
        for letter in word:
            lines += [""] * (not _fits(lines[-1] + letter, bold=bold))
            lines[-1] += letter
    return lines


def _fits(text: str, *, bold: bool) -> bool:
    return width(text, NAME, bold=bold) <= LABELS * ROOM


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least `least`."""
    power: float = 10.0 ** floor(log10(least or 1.0))
    # Tolerate rounding errors, because they could double the step and halve the number of ticks.
    return next(times * power for times in (1, 2, 5, 10) if times * power >= (least or 1.0) * 0.999)


if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "fonts"
REGULAR, BOLD = FOLDER / "DejaVuSansCondensed.ttf", FOLDER / "DejaVuSansCondensed-Bold.ttf"
FURTHER = (FOLDER / "NotoSansDevanagari-Regular.ttf",)
MISSING = "\u25a1"
# Unicode classes of letters that are written from right to left
LEFTWARDS = ("R", "AL")
# `_ENDS` finds the end of right-to-left words in a left-to-right line, and `_MARK` is inserted there. Without this mark
# (U+200E), fpdf2 prints a following number or bracket on the wrong side of the word.
_ENDS = re.compile("(?<=[\u0590-\u08ff])(?=\\s*[^\u0590-\u08ff\\s]|\\s*$)")
_MARK = "\u200e"
_PATIENCE = 5.0  # seconds that `fc-list` may take


def settable(text: str) -> str:
    """Return `text` on one line. Characters that the fonts lack or that run from right to left become `MISSING`."""
    ready = (char if ord(char) in body() and not leftwards(char) else MISSING for char in shown(text))
    return "".join(ready)


def leftwards(text: str) -> bool:
    """Return True if any character is written from right to left."""
    return any(unicodedata.bidirectional(char) in LEFTWARDS for char in text)


def visual_order(text: str) -> str:
    """Return `text` with a mark after right-to-left words in a left-to-right line, so that fpdf2 keeps the order."""
    strong = next((kind for kind in map(unicodedata.bidirectional, text) if kind in ("L", *LEFTWARDS)), "L")
    return text if strong != "L" or not leftwards(text) else _ENDS.sub(_MARK, text)


def width(text: str, size: float, *, bold: bool) -> float:
    """Return the width of a line of text in the font of the report, in the unit of `size`."""
    return float(_of_a_hundred(bold).getlength(settable(text)) * size / 100)


@cache
def _of_a_hundred(bold: bool) -> "FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(str(BOLD if bold else REGULAR), 100)


@cache
def body() -> frozenset[int]:
    """Return the code points of the characters that both fonts of the report (DejaVu, regular and bold) contain."""
    return glyphs(REGULAR, 0) & glyphs(BOLD, 0)


@cache
def glyphs(path: Path, number: int) -> frozenset[int]:
    """Return the code points of the characters in a font file; an empty set for fonts without outlines.

    number: index of the font in a collection of fonts. Errors: OSError, and errors of `fontTools` for a damaged font.
    """
    from fontTools.ttLib import TTFont

    with TTFont(path, fontNumber=number) as font:
        # Fonts of pictures, such as emojis, contain no outlines, so a PDF cannot embed them.
        return frozenset(font.getBestCmap() or ()) if {"glyf", "CFF "} & set(font.keys()) else frozenset()


def further(char: str) -> Iterator[tuple[Path, int]]:
    """Yield (file, index) of fonts with a character that the report's fonts lack: Winnow's, then installed fonts."""
    yield from ((path, 0) for path in FURTHER if ord(char) in glyphs(path, 0))
    yield from _of_this_machine(ord(char))


@cache
def _of_this_machine(code: int) -> tuple[tuple[Path, int], ...]:
    """Return (file, index) of the installed fonts with a character; () on a system without fontconfig.

    code: code point of the character.
    """
    words = ["fc-list", f":charset={code:x}:scalable=true:color=false", "file", "index", "style"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_PATIENCE)
        listed = re.findall(r"^(.+\.(?:ttf|otf|ttc)): :(?:style=(.*):)?index=(\d+)$", done.stdout, re.MULTILINE)
        # Sort upright fonts of regular weight first, then by name, so that the same font is used every time.
        plain = sorted(listed, key=lambda each: (not re.search("Regular|Book|Medium", each[1]), each))
        return tuple((Path(path), int(index) & 0xFFFF) for path, _, index in plain)
    return ()
