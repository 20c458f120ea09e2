"""Runs: a table of all runs of the project, to name, tag and compare them, and a chart of their curves."""

import streamlit as st

from core.projects import labels
from core.projects.labels import RunRow
from pages.ui.empty import empty
from pages.ui.frame import page
from pages.ui.runs import comparison, table
from pages.ui.runs.links import SELECTION

NEEDS = "Nothing has run yet. Runs are listed here, to be named, compared and removed."


def main() -> None:
    """Draw the page."""
    with page("Runs", "All runs of this project: search, name, compare and remove them."):
        if not labels.rows(archived=True):
            empty(NEEDS, "runs", SELECTION, make="Make a selection")
            return
        ticked = table.table()
        if not ticked:
            st.caption("Tick a run to name, annotate or remove it; tick several to compare them.")
        elif len(ticked) == 1:
            table.one(ticked[0])
        else:
            _several(ticked)
        comparison.curves(ticked)


def _several(ticked: list[RunRow]) -> None:
    table.flags(ticked)
    comparison.options(ticked)


main()
