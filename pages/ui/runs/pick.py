"""Choosing the run that a page, or a part of it, is about, where there are several."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.facade.runs import Run
from pages.ui.runs.links import attach, remember, remembered
from pages.ui.runs.words import title, when


def begun(run: Run, words: str = "") -> str:
    """A run in a list of its like: `words`, else its title; when it was begun, and the end of its id."""
    return f"{words or title(run)} ({when(run.began.timestamp())}, {run.id[-4:]})"


def pick_run(
    run_id: str,
    key: str,
    runs: Sequence[Run],
    what: str,
    label: Callable[[Run], str],
    *,
    take: Callable[[str, str], None] = attach,
    **look: Any,
) -> str:
    """The run that is picked; `run_id` itself where there is no other. key: under which the page remembers its run.

    what: the label of the choice. label: a run in words. take: makes the page be about a run. look: further keywords
    of the selectbox.
    """
    by_id = {run.id: run for run in runs}
    if len(by_id) < 2 or run_id not in by_id:
        return run_id
    # The key holds the run that is shown: one that the address names stands in the field, whatever was picked before.
    ids, which = list(by_id), f"{key.partition('.')[0]}.which.{run_id}"
    picked = st.selectbox(what, ids, ids.index(run_id), lambda each: label(by_id[each]), key=which, **look)
    if picked != run_id:
        take(picked, key)
        st.rerun()
    return run_id


def pick_part(key: str, runs: Sequence[Run], what: str, label: Callable[[Run], str]) -> str:
    """The same for a part of a page, which the address does not name: the newest to begin with."""
    latest = remembered(key, [run.id for run in runs]) or runs[0].id
    return pick_run(latest, key, runs, what, label, take=remember)
