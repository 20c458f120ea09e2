"""What a report is made of, whatever it is written as."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.experiment.report.drawing import Drawing


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
