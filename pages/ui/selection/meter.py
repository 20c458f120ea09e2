"""Beside the budget: how many sentences of D_C are like the task's, and that number as the budget."""

import streamlit as st

from core.projects import runs
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choice import run_of
from core.selection.prevalence import PrevalenceResult
from pages.ui.presses import pressed
from pages.ui.runs.panel import run_panel

ABOUT = (
    "Tells the task corpus from the domain corpus as the default strategy does, and counts the domain sentences"
    " that score like the task corpus's own. They are not all alike: those beyond the count are less like your "
    "task, and a larger budget takes them too."
)


def meter(choice_id: str, asked: int) -> None:
    """Draw the count for a choice, which takes `asked` sentences, or the way to it."""
    run_id = run_of(choice_id)
    inputs = runs.get(run_id).manifest.inputs
    task, domain = inputs["task"], inputs["domain"]
    count = prevalence.counted(task, domain)
    if count is not None:
        _counted(choice_id, count, asked)
    elif counting := prevalence.counting(task, domain):
        run_panel(counting, "selection.counting")
    elif prevalence.countable(task):
        label = "Estimate how many sentences are relevant"
        if pressed(label, "selection.count", icon=":material/speed:", help=ABOUT):
            runs.start("prevalence", prevalence.options(run_id))
            st.rerun()


def _counted(choice_id: str, count: PrevalenceResult, asked: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(prevalence.in_words(count, asked), width="content", help=ABOUT)
        budget = prevalence.budget(count)
        if budget is None or budget == selections.kept_budget(choice_id):
            return
        if pressed(f"Ask for {count.about:,}", "selection.counted", icon=":material/check:"):
            selections.keep_budget(choice_id, budget)
            st.rerun()
