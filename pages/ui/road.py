"""The steps on Home, called stops of a road, with the forecast of an experiment and links to the next step."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import terms
from core.cards import hindrance
from core.corpora.checks import worst
from core.experiment import deliver, find_out
from core.experiment import view as experiments
from core.experiment.find_out import outlook
from core.importing import view as corpora
from core.projects import road, runs
from core.projects.road import Closer, Stop
from core.selection import labelling
from core.terms import Term
from pages.ui import checks as data_check
from pages.ui.explore.health import TAB
from pages.ui.explore.health import TITLE as HEALTH
from pages.ui.frame import guard
from pages.ui.project import later, page_link
from pages.ui.runs.links import ASSISTING, BIAS, CORPORA, EXPLORE, RESULTS, SELECTION, SIMILARITY, TRAINING
from pages.ui.runs.panel import run_panel, where
from pages.ui.training.form import fewer_labels
from pages.ui.training.parts import start_from
from pages.ui.widgets import plain, pressed

ASKED = "find"  # in the address: a reload shows the plan again
STRONG = {n: f"{n} times each" + (", a first look" if n == find_out.REPLICATES[0] else "") for n in find_out.REPLICATES}


def asked() -> bool:
    """Return True if the plan is shown."""
    return ASKED in st.query_params


def ask(label: str, *, primary: bool) -> None:
    """Draw the button that shows the plan."""
    style = "primary" if primary else "secondary"
    if pressed(label, "home.find", type=style, icon=":material/query_stats:") and not asked():
        st.query_params[ASKED] = "out"
        st.rerun()


def plan(run_id: str = "") -> None:
    """Show the plan and Start, after timing this machine if its speed is unknown. run_id: an experiment to repeat."""
    with st.container(border=True, key="home.plan"):
        st.markdown("**Before anything starts**")
        options = find_out.again(runs.get(run_id)) if run_id else _chosen()
        if not find_out.is_timed(options):
            _time(options)
            return
        if not run_id:  # a repeated experiment reuses taggers that were trained on all labels
            options = fewer_labels(options, "home.find.labels")
        plan = find_out.plan(options)
        for sentence in filter(None, (plan.compared, plan.alike, plan.time, plan.shows)):
            st.markdown(plain(sentence))
        if run_id:
            st.caption(
                "Earlier runs are reused. Because their result is known, the 95% interval is slightly too narrow."
            )
        elif plan.edited:
            st.caption("Hand edits are not repeated: the experiment tests the strategy.")
        if reason := hindrance():
            st.warning(plain(reason), icon=":material/memory:")
        may_start, anyway = data_check.gate(corpora.check_run("experiment", plan.options), "home.find")
        on = where("home.find")
        with st.container(horizontal=True, vertical_alignment="center"):
            play = ":material/play_arrow:"
            if pressed("Start", "home.find.start", type="primary", icon=play, disabled=not may_start):
                runs.start("experiment", plan.options, on, run_anyway=anyway)
                _put_away()
            if pressed("Not now", "home.find.away"):
                _put_away()
            page_link(TRAINING, label="Change what is compared", icon=":material/tune:")


def _chosen() -> dict[str, object]:
    """Ask for the number of repetitions and the encoder, and return the options."""
    left, right = st.columns(2)
    with left:
        times = st.selectbox("Repetitions", STRONG, format_func=STRONG.__getitem__, key="home.find.times")
    with right:
        return find_out.options(times, start_from("find-out"))


def _put_away() -> None:
    del st.query_params[ASKED]
    st.rerun()


def _time(options: dict[str, object]) -> None:
    """Show the run that times this machine on these texts. It starts once, because Find out needs it."""
    wanted = experiments.calibrations(options)[0]
    st.caption("First this machine is timed on your text for less than a minute, to estimate how long it will take.")
    begun = runs.begun("calibrate", wanted)
    run_panel(begun.id if begun else runs.start("calibrate", wanted), "home.timing")


NEXT: Mapping[road.Name, tuple[str, str, str]] = {  # (page, label before there is a result, label after)
    "texts": (CORPORA, "Add your texts", "Change"),
    "choice": (SELECTION, "Choose", "Look at it"),
    "worth": (RESULTS, "", "All figures"),
    "report": (RESULTS, "", "Word, HTML, tables"),
}
WORDS: Mapping[road.Name, tuple[Term, ...]] = {
    "texts": (terms.TASK, terms.DOMAIN, terms.LABELS, terms.LEAK),
    "choice": (terms.CHOICE, terms.STRATEGY),
    "worth": (terms.TAGGER, terms.PRETRAINING, terms.INTERVAL),
}
FILLS = 3.0  # seconds between updates while a run works on a stop
CLOSER: Mapping[str, tuple[str, str]] = {
    "similarity": (SIMILARITY, "Which source is close?"),
    "bias": (BIAS, "Do labels teach names or contexts?"),
    "assisting": (ASSISTING, "Borrow labels"),
}


def draw() -> Callable[[], None]:
    """Draw the road and the links below it. Return a function that adds the health of the selection and the forecast.

    Call it at the end of the page, because measuring may take a second.
    """
    stops = road.stops()
    turn = next((stop.name for stop in stops if not stop.ready and stop.open), "")
    places = {stop.name: _stop(number, stop, turn=stop.name == turn) for number, stop in enumerate(stops, 1)}
    if any(stop.run and not stop.ready for stop in stops):
        st.fragment(run_every=FILLS)(_fill_in)([stop.known for stop in stops])
    closer = road.closer()
    for row in closer:
        if row.reason:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.caption(plain(row.reason), width="content")
                _closer(row)
    if rest := [row for row in closer if not row.reason]:
        with st.expander("Look closer", icon=":material/search:"):
            for row in rest:
                _closer(row)
    return partial(_measure, {stop.name: stop for stop in stops}, places)


def _stop(number: int, stop: Stop, *, turn: bool) -> DeltaGenerator:
    """Draw a stop with its links; return a container in it. turn: True if this stop is the next step."""
    look: Any = {"border": True, "vertical_alignment": "center", "horizontal_alignment": "distribute"}
    with st.container(horizontal=True, key=f"road.{stop.name}", **look):
        with st.container(width="stretch"):
            found = corpora.check_project() if stop.name == "texts" else ()
            done = data_check.ICONS[worst(found)] if stop.ready else ":material/radio_button_unchecked:"
            words = f"{done} **{number} · {stop.title}**  \n{plain(stop.known)}"
            st.markdown(words, help=_meanings(stop.name))
            place = st.empty()
        _next(stop, turn=turn)
    if found:
        data_check.show(found, "home")
    if stop.name == "worth" and (stop.again or not stop.ready):
        _finding_out(stop)
    return place


def _measure(stops: Mapping[road.Name, Stop], places: Mapping[road.Name, DeltaGenerator]) -> None:
    choice, worth = stops["choice"], stops["worth"]
    asks = worth.open and not (worth.ready or worth.run or asked())
    if asks and (words := outlook()):
        places["worth"].caption(plain(words))
    if choice.ready and (words := road.health(choice.run)):
        places["choice"].caption(plain(words))


def _closer(row: Closer) -> None:
    page, label = CLOSER[row.name]
    page_link(page, label=label, icon=":material/arrow_forward:", width="content")


def _meanings(name: road.Name) -> str | None:
    """Return the meanings of the terms of a stop, in Markdown."""
    return "\n\n".join(f"**{term.named}**: {term.meaning}" for term in WORDS.get(name, ())) or None


def _fill_in(known: Sequence[str]) -> None:
    """Rerun the page if a stop has changed."""
    with guard():
        if known != [stop.known for stop in road.stops()]:
            st.rerun(scope="app")


def _next(stop: Stop, *, turn: bool) -> None:
    """Draw the links of a stop. turn: True if this stop is the next step."""
    page, before, after = NEXT[stop.name]
    at_work = bool(stop.run) and not stop.ready
    # Link to the selection once it is finished, before that to its run.
    query = {"choice" if stop.name == "choice" and not at_work else "run": stop.run} if stop.run else None
    if stop.name == "report" and stop.ready:
        st.download_button(
            "Report (.pdf)",
            later(partial(deliver.report, stop.run, "pdf")),
            file_name=f"{stop.run}.pdf",
            mime="application/pdf",
            icon=":material/download:",
            on_click="ignore",
            key="home.report.pdf",
        )
    if stop.name == "choice" and stop.ready:
        page_link(EXPLORE, label="Map", icon=":material/scatter_plot:", query=query, width="content")
        tab = {**(query or {}), TAB: HEALTH}
        page_link(EXPLORE, label="Health", icon=":material/health_and_safety:", query=tab, width="content")
    if stop.saved:
        query_saved = {"choice": stop.saved}
        page_link(EXPLORE, label="Saved selection", icon=":material/bookmark:", query=query_saved, width="content")
    if stop.name == "worth" and not stop.ready:
        _ask(stop, turn=turn)
        return
    label = "Watch it" if at_work else after if stop.ready else before
    if label and stop.open:
        icon = ":material/arrow_forward:"
        page_link(page, label=f"**{label}**" if turn else label, icon=icon, query=query, width="content")
    if stop.again:
        ask("Ask again", primary=False)


def _ask(stop: Stop, *, turn: bool) -> None:
    """Draw the buttons of the stop Find out before there is an answer."""
    task = corpora.roles().get("task", "")
    if stop.run:
        page_link(TRAINING, label="Watch it", icon=":material/arrow_forward:", query={"run": stop.run}, width="content")
    elif stop.open:
        ask("Find out", primary=turn)
    elif road.without_entities():
        icon = ":material/arrow_forward:"
        page_link(CORPORA, label="Import labelled data with entities", icon=icon, width="content")
    elif task and road.unlabelled():
        st.download_button(
            "Sentences to label",
            later(partial(labelling.to_label, task)),
            file_name="to-label.jsonl",
            mime="application/x-ndjson",
            icon=":material/download:",
            on_click="ignore",
            key="home.label",
            help=f"Up to {labelling.MOST} sentences of your task corpus, drawn by chance, for Doccano, Label Studio or "
            "Prodigy. Use a third as training set, a sixth as dev set and half as test set.",
        )


def _finding_out(stop: Stop) -> None:
    """Draw the running experiment, or the plan of one, below its stop."""
    if stop.run and not stop.ready:
        run_panel(stop.run, "home.worth", stop="Stop and keep")
    elif stop.open and asked():
        plan(stop.run if stop.again else "")
