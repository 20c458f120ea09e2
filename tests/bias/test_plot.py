"""Figures of Bias: histograms, bars, scatter plots, and the frontier of taggers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bias import plot
from core.bias.plot import BAR, SIDE, ceim_bars
from core.bias.result import Bits, Intervals, bin_of

CEIM = st.lists(st.floats(-9, 9) | st.sampled_from([-0.5, 0.5, 0.0, -0.25, 0.75, -40.0, 40.0]), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(CEIM)
def test_every_mention_is_in_a_bar_of_its_bin(values: list[float]) -> None:
    bars = ceim_bars(np.array(values))
    for value, bar in zip(values, bars.tolist(), strict=True):
        low, high = bar * BAR, (bar + 1) * BAR
        assert low <= value <= high or bar in (-SIDE, SIDE - 1)
        assert bin_of(value) == bin_of((low + high) / 2)
    panel = plot.CeimPanel(name="all", bars=bars, bins=[bin_of(value) for value in values])
    assert sum(sum(trace.y) for trace in plot.ceim_histogram([panel]).data) == len(values)
    words = [plot.bar_words(bar) for bar in (-3, SIDE - 1, -SIDE)]
    assert words == ["−0.75 to −0.50 bits", "5.75 bits or more", "−5.75 bits or less"]


def test_panel_titles_are_escaped_and_weak_panels_are_pale() -> None:
    bars = np.array([0, 0, 3])
    panels = [
        plot.CeimPanel(name="<b>ORG</b>", bars=bars, bins=["near_zero", "near_zero", "high"]),
        plot.CeimPanel(name="LAW", bars=bars, bins=["near_zero", "near_zero", "high"], weak="too few"),
    ]
    fig = plot.ceim_histogram(panels)
    titles = [note.text for note in fig.layout.annotations]
    assert titles == ["&lt;b&gt;ORG&lt;/b&gt;", "LAW <i>(too few)</i>"]
    assert fig.data[0].opacity == fig.data[1].opacity == 1
    assert all(trace.opacity < 1 for trace in fig.data[3:])
    sent = [tuple(point) for trace in fig.data for point in (trace.customdata if trace.customdata is not None else ())]
    assert sorted(sent) == [(0, 0), (0, 3), (1, 0), (1, 3)]
    assert [shape.x0 for shape in fig.layout.shapes].count(-0.5) == 2


def test_v_information_bars_have_intervals() -> None:
    intervals = Intervals(entity=(1.4, 1.7), context=(0.8, 1.1))
    rows = [plot.Informed(name="a", bits=Bits(entity=1.5, context=1.0), intervals=intervals)]
    context, entity = plot.v_information_bars(rows).data
    assert (entity.x[0], context.x[0]) == (1.5, 1.0)
    assert np.allclose([entity.error_x.array[0], entity.error_x.arrayminus[0]], [0.2, 0.1])
    assert np.allclose([context.error_x.array[0], context.error_x.arrayminus[0]], [0.1, 0.2])
    assert entity.marker.color != context.marker.color
    assert entity.marker.pattern.shape != context.marker.pattern.shape


def test_scatter_returns_mention_numbers() -> None:
    fig = plot.pvi_scatter(np.array([0.1, 0.2]), np.array([0.9, 0.1]), ["high", "near_zero"], np.array([7, 9]))
    assert {trace.type for trace in fig.data} == {"scattergl"}
    assert sorted(number for trace in fig.data for number in trace.customdata) == [7, 9]
    assert len({trace.marker.symbol for trace in fig.data}) == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_frontier_is_the_set_of_undominated_taggers(f1s: list[tuple[int, int]]) -> None:
    first, second = (np.array(side, dtype=float) for side in zip(*f1s, strict=True))
    beaten = [any(a >= x and b >= y and (a, b) != (x, y) for a, b in f1s) for x, y in f1s]
    assert plot.best_of_both(first, second).tolist() == [not one for one in beaten]


def test_frontier_figure_shows_every_tagger_once() -> None:
    points = [
        plot.TaggerPoint(name="<i>none</i>", plain=[60.0, 62.0], hard=[40.0, 44.0], best=False),
        plot.TaggerPoint(name="rebuilt", plain=[63.0], hard=[50.0], best=True),
    ]
    fig = plot.frontier(points, x="F1 on test", y="F1 on oov")
    drawn = {text: (x, y) for trace in fig.data for text, x, y in zip(trace.text, trace.x, trace.y, strict=True)}
    assert drawn == {"&lt;i&gt;none&lt;/i&gt;": (61.0, 42.0), "rebuilt": (63.0, 50.0)}
    assert len({trace.marker.symbol for trace in fig.data}) == 2
