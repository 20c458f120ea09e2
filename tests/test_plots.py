"""Figures: what is drawn adds up to what came in, and nothing of the size of a corpus goes to the browser."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.charts import binned, length_edges
from core.importing import plot as importing_plot
from core.selection import plot as selection_plot

KINDS = ("selected", "filtered")


def rows(spec: Any) -> list[dict[str, Any]]:
    """What the first layer of a figure draws."""
    return list(spec["layer"][0]["data"]["values"])


lengths = hnp.arrays(np.int32, st.integers(1, 200), elements=st.integers(0, 3000))
scores = hnp.arrays(
    np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6, allow_subnormal=False) | st.just(np.nan)
)


@settings(max_examples=40)
@given(lengths)
def test_a_bar_holds_the_lengths_it_names(values: np.ndarray) -> None:
    edges = length_edges(values, 30)
    counts = binned(values, edges)
    assert sum(bar["n"] for bar in rows(importing_plot.length_histogram(values, "T_C"))) == len(values)
    for i in range(len(counts) - 1):  # the last one takes what is longer
        low = -1 if i == 0 else edges[i]
        assert counts[i] == sum(1 for value in values if low < value <= edges[i + 1])


@settings(max_examples=60)
@given(scores, st.data())
def test_selected_and_filtered_add_up(values: np.ndarray, data: st.DataObject) -> None:
    known = np.sort(values[~np.isnan(values)])[::-1]
    chosen = known[: data.draw(st.integers(0, len(known)))]
    bins = selection_plot.score_bins(values)
    assert bins.counts.sum() == len(known)
    assert (np.diff(bins.edges) > 0).all()
    bars = rows(selection_plot.score_histogram(bins, chosen, "cosine", "high"))
    inside, outside = (np.array([bar["n"] for bar in bars if bar["sentences"].startswith(kind)]) for kind in KINDS)
    assert inside.sum() == len(chosen)
    assert outside.sum() == len(known) - len(chosen)
    assert (outside >= 0).all()
    assert [bar["to"] for bar in bars[: len(inside)]] == [bar["from"] for bar in bars[len(inside) :]]  # on top of it


def test_scores_over_several_magnitudes_get_equal_bins_of_their_logarithm() -> None:
    values = np.random.default_rng(0).lognormal(4, 2, 10_000)
    bins = selection_plot.score_bins(values)
    assert bins.log
    steps = np.diff(np.log(bins.edges))
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    drawn: Any = selection_plot.score_histogram(bins, np.sort(values)[:100], "perplexity", "low")
    assert drawn["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_the_words_at_the_cut_stand_where_there_is_room(log: bool, left: bool) -> None:
    values = np.geomspace(1, 10_000, 1_000) if log else np.linspace(1, 10_000, 1_000)
    bins = selection_plot.score_bins(values)
    assert bins.log == log
    cut = values[400 if left else 600]  # in the middle by the logarithm is far left without
    drawn: Any = selection_plot.score_histogram(bins, np.array([cut]), "u", "high")
    assert drawn["layer"][1]["layer"][1]["mark"]["align"] == ("left" if left else "right")


def test_a_million_scores_are_a_few_kilobytes_in_the_browser() -> None:
    values = np.random.default_rng(0).normal(size=1_000_000)
    fig = selection_plot.score_histogram(selection_plot.score_bins(values), values[:200_000], "cosine", "high")
    assert len(json.dumps(fig)) < 30_000
    many = np.random.default_rng(0).integers(1, 80, 1_000_000)
    assert (
        len(json.dumps(selection_plot.lengths_compared({"S_C": many[:1000], "D_C": many, "T_C": many[:500]}))) < 30_000
    )


def test_roles_keep_their_colour_on_every_figure() -> None:
    values = np.arange(1, 50)
    words = {"S_C": "selection", "D_C": "domain corpus", "T_C": "task corpus"}
    compared: Any = selection_plot.lengths_compared(dict.fromkeys(words, values))
    alone: dict[str, Any] = {role: importing_plot.length_histogram(values, role) for role in words}
    colours = {words[role]: spec["layer"][0]["mark"]["color"] for role, spec in alone.items()}
    assert len(set(colours.values())) == 3
    looks = compared["layer"][0]["encoding"]
    names = [name.split(",")[0] for name in looks["color"]["scale"]["domain"]]
    assert dict(zip(names, looks["color"]["scale"]["range"], strict=True)) == colours
    assert len({tuple(dash) for dash in looks["strokeDash"]["scale"]["range"]}) == 3  # not by colour alone
    scored: Any = selection_plot.score_histogram(selection_plot.score_bins(values * 1.0), values[:3] * 1.0, "u", "high")
    assert scored["layer"][0]["encoding"]["color"]["scale"]["range"][0] == colours["selection"]


def test_many_types_end_in_one_bar_of_the_rest() -> None:
    bars = rows(importing_plot.type_bars({f"T{i}": 100 - i for i in range(30)}, limit=12))
    assert len(bars) == 13
    assert bars[-1]["name"] == "18 more types"
    drawn: Any = importing_plot.type_bars({"PER": 1})
    assert drawn["layer"][0]["encoding"]["y"]["axis"]["labelOverlap"] is False  # else Vega leaves names out
    assert sum(bar["n"] for bar in bars) == sum(100 - i for i in range(30))


@pytest.mark.parametrize("values", [[], [7], [1, 50]])
def test_the_median_stands_over_the_bars(values: list[int]) -> None:
    drawn: Any = importing_plot.length_histogram(np.array(values, dtype=np.int32), "T_C")
    marks = [layer["data"]["values"][0]["words"] for layer in drawn["layer"][1:]]
    assert marks == ([f"median {np.median(values):.0f}"] if values else [])
    highest = max(bar["n"] for bar in rows(drawn))
    assert drawn["layer"][0]["encoding"]["y"]["scale"]["domain"][1] > highest
