"""The runs that a user has started, newest first, with what came out of each."""

from collections.abc import Sequence

import streamlit as st

from core.projects import runs
from core.projects.titles import outcome
from core.runs.events import RunState
from core.runs.run import Run
from pages.ui.frame import guard
from pages.ui.runs.links import link
from pages.ui.runs.panel import POLL, headline, progress
from pages.ui.widgets import plain

SHOWN = 8
# Many, soon over: they stand by themselves once they are.
SMALL = ("add", "audit", "calibrate", "evaluate", "predict", "tag")


def run_list(listed: Sequence[Run]) -> None:
    """Draw them, those at work live. What is chosen here stands outside of what is redrawn."""
    active = {run.id for run in listed if run.state().active}
    small = [run for run in listed if run.manifest.kind in SMALL and run.id not in active]
    large = [run for run in listed if run not in small]
    more = len(large) > SHOWN and st.toggle(f"Show all {len(large)}", key="home.all")
    # What is at work is never folded away.
    shown = [run for i, run in enumerate(large) if more or i < SHOWN or run.id in active]
    st.fragment(run_every=POLL if active else None)(_rows)([run.id for run in shown], bool(active))
    if small:
        with st.expander(f"Imports, checks and other small runs: {len(small)}", icon=":material/inventory_2:"):
            for run in small[: 10 * SHOWN]:
                _row(run, runs.state(run.id))


def _rows(run_ids: Sequence[str], was_live: bool) -> None:
    with guard():
        shown = [(runs.get(run_id), runs.state(run_id)) for run_id in run_ids]
        # What stands outside of this part learns of an end only as the page is drawn anew.
        if any(state.active for _, state in shown) != was_live:
            st.rerun(scope="app")
        for run, state in shown:
            _row(run, state)


def _row(run: Run, state: RunState) -> None:
    with st.container(border=True, key=f"home.run.{run.id}"):
        with st.container(horizontal=True, horizontal_alignment="distribute"):
            with st.container(width="content"):
                headline(run.id, state)
            link(run, "Open")
        if state.active:
            progress(state)
        elif line := state.error or (outcome(run) if state.state == "succeeded" else ""):
            st.caption(plain(line))
