"""A run on a page: live progress while it runs, then its ending, with Cancel and Resume."""

from collections.abc import Mapping, Sequence
from typing import Literal

import streamlit as st

from core.kind import overruled
from core.projects import runs
from core.projects.titles import title
from core.runs.events import RunState
from core.shown import duration, when
from pages.ui.frame import guard
from pages.ui.runs.words import STOP, ending, pace, removed, share, stage, stopped, waited_for, whole
from pages.ui.widgets import plain, pressed

_PLACES = {"local": "here, in one process", "ray": "here, on all cores and GPUs (Ray)"}
HELP = (
    "The result does not depend on where a run computes, so a stopped run can be resumed elsewhere. Several steps of "
    "an experiment at once are usually faster, but each needs as much memory as one. On a processor they share the "
    "cores, so a recurrent tagger's last digits may differ. Ray is faster from about 50,000 "
    "sentences or two GPUs on, but its workers need 10 to 20 seconds to start. For a cluster that this machine has "
    "joined, type ray:HOST:PORT. Its machines compute steps of an experiment only if they can read Winnow's folder."
)


def where(key: str, at: str = "", *, steps: bool = False) -> str:
    """Ask where a run should compute, and return a value of the option `--on`.

    at: where a run to be resumed has computed so far, which is the default. steps: True for an experiment.
    """
    places = list(dict.fromkeys(filter(None, (at, *runs.places(steps=steps)))))
    if len(places) == 1:
        return places[0]
    chosen = st.selectbox(
        "Where", places, format_func=_called, key=f"{key}.where", accept_new_options=True, help=HELP, width=420
    )
    return str(chosen or places[0]).strip()


def _called(place: str) -> str:
    if place.startswith("processes:"):
        return f"here, {place.removeprefix('processes:')} steps at once"
    return _PLACES.get(place) or f"the cluster at {place.removeprefix('ray:')}"


TIMING_HELP = "Trains for a few seconds on your text, keeps only the speed, and deletes the rest."
POLL = 1.0  # seconds between updates
Colour = Literal["gray", "blue", "green", "red", "orange"]
Look = tuple[str, Colour, str]  # how a state is shown: word, colour, icon
_LOOKS: Mapping[str, Look] = {
    "queued": ("Starting", "gray", ":material/hourglass_top:"),
    "running": ("Running", "blue", ":material/play_circle:"),
    "succeeded": ("Finished", "green", ":material/check_circle:"),
    "failed": ("Failed", "red", ":material/error:"),
    "cancelled": ("Cancelled", "orange", ":material/cancel:"),
    "interrupted": ("Interrupted", "orange", ":material/power_off:"),
}
_WAITING: Look = ("Waiting", "gray", ":material/hourglass_top:")
AGAIN = "Resuming would fail in the same way. Fix the problem above and start again."


def run_panel(run_id: str, key: str, what: str = "") -> RunState:
    """Draw a run with its progress or ending, and return its state. The page is rerun when the run starts or ends.

    what: title to show instead of the run's own.
    """
    state = runs.state(run_id)
    with st.container(border=True, key=f"{key}.panel"):
        live = st.container()  # The fragment below draws in this container, above the buttons.
        gone = "" if state.active else removed(run_id)
        if gone:
            st.caption(f":material/link_off: {gone}")
        else:
            _controls(run_id, state, key)  # Draw the buttons first, so that "Finished" never appears beside Cancel.
        with live:
            st.fragment(run_every=POLL if state.active else None)(_live)(run_id, state.active, what)
    return state


def _live(run_id: str, was_active: bool, what: str) -> None:
    with guard():
        state = runs.state(run_id)
        if state.active != was_active:
            st.rerun(scope="app")
        headline(run_id, state, what)
        if state.active:
            progress(state)
        else:
            _ending(run_id, state)  # The ending replaces the progress, so that nothing below moves.
        if words := overruled(runs.get(run_id)):
            st.warning(plain(words), icon=":material/gavel:")
        _details(run_id, state)


