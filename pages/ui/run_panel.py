"""A run as a page shows it: live while somebody works on it, a sentence once it is over, Cancel and Resume."""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from core import facade
from pages.ui.frame import guard
from pages.ui.widgets import duration, plain

POLL = 1.0  # seconds; a reloaded page shows a run within three
_CHILD = re.compile(r"^(?:[a-z][a-z0-9-]*: )+")  # "score: embed: ": which run in the run, no help to a reader
_LOOKS = {
    "queued": ("Starting", "gray", ":material/hourglass_top:"),
    "running": ("Running", "blue", ":material/play_circle:"),
    "succeeded": ("Finished", "green", ":material/check_circle:"),
    "failed": ("Failed", "red", ":material/error:"),
    "cancelled": ("Cancelled", "orange", ":material/cancel:"),
    "interrupted": ("Interrupted", "orange", ":material/power_off:"),
}


STOPPED = "Stopped at your request. What was finished is kept; Resume goes on from there."


def attached(kind: str | Collection[str], key: str) -> str | None:
    """The run of `kind` (or of several) a page is about: named in the address, else at work now, else the latest.
    Truth is on disk. Part of another run is only what is named: what was asked for may have been made there before."""
    kinds = {kind} if isinstance(kind, str) else kind
    every = {run.id: run for run in facade.runs() if run.manifest.kind in kinds}
    named = st.query_params.get("run") or st.session_state.get(key)
    if named in every:
        return str(named)
    mine = [run_id for run_id, run in every.items() if run.manifest.parent is None]
    return next((run_id for run_id in mine if facade.state(run_id).active), mine[0] if mine else None)


def attach(run_id: str, key: str) -> None:
    """Make the page about this run, also after a reload."""
    st.session_state[key] = st.query_params["run"] = run_id


def run_panel(run_id: str, key: str, stop: str = "Cancel", stopped: str = STOPPED) -> facade.RunState:
    """Draw a run; returns the state it was drawn in. The page is rerun when the run begins or ends.

    stop: what its button says. stopped: what is said once it was pressed and heard.
    """
    state = facade.state(run_id)
    with st.container(border=True, key=f"{key}.panel"):
        st.fragment(run_every=POLL if state.active else None)(_live)(run_id, state.active, stopped)
        _controls(run_id, state, key, stop)
    return state


def _live(run_id: str, was_active: bool, stopped: str) -> None:
    with guard():
        state = facade.state(run_id)
        if state.active != was_active:
            st.rerun(scope="app")
        headline(run_id, state)
        if state.active:
            progress(state)
        _ending(state, stopped)
        _details(run_id, state)


def headline(run_id: str, state: facade.RunState) -> None:
    """State as colour, word and sign; what the run does."""
    word, colour, icon = _LOOKS[state.state]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Stopping" if state.cancelling else word, color=colour, icon=icon)
        st.markdown(f"**{plain(title(facade.run(run_id)))}**", width="content")
        if state.started:
            st.caption(_when(state), width="content")


_TITLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "select": lambda config: f"Select {config['budget']} of {_name(config['domain'])} by {config['strategy']}",
    "audit": lambda config: f"Check {_name(config['corpus'])} for duplicates and leaks",
    "add": lambda config: f"Import {config['name'] or config['path'].rsplit('/', 1)[-1]}",
    "similarity": lambda config: f"Compare {len(config['source'])} sources with {_names(config['target'])}",
    "map": lambda config: f"Map {config['selection']}",
    "pretrain": lambda config: f"Pre-train {encoder(config['init'])} on {_names(config['corpora'])}",
    "finetune": lambda config: f"{_trained(config)} on {_name(config['train'])}",
    "skl": lambda config: f"Score {_name(config['assisting'])} against {_name(config['primary'])}",
    "assist": lambda config: f"{_name(config['primary'])} with the help of {_name(config['assisting'])}",
    "difficulty": lambda config: f"Measure names and contexts of {_name(config['train'])}",
    "rebuild": lambda config: f"Rebuild {_name(config['train'])} by {config['method']}",
    "robustness": lambda config: f"Make {config['kind']} of {_name(config['test'])}",
    "experiment": lambda config: f"Experiment: {', '.join(config['arms'])}",
}


