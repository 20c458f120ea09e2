"""Figures: bars add up to the data, text and marks are readable in both themes, and large corpora stay small."""

import html
import json
import re
import tomllib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core import charts
from core.bias import plot as bias_plot
from core.bias.result import Bits, Intervals
from core.charts import binned, figure, length_edges
from core.experiment import words as experiment_plot
from core.explore import plot as explore_plot
from core.importing import plot as importing_plot
from core.results import Prefer
from core.selection import plot as selection_plot
from core.similarity import plot as similarity_plot
from core.similarity.result import SimilarityRow
from core.tagging import plot as tagging_plot
from tests.conftest import ROOT
from tests.tagging.test_plot import line

THEMES = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
KINDS = ("selected", "not selected")
GROUNDS = {False: ("#ffffff", "#f8f8f7"), True: ("#0e1117", "#22211e")}  # the page, and its lightest or darkest area


def light(colour: str) -> float:
    """Return the relative luminance by WCAG."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def informed(name: str) -> bias_plot.Informed:
    """Return the bits of a corpus with their intervals."""
    intervals = Intervals(entity=(1.4, 1.7), context=(0.8, 1.1))
    return bias_plot.Informed(name=name, bits=Bits(entity=1.5, context=1.0), intervals=intervals)


@pytest.mark.parametrize("dark", [False, True])
def test_text_of_charts_has_enough_contrast(dark: bool) -> None:
    fig = charts.dressed(figure(100, x="steps", y="F1"), dark=dark)
    drawn: Any = importing_plot.length_histogram(np.ones(9, dtype=np.int64), "S_C", dark=dark)
    live = tagging_plot.curves([line(3, "a"), line(3, "b")], y="F1", height=100, dark=dark).to_dict()["config"]
    inks = [
        fig.layout.font.color,
        fig.layout.legend.font.color,
        fig.layout.xaxis.tickfont.color,
        fig.layout.yaxis.title.font.color,
        live["axis"]["labelColor"],
        live["axis"]["titleColor"],
        live["legend"]["labelColor"],
        drawn["config"]["axis"]["labelColor"],
        drawn["config"]["axis"]["titleColor"],
        drawn["config"]["legend"]["labelColor"],
        drawn["layer"][1]["layer"][1]["mark"]["color"],
    ]
    assert all(contrast(ink, ground) >= 4.5 for ink in inks for ground in GROUNDS[dark])
    bars = charts.dressed(bias_plot.v_information_bars([informed("a")]), dark=dark)
    assert all(contrast(bar.error_x.color, ground) >= 3 for bar in bars.data for ground in GROUNDS[dark])


def test_charts_use_the_blue_of_the_theme() -> None:
    blue = THEMES["dark"]["primaryColor"]
    for dark, colour in ((True, blue), (False, "#0072B2")):
        drawn: Any = importing_plot.length_histogram(np.ones(9, dtype=np.int64), "S_C", dark=dark)
        assert drawn["layer"][0]["mark"]["color"] == colour
    bars = bias_plot.v_information_bars([informed("a")])
    assert charts.dressed(bars, dark=True).data[0].marker.color == blue
    assert charts.dressed(bars, dark=False).data[0].marker.color == "#0072B2"
    live = tagging_plot.curves([line(3)], y="F1", height=100, dark=True).to_dict()
    assert live["layer"][0]["encoding"]["color"]["scale"]["range"] == [blue]
    assert charts.css_colour("#0072B2") == f"light-dark(#0072B2,{blue})"


def test_marks_and_logo_have_enough_contrast_and_marks_differ() -> None:
    marks = {
        *charts.COLOURS.values(),
        *charts.ENTITY_COLOURS,
        *(mark.colour for mark in experiment_plot.VERDICT_MARKS.values()),
    }
    shown = [charts.ON_DARK.get(colour, colour) for colour in marks]
    assert all(contrast(colour, ground) >= 3 for colour in shown for ground in GROUNDS[True])
    assert len(set(shown)) == len(marks)
    for name in ("logo", "icon"):
        colours = re.findall(r'fill="(#\w{6})"', (ROOT / "assets" / f"{name}.svg").read_text(encoding="utf-8"))
        assert len(colours) >= 3
        grounds = (*GROUNDS[False], *GROUNDS[True], "#f0f2f6", "#262730")  # the last two are the sidebar's
        assert all(contrast(one, ground) >= 3 for one in colours for ground in grounds)


def test_a_name_that_looks_like_a_colour_is_kept() -> None:
    fig = charts.dressed(bias_plot.v_information_bars([informed("#0072B2")]), dark=True)
    assert "#0072B2" in json.dumps(fig.to_plotly_json(), default=str)
    drawn: Any = importing_plot.type_bars({"#0072B2": 3, "PER": 1}, dark=True)
    assert drawn["layer"][0]["data"]["values"][0]["name"] == "#0072B2"


def closeness(source: str, value: float) -> SimilarityRow:
    """Return a similarity row of one source and one target, from one draw."""
    read: dict[str, Any] = {"sample_tokens": 10, "target_tokens": 10, "columns": {}, "whole": False, "convention": ""}
    ends: dict[str, Any] = {"draws": [value], "low": value, "high": value}
    return SimilarityRow(
        target="t", source=source, measure="tvc", value=value, unit="%", prefer="high", problem="", **read, **ends
    )


def test_long_names_are_shortened_and_stay_different() -> None:
    names = [f"{'x' * 340} {end}" for end in "ab"]
    rows = [closeness(name, value) for value, name in enumerate(names, 1)]
    fig = similarity_plot.similarity_bars(rows, {"tvc": "TVC"}, {"tvc": 2.0})
    ticks = list(fig.data[0].y)
    assert len(set(ticks)) == 2
    assert all(len(html.unescape(tick)) <= 44 for tick in ticks)


def rows(spec: Any) -> list[dict[str, Any]]:
    """Return the data of the first layer of a figure."""
    return list(spec["layer"][0]["data"]["values"])


lengths = hnp.arrays(np.int32, st.integers(1, 200), elements=st.integers(0, 3000))
scores = hnp.arrays(
    np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6, allow_subnormal=False) | st.just(np.nan)
)


@settings(max_examples=40)
@given(lengths)
def test_bars_count_the_lengths_in_their_range(values: np.ndarray) -> None:
    given = np.bincount(values)
    edges = length_edges(given, 30)
    counts = binned(given, edges)
    assert sum(bar["n"] for bar in rows(importing_plot.length_histogram(given, "T_C"))) == len(values)
    for i in range(len(counts) - 1):  # the last bar also counts longer sentences
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
    assert [bar["to"] for bar in bars[: len(inside)]] == [bar["from"] for bar in bars[len(inside) :]]  # stacked


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
def test_the_label_of_the_cut_is_on_the_side_with_room(log: bool, left: bool) -> None:
    values = np.geomspace(1, 10_000, 1_000) if log else np.linspace(1, 10_000, 1_000)
    bins = selection_plot.score_bins(values)
    assert bins.log == log
    cut = values[400 if left else 600]  # the middle of a logarithmic axis is far left on a linear one
    drawn: Any = selection_plot.score_histogram(bins, np.array([cut]), "u", "high")
    assert drawn["layer"][1]["layer"][1]["mark"]["align"] == ("left" if left else "right")


@pytest.mark.parametrize(("prefer", "cut"), [("high", "cut at 2"), ("low", "cut at 9")])
def test_the_cut_of_a_diverse_selection_is_at_its_worst_score(prefer: Prefer, cut: str) -> None:
    """With diversity, the selected sentences are not in the order of their scores."""
    bins = selection_plot.score_bins(np.arange(12.0))
    drawn = selection_plot.score_histogram(bins, np.array([5.0, 2.0, 9.0, 4.0]), "u", prefer)
    assert f'"{cut}"' in json.dumps(drawn)


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
    alone: dict[str, Any] = {role: importing_plot.length_histogram(np.bincount(values), role) for role in words}
    colours = {words[role]: spec["layer"][0]["mark"]["color"] for role, spec in alone.items()}
    assert len(set(colours.values())) == 3
    looks = compared["layer"][0]["encoding"]
    names = [name.split(",")[0] for name in looks["color"]["scale"]["domain"]]
    assert dict(zip(names, looks["color"]["scale"]["range"], strict=True)) == colours
    assert len({tuple(dash) for dash in looks["strokeDash"]["scale"]["range"]}) == 3  # not by colour alone
    scored: Any = selection_plot.score_histogram(selection_plot.score_bins(values * 1.0), values[:3] * 1.0, "u", "high")
    assert scored["layer"][0]["encoding"]["color"]["scale"]["range"][0] == colours["selection"]


def test_rare_types_are_joined_in_one_bar() -> None:
    bars = rows(importing_plot.type_bars({f"T{i}": 100 - i for i in range(30)}, limit=12))
    assert len(bars) == 13
    assert bars[-1]["name"] == "18 more types"
    drawn: Any = importing_plot.type_bars({"PER": 1})
    assert drawn["layer"][0]["encoding"]["y"]["axis"]["labelOverlap"] is False  # otherwise Vega leaves names out
    assert sum(bar["n"] for bar in bars) == sum(100 - i for i in range(30))


@given(lengths.filter(len), st.floats(0, 1))
def test_a_quantile_of_counts_is_that_of_the_numbers(values: np.ndarray, share: float) -> None:
    assert charts.quantile(np.bincount(values), share) == pytest.approx(np.quantile(values, share), abs=1e-6)


@pytest.mark.parametrize("values", [[], [7], [1, 50]])
def test_the_median_label_is_above_the_bars(values: list[int]) -> None:
    drawn: Any = importing_plot.length_histogram(np.bincount(np.array(values, dtype=np.int32)), "T_C")
    marks = [layer["data"]["values"][0]["words"] for layer in drawn["layer"][1:]]
    assert marks == ([f"median {np.median(values):.0f}"] if values else [])
    highest = max(bar["n"] for bar in rows(drawn))
    assert drawn["layer"][0]["encoding"]["y"]["scale"]["domain"][1] > highest


def test_unit_of_a_score_never_becomes_markup() -> None:
    """A strategy of another package may name its unit as it likes."""
    figure = explore_plot.picked_scores(np.arange(9.0), np.arange(3.0), "<b>bits</b>")
    assert figure.layout.xaxis.title.text == charts.plain("<b>bits</b>") != "<b>bits</b>"
