"""Runs: all of a project's in one table, named and kept in order; any of them side by side; their curves in a chart."""

import streamlit as st

from core.facade import labels
from core.facade.labels import RunRow
from pages.ui.empty import empty
from pages.ui.frame import page
from pages.ui.runs import comparison, one, table
from pages.ui.runs.links import SELECTION

NEEDS = "Nothing has run yet. What runs stands here, to be named, compared and removed."


def main() -> None:
    """The page."""
    with page("Runs", "Everything this project has run: find it again, say what it was, set it beside others."):
        if not labels.rows(archived=True):
            empty(NEEDS, "runs", SELECTION, make="Make a selection")
            return
        ticked = table.table()
        if not ticked:
            st.caption("Tick a run to name it, note something or remove it; tick several to see what sets them apart.")
        elif len(ticked) == 1:
            one.one(ticked[0])
        else:
            _several(ticked)
        comparison.curves(ticked)


def _several(ticked: list[RunRow]) -> None:
    one.flags(ticked)
    comparison.options(ticked)


main()
