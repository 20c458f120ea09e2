"""The road on Home: four lines, each with what is known now and the button that does the next thing."""

from collections.abc import Mapping
from functools import partial

import streamlit as st

from core.facade import reports, road
from core.facade.road import Stop
from pages.ui.project import later, page_link
from pages.ui.runs.links import ASSISTING, BIAS, CORPORA, EXPLORE, RESULTS, SELECTION, SIMILARITY, TRAINING
from pages.ui.widgets import plain

NEXT: Mapping[road.Name, tuple[str, str, str]] = {  # page, its button before there is something, and after
    "texts": (CORPORA, "Add your texts", "Change"),
    "choice": (SELECTION, "Choose", "Look at it"),
    "worth": (TRAINING, "Find out", "All figures"),
    "report": (RESULTS, "", "Word, HTML, tables"),
}
GREY: Mapping[road.Name, str] = {"texts": "T_C, D_C, L_C", "choice": "S_C", "worth": "", "report": ""}
CLOSER: Mapping[str, tuple[str, str]] = {
    "similarity": (SIMILARITY, "Which source is close?"),
    "bias": (BIAS, "Do labels teach names or contexts?"),
    "assisting": (ASSISTING, "Borrow labels"),
}


def draw() -> None:
    """The road, and what looks closer."""
    stops = road.stops()
    turn = next((stop.name for stop in stops if not stop.ready and stop.open), "")
    for number, stop in enumerate(stops, 1):
        with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            with st.container(width="stretch"):
                done = ":material/check_circle:" if stop.ready else ":material/radio_button_unchecked:"
                grey = f" :gray[{GREY[stop.name]}]" if GREY[stop.name] else ""
                st.markdown(f"{done} **{number} · {stop.title}**{grey}  \n{plain(stop.known)}")
            _next(stop, turn=stop.name == turn)
    with st.expander("Look closer", icon=":material/search:"):
        for row in road.closer():
            page, label = CLOSER[row.name]
            page_link(page, label=label, icon=":material/arrow_forward:")
            if row.reason:
                st.caption(plain(row.reason))


def _next(stop: Stop, *, turn: bool) -> None:
    """The ways on from a stop. turn: whether it is the one to go to now."""
    page, before, after = NEXT[stop.name]
    if stop.name == "worth" and stop.ready:
        page = RESULTS
    query = {"run": stop.run} if stop.run else None
    if stop.name == "report" and stop.ready:
        st.download_button(
            "Report (.pdf)",
            later(partial(reports.report, stop.run, "pdf")),
            file_name=f"{stop.run}.pdf",
            mime="application/pdf",
            icon=":material/download:",
            on_click="ignore",
            key="home.report.pdf",
        )
    if stop.name == "choice" and stop.ready:
        page_link(EXPLORE, label="Map", icon=":material/scatter_plot:", query=query, width="content")
    label = after if stop.ready else before
    if label and stop.open:
        icon = ":material/arrow_forward:"
        page_link(page, label=f"**{label}**" if turn else label, icon=icon, query=query, width="content")
