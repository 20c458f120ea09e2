"""The map's figure: every point once, told apart by colour and shape, small enough, and nobody's markup."""

import numpy as np
import pytest

from core import plots
from core.plots import Drawn, View


def drawn(n: int, hover: str | None = "line") -> Drawn:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n)).astype(np.float32)
    kinds = np.arange(n) % 3
    return Drawn(x=x, y=y, points=np.arange(n) * 2, kinds=kinds.astype(np.uint8), hover=[hover] * n)


def points_in(fig: object) -> list[int]:
    return sorted(point for trace in fig.data if trace.customdata is not None for point in trace.customdata.tolist())


def test_every_point_is_drawn_once_whatever_it_is_coloured_by() -> None:
    some = drawn(99)
    values = np.where(np.arange(99) % 5 == 0, np.nan, np.arange(99.0))
    names = [f"topic {i % 11}" for i in range(99)]
    for fig in (
        plots.by_class(some, [33, 33, 33], View()),
        plots.by_value(some, values, "cosine", View()),
        plots.by_name(some, names, View()),
    ):
        assert points_in(fig) == (np.arange(99) * 2).tolist()
        for trace in fig.data:
            if trace.customdata is not None:
                at = np.asarray(trace.customdata) // 2
                assert np.array_equal(trace.x, some.x[at])
                assert np.array_equal(trace.y, some.y[at])


@pytest.mark.parametrize("looks", [plots.CLASS_LOOKS, plots.SIDE_LOOKS])
def test_colour_and_shape_both_tell_apart(looks: tuple[plots.Look, ...]) -> None:
    assert len({look.symbol for look in looks}) == len(looks)
    assert len({look.colour for look in looks}) == len(looks)


def test_a_score_keeps_its_point() -> None:
    some = drawn(60)
    values = np.linspace(0, 1, 60)
    fig = plots.by_value(some, values, "cosine", View())
    for trace in fig.data:
        if trace.customdata is not None:
            assert np.allclose(trace.marker.color, values[np.asarray(trace.customdata) // 2])
    assert fig.layout.coloraxis.cmin == pytest.approx(0.01)


def test_a_mark_rings_only_what_is_drawn() -> None:
    fig = plots.by_class(drawn(30), [10, 10, 10], View())
    plots.mark(fig, drawn(30), np.array([0, 4, 5, 1000]), "found")
    assert fig.data[-1].customdata.tolist() == [0, 4]
    assert fig.data[-1].name == "found (2)"


def test_a_view_holds_zoom_and_outline() -> None:
    view = View(zoom=(0, 1, 2, 3), outlines=(((0, 0), (1, 0), (1, 1)),))
    fig = plots.by_class(drawn(9), [3, 3, 3], view)
    assert (fig.layout.xaxis.range, fig.layout.yaxis.range) == ((0, 1), (2, 3))
    assert fig.layout.selections[0].path == "M0,0L1,0L1,1Z"
    assert fig.layout.uirevision == "map"


def test_the_figure_is_small() -> None:
    lines = plots.hover_lines([{"id": "f" * 16, "score": 0.5, "text": "word " * 24}])
    assert len(plots.by_class(drawn(20_000, lines[0]), [7_000] * 3, View()).to_json()) < 4_500_000
    assert len(plots.by_class(drawn(50_000, None), [17_000] * 3, View()).to_json()) < 1_500_000


def test_a_tooltip_is_wrapped_and_escaped() -> None:
    line = plots.hover_lines([{"id": "ab", "score": float("nan"), "text": "<b>bold</b> & " + "word " * 30}])[0]
    assert line.startswith("ab<br>&lt;b&gt;bold&lt;/b&gt; &amp;")
    assert max(len(part) for part in line.replace("&lt;", "<").replace("&gt;", ">").split("<br>")) <= 50


def test_overlap_stands_beside_chance() -> None:
    ours, chance = plots.overlap_lines([(10, 5), (100, 100)], 100).data
    assert list(ours.y) == [0.5, 1.0]
    assert list(chance.y) == [0.1, 1.0]
