"""Home: the path T_C + D_C -> S_C -> F1, what runs and what ran, what to do next."""

from collections import Counter

import streamlit as st

from core import facade
from pages.ui.frame import guard, local_badge, page
from pages.ui.run_panel import POLL, headline, progress
from pages.ui.widgets import plain, sample_buttons, size

CORPORA, SELECTION, EXPLORE = "pages/1_Corpora.py", "pages/3_Selection.py", "pages/4_Explore.py"
TRAINING, RESULTS = "pages/5_Training.py", "pages/6_Results.py"
OPENS = {"select": SELECTION, "add": CORPORA, "audit": CORPORA, "map": EXPLORE} | dict.fromkeys(
    facade.TRAININGS, TRAINING
)
SHOWN = 8
Step = tuple[str, str, str, str, bool]  # name, what it does, page, how far, done


def main() -> None:
    """The page."""
    with page("Winnow", "Find the part of a large corpus that is worth pre-training on."):
        runs = [run for run in facade.runs() if run.manifest.parent is None and run.manifest.kind in OPENS]
        _path(Counter(run.manifest.kind for run in runs if run.state().state == "succeeded"))
        _samples()
        st.subheader("Runs", anchor=False)
        if runs:
            live = any(run.state().active for run in runs[:SHOWN])
            st.fragment(run_every=POLL if live else None)(_runs)(live)
        else:
            st.caption("Nothing has run yet. What runs shows up here, also after this window was closed.")
        _machine()


def _path(done: Counter[str]) -> None:
    """The steps, each with how far it is. done: finished runs a kind."""
    steps = (_prepared(), *_worked(done))
    for column, (name, what, target, status, ended) in zip(st.columns(len(steps)), steps, strict=True):
        with column.container(border=True, height="stretch"):
            st.page_link(
                target, label=f"**{name}**", icon=f":material/{'check_circle' if ended else 'radio_button_unchecked'}:"
            )
            st.markdown(what)
            st.caption(status)


def _prepared() -> Step:
    roles = facade.roles()
    have = [name for role, name in (("task", "T_C"), ("domain", "D_C"), ("train", "L_C")) if role in roles]
    status = f"{', '.join(have)} in use" if have else "None in use yet"
    what = "T_C, your task's text, and D_C, the large corpus to select from."
    return "1 · Corpora", what, CORPORA, status, {"task", "domain"} <= roles.keys()


def _worked(done: Counter[str]) -> tuple[Step, Step, Step]:
    roles = facade.roles().keys()
    selected, trained = done["select"], sum(done[kind] for kind in facade.TRAININGS)
    judged = done["finetune"] + done["experiment"]

    def status(n: int, needs: set[str], names: str) -> str:
        return f"{n} finished" if n else "Ready to start" if needs <= roles else f"Needs {names}"

    return (
        ("2 · Selection", "Score D_C against T_C, set the budget, take S_C away or train on it.", SELECTION,
         status(selected, {"task", "domain"}, "T_C and D_C"), bool(selected)),
        ("3 · Training", "Pre-train on S_C, fine-tune a tagger, or compare arms in an experiment.", TRAINING,
         status(trained, {"train", "dev"}, "L_C train and dev"), bool(trained)),
        ("4 · Results", "Was it worth it? F1 beside its controls, and how sure that is.", RESULTS,
         f"{judged} to look at" if judged else "Needs a finished training", bool(judged)),
    )  # fmt: skip


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
