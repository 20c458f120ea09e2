"""The scores of what is on the map: a range of them is picked here as a lasso is there, and the list follows both.

A drag over the bars and the slider below them set the same filter; the slider is the way without a mouse.
"""

import numpy as np
import streamlit as st

from core.explore import plot, regions
from core.explore import view as maps
from core.explore.regions import Region
from core.results import IntArray
from core.selection import view as selections
from core.shown import count
from pages.ui.explore import state
from pages.ui.widgets import chart


def scores(map_run: str, points: IntArray) -> None:
    """Draw the histogram, with the part of it that `points` are, and the slider that picks too."""
    values = regions.scores_on_map(map_run, np.arange(len(maps.get(map_run))))
    # A slider needs two ends, and scores that are all alike pick nothing.
    if len(values) < 2 or values.min() == values.max():
        return
    region = state.picked(map_run)
    low, high = float(values.min()), float(values.max())
    picked = regions.scores_on_map(map_run, points) if region else values[:0]
    unit = selections.scored(maps.get(map_run).selection).scores.unit
    name = f"Scores of {count(len(values), 'sentence')} on the map, {len(picked):,} of them picked"
    bars = f"explore.scores.{map_run[-4:]}.{state.nth()}"  # a new key takes the drawn box away, the bars show the range
    chart(
        plot.picked_scores(values, picked, unit),
        bars,
        name,
        on_select=lambda: _dragged(map_run, bars, (low, high)),
        selection_mode="box",
    )
    st.caption("Drag over the bars to pick a range.")
    _slider(map_run, region, (low, high))


def _slider(map_run: str, region: Region | None, span: tuple[float, float]) -> None:
    low, high = span
    now = tuple(region["value"]) if region and region["kind"] == "score" else span
    key = f"explore.range.{map_run[-4:]}.{state.nth()}"

    def chosen() -> None:
        state.pick(map_run, "score", [float(bound) for bound in st.session_state[key]])

    st.slider(
        "Pick a range of scores",
        low,
        high,
        (max(low, now[0]), min(high, now[1])),
        (high - low) / 200,
        format="%.3g",
        key=key,
        on_change=chosen,
    )


def _dragged(map_run: str, key: str, span: tuple[float, float]) -> None:
    """Pick what a box over the bars spans; one beside all of them picks nothing."""
    for box in st.session_state[key].selection.box[:1]:
        first, last = (min(max(float(end), span[0]), span[1]) for end in sorted(box["x"]))
        if first < last:
            state.pick(map_run, "score", [first, last])
