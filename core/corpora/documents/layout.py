"""Join the pieces of text on a document's pages into paragraphs in reading order.

Columns are read one after the other. Running heads and page numbers are left out. Words divided at line ends are
joined, and the cells of a table row stay together. The rules use the positions of pieces, and text that repeats from
page to page. RESULTS.md reports the accuracy of these rules.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import median

from core.corpora.documents.extract import Extract, Paragraph

# Only the first three and the last three lines of a page can be running heads.
_EDGE = 3
# A running head has at most two numbers, as in "page 3 of 12".
_NUMBERS = 2
# The vertical position of a running head may differ by 4 points between pages.
_NEAR = 4.0
_DIGITS = re.compile(r"[0-9]{1,4}")
_NUMBER = re.compile(
    r"(?:\W{0,6}+(?:page|seite|blatt|p[aá]gina|p[aá]g|pagina|p|s)\b\.?+\W{0,6}+|\W{0,12}+)(?:\d{1,4}|[ivxlc]{1,7})"
    r"(?:\s{0,3}(?:/|of|von|de|sur|di|van)\s{0,3}\d{1,4})?\W{0,6}",
    re.IGNORECASE,
)
# Minimum number of lines in a column.
_COLUMN_LINES = 4
# The median line of a column fills at least half of its width; cells of a table are shorter.
_FILLED = 0.5
# At most 60% of a page's pieces may cross the gap between columns, as headings and wide tables do.
_CROSSING = 0.6
_ITEM = re.compile(r"(?:[•▪◦‣·*–—-]\s|\(?(?:\d{1,2}(?:\.\d{1,2}){0,5}|[a-zA-Z]|[ivxIVX]{1,5})[.)]\s|§\s?\d|\[\d+\]\s)")
_LABEL = re.compile(r"[•▪◦‣·*–—-]|\(?(?:\d{1,2}(?:\.\d{1,2}){0,5}|[a-zA-Z]|[ivxIVX]{1,5})[.)]?|§\s?\d{1,4}|\[\d+\]")
_CLOSED = re.compile(r"""[.!?:;…。！？]["'”’»)\]]*\Z""")
_DIVIDED = re.compile(r"[^\W\d_][-\u2010\u00ad]\Z")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")


@dataclass(slots=True)
class Piece:
    """Piece of text on one line, with coordinates in points from the page's lower left corner."""

    text: str
    left: float
    bottom: float
    right: float
    top: float


@dataclass(slots=True)
class Line:
    """Line of text: pieces side by side. edges: x coordinates of the left and right edge of its column, in points."""

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
        """Height of the line's letters, in points."""
        return max(median(piece.top - piece.bottom for piece in self.pieces), 0.1)


def as_rows(pieces: Sequence[Piece]) -> list[Line]:
    """Join the pieces at the same height into lines, and return the lines from top to bottom."""
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


def without_line_numbers(pieces: Sequence[Piece]) -> list[Piece]:
    """Remove line numbers in margins, as in manuscripts and court documents, and return the other pieces."""
    others = [piece for piece in pieces if not _DIGITS.fullmatch(piece.text)]
    lefts, rights = sorted(piece.left for piece in others), sorted(piece.right for piece in others)
    if not others:
        return list(pieces)
    # Ignore the outermost 5% of the left and right edges, because a wide figure may reach into the margin.
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
        # Do not remove numbers of clauses or table rows. Clauses are fewer than the lines, and table rows fill less of
        # the page's width than prose.
        filled = median(sum(piece.right - piece.left for piece in row.pieces) for row in rows)
        if len(numbers) * step >= 0.5 * len(rows) and filled > 0.5 * width:
            pieces = rest
    return list(pieces)


