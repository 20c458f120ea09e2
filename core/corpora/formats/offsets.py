"""Annotations as tools write them, and what their offsets count: the quoted text decides."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from core.corpora.formats.ledger import Ledger
from core.corpora.formats.sentences import Region, Span
from core.text.words import nfc

Reading = Callable[[int], int]  # an offset as the tool counts -> the index of the character, -1 if outside

_MOST_MISFITS = 50  # that are looked for in a text; if more do not fit, all of the text is in doubt
_BLANKS = re.compile(r"(?:\s|\\[nrt])+")  # Label Studio writes the line breaks of a quote as \n, two characters


@dataclass(frozen=True, slots=True)
class Mark:
    """One annotation: its fragments (start, end) in the tool's own offsets, its type, and its text if that is given.

    line: where it is in its file, None if the line of the row says it. name: as the tool calls it, T1.
    """

    fragments: tuple[tuple[int, int], ...]
    type: str
    quote: str | None = None
    line: int | None = None
    name: str = ""


def fitted(text: str, marks: Sequence[Mark], line: int | None, ledger: Ledger) -> tuple[list[Span], list[Region]]:
    """The annotations as spans in characters of `text`, and the regions of those that were lost.

    Offsets may count characters, UTF-16 units, bytes of UTF-8, or line ends as one or two characters. The first way of
    counting in which every quoted text fits is believed. If none fits, they count characters, and each annotation with
    another text is rejected.
    """
    quoted = [mark for mark in marks if mark.quote is not None]
    readings = _readings(text) if quoted else iter([_characters(text)])
    first = next(readings)
    believed = (
        first if _all_fit(text, quoted, first) else next((r for r in readings if _all_fit(text, quoted, r)), first)
    )
    spans, lost, sought, n_misfits = list[Span](), list[Region](), set[str](), 0
    for mark in marks:
        where = [(believed(start), believed(end)) for start, end in mark.fragments]
        reason = _misfit(text, mark, where)
        if reason:
            ledger.reject_span(mark.line or line, reason)
            n_misfits += 1
            if n_misfits <= _MOST_MISFITS:
                lost += _regions(text, mark, where, sought)
            else:
                lost.append((0, len(text)))
        else:
            spans.append(Span(where[0][0], where[-1][1], mark.type))
    return spans, lost


def _misfit(text: str, mark: Mark, where: Sequence[Region]) -> str:
    """Reason that a mark is no span of the text, "" if it is one."""
    name = f"{mark.name}: " if mark.name else ""
    (start, end), n = (mark.fragments[0][0], mark.fragments[-1][1]), len(text)
    if any(not 0 <= a < b <= n for a, b in where):
        return f"{name}a span from {start} to {end} in a text of {n} characters"
    if not _fits(text, mark, where):
        return f"{name}the text from {start} to {end} is not the one given; the offsets do not fit this text"
    gaps = [text[a_end:b_start] for (_, a_end), (b_start, _) in pairwise(where)]
    if any(gap.strip() for gap in gaps) or any(a[1] > b[0] for a, b in pairwise(where)):
        return f"{name}it is discontinuous; only one run of characters can be an entity"
    return ""


def _regions(text: str, mark: Mark, where: Sequence[Region], sought: set[str]) -> Iterator[Region]:
    """Where a lost annotation may be: the place it claims and every place of its quote; all of the text otherwise.

    sought: quotes whose places were given before.
    """
    if any(not 0 <= a <= b <= len(text) for a, b in where):
        yield 0, len(text)
        return
    yield where[0][0], where[-1][1]
    if mark.quote and mark.quote not in sought and not _fits(text, mark, where):
        sought.add(mark.quote)
        yield from _places(text, mark.quote)


def _places(text: str, quote: str) -> Iterator[Region]:
    """(start, end) wherever `quote` occurs, without overlaps."""
    at = text.find(quote)
    while at >= 0:
        yield at, at + len(quote)
        at = text.find(quote, at + len(quote))


def _all_fit(text: str, quoted: Sequence[Mark], reading: Reading) -> bool:
    return all(_fits(text, mark, [(reading(a), reading(b)) for a, b in mark.fragments]) for mark in quoted)


def _fits(text: str, mark: Mark, where: Sequence[Region]) -> bool:
    if mark.quote is None:
        return True
    if any(a < 0 or b < 0 for a, b in where):
        return False
    return _plain(" ".join(text[a:b] for a, b in where)) == _plain(mark.quote)


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", nfc(text)).strip()


def _readings(text: str) -> Iterator[Reading]:
    yield _characters(text)
    if not text.isascii():
        if max(text) > "\uffff":
            yield _counted(text, [1 + (char > "\uffff") for char in text])
        yield _counted(text, [len(char.encode("utf-8", "surrogatepass")) for char in text])
    if "\r\n" in text:  # counted as one
        yield _counted(text, [int(char != "\r" or text[i + 1 : i + 2] != "\n") for i, char in enumerate(text)])
    elif "\n" in text:  # counted as \r\n
        yield _counted(text, [1 + (char == "\n") for char in text])


def _characters(text: str) -> Reading:
    n = len(text)
    return lambda offset: offset if 0 <= offset <= n else -1


def _counted(text: str, units: Sequence[int]) -> Reading:
    """Offsets in which character i counts `units[i]`."""
    index = {total: i for i, total in enumerate(accumulate(units, initial=0))}
    return lambda offset: index.get(offset, -1)
