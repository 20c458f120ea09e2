"""Choosing the run that a page, or a part of it, is about, where there are several."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.runs.run import Run
from pages.ui.runs.links import attach, remember, remembered
from pages.ui.runs.words import run_titles, title


def pick_run(
    run_id: str,
    key: str,
    runs: Sequence[Run],
    what: str,
    label: Callable[[Run], str] = title,
    *,
    take: Callable[[str, str], None] = attach,
    **look: Any,
) -> str:
    """The run that is picked; `run_id` itself where there is no other. key: under which the page remembers its run.

    what: label of the field. label: names a run; equal names get their date. take: makes the page be about a run.
    look: further keywords of the selectbox.
    """
    by_id = {run.id: run for run in runs}
    if len(by_id) < 2 or run_id not in by_id:
        return run_id
    # The key holds the run that is shown: one that the address names stands in the field, whatever was picked before.
    names, ids, which = run_titles(runs, label), list(by_id), f"{key.partition('.')[0]}.which.{run_id}"
    picked = st.selectbox(what, ids, ids.index(run_id), names.__getitem__, key=which, **look)
    if picked != run_id:
        take(picked, key)
        st.rerun()
    return run_id


def pick_part(key: str, runs: Sequence[Run], what: str, label: Callable[[Run], str]) -> str:
    """The same for a part of a page, which the address does not name: the newest to begin with."""
    latest = remembered(key, [run.id for run in runs]) or runs[0].id
    return pick_run(latest, key, runs, what, label, take=remember)