def headline(run_id: str, state: RunState, what: str = "") -> None:
    """Draw the state of a run as a coloured badge, and its title, or `what` instead of the title."""
    word, colour, icon = _WAITING if state.active and state.waiting_for else _LOOKS[state.state]
    with st.container(horizontal=True, vertical_alignment="center"):
        if not state.active:
            word = ending(runs.get(run_id), state)
        st.badge("Stopping" if state.cancelling else word, color=colour, icon=icon)
        st.markdown(f"**{plain(what or title(runs.get(run_id)))}**", width="content")
        if state.started:
            st.caption(_when(state), width="content")
        if state.active and (another := runs.held_by_another(run_id)):
            st.caption(f":material/group: {plain(another)}", width="content")


def _when(state: RunState) -> str:
    started = state.started or 0.0
    took = "took" if state.state == "succeeded" else "ended after"
    text = f"{when(started)}, {took} {duration(state.seconds)}" if state.ended else f"since {when(started)}"
    return f"{text}, on {plain(state.device)}" if state.device else text


def progress(state: RunState) -> None:
    """Draw the progress of a run and of its current stage, and the run that it waits for."""
    with st.container():
        if state.part:
            st.progress(share(state), text=plain(" · ".join(whole(state, named=True))))
        of = min(state.done / state.total, 1.0) if state.total else 0.0
        st.progress(of, text=plain(" · ".join([stage(state), *pace(state)])))
        if state.waiting_for:
            st.caption(f"Waiting for **{waited_for(state.waiting_for)}**, then it continues.")


def _ending(run_id: str, state: RunState) -> None:
    match state.state:
        case "failed":
            why = plain(state.error or "The run failed without a message.")
            st.error(f"{why}\n\n{AGAIN}" if state.permanent else why, icon=":material/error:")
        case "interrupted":
            st.warning(plain(state.error or ""), icon=":material/power_off:")
        case "cancelled":
            st.info(stopped(runs.get(run_id)))
        case _:
            st.empty()


def _details(run_id: str, state: RunState) -> None:
    log: Sequence[str] = runs.get(run_id).log_tail(30)
    if not state.notes and not log:
        return
    with st.expander("Notes and log", expanded=state.state in ("failed", "interrupted"), icon=":material/article:"):
        for note in state.notes:
            st.text(note)
        if log:
            st.code("\n".join(log), language=None, height=200, wrap_lines=True)


def _controls(run_id: str, state: RunState, key: str) -> None:
    """Draw Stop, Cancel or Resume. They are outside the fragment, so that a click never waits for its update."""
    if state.active:
        st.button(
            STOP.get(runs.get(run_id).manifest.kind, "Cancel"),
            key=f"{key}.cancel",
            icon=":material/stop_circle:",
            disabled=state.cancelling,
            on_click=runs.cancel,
            args=(run_id,),
        )
    elif not state.resumable:
        st.empty()  # Remove Cancel at once, before the rest of the page is drawn.
    else:
        at = runs.place(run_id).on
        own = f"{key}.{run_id}"  # Place and consent are asked for each run separately.
        on = "" if at == "local" else where(own, at)
        agreed = _agreed(run_id, own)
        if pressed("Resume", f"{key}.resume", icon=":material/resume:", type="primary", disabled=not agreed):
            runs.resume(run_id, on, agreed=agreed)
            st.rerun()


def _agreed(run_id: str, key: str) -> bool:
    """Return True if the run may be resumed. If it came in a project file, the user must first agree to its options."""
    options = runs.brought_options(run_id)
    if options is None:
        return True
    words = plain(runs.options_in_words(options))
    st.warning(
        f"This run came in a project file. Resume would run it with options that were set on another machine: {words}."
    )
    return st.checkbox("I have checked these options and agree", key=f"{key}.agree")


def time_machine(options: Mapping[str, object], key: str) -> None:
    """Draw a button that times this machine, or the `calibrate` run that is timing it. key: prefix of widget keys."""
    timing = next((run.id for run in runs.listed("calibrate") if runs.state(run.id).active), None)
    if timing:
        run_panel(timing, f"{key}.timing")
    elif pressed("Time this machine (under a minute)", f"{key}.time", icon=":material/timer:", help=TIMING_HELP):
        runs.start("calibrate", options)
        st.rerun()
