"""Home: the path T_C + D_C -> S_C -> F1, what runs and what ran, what to do next."""

from collections.abc import Sequence

import streamlit as st

from core.facade import corpora, machine, runs, training
from core.facade.home import home
from core.facade.runs import Run
from pages.ui.empty import sample_buttons
from pages.ui.frame import local_badge, page, spoilt_files
from pages.ui.nowhere import no_such_page
from pages.ui.removal import run_removal
from pages.ui.runs.links import BELONGS, CORPORA, OPENS, RESULTS, SELECTION, TRAINING
from pages.ui.runs.list import run_list
from pages.ui.runs.outcome import outcome
from pages.ui.widgets import plain, size

LISTED = {*OPENS, *BELONGS}
Step = tuple[str, str, str, str, bool]  # name, what it does, page, how far, done


def main() -> None:
    """The page."""
    with page("Winnow", "Find the part of a large corpus that is worth pre-training on."):
        no_such_page()
        listed = runs.own(*LISTED)
        _path([run for run in listed if run.state().state == "succeeded"])
        _samples()
        spoilt_files()
        st.subheader("Runs", anchor=False)
        if listed:
            run_list(listed)
            run_removal(listed)
        else:
            st.caption("Nothing has run yet. What runs shows up here, also after this window was closed.")
        _machine()


def _path(done: Sequence[Run]) -> None:
    """The steps, each with how far it is. done: the finished runs, newest first."""
    steps = (_prepared(), *_worked(done))
    for column, (name, what, target, status, ended) in zip(st.columns(len(steps)), steps, strict=True):
        with column.container(border=True, height="stretch"):
            st.page_link(
                target, label=f"**{name}**", icon=f":material/{'check_circle' if ended else 'radio_button_unchecked'}:"
            )
            st.markdown(what)
            st.caption(plain(status))
    if latest := _latest([run for run in done if run.manifest.kind in ("finetune", "experiment", "study")]):
        st.markdown(f"**The latest result:** {plain(latest)}")


def _prepared() -> Step:
    roles = corpora.roles()
    have = [name for role, name in (("task", "T_C"), ("domain", "D_C"), ("train", "L_C")) if role in roles]
    status = f"{', '.join(have)} in use" if have else "None in use yet"
    what = "T_C, your task's text, and D_C, the large corpus to select from."
    return "1 · Corpora", what, CORPORA, status, {"task", "domain"} <= roles.keys()


def _worked(done: Sequence[Run]) -> tuple[Step, Step, Step]:
    roles = corpora.roles().keys()
    selected = [run for run in done if run.manifest.kind == "select"]
    trained = [run for run in done if run.manifest.kind in training.TRAININGS]
    judged = [run for run in trained if run.manifest.kind != "pretrain"]

    def status(runs: Sequence[Run], needs: set[str], names: str) -> str:
        return f"{len(runs)} finished" if runs else "Ready to start" if needs <= roles else f"Needs {names}"

    return (
        ("2 · Selection", "Score D_C against T_C, set the budget, take S_C away or train on it.", SELECTION,
         status(selected, {"task", "domain"}, "T_C and D_C"), bool(selected)),
        ("3 · Training", "Pre-train on S_C, fine-tune a tagger, or compare arms in an experiment.", TRAINING,
         status(trained, {"train", "dev"}, "L_C train and dev"), bool(trained)),
        ("4 · Results", "Was it worth it? F1 beside its controls, and how sure that is.", RESULTS,
         f"{len(judged)} finished" if judged else "Needs a finished training", bool(judged)),
    )  # fmt: skip


def _latest(runs: Sequence[Run]) -> str:
    """What came out of the newest, in a line."""
    return outcome(runs[0]) if runs else ""


def _samples() -> None:
    with st.container(border=True):
        st.markdown("**Try it on a sample.** Small corpora of our own writing, ready to score in one click.")
        sample_buttons("home", SELECTION)


def _machine() -> None:
    free, total = machine.disk()
    if reason := machine.hindrance():
        st.warning(plain(reason), icon=":material/memory:")
    with st.container(horizontal=True, vertical_alignment="center"):
        local_badge()
        st.caption(f"{machine.cores()} cores, {_card()}, {size(free)} of {size(total)} free in {plain(str(home()))}")


def _card() -> str:
    """The card that training takes and what is free on it."""
    card, n = machine.card(), machine.n_cards()
    if card is None:
        return "no GPU"
    free, total = machine.memory()
    more = f" and {n - 1} more" if n > 1 else ""
    return f"{plain(card.name)} ({size(free)} of {size(total)} free){more}"


main()
