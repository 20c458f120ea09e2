"""Choosing the run that a page is about, where there are several."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.facade.runs import Run
from pages.ui.runs.links import attach


def begun(run: Run) -> str:
    """What tells a run from its like: when it was begun, and the end of its id."""
    return f"{run.began:%H:%M} UTC, {run.id[-4:]}"


def pick_run(run_id: str, key: str, runs: Sequence[Run], what: str, label: Callable[[Run], str], **look: Any) -> str:
    """The run that is picked; `run_id` itself where there is no other. key: under which the page remembers its run.

    what: the label of the choice. label: a run in words. look: further keywords of the selectbox.
    """
    named = {run.id: run for run in runs}
    if len(named) < 2 or run_id not in named:
        return run_id
    ids, which = list(named), f"{key.partition('.')[0]}.which.{run_id}"
    picked = st.selectbox(what, ids, ids.index(run_id), lambda each: label(named[each]), key=which, **look)
    if picked != run_id:
        attach(picked, key)
        st.rerun()
    return run_id
