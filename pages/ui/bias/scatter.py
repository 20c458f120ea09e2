"""Scatter plot of name PVI against context PVI; a box lists its mentions in a table (Ma et al. 2023, Table 2)."""

import math
from functools import partial

import streamlit as st

from core.bias import plot
from core.bias import view as bias
from core.results import FloatArray
from core.shown import count
from pages.ui.bias.parts import ROWS, download, marked, mention_table
from pages.ui.frame import guard, looked
from pages.ui.orphaned import text_gone
from pages.ui.widgets import chart

STEP = 0.05  # bits
Range = tuple[float, float]


@st.fragment
def scatter(run_id: str) -> None:
    """Draw the plot and two sliders, which hold the box for users without a mouse."""
    with guard():
        st.subheader("Name against context", anchor=False)
        measured, numbers = bias.measured(run_id), bias.drawn(run_id)
        turn = int(st.session_state.get("bias.turn", 0))
        key, sliders = f"bias.pvi.{run_id}.{turn}", (f"bias.x.{run_id}", f"bias.y.{run_id}")
        spans = _span(measured.context), _span(measured.entity)
        figure = plot.pvi_scatter(
            measured.context[numbers], measured.entity[numbers], measured.bins[numbers].tolist(), numbers
        )
        chart(
            figure,
            key,
            f"{count(len(numbers), 'mention')} by information of context and name; the table below lists them",
            on_select=partial(_boxed, key, sliders, spans),
            selection_mode="box",
        )
        some = ""
        if len(numbers) < len(measured):
            some = f" A random sample of {len(numbers):,} of {len(measured):,} is drawn; a box lists all."
        st.caption(f"Draw a box to list its mentions, or set it with the sliders; a double click removes it.{some}")
        context, name = (
            column.slider(f"Information of the {of}, bits", *span, span, STEP, key=slider, on_change=_turned)
            for column, of, slider, span in zip(st.columns(2), ("context", "name"), sliders, spans, strict=True)
        )
        _listed(run_id, (context, name))


def _span(values: FloatArray) -> Range:
    """Return the range of `values`, rounded outwards to steps of the slider."""
    return round(math.floor(values.min() / STEP) * STEP, 2), round(math.ceil(values.max() / STEP + 1e-9) * STEP, 2)


def _turned() -> None:
    """Remove the drawn box after a slider was moved."""
    st.session_state["bias.turn"] = int(st.session_state.get("bias.turn", 0)) + 1


def _boxed(key: str, sliders: tuple[str, str], spans: tuple[Range, Range]) -> None:
    boxes = st.session_state[key]["selection"]["box"]
    drawn = (boxes[0]["x"], boxes[0]["y"]) if boxes else spans
    for slider, ends, (low, high) in zip(sliders, drawn, spans, strict=True):
        # Clip and round the box, because a slider accepts neither values out of range nor between steps.
        first, last = (round(min(max(end, low), high) / STEP) * STEP for end in sorted(ends))
        st.session_state[slider] = (max(round(first, 2), low), min(round(last, 2), high))


def _listed(run_id: str, box: tuple[Range, Range]) -> None:
    numbers = bias.in_box(run_id, *box)
    if not len(numbers):
        st.info("No mention is in this box; draw a larger one.")
        return
    if text_gone(run_id):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{count(len(numbers), 'mention')}**, ordered by the absolute value of name minus context",
            width="content",
        )
        download(run_id, numbers, "bias.box")
    looked(bias.measured(run_id).corpus.fingerprint)
    row = mention_table(bias.mention_rows(run_id, numbers[:ROWS]), f"bias.table.{run_id[-4:]}.{box}")
    if len(numbers) > ROWS:
        st.caption(f"The first {ROWS:,} of {len(numbers):,}; the CSV file has all.")
    if row is None:
        st.caption("Tick a row to read its sentence with the mention highlighted.")
        return
    st.html(f'<ul class="w-sentences" aria-label="The ticked mention in its sentence"><li>{marked(row)}</li></ul>')
