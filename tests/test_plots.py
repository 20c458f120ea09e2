"""Figures: what is drawn adds up to what came in, and nothing of the size of a corpus goes to the browser."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core import plots
from core.plots.theme import binned, length_edges

lengths = hnp.arrays(np.int32, st.integers(1, 200), elements=st.integers(0, 3000))
scores = hnp.arrays(
    np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6, allow_subnormal=False) | st.just(np.nan)
)


@settings(deadline=None)
@given(lengths)
def test_every_sentence_lies_in_one_bar(values: np.ndarray) -> None:
    bars = plots.length_histogram(values, "T_C").data[0]
    assert sum(bars.y) == len(values)


@settings(deadline=None)
@given(lengths)
def test_a_bar_holds_the_lengths_it_names(values: np.ndarray) -> None:
    edges = length_edges(values, 30)
    counts = binned(values, edges)
    for i in range(len(counts) - 1):  # the last one takes what is longer
        low = -1 if i == 0 else edges[i]
        assert counts[i] == sum(1 for value in values if low < value <= edges[i + 1])


@settings(deadline=None)
@given(scores)
def test_score_bins_count_every_scored_sentence(values: np.ndarray) -> None:
    bins = plots.score_bins(values)
    assert bins.counts.sum() == (~np.isnan(values)).sum()
    assert (np.diff(bins.edges) > 0).all()


@settings(deadline=None)
@given(scores, st.data())
def test_selected_and_filtered_add_up(values: np.ndarray, data: st.DataObject) -> None:
    known = np.sort(values[~np.isnan(values)])[::-1]
    chosen = known[: data.draw(st.integers(0, len(known)))]
    fig = plots.score_histogram(plots.score_bins(values), chosen, "cosine", "high")
    inside, outside = (np.asarray(trace.y[:-1]) for trace in fig.data)
    assert inside.sum() == len(chosen)
    assert outside.sum() == len(known) - len(chosen)
    assert (outside >= 0).all()


def test_scores_over_several_magnitudes_get_equal_bins_of_their_logarithm() -> None:
    values = np.random.default_rng(0).lognormal(4, 2, 10_000)
    bins = plots.score_bins(values)
    assert bins.log
    steps = np.diff(np.log(bins.edges))
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    assert plots.score_histogram(bins, np.sort(values)[:100], "perplexity", "low").layout.xaxis.type == "log"


def test_a_million_scores_are_a_few_kilobytes_in_the_browser() -> None:
    values = np.random.default_rng(0).normal(size=1_000_000)
    fig = plots.score_histogram(plots.score_bins(values), values[:200_000], "cosine", "high")
    assert len(fig.to_json()) < 30_000
    rows = np.random.default_rng(0).integers(1, 80, 1_000_000)
    assert len(plots.lengths_compared({"S_C": rows[:1000], "D_C": rows, "T_C": rows[:500]}).to_json()) < 30_000


def test_roles_keep_their_colour_on_every_figure() -> None:
    rows = np.arange(1, 50)
    words = {"S_C": "choice", "D_C": "big corpus", "T_C": "task text"}
    compared = plots.lengths_compared(dict.fromkeys(words, rows))
    alone = {role: plots.length_histogram(rows, role).data[0].marker.color for role in words}
    assert len(set(alone.values())) == 3
    assert {trace.name.split(",")[0]: trace.line.color for trace in compared.data} == {
        words[role]: colour for role, colour in alone.items()
    }
    assert len({trace.line.dash for trace in compared.data}) == 3  # not by colour alone
    selected = plots.score_histogram(plots.score_bins(rows * 1.0), rows[:3] * 1.0, "u", "high").data[0]
    assert selected.fillcolor == alone["S_C"]


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", '<a href="http://evil">x</a>', "<b>PER</b>"])
def test_a_type_is_shown_letter_by_letter(name: str) -> None:
    drawn = json.dumps(plots.type_bars({name: 3}).to_plotly_json(), default=str)
    assert "<img" not in drawn
    assert "<a" not in drawn
    assert "<b>PER" not in drawn
    assert "&lt;" in drawn


def test_many_types_end_in_one_bar_of_the_rest() -> None:
    bars = plots.type_bars({f"T{i}": 100 - i for i in range(30)}, limit=12).data[0]
    assert len(bars.y) == 13
    assert bars.y[-1] == "18 more types"
    assert sum(bars.x) == sum(100 - i for i in range(30))


def test_figures_leave_text_and_background_to_the_theme() -> None:
    fig = plots.length_histogram(np.arange(1, 9), "L_C")
    assert fig.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert fig.layout.font.color is None
    assert fig.layout.xaxis.title.text == "tokens a sentence"
