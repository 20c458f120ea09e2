"""Windows over a text of more pieces than an encoder reads at once, so that nothing of it goes unread.

The first is what cutting the text would leave. Every other is as long, the last too: it reaches back over pieces that
were read before, so that none of its own goes without context. Masked language modelling, which is to read nothing
twice, takes even parts instead. (A tagger's windows hold whole words: `pieces`.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LONGEST = 8192  # pieces of a text that are read at all: what is longer is no sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """places: pieces of the text's row that it reads, special ones included. new: which of `places` it counts for: no
    special ones, and none that a window before it holds."""

    places: Sequence[int]
    new: range


def windows(special: Sequence[int], most: int) -> list[Window]:
    """Windows of `most` pieces over a row of more; together they count every piece once.

    special: 1 at the special pieces that the row, and so every window, begins and ends with.
    """
    before, stop, room = _bounds(special, most)
    parts = []
    for start in range(before, stop, room):
        end = min(start + room, stop)
        begin = end - room
        places = [*range(before), *range(begin, end), *range(stop, len(special))]
        parts.append(Window(places=places, new=range(before + start - begin, before + end - begin)))
    return parts


def even_parts(special: Sequence[int], most: int) -> list[list[int]]:
    """Places of as few parts of at most `most` pieces as hold a row, special ones included in each: of like lengths,
    so that none is a lone piece without context."""
    before, stop, room = _bounds(special, most)
    inner = np.array_split(np.arange(before, stop), -(-(stop - before) // room))
    return [[*range(before), *part.tolist(), *range(stop, len(special))] for part in inner]


def _bounds(special: Sequence[int], most: int) -> tuple[int, int, int]:
    """Start and end of the pieces of a row that are not special, and how many of them fit in a window."""
    before, behind = special.index(0), special[::-1].index(0)
    return before, len(special) - behind, most - before - behind
