"""Beside the budget: how many sentences of D_C are like the task's, and that number as the budget."""

import streamlit as st

from core.facade import prevalence, runs, selections
from core.facade.prevalence import PrevalenceResult
from pages.ui.presses import pressed
from pages.ui.runs.panel import run_panel

ABOUT = (
    "Tells T_C from D_C as the default strategy does, and counts the sentences of D_C that score like T_C's own. They"
    " are not all alike: those beyond the count are less like your task, and a larger budget takes them too."
)


def meter(run_id: str, asked: int) -> None:
    """Draw the count for a finished selection, which takes `asked` sentences, or the way to it."""
    inputs = runs.get(run_id).manifest.inputs
    task, domain = inputs["task"], inputs["domain"]
    count = prevalence.counted(task, domain)
    if count is not None:
        _counted(run_id, count, asked)
    elif counting := prevalence.counting(task, domain):
        run_panel(counting, "selection.counting")
    elif prevalence.countable(task):
        label = "Count what is like your task in D_C"
        if pressed(label, "selection.count", icon=":material/speed:", help=ABOUT):
            runs.start("prevalence", prevalence.options(run_id))
            st.rerun()


def _counted(run_id: str, count: PrevalenceResult, asked: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(prevalence.in_words(count, asked), width="content", help=ABOUT)
        budget = prevalence.budget(count)
        if budget is None or budget == selections.kept_budget(run_id):
            return
        if pressed(f"Ask for {count.about:,}", "selection.counted", icon=":material/check:"):
            selections.keep_budget(run_id, budget)
            st.rerun()
