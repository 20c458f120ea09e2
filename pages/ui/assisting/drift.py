"""Which shared entities drift: a table to sort, filter and export."""

from dataclasses import asdict
from functools import partial
from typing import Any

import streamlit as st

from core.assisting import view as assisting
from core.assisting.skl import DRIFTS, Assisted, DriftRow
from pages.ui.frame import guard
from pages.ui.grid import grid
from pages.ui.project import later
from pages.ui.widgets import plain

SHOWN = 2000  # rows shown; the file has all


@st.fragment
def drift(run_id: str) -> None:
    """Show the shared entities, largest drift first."""
    with guard():
        assisted = assisting.get(run_id)
        result = assisting.result(run_id)
        st.markdown(
            f"**{result.overlapping:,}** entities are in both corpora (of {result.entities.primary:,} in"
            f" {plain(assisted.primary.name)}, {result.entities.assisting:,} in {plain(assisted.assisting.name)});"
            f" **{result.entities.drifting:,}** of them drift: their symmetric KL divergence (SKL) is above"
            f" {DRIFTS:g}."
        )
        rows = assisting.drift(run_id, **_filters())
        if not rows:
            st.info("No shared entity matches; loosen the filters.")
            return
        _table(rows, assisted)
        st.download_button(
            f"These {len(rows):,} as CSV",
            later(partial(assisting.drift_csv, run_id, rows)),
            f"drift-{run_id[-4:]}.csv",
            on_click="ignore",
            key="assisting.drift.csv",
            icon=":material/download:",
        )


def _filters() -> dict[str, Any]:
    columns = st.columns(3)
    search = columns[0].text_input("Entity contains", key="assisting.search")
    least = columns[1].number_input("SKL at least", 0.0, 20.0, 0.0, 0.5, key="assisting.least")
    count = columns[2].number_input("Times in each corpus, at least", 1, 1_000_000, 1, key="assisting.times")
    return {"search": search, "least_skl": least, "least_count": count}


def _table(rows: list[DriftRow], assisted: Assisted) -> None:
    shown = [asdict(row) for row in rows[:SHOWN]]
    columns = {name: [row[name] for row in shown] for name in shown[0]}
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    grid(
        columns,
        hide_index=True,
        height=420,
        key=f"assisting.drift.{len(rows)}",
        alt="Shared entities, their types and counts in each corpus, and their SKL",
        column_config={
            "entity": text("Entity"),
            "skl": number("SKL", format="%.3f"),
            "primary": text(f"In {assisted.primary.name}"),
            "assisting": text(f"In {assisted.assisting.name}"),
            "in_primary": number(f"Times in {assisted.primary.name}"),
            "in_assisting": number(f"Times in {assisted.assisting.name}"),
        },
    )
    if len(rows) > SHOWN:
        st.caption(f"The first {SHOWN:,} of {len(rows):,}; the file has all.")
