"""Lines around the densest places of a class."""

import numpy as np
import plotly.graph_objects as go
import pytest

from core.explore.plot import FEWEST, density_lines, enclosing


def test_cell_holds_the_mass_of_all_denser_cells() -> None:
    held = enclosing(np.array([[1.0, 5.0], [0.0, 4.0]]))
    assert held.ravel().tolist() == pytest.approx([1.0, 0.5, 1.0, 0.9])


def test_contour_of_half_contains_half_of_the_points() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 20_000)).astype(np.float32)
    fig = go.Figure()
    density_lines(fig, x, y, np.zeros(20_000, dtype=np.uint8))
    [trace] = fig.data
    edges = [np.asarray(axis) for axis in (trace.x, trace.y)]
    column, row = (
        np.clip(np.searchsorted(axis, values), 0, len(axis) - 1) for axis, values in zip(edges, (x, y), strict=True)
    )
    inside = np.asarray(trace.z)[row, column] <= 0.5
    assert inside.mean() == pytest.approx(0.5, abs=0.05)
    assert np.hypot(x[inside], y[inside]).max() < np.hypot(x[~inside], y[~inside]).max()


def test_class_with_few_points_has_no_contour() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 200))
    kinds = np.repeat([0, 1], [FEWEST - 1, 200 - FEWEST + 1])
    fig = go.Figure()
    density_lines(fig, x, y, kinds)
    assert [trace.name for trace in fig.data] == ["selected"]
    density_lines(fig, np.ones(50), np.ones(50), np.zeros(50, dtype=np.uint8))  # points in one place
    assert np.isfinite(fig.data[-1].z).all()
