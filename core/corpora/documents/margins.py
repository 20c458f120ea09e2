"""What stands in the margins of pages and is no text: running heads, page numbers, numbers of lines."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from statistics import median

from core.corpora.documents.pieces import Line, Piece, as_rows

_EDGE = 3  # lines at a page's top and bottom that may be running heads
_NUMBERS = 2  # that change from page to page in a running head at most: page 3 of 12
_NEAR = 4.0  # points by which a running head may move
_DIGITS = re.compile(r"[0-9]{1,4}")
_NUMBER = re.compile(
    r"(?:\W{0,6}+(?:page|seite|blatt|p[aá]gina|p[aá]g|pagina|p|s)\b\.?+\W{0,6}+|\W{0,12}+)(?:\d{1,4}|[ivxlc]{1,7})"
    r"(?:\s{0,3}(?:/|of|von|de|sur|di|van)\s{0,3}\d{1,4})?\W{0,6}",
    re.IGNORECASE,
)


def without_line_numbers(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of a page without the numbers of its lines, as manuscripts, pleadings and bills have them."""
    others = [piece for piece in pieces if not _DIGITS.fullmatch(piece.text)]
    lefts, rights = sorted(piece.left for piece in others), sorted(piece.right for piece in others)
    if not others:
        return list(pieces)
    # A wide figure may reach into the margin.
    low, high = lefts[len(lefts) // 20], rights[-1 - len(rights) // 20]
    for left, right in ((-inf, low), (high, inf)):
        numbers = [p for p in pieces if _DIGITS.fullmatch(p.text) and left < p.left and p.right < right]
        numbers.sort(key=lambda piece: -piece.bottom)
        steps = Counter(int(other.text) - int(one.text) for one, other in pairwise(numbers))
        step, count = steps.most_common(1)[0] if steps else (0, 0)
        if step <= 0 or count < max(4, 0.8 * (len(numbers) - 1)):
            continue
        gone = {id(piece) for piece in numbers}
        rest = [piece for piece in pieces if id(piece) not in gone]
        rows, width = as_rows(rest), max(piece.right for piece in rest) - min(piece.left for piece in rest)
        # Clauses are numbered too, but not each of their lines; so are a table's rows, whose cells fill less.
        filled = median(sum(piece.right - piece.left for piece in row.pieces) for row in rows)
        if len(numbers) * step >= 0.5 * len(rows) and filled > 0.5 * width:
            pieces = rest
    return list(pieces)


def margins_of(pages: Sequence[Sequence[Line]]) -> set[tuple[int, int]]:
    """(page from 1, row from 0) of running heads, running feet and page numbers."""
    places: dict[str, list[tuple[int, int, float]]] = {}
    margins = set[tuple[int, int]]()
    for number, rows in enumerate(pages, 1):
        for i in {*range(min(_EDGE, len(rows))), *range(max(len(rows) - _EDGE, 0), len(rows))}:
            text = rows[i].text.strip().lower()
            key, n_numbers = re.subn(r"\d+", "#", text)
            if n_numbers > _NUMBERS:  # perhaps a table's row, the next page having another like it: letter by letter
                key = text
            places.setdefault(key, []).append((number, i, rows[i].bottom))
            if i in (0, len(rows) - 1) and _NUMBER.fullmatch(rows[i].text) and _stands_alone(rows, i):
                margins.add((number, i))
    margins |= _numbered(pages)
    # A chapter's head stands on its own pages alone: a share of all of them is enough.
    least = 2 if len(pages) < 4 else max(3, len(pages) // 8)
    for key, same in places.items():
        heights = sorted(bottom for _, _, bottom in same)
        for number, i, bottom in same:
            n_near = bisect_left(heights, bottom + _NEAR) - bisect_left(heights, bottom - _NEAR)
            if n_near >= least and key:
                margins.add((number, i))
    return margins


def _numbered(pages: Sequence[Sequence[Line]]) -> set[tuple[int, int]]:
    """First and last rows that begin or end with a number that grows by one from page to page: heads of chapters."""
    counted: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    for number, rows in enumerate(pages, 1):
        for i in {0, len(rows) - 1} if rows else ():
            cells = rows[i].text.split("\t")
            if len(cells) > 1:
                for cell in {cell for cell in (cells[0], cells[-1]) if re.fullmatch(r"[0-9]{1,4}", cell)}:
                    counted.setdefault((i == 0, int(cell) - number), []).append((number, i))
    return {place for places in counted.values() if len(places) >= _EDGE for place in places}


def _stands_alone(rows: Sequence[Line], i: int) -> bool:
    """Whether a first or last row stands by itself: its text begins anew after a gap."""
    if len(rows) < 3:
        return len(rows) == 2
    gap = rows[0].bottom - rows[1].top if i == 0 else rows[-2].bottom - rows[-1].top
    return gap > 0.8 * rows[i].height
