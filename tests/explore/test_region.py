"""The lasso against a slow implementation of the even-odd rule."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.explore.result import inside, within

Polygon = list[tuple[float, float]]
GRID = st.integers(-4, 4).map(float)


def crosses(x: float, y: float, polygon: Polygon) -> bool:
    """Return True if a ray to the right crosses the border an odd number of times."""
    odd = False
    for i, (x1, y1) in enumerate(polygon):
        x2, y2 = polygon[(i + 1) % len(polygon)]
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            odd = not odd
    return odd


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(GRID, GRID), min_size=3, max_size=12), st.integers(0, 99))
def test_lasso_equals_a_slow_point_in_polygon_test(polygon: Polygon, seed: int) -> None:
    """Corners on a grid give horizontal edges, repeated corners, crossings, and points on borders."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.uniform(-5, 5, (80, 2)), rng.integers(-5, 6, (80, 2))]).astype(np.float32)
    wanted = [i for i, (x, y) in enumerate(points.astype(float).tolist()) if crosses(x, y, polygon)]
    assert inside(points[:, 0], points[:, 1], polygon).tolist() == wanted


def test_polygon_with_fewer_than_three_corners_is_empty() -> None:
    x = y = np.zeros(3, dtype=np.float32)
    for polygon in ([], [(0.0, 0.0)], [(-1.0, -1.0), (1.0, 1.0)]):
        assert not len(inside(x, y, polygon))


def test_box_includes_its_borders_for_any_order_of_corners() -> None:
    x, y = (part.ravel().astype(np.float32) for part in np.meshgrid(np.arange(5), np.arange(5)))
    found = within(x, y, (3, 1), (2, 4))
    assert {(a, b) for a, b in zip(x[found], y[found], strict=True)} == {(a, b) for a in (1, 2, 3) for b in (2, 3, 4)}
