"""Home: the path T_C + D_C -> S_C, what runs and what ran, what to do next."""

import streamlit as st

from core import facade
from pages.ui.frame import guard, local_badge, page
from pages.ui.run_panel import POLL, headline, progress
from pages.ui.widgets import plain, sample_buttons, size

CORPORA, SELECTION, EXPLORE = "pages/1_Corpora.py", "pages/3_Selection.py", "pages/4_Explore.py"
OPENS = {"select": SELECTION, "add": CORPORA, "audit": CORPORA, "map": EXPLORE}
SHOWN = 8


def main() -> None:
    """The page."""
    with page("Winnow", "Find the part of a large corpus that is worth pre-training on."):
        runs = [run for run in facade.runs() if run.manifest.parent is None and run.manifest.kind in OPENS]
        _path([run for run in runs if run.manifest.kind == "select" and run.state().state == "succeeded"])
        _samples()
        st.subheader("Runs", anchor=False)
        if runs:
            live = any(run.state().active for run in runs[:SHOWN])
            st.fragment(run_every=POLL if live else None)(_runs)(live)
        else:
            st.caption("Nothing has run yet. What runs shows up here, also after this window was closed.")
        _machine()


def _path(selections: list[facade.Run]) -> None:
    """The steps, each with how far it is."""
    roles = facade.roles()
    have = [name for role, name in (("task", "T_C"), ("domain", "D_C"), ("train", "L_C")) if role in roles]
    ready = {"task", "domain"} <= roles.keys()
    ran = f"{len(selections)} finished" if selections else "Ready to start" if ready else "Needs T_C and D_C"
    steps = (
        ("1", "Corpora", "T_C, your task's text, and D_C, the large corpus to select from.", CORPORA,
         f"{', '.join(have)} in use" if have else "None in use yet", ready),
        ("2", "Selection", "Score D_C against T_C, set the budget, get S_C.", SELECTION,
         ran, bool(selections)),
        ("3", "Export", "Take S_C away as text, JSONL, Parquet or a datasets folder.", SELECTION,
         "Ready to download" if selections else "Needs a selection", False),
    )  # fmt: skip
    for column, (number, name, what, target, status, done) in zip(st.columns(3), steps, strict=True):
        with column.container(border=True, height="stretch"):
            st.page_link(
                target,
                label=f"**{number} · {name}**",
                icon=f":material/{'check_circle' if done else 'radio_button_unchecked'}:",
            )
            st.markdown(what)
            st.caption(status)


def _samples() -> None:
    with st.container(border=True):
        st.markdown("**Try it on a sample.** Small corpora of our own writing, ready to score in one click.")
        sample_buttons("home", SELECTION)


def _runs(was_live: bool) -> None:
    with guard():
        runs = [run for run in facade.runs() if run.manifest.parent is None and run.manifest.kind in OPENS][:SHOWN]
        states = [facade.state(run.id) for run in runs]
        if any(state.active for state in states) != was_live:
            st.rerun(scope="app")
        for run, state in zip(runs, states, strict=True):
            with st.container(border=True, key=f"home.run.{run.id}"):
                with st.container(horizontal=True, horizontal_alignment="distribute"):
                    with st.container(width="content"):
                        headline(run.id, state)
                    st.page_link(
                        OPENS[run.manifest.kind],
                        label="Open",
                        icon=":material/arrow_forward:",
                        query_params={"run": run.manifest.config.get("selection", run.id)},
                    )
                if state.active:
                    progress(state)
                elif state.error:
                    st.caption(plain(state.error))


def _machine() -> None:
    free, total = facade.disk()
    device = "a GPU" if facade.device() == "gpu" else "no GPU"
    with st.container(horizontal=True, vertical_alignment="center"):
        local_badge()
        st.caption(
            f"{facade.cores()} cores, {device}, {size(free)} of {size(total)} free in {plain(str(facade.home()))}"
        )


main()
