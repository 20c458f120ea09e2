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

# Units of a drawing.
WIDTH, ROW, BELOW = 700, 28, 44  # width of the drawing; height of a row with a one-line name; height of the scale
LABELS, GAP, REACH = 250, 10, 435  # right end of the names; gap to the scale; length of the scale
NAME, LINE = 14.0, 17  # font size of a name; height of each further line of a name
ROOM = 0.84  # share of LABELS that a name may take, because a browser's font is wider
EDGE = 0.04  # share of the scale that stays empty at each end
GREY = "#888888"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str = GREY
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label in the colour of the text. x: position of its end or its middle, as `anchor` says."""

    x: float
    y: float
    text: str
    anchor: Literal["end", "middle"]
    size: float = NAME
    bold: bool = False


Shape = Stroke | Dot | Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Shapes in a rectangle; y grows downwards."""

    width: float
    height: float
    shapes: Sequence[Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A row of the drawing: a value and its interval. bold: True for the main row, and for a mean of other rows."""

    name: str
    value: float
    low: float
    high: float
    colour: str
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Cover of a report; empty fields are left out. date: printed as given."""

    firm: str = ""
    project: str = ""
    author: str = ""
    date: str = ""

    @property
    def line(self) -> str:
        """All fields on one line."""
        return " · ".join(part for part in (self.firm, self.project, self.author, self.date) if part)


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. strong: in bold."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Questions with their answers. leading: True for the main answers of the report."""

    rows: Sequence[tuple[str, str]]
    leading: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list of names with a text each."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a corpus."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text. numbers: columns that hold numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, and its content in words for readers who cannot see it."""

    drawing: Drawing
    words: str


Part = Heading | Text | Facts | Items | Quote | Code | Table | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report. first: page for decision-makers. second: technical page.

    word, answer: answer to the question in the title, in a word and in a sentence. about: the line below the answer.
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
    """Draw one interval per row, on an axis that always includes zero; return None without rows.

    Long names are broken into lines.
    """
    if not rows:
        return None
    low, high = min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows))
    step = _round_step((high - low) / 6)
    low, high = low - EDGE * (high - low), high + EDGE * (high - low)  # no interval ends at the border
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
    """Break a name into lines that fit; break between words, or within a word that is longer than a line."""
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
    # Tolerate rounding errors, which would otherwise double the step and halve the number of marks.
    return next(times * power for times in (1, 2, 5, 10) if times * power >= (least or 1.0) * 0.999)


if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "fonts"
REGULAR, BOLD = FOLDER / "DejaVuSansCondensed.ttf", FOLDER / "DejaVuSansCondensed-Bold.ttf"
FURTHER = (FOLDER / "NotoSansDevanagari-Regular.ttf",)
MISSING = "\u25a1"
LEFTWARDS = ("R", "AL")  # Unicode's classes of letters that are written from right to left
# In a left-to-right line, the text after a right-to-left word runs from left to right again. Without a mark, fpdf2 puts
# a number or a bracket after that word on the wrong side.
_ENDS = re.compile("(?<=[\u0590-\u08ff])(?=\\s*[^\u0590-\u08ff\\s]|\\s*$)")
_MARK = "\u200e"
_PATIENCE = 5.0  # seconds that `fc-list` may take


def settable(text: str) -> str:
    """Return `text` on one line, with `MISSING` for characters that the fonts lack or that run from right to left."""
    ready = (char if ord(char) in body() and not leftwards(char) else MISSING for char in shown(text))
    return "".join(ready)


def leftwards(text: str) -> bool:
    """Return True if any character is written from right to left."""
    return any(unicodedata.bidirectional(char) in LEFTWARDS for char in text)


def visual_order(text: str) -> str:
    """Add marks after right-to-left words in a left-to-right line, so that fpdf2 keeps the right order."""
    strong = next((kind for kind in map(unicodedata.bidirectional, text) if kind in ("L", *LEFTWARDS)), "L")
    return text if strong != "L" or not leftwards(text) else _ENDS.sub(_MARK, text)


def width(text: str, size: float, *, bold: bool) -> float:
    """Return the width of a line in the body's font, in the unit of `size`."""
    return float(_of_a_hundred(bold).getlength(settable(text)) * size / 100)


@cache
def _of_a_hundred(bold: bool) -> "FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(str(BOLD if bold else REGULAR), 100)


@cache
def body() -> frozenset[int]:
    """Return the characters that both DejaVu fonts have."""
    return glyphs(REGULAR, 0) & glyphs(BOLD, 0)


@cache
def glyphs(path: Path, number: int) -> frozenset[int]:
    """Return the characters of a font. number: index in a collection. Errors: OSError, and those of a damaged font."""
    from fontTools.ttLib import TTFont

    with TTFont(path, fontNumber=number) as font:
        # Fonts of pictures, such as emojis, have no outlines to embed.
        return frozenset(font.getBestCmap() or ()) if {"glyf", "CFF "} & set(font.keys()) else frozenset()


def further(char: str) -> Iterator[tuple[Path, int]]:
    """Yield fonts with a character that the body's fonts lack: first Winnow's, then those of this machine."""
    yield from ((path, 0) for path in FURTHER if ord(char) in glyphs(path, 0))
    yield from _of_this_machine(ord(char))


@cache
def _of_this_machine(code: int) -> tuple[tuple[Path, int], ...]:
    """Return the installed fonts with a character, as (file, index); () on a system without fontconfig."""
    words = ["fc-list", f":charset={code:x}:scalable=true:color=false", "file", "index", "style"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_PATIENCE)
        listed = re.findall(r"^(.+\.(?:ttf|otf|ttc)): :(?:style=(.*):)?index=(\d+)$", done.stdout, re.MULTILINE)
        # Upright fonts of regular weight first; then by name, so that the choice is reproducible.
        plain = sorted(listed, key=lambda each: (not re.search("Regular|Book|Medium", each[1]), each))
        return tuple((Path(path), int(index) & 0xFFFF) for path, _, index in plain)
    return ()
