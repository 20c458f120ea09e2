"""Pieces of text where they stand on a page, and the lines that they make."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median


@dataclass(slots=True)
class Piece:
    """Text on one line, in points from the page's lower left corner."""

    text: str
    left: float
    bottom: float
    right: float
    top: float


@dataclass(slots=True)
class Line:
    """Pieces side by side. edges: left and right of the column that it stands in."""

    pieces: list[Piece]
    page: int = 0
    edges: tuple[float, float] = (0, 0)
    text: str = field(init=False)
    left: float = field(init=False)
    bottom: float = field(init=False)
    right: float = field(init=False)
    top: float = field(init=False)

    def __post_init__(self) -> None:
        self.pieces.sort(key=lambda piece: piece.left)
        self.left, self.right = self.pieces[0].left, max(piece.right for piece in self.pieces)
        self.bottom, self.top = min(p.bottom for p in self.pieces), max(p.top for p in self.pieces)
        parts = [self.pieces[0].text]
        for one, other in pairwise(self.pieces):
            gap = other.left - one.right
            parts += ["\t" if gap > self.height else " " if gap > 0.1 * self.height else "", other.text]
        self.text = "".join(parts)

    @property
    def height(self) -> float:
        """The height of its letters."""
        return max(median(piece.top - piece.bottom for piece in self.pieces), 0.1)


def as_rows(pieces: Sequence[Piece]) -> list[Line]:
    """Pieces that stand on one line of the page, from its top."""
    rows = list[list[Piece]]()
    for piece in sorted(pieces, key=lambda piece: -(piece.top + piece.bottom)):
        if rows and _level(rows[-1][0], piece):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [Line(row) for row in rows]


def _level(one: Piece, other: Piece) -> bool:
    overlap = min(one.top, other.top) - max(one.bottom, other.bottom)
    return overlap > 0.5 * min(one.top - one.bottom, other.top - other.bottom)
