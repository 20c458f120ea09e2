"""Every mention by what its name and its context tell; a box around some fills a table (Ma et al. 2023, Table 2)."""

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
    """The sliders hold the box, so that it can be drawn with the mouse and set without one."""
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
            f"{count(len(numbers), 'mention')} by what context and name tell; the table below lists them",
            on_select=partial(_boxed, key, sliders, spans),
            selection_mode="box",
        )
        some = ""
        if len(numbers) < len(measured):
            some = f" A random {len(numbers):,} of {len(measured):,} are drawn; a box takes all."
        st.caption(f"Draw a box around some to list them, or set it here; a double click takes it away.{some}")
        context, name = (
            column.slider(f"Information of the {of}, bits", *span, span, STEP, key=slider, on_change=_turned)
            for column, of, slider, span in zip(st.columns(2), ("context", "name"), sliders, spans, strict=True)
        )
        _listed(run_id, (context, name))


def _span(values: FloatArray) -> Range:
    """Round outwards, so that the ends are inside."""
    return round(math.floor(values.min() / STEP) * STEP, 2), round(math.ceil(values.max() / STEP + 1e-9) * STEP, 2)


def _turned() -> None:
    """A box set by hand: the drawn one goes."""
    st.session_state["bias.turn"] = int(st.session_state.get("bias.turn", 0)) + 1


def _boxed(key: str, sliders: tuple[str, str], spans: tuple[Range, Range]) -> None:
    boxes = st.session_state[key]["selection"]["box"]
    drawn = (boxes[0]["x"], boxes[0]["y"]) if boxes else spans
    for slider, ends, (low, high) in zip(sliders, drawn, spans, strict=True):
        # A box may reach beyond the axes and between the steps; a slider refuses both.
        first, last = (round(min(max(end, low), high) / STEP) * STEP for end in sorted(ends))
        st.session_state[slider] = (max(round(first, 2), low), min(round(last, 2), high))


def _listed(run_id: str, box: tuple[Range, Range]) -> None:
    numbers = bias.in_box(run_id, *box)
    if not len(numbers):
        st.info("No mention is in there; draw a larger box.")
        return
    if text_gone(run_id):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{count(len(numbers), 'mention')}**, those with the largest name minus context either way first",
            width="content",
        )
        download(run_id, numbers, "bias.box")
    looked(bias.measured(run_id).corpus.fingerprint)
    row = mention_table(bias.mention_rows(run_id, numbers[:ROWS]), f"bias.table.{run_id[-4:]}.{box}")
    if len(numbers) > ROWS:
        st.caption(f"The first {ROWS:,} of {len(numbers):,}; the file has all.")
    if row is None:
        st.caption("Tick a row to read its sentence with the mention highlighted.")
        return
    st.html(f'<ul class="w-sentences" aria-label="The ticked mention in its sentence"><li>{marked(row)}</li></ul>')
