"""The lasso is the even-odd rule, held to a slow one; samples are stratified, seeded and nested."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.selection.region import inside, stratified, within

Polygon = list[tuple[float, float]]
GRID = st.integers(-4, 4).map(float)


def crosses(x: float, y: float, polygon: Polygon) -> bool:
    """One point, one edge at a time: how often does a ray to the right meet the border?"""
    odd = False
    for i, (x1, y1) in enumerate(polygon):
        x2, y2 = polygon[(i + 1) % len(polygon)]
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            odd = not odd
    return odd


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(GRID, GRID), min_size=3, max_size=12), st.integers(0, 99))
def test_the_lasso_is_point_in_polygon(polygon: Polygon, seed: int) -> None:
    """Corners on a grid: horizontal edges, repeated corners, crossings and points on borders all come up."""
    lots = np.random.default_rng(seed)
    points = np.concatenate([lots.uniform(-5, 5, (80, 2)), lots.integers(-5, 6, (80, 2))]).astype(np.float32)
    wanted = [i for i, (x, y) in enumerate(points.astype(float).tolist()) if crosses(x, y, polygon)]
    assert inside(points[:, 0], points[:, 1], polygon).tolist() == wanted


def test_less_than_a_triangle_holds_nothing() -> None:
    x = y = np.zeros(3, dtype=np.float32)
    for polygon in ([], [(0.0, 0.0)], [(-1.0, -1.0), (1.0, 1.0)]):
        assert not len(inside(x, y, polygon))


def test_a_box_has_its_borders_whichever_corner_comes_first() -> None:
    x, y = (part.ravel().astype(np.float32) for part in np.meshgrid(np.arange(5), np.arange(5)))
    found = within(x, y, (3, 1), (2, 4))
    assert {(a, b) for a, b in zip(x[found], y[found], strict=True)} == {(a, b) for a in (1, 2, 3) for b in (2, 3, 4)}


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 70), st.integers(0, 5))
def test_strata_get_equal_shares_as_far_as_they_go(strata: list[int], n: int, seed: int) -> None:
    kinds = np.array(strata, dtype=np.int64)
    found = stratified(kinds, n, seed)
    assert len(found) == min(n, len(kinds))
    assert (np.diff(found) > 0).all()
    sizes, taken = np.bincount(kinds, minlength=4), np.bincount(kinds[found], minlength=4)
    full = taken == sizes
    if not full.all():
        most = taken[~full].max()
        assert taken[~full].min() >= most - 1  # no open stratum is more than one behind another
        assert (taken[full] <= most + 1).all() or not full.any()


def test_samples_are_seeded_and_nested() -> None:
    kinds = np.random.default_rng(0).integers(0, 3, 500)
    np.testing.assert_array_equal(stratified(kinds, 50, 1), stratified(kinds, 50, 1))
    assert set(stratified(kinds, 50, 1)) <= set(stratified(kinds, 60, 1))
    assert set(stratified(kinds, 50, 1)) != set(stratified(kinds, 50, 2))


@pytest.mark.parametrize("n", [0, 7])
def test_no_points_at_all(n: int) -> None:
    assert not len(stratified(np.empty(0, dtype=np.int64), n, 0))
