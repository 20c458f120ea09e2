"""Figures on a light and on a dark page: writing that is read easily, marks that are seen, the theme's own blue."""

import html
import json
import re
import tomllib
from typing import Any

import numpy as np
import pytest

from core import charts
from core.bias import plot as bias_plot
from core.bias.result import Bits, Intervals
from core.charts import figure
from core.experiment import words as experiment_plot
from core.importing import plot as importing_plot
from core.similarity import plot as similarity_plot
from core.similarity.result import SimilarityRow
from core.tagging import plot as tagging_plot
from tests.conftest import ROOT
from tests.tagging.test_plot import line

THEMES = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
GROUNDS = {False: ("#ffffff", "#f8f8f7"), True: ("#0e1117", "#22211e")}  # a page's, and its lightest or darkest part


def light(colour: str) -> float:
    """WCAG's relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def informed(name: str) -> bias_plot.Informed:
    """A corpus of that name with bits and their intervals."""
    intervals = Intervals(entity=(1.4, 1.7), context=(0.8, 1.1))
    return bias_plot.Informed(name=name, bits=Bits(entity=1.5, context=1.0), intervals=intervals)


@pytest.mark.parametrize("dark", [False, True])
def test_what_a_chart_writes_is_read_easily(dark: bool) -> None:
    fig = charts.dressed(figure(100, x="steps", y="F1"), dark=dark)
    drawn: Any = importing_plot.length_histogram(np.arange(1, 9), "S_C", dark=dark)
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


def test_on_a_dark_page_charts_have_the_dark_themes_blue() -> None:
    blue = THEMES["dark"]["primaryColor"]
    for dark, colour in ((True, blue), (False, "#0072B2")):
        drawn: Any = importing_plot.length_histogram(np.arange(1, 9), "S_C", dark=dark)
        assert drawn["layer"][0]["mark"]["color"] == colour
    bars = bias_plot.v_information_bars([informed("a")])
    assert charts.dressed(bars, dark=True).data[0].marker.color == blue
    assert charts.dressed(bars, dark=False).data[0].marker.color == "#0072B2"
    live = tagging_plot.curves([line(3)], y="F1", height=100, dark=True).to_dict()
    assert live["layer"][0]["encoding"]["color"]["scale"]["range"] == [blue]
    assert charts.css_colour("#0072B2") == f"light-dark(#0072B2,{blue})"


def test_every_mark_and_the_logo_are_seen_on_a_dark_page_and_no_two_marks_are_alike() -> None:
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


def test_what_is_called_like_a_colour_keeps_its_name() -> None:
    fig = charts.dressed(bias_plot.v_information_bars([informed("#0072B2")]), dark=True)
    assert "#0072B2" in json.dumps(fig.to_plotly_json(), default=str)
    drawn: Any = importing_plot.type_bars({"#0072B2": 3, "PER": 1}, dark=True)
    assert drawn["layer"][0]["data"]["values"][0]["name"] == "#0072B2"


def closeness(source: str, value: float) -> SimilarityRow:
    """Of a source to a target, by one draw."""
    read: dict[str, Any] = {"sample_tokens": 10, "target_tokens": 10, "columns": {}, "whole": False, "convention": ""}
    ends: dict[str, Any] = {"draws": [value], "low": value, "high": value}
    return SimilarityRow(
        target="t", source=source, measure="tvc", value=value, unit="%", prefer="high", problem="", **read, **ends
    )


def test_names_that_are_too_long_leave_the_bars_their_place_and_stay_apart() -> None:
    names = [f"{'x' * 340} {end}" for end in "ab"]
    rows = [closeness(name, value) for value, name in enumerate(names, 1)]
    fig = similarity_plot.similarity_bars(rows, {"tvc": "TVC"}, {"tvc": 2.0})
    ticks = list(fig.data[0].y)
    assert len(set(ticks)) == 2
    assert all(len(html.unescape(tick)) <= 44 for tick in ticks)
