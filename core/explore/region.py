"""Points in a region of the map: a lasso, a box."""

from collections.abc import Sequence

import numpy as np

from core.results import BoolArray, FloatArray, IntArray


def inside(x: FloatArray, y: FloatArray, polygon: Sequence[tuple[float, float]]) -> IntArray:
    """Indices, ascending, of the points that a polygon holds by the even-odd rule: a ray to the right crosses it oddly.

    An edge owns its lower end and not its upper one, so no corner counts twice. Sorted by y, each edge meets a
    slice of the points alone: a million points against hundreds of edges take a fraction of a second.
    x, y: `(n,)`. Errors: none; fewer than three corners hold nothing.
    """
    corners = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
    if len(corners) < 3:
        return np.empty(0, dtype=np.int64)
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0)
    # The bounding box first: most points of a large map lie outside it.
    near = np.flatnonzero((x >= left) & (x <= right) & (y >= low) & (y <= high))
    near = near[np.argsort(y[near], kind="stable")]
    xs, ys = x[near].astype(np.float64), y[near].astype(np.float64)
    odd: BoolArray = np.zeros(len(near), dtype=bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        # A level edge is crossed by no level ray.
        if y1 != y2:
            first, last = np.searchsorted(ys, (min(y1, y2), max(y1, y2)))
            odd[first:last] ^= xs[first:last] < x1 + (ys[first:last] - y1) * (x2 - x1) / (y2 - y1)
    return np.sort(near[odd])


def within(x: FloatArray, y: FloatArray, x_span: tuple[float, float], y_span: tuple[float, float]) -> IntArray:
    """Indices of the points in a box given by its two x and its two y, in any order; its borders count."""
    in_box = (x >= min(x_span)) & (x <= max(x_span)) & (y >= min(y_span)) & (y <= max(y_span))
    return np.flatnonzero(in_box)
