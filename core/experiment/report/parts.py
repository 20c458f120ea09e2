"""What a report is made of, whatever it is written as."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Literal

from core.experiment.report.fonts import width

WIDTH, ROW, BELOW = 700, 28, 44  # of the whole, of a row with a name of one line, of the scale
LABELS, GAP, REACH = 250, 10, 435  # the names' right end, what is left beside it, the scale's length
NAME, LINE = 14.0, 17  # a name's letters, and its lines where it has several
ROOM = 0.84  # of LABELS that our letters may take: a browser's own are wider
EDGE = 0.04  # of the scale, left free at both ends
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
    """Words in the text's own colour; x: their end or their middle."""

    x: float
    y: float
    text: str
    anchor: Literal["end", "middle"]
    size: float = NAME
    bold: bool = False


Shape = Stroke | Dot | Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Shapes, y downwards."""

    width: float
    height: float
    shapes: Sequence[Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A line of the drawing. bold: what is asked about, or a mean of others."""

    name: str
    value: float
    low: float
    high: float
    colour: str
    bold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Cover of a report: who reports, on what, and when; "" is left out. date: as it is printed."""

    firm: str = ""
    project: str = ""
    author: str = ""
    date: str = ""

    @property
    def line(self) -> str:
        """All of it on one line."""
        return " · ".join(part for part in (self.firm, self.project, self.author, self.date) if part)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. strong: all of it."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Questions with their answers. leading: the answers that the whole report is about."""

    rows: Sequence[tuple[str, str]]
    leading: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list: names, and what is said of each."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of somebody's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text. numbers: the columns of numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, and the same in words for who does not see it."""

    drawing: Drawing
    words: str


Part = Heading | Text | Facts | Items | Quote | Code | Table | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report: a page for a reader who trains no models, then one for who does.

    answer: to the title's question, for who reads nothing else. about: a line below it.
    """

    title: str
    answer: str
    about: str
    cover: Cover
    first: Sequence[Part]
    second: Sequence[Part]


def intervals(rows: Sequence[Interval], unit: str) -> Drawing | None:
    """A line a row, about zero, which stands on the axis even where no interval touches it; None without rows.

    A name that is longer than its room is broken into lines: none is cut.
    """
    if not rows:
        return None
    low, high = min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows))
    step = _round_step((high - low) / 6)
    low, high = low - EDGE * (high - low), high + EDGE * (high - low)  # so that no line looks cut off
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
    """A name in lines that fit its room, broken between words, and within one that has no line to itself."""
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
    """The smallest of 1, 2 and 5 times a power of ten that is no less than `least`."""
    # A step that rounding left a hair below `least` still counts as no less, else the axis would lose half its marks.
    power: float = 10.0 ** floor(log10(least or 1.0))
    # A hair of slack: a step that was worked out may be a last digit above a round one.
    return next(times * power for times in (1, 2, 5, 10) if times * power >= (least or 1.0) * 0.999)
