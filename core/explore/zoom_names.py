"""Names for small groups of a map, which the browser shows when the map is enlarged."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.explore.distinctive_words import topic_words
from core.results import FloatArray, IntArray

# Standard deviation of the smoothing at each level, as a share of the map's width. The less the smoothing, the smaller
# the groups.
WIDTHS = (0.016, 0.008, 0.004)
CELLS = 512  # grid cells along an axis; the smallest of `WIDTHS` is 2 cells

FEWEST = 5  # minimum number of sentences of a group that gets a name

MOST = 400  # maximum number of names per level; the largest groups get them

WORDS = 2  # words of a name; topic names have 3, but here more names share the window


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoomName:
    """Name of a group and the position of its densest cell, in the map's coordinates."""

    x: float
    y: float
    text: str


def zoom_names(x: FloatArray, y: FloatArray, words: Sequence[frozenset[str]]) -> list[list[ZoomName]]:
    """Return the names for each level of `WIDTHS`, those of the largest groups first.

    x, y: positions, shape (n,). words: the different words of each sentence. A name consists of the words that
    distinguish its group from all other groups of the level (`topic_words`). Words of only one sentence are not used.
    """
    totals = Counter(word for held in words for word in held)
    shared = [frozenset(word for word in held if totals[word] > 1) for held in words]
    return [_level(x, y, shared, width * CELLS) for width in WIDTHS] if len(x) else [[] for _ in WIDTHS]


def _level(x: FloatArray, y: FloatArray, words: Sequence[frozenset[str]], smoothing: float) -> list[ZoomName]:
    (columns, x_middles), (rows, y_middles) = _cells(x), _cells(y)
    peaks = hills(columns, rows, smoothing)
    groups, numbers, sizes = np.unique(peaks, return_inverse=True, return_counts=True)
    holding: list[Counter[str]] = [Counter() for _ in groups]
    for number, held in zip(numbers.tolist(), words, strict=True):
        holding[number].update(held)
    names = topic_words(holding, sizes.tolist(), WORDS)
    largest = np.argsort(-sizes, kind="stable")[:MOST].tolist()
    return [
        ZoomName(
            x=float(x_middles[groups[i] // CELLS]), y=float(y_middles[groups[i] % CELLS]), text=", ".join(names[i])
        )
        for i in largest
        if sizes[i] >= FEWEST and names[i]
    ]


def hills(columns: IntArray, rows: IntArray, smoothing: float) -> IntArray:
    """Climb from each point to a peak of the smoothed density. Return its cell, as `column * CELLS + row`, shape (n,).

    Points with the same peak form a group. This is the method of Ren et al. 2025 (arXiv:2504.07285), except that
    neighbouring groups are not joined.
    columns, rows: grid cell of each point, shape (n,). smoothing: standard deviation in cells.
    """
    from scipy.ndimage import gaussian_filter

    counts = np.bincount(columns * CELLS + rows, minlength=CELLS**2).reshape(CELLS, CELLS)
    density = np.pad(gaussian_filter(counts.astype(np.float64), smoothing), 1, constant_values=-1.0)
    numbers = np.arange(CELLS**2).reshape(CELLS, CELLS)
    best, uphill = density[1:-1, 1:-1].copy(), numbers.copy()
    for right in (-1, 0, 1):
        for higher in (-1, 0, 1):
            beside = density[1 + right : CELLS + 1 + right, 1 + higher : CELLS + 1 + higher]
            other = numbers + right * CELLS + higher
            # Between equally dense cells, climb to the lower number, so that a flat top has only one peak.
            steeper = (beside > best) | ((beside == best) & (other < uphill))
            best[steeper], uphill[steeper] = beside[steeper], other[steeper]
    to = uphill.ravel()
    # Each pass doubles the number of steps that a cell has climbed. A step leads to a denser cell, or to a lower number
    # at equal density, so there are no circles.
    while not np.array_equal(further := to[to], to):
        to = further
    peaks: IntArray = to[columns * CELLS + rows]
    return peaks


def _cells(axis: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the cell of each value along an axis, shape (n,), and the middle of each cell, shape (CELLS,)."""
    low, step = float(axis.min()), max(float(np.ptp(axis)), 1e-9) / CELLS
    cells = np.minimum((axis - low) / step, CELLS - 1).astype(np.int64)
    return cells, low + (np.arange(CELLS) + 0.5) * step