def title(run: facade.Run) -> str:
    """A run in words: what it does to which corpus."""
    kind, config = run.manifest.kind, run.manifest.config
    if kind in _TITLES:
        return _TITLES[kind](config)
    return f"{kind} {_name(config.get('corpus') or config.get('domain') or '')}"


def _name(reference: str) -> str:
    try:
        return facade.corpus(reference).name
    except facade.CorpusError:
        return f"a removed corpus ({reference[:8]})"


def _trained(config: Mapping[str, Any]) -> str:
    network = config.get("network", "encoder")
    return f"Fine-tune {encoder(config['init'])}" if network == "encoder" else f"Train a {network} tagger"


def _names(references: Sequence[str]) -> str:
    return " and ".join(_name(reference) for reference in references)


def encoder(init: str) -> str:
    """What a training starts from, in few words: a finished pre-training by its corpora, a folder by its name."""
    run_id = init.removesuffix("/artifacts/model").rsplit("/", 1)[-1]
    with suppress(facade.WinnowError):
        return f"the encoder of {run_id[-4:]} ({_names(facade.run(run_id).manifest.config['corpora'])})"
    return init.rstrip("/").rsplit("/", 1)[-1]


def _when(state: facade.RunState) -> str:
    started = state.started or 0.0
    if state.ended:
        return f"{time.strftime('%-d %B, %H:%M', time.localtime(started))}, took {duration(state.ended - started)}"
    return f"since {time.strftime('%H:%M', time.localtime(started))}"


def progress(state: facade.RunState) -> None:
    """Stage, share done, rate and time left."""
    stage = _CHILD.sub("", state.stage or "starting")
    parts = [plain(stage[:1].upper() + stage[1:])]
    share = min(state.done / state.total, 1.0) if state.total else 0.0
    if state.done:
        of = f" of {state.total:,}" if state.total else ""
        parts.append(f"{state.done:,}{of} {plain(state.unit)}")
    if state.rate:
        parts.append(f"{state.rate:,.0f} {plain(state.unit)} a second")
    if state.eta is not None:
        parts.append(f"about {duration(state.eta)} left in this step")
    st.progress(share, text=" · ".join(parts))
    if state.waiting_for:
        st.caption(f"Waiting for **{_waited_for(state.waiting_for)}**, then it goes on by itself.")


def _waited_for(run_id: str) -> str:
    try:
        return f"{plain(title(facade.run(run_id)))} ({run_id[-4:]})"
    except facade.WinnowError:
        return plain(run_id)


def _ending(state: facade.RunState, stopped: str) -> None:
    match state.state:
        case "failed":
            st.error(plain(state.error or "The run failed without a word."), icon=":material/error:")
        case "interrupted":
            st.warning(plain(state.error or ""), icon=":material/power_off:")
        case "cancelled":
            st.info(stopped)


def _details(run_id: str, state: facade.RunState) -> None:
    log: Sequence[str] = facade.run(run_id).log_tail(30)
    if not state.notes and not log:
        return
    with st.expander("Notes and log", expanded=state.state in ("failed", "interrupted"), icon=":material/article:"):
        for note in state.notes:
            st.text(note)
        if log:
            st.code("\n".join(log), language=None, height=200)


def _controls(run_id: str, state: facade.RunState, key: str, stop: str) -> None:
    """Outside the fragment, so that a click never waits for a poll."""
    if state.active:
        st.button(
            stop,
            key=f"{key}.cancel",
            icon=":material/stop_circle:",
            disabled=state.cancelling,
            on_click=facade.cancel,
            args=(run_id,),
        )
    elif state.state != "succeeded" and st.button(
        "Resume", key=f"{key}.resume", icon=":material/resume:", type="primary"
    ):
        facade.resume(run_id)
        st.rerun()
