"""Compare strategies on the corpora that are picked in the form, to see which one suits the task corpus."""

from collections.abc import Mapping

import streamlit as st

from core.projects import runs
from core.runs.result import read
from core.selection import which_view as view
from core.selection.which_strategy import LEAST, WhichStrategyResult
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import pressed, table

ABOUT = (
    "Hides parts of the task corpus in the domain corpus, and counts how many of the hidden sentences each strategy "
    "selects at the budget above. Strategies that train a model are left out, so this takes only minutes."
)
COLUMNS = {"strategy": "Strategy", "recall": "Hidden sentences found", "difference": "Points more than the default"}


def which(options: Mapping[str, object], strategy: str) -> None:
    """Draw the comparison of strategies on the corpora in `options`, and the button that starts it.

    options: options of a selection, from the form. strategy: key of the form's field for the strategy.
    """
    task, domain = str(options["task"]), str(options["domain"])
    if not (task and domain):
        return
    run = view.newest(task, domain)
    unfinished = run is not None and run.state().state != "succeeded"
    with st.expander("Which strategy suits my text?", expanded=unfinished, icon=":material/contrast:"):
        st.markdown(ABOUT)
        if run is not None and unfinished:
            run_panel(run.id, "selection.which.run")
        # A comparison that was cancelled or failed does not hide the answer of an earlier one.
        if answered := view.newest(task, domain, finished=True):
            _answer(read(answered, WhichStrategyResult), strategy)
        if not view.comparable(task):
            st.caption(f"The task corpus has fewer than {LEAST} sentences, too few to show which strategy finds more.")
        elif run is None or not run.state().active:
            label = "Compare strategies" if run is None else "Compare again"
            if pressed(label, "selection.which.start", icon=":material/balance:"):
                runs.start("which-strategy", view.options(options))
                st.rerun()


def _answer(result: WhichStrategyResult, strategy: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{view.in_words(result)}**", width="stretch")
        if st.session_state[strategy] != result.best:
            st.button(
                f"Use {result.best}",
                key="selection.which.use",
                on_click=lambda: st.session_state.update({strategy: result.best}),
                icon=":material/check:",
            )
    rows = view.rows(result)
    table(rows, COLUMNS, "Strategies by the share of hidden sentences found")
    st.caption(f"{view.basis(result)} {view.LIMIT}")