def margins_of(pages: Sequence[Sequence[Line]]) -> set[tuple[int, int]]:
    """Find running heads, footers and page numbers. Return (page number from 1, line on the page from 0) of each."""
    places: dict[str, list[tuple[int, int, float]]] = {}
    margins = set[tuple[int, int]]()
    for number, rows in enumerate(pages, 1):
        for i in {*range(min(_EDGE, len(rows))), *range(max(len(rows) - _EDGE, 0), len(rows))}:
            text = rows[i].text.strip().lower()
            key, n_numbers = re.subn(r"\d+", "#", text)
            if n_numbers > _NUMBERS:  # probably a table row; it is a running head only if it repeats with equal digits
                key = text
            places.setdefault(key, []).append((number, i, rows[i].bottom))
            if i in (0, len(rows) - 1) and _NUMBER.fullmatch(rows[i].text) and _stands_alone(rows, i):
                margins.add((number, i))
    margins |= _numbered(pages)
    # A running head must be on an eighth of all pages, not on all, because a chapter may have its own running head.
    least = 2 if len(pages) < 4 else max(3, len(pages) // 8)
    for key, same in places.items():
        heights = sorted(bottom for _, _, bottom in same)
        for number, i, bottom in same:
            n_near = bisect_left(heights, bottom + _NEAR) - bisect_left(heights, bottom - _NEAR)
            if n_near >= least and key:
                margins.add((number, i))
    return margins


def _numbered(pages: Sequence[Sequence[Line]]) -> set[tuple[int, int]]:
    """Find running heads with a page number: first or last lines of pages that begin or end with a number.

    The number must grow by one from page to page. Return (page number from 1, line on the page from 0) of each.
    """
    counted: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    for number, rows in enumerate(pages, 1):
        for i in {0, len(rows) - 1} if rows else ():
            cells = rows[i].text.split("\t")
            if len(cells) > 1:
                for cell in {cell for cell in (cells[0], cells[-1]) if re.fullmatch(r"[0-9]{1,4}", cell)}:
                    counted.setdefault((i == 0, int(cell) - number), []).append((number, i))
    return {place for places in counted.values() if len(places) >= _EDGE for place in places}


def _stands_alone(rows: Sequence[Line], i: int) -> bool:
    """Return True if a gap separates line `i`, the first or last line of a page, from the rest of the page."""
    if len(rows) < 3:
        return len(rows) == 2
    gap = rows[0].bottom - rows[1].top if i == 0 else rows[-2].bottom - rows[-1].top
    return gap > 0.8 * rows[i].height


def laid_out(pages: Sequence[Sequence[Piece]]) -> Extract:
    """Return the paragraphs of all pages, the blank pages, and the number of lines left out as running heads."""
    rows = [as_rows(without_line_numbers(pieces)) for pieces in pages]
    margins = margins_of(rows)
    lines = list[Line]()
    for number, page in enumerate(rows, 1):
        kept = [piece for i, row in enumerate(page) if (number, i) not in margins for piece in row.pieces]
        for line in _in_order(kept):
            line.page = number
            lines.append(line)
    blank = [number for number, page in enumerate(rows, 1) if not page]
    return Extract(list(_paragraphs(lines)), blank=blank, margins=len(margins))


def _in_order(pieces: Sequence[Piece], depth: int = 0) -> Iterator[Line]:
    """Yield the lines of one page, or of one column, in reading order."""
    # Limit the recursion, because a forged page may nest columns very deeply. Columns of real pages nest at most four
    # levels deep.
    gap = _column_gap(pieces) if depth < 4 else None
    if gap is None:
        rows = as_rows(pieces)
        edges = (min((p.left for p in pieces), default=0), max((p.right for p in pieces), default=0))
        for row in rows:
            row.edges = edges
            yield row
        return
    band: list[Piece] = []
    rows = as_rows(pieces)
    cells = [_is_cells(row, gap, pieces) for row in rows]
    for i, row in enumerate(rows):
        in_table = cells[i] and any(cells[max(i - 1, 0) : i] + cells[i + 1 : i + 2])
        if in_table or any(piece.left < gap < piece.right for piece in row.pieces):
            yield from _columns(band, gap, depth)
            band = []
            row.edges = (min(p.left for p in pieces), max(p.right for p in pieces))
            yield row
        else:
            band += row.pieces
    yield from _columns(band, gap, depth)


def _is_cells(row: Line, gap: float, pieces: Sequence[Piece]) -> bool:
    """Return True if a line may be a row of a table that spans both columns.

    Such a row has three or more cells, and fills less than half of each column's width.
    """
    low, high = min(piece.left for piece in pieces), max(piece.right for piece in pieces)
    left = sum(piece.right - piece.left for piece in row.pieces if piece.right <= gap)
    right = sum(piece.right - piece.left for piece in row.pieces if piece.left >= gap)
    return len(row.pieces) > 2 and 0 < left < _FILLED * (gap - low) and 0 < right < _FILLED * (high - gap)


def _columns(band: Sequence[Piece], gap: float, depth: int) -> Iterator[Line]:
    yield from _in_order([piece for piece in band if piece.right <= gap], depth + 1)
    yield from _in_order([piece for piece in band if piece.right > gap], depth + 1)


def _column_gap(pieces: Sequence[Piece]) -> float | None:
    """Return the x coordinate of the gap between two columns, in points; None if there is no gap.

    Few pieces may cross the gap, and there must be prose on both sides of it.
    """
    if len(pieces) < 2 * _COLUMN_LINES:
        return None
    low, high = min(piece.left for piece in pieces), max(piece.right for piece in pieces)
    # Search only the middle 70% of the width, because a gap near an edge is a margin.
    candidates = range(int(low + 0.15 * (high - low)), int(low + 0.85 * (high - low)))
    lefts, rights = sorted(piece.left for piece in pieces), sorted(piece.right for piece in pieces)
    crossing = {x: bisect_left(lefts, x) - bisect_left(rights, x) for x in candidates}
    fewest = min(crossing.values(), default=len(pieces))
    if fewest > _CROSSING * len(pieces):
        return None
    best = max(_stretches([x for x in candidates if crossing[x] == fewest]), key=len)
    gap, middle = (best[0] + best[-1]) / 2, (low + high) / 2
    if _is_prose(pieces, gap, low, high):
        return gap
    # Also try the middle of the page. A title or an abstract may cross the real gap, so that fewer pieces cross another
    # place.
    few = crossing.get(int(middle), len(pieces)) <= _CROSSING * len(pieces)
    return middle if few and _is_prose(pieces, middle, low, high) else None


def _is_prose(pieces: Sequence[Piece], gap: float, low: float, high: float) -> bool:
    """Return True if both sides of a gap have lines of prose, which are longer than cells of a table."""
    left, right = [p for p in pieces if p.right <= gap], [p for p in pieces if p.left >= gap]
    for side, width in ((left, gap - low), (right, high - gap)):
        widths = [line.right - line.left for line in as_rows(side)]
        if len(widths) < _COLUMN_LINES:
            return False
        # A column of lists and formulas has few full lines. Accept this column only if the gap is in the middle of the
        # page, where tables rarely have a gap.
        n_full = sum(each > 0.9 * width for each in widths)
        in_middle = abs(gap - (low + high) / 2) < 0.04 * (high - low)
        if median(widths) < _FILLED * width and not (in_middle and n_full >= 2 * _COLUMN_LINES):
            return False
    return True


def _stretches(numbers: Sequence[int]) -> list[list[int]]:
    stretches = list[list[int]]()
    for number in numbers:
        if stretches and number == stretches[-1][-1] + 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    return stretches


def _paragraphs(lines: Sequence[Line]) -> Iterator[Paragraph]:
    words = Counter(word.lower() for line in lines for word in _WORD.findall(line.text))
    pitch = _pitch(lines)
    _unstretch(lines, pitch)
    open_one: Paragraph | None = None
    for before, line in zip([None, *lines], lines, strict=False):
        if open_one and before and _goes_on(before, line, pitch):
            start = len(open_one.text)
            open_one.text = _joined(open_one.text, line.text, words)
            if line.page != before.page:
                open_one.pages.append((min(start + 1, len(open_one.text)), line.page))
            continue
        if open_one:
            yield _finished(open_one)
        open_one = Paragraph(line.text, [(0, line.page)])
    if open_one:
        yield _finished(open_one)


def _finished(paragraph: Paragraph) -> Paragraph:
    paragraph.text = paragraph.text.replace("\u00ad", "-") if paragraph.text.endswith("\u00ad") else paragraph.text
    return paragraph


def _pitch(lines: Sequence[Line]) -> float:
    """Return the median distance of neighbouring lines, divided by the height of their letters."""
    steps = [
        (one.bottom - other.bottom) / one.height
        for one, other in pairwise(lines)
        if one.page == other.page and one.edges == other.edges and 0 < one.bottom - other.bottom < 3 * one.height
    ]
    # Assume single spacing (1.2) if no two lines can be compared.
    return median(steps) if steps else 1.2


def _unstretch(lines: Sequence[Line], pitch: float) -> None:
    """Replace tabs by blanks in lines of justified prose, and between the label and the text of a list item."""
    tabbed = ["\t" in line.text for line in lines]
    for i, line in enumerate(lines):
        if not tabbed[i]:
            continue
        around = [lines[j] for j in (i - 1, i + 1) if 0 <= j < len(lines) and not tabbed[j]]
        in_prose = any(
            line.page == other.page
            and line.edges == other.edges
            and 0.87 < line.height / other.height < 1.15
            and abs(line.bottom - other.bottom) <= 1.3 * pitch * line.height
            for other in around
        )
        pieces = line.pieces[1:] if _is_labelled(line) else line.pieces
        is_narrow = all(other.left - one.right < 2 * line.height for one, other in pairwise(pieces))
        if in_prose and is_narrow and line.edges[1] - line.right < 0.05 * (line.edges[1] - line.edges[0]):
            line.text = line.text.replace("\t", " ")


def _is_labelled(line: Line) -> bool:
    """Return True if a line's first piece is the number or bullet of a list item."""
    return len(line.pieces) > 1 and bool(_LABEL.fullmatch(line.pieces[0].text))


def _goes_on(before: Line, line: Line, pitch: float) -> bool:
    """Return True if a line continues the paragraph of the line before it."""
    starts_low = line.text[:1].islower()
    if "\t" in line.text or "\t" in before.text:
        return False
    if _DIVIDED.search(before.text) and starts_low:
        return True
    closed = bool(_CLOSED.search(before.text))
    item = (_ITEM.match(line.text) or _is_labelled(line)) and (
        closed or (line.left <= before.left + 1 and not starts_low)
    )
    # A line in another font size belongs to a heading or a note, not to the paragraph.
    if item or not 0.87 < line.height / before.height < 1.15:
        return False
    if before.page != line.page or before.edges != line.edges:
        return not closed and (starts_low or _filled(before))
    near = 0 <= (before.bottom - line.bottom) / before.height <= 1.3 * pitch
    indented = line.left > before.left + 0.6 * line.height
    return near and (starts_low or _filled(before)) and not (closed and indented)


def _filled(line: Line) -> bool:
    """Return True if a line reaches its column's right edge. Its paragraph may then continue on the next line."""
    left, right = line.edges
    return right - line.right < 0.15 * (right - left)


def _joined(text: str, following: str, words: Counter[str]) -> str:
    if not _DIVIDED.search(text):
        return f"{text} {following}"
    if not following[:1].islower() and not _in_capitals(text, following):
        return f"{text[:-1]}-{following}" if following[:1].isalpha() else f"{text} {following}"
    first, second = _WORD.findall(text[:-1])[-1], _WORD.match(following)
    end = second[0] if second else ""
    # Keep the hyphen if the document spells the word more often with it, as in "well-known".
    kept = words[f"{first}-{end}".lower()] > words[f"{first}{end}".lower()]
    return text[:-1] + ("-" if kept else "") + following


def _in_capitals(text: str, following: str) -> bool:
    """Return True if a word divided at a line end is in capitals, and so are the words beside it, as in disclaimers.

    text: ends with the first half of the word. following: begins with the second half.
    """
    about = (" ".join(text.rsplit(maxsplit=2)[-2:]), " ".join(following.split(maxsplit=2)[:2]))
    return all(part.isupper() for part in about)
