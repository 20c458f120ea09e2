"""The four steps on Home, with their links, the plan of an experiment, and the smallest gain that it can detect."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import terms
from core.cards import hindrance
from core.corpora.checks import worst
from core.experiment import deliver, find_out, results
from core.experiment import view as experiments
from core.experiment.find_out import Affordable, outlook
from core.experiment.words import EXPLAINED
from core.importing import view as corpora
from core.projects import home_steps, machine, removals, runs
from core.projects import view as projects
from core.projects.home_steps import FurtherMeasurement, HomeStep
from core.selection import labelling
from core.shown import duration, in_points
from core.terms import Term
from pages.ui import checks as data_check
from pages.ui.explore.health import TAB
from pages.ui.explore.health import TITLE as HEALTH
from pages.ui.frame import guard
from pages.ui.project import later, page_link
from pages.ui.runs.links import (
    ASSISTING,
    BIAS,
    CORPORA,
    EXPLORE,
    LABEL,
    OPEN,
    RESULTS,
    SELECTION,
    SIMILARITY,
    TRAINING,
    WHAT,
)
from pages.ui.runs.panel import run_panel, where
from pages.ui.training.parts import start_from
from pages.ui.widgets import WORD_TINTS, plain, pressed, table

WANTED = "home.find.wanted"  # session key: seconds to which the time slider is set when it is drawn next

HOME = "home.py"
ASKED = "find"  # URL parameter: the plan is shown, also after a reload


def asked() -> bool:
    """Return True if the page shows the plan of an experiment."""
    return ASKED in st.query_params


def ask(label: str, *, primary: bool) -> None:
    """Draw the button that shows the plan of an experiment. primary: True to highlight the button."""
    style = "primary" if primary else "secondary"
    if pressed(label, "home.find", type=style, icon=":material/query_stats:") and not asked():
        st.query_params[ASKED] = "out"
        st.rerun()


def plan(run_id: str = "") -> None:
    """Show the plan of an experiment and the button Start. If this machine's speed is unknown, measure it first.

    run_id: an experiment to repeat; "" for a new one.
    """
    with st.container(border=True, key="home.plan"):
        st.markdown("**Before anything starts**")
        encoder = "" if run_id else start_from("find-out")
        options = find_out.again(runs.get(run_id)) if run_id else find_out.options(encoder=encoder)
        if not find_out.is_timed(options):
            _time(options)
            return
        # A repeated experiment reuses the taggers of the first one and has a fixed plan, so do not ask for the time.
        times = () if run_id else find_out.affordable(encoder)
        asked = _within(times) if times else None
        _time_again(options)
        if asked:
            if not asked.replicates:
                if pressed("Not now", "home.find.away"):
                    _close_plan()
                return
            options = find_out.within(asked, encoder)
        plan = find_out.plan(options, times)
        for sentence in filter(None, (plan.compared, plan.alike, plan.time, plan.shows)):
            st.markdown(plain(sentence))
        st.caption(find_out.MEASURED)
        if run_id:
            st.caption(
                "Earlier runs are reused. Because their result is known, the 95% interval is slightly too narrow."
            )
        elif plan.edited:
            st.caption("Your hand edits are not used: the experiment tests the strategy.")
        if reason := hindrance():
            st.warning(plain(reason), icon=":material/memory:")
        may_start, anyway = data_check.gate(corpora.check_run("experiment", plan.options), "home.find")
        stronger = plan.stronger
        on = where("home.find", steps=bool(machine.card()))
        with st.container(horizontal=True, vertical_alignment="center"):
            query = ":material/query_stats:"
            if stronger and pressed(_stronger_words(stronger), "home.find.stronger", type="primary", icon=query):
                st.session_state[WANTED] = stronger.limit
                st.rerun()
            play, style = ":material/play_arrow:", "secondary" if stronger else "primary"
            if pressed("Start", "home.find.start", type=style, icon=play, disabled=not may_start):
                runs.start("experiment", plan.options, on, run_anyway=anyway)
                _close_plan()
            if pressed("Not now", "home.find.away"):
                _close_plan()
            page_link(TRAINING, label="Change what is compared", icon=":material/tune:", query={WHAT: "experiment"})


def _time_again(options: dict[str, object]) -> None:
    """Offer to time the machine again if it was busy when it was timed."""
    if not experiments.timed_while_busy(options):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(find_out.BUSY, width="content")
        if pressed("Time it again", "home.find.again", icon=":material/timer:"):
            if begun := runs.begun("calibrate", experiments.calibrations(options)[0]):
                removals.remove_run(begun.id)
            st.rerun()


def _stronger_words(plan: Affordable) -> str:
    return f"Plan {plan.words} instead ({duration(plan.seconds)})"


def _within(times: Sequence[Affordable]) -> Affordable:
    """Ask how much time the user has, show the plan that fits each time, and return the chosen one."""
    known = {each.limit: each for each in times}
    first = next((each.limit for each in times if each.replicates and not each.labels), times[-1].limit)
    if wanted := st.session_state.pop(WANTED, None):
        st.session_state["home.find.time"] = wanted
    else:
        st.session_state.setdefault("home.find.time", first)
    chosen = st.select_slider(
        "How much time do you have?", list(known), format_func=find_out.LIMITS.__getitem__, key="home.find.time"
    )
    rows = [
        {
            "limit": find_out.LIMITS[each.limit],
            "plan": each.words + (f" on {each.labels:,} of your labels" if each.labels else ""),
            "takes": duration(each.seconds),
            "points": f"{in_points(each.points)} or more",
        }
        for each in times
        if each.replicates
    ]
    if rows:
        columns = {"limit": "Time", "plan": "Plan", "takes": "Takes about", "points": "Detects gains of about"}
        table(rows, columns, "Plan for each time: replicates, and the gain that they detect in 80 of 100 cases")
        st.caption(plain(EXPLAINED["replicate"]))
    asked = known[chosen]
    if not asked.replicates:
        st.info(
            f"{find_out.LIMITS[asked.limit].capitalize()} is too short. The shortest plan takes about "
            f"{duration(asked.seconds)}; with fewer replicates or epochs, no difference could be detected.",
            icon=":material/timer_off:",
        )
    elif asked.labels:
        st.caption("With fewer labels, scores vary more, so the plan detects only larger gains than the table says.")
    return asked


def _close_plan() -> None:
    del st.query_params[ASKED]
    st.rerun()


def _time(options: dict[str, object]) -> None:
    """Show the run that times this machine for an experiment with these options, and start it if it has not begun."""
    wanted = experiments.calibrations(options)[0]
    st.caption(
        "First this machine is timed on your text for less than a minute, to estimate how long the experiment takes."
    )
    begun = runs.begun("calibrate", wanted)
    run_panel(begun.id if begun else runs.start("calibrate", wanted), "home.timing")


# {step: (page, label of the link before the step has a result, label of the link after that)}
NEXT: Mapping[home_steps.Name, tuple[str, str, str]] = {
    "texts": (CORPORA, "Add your texts", "Change"),
    "choice": (SELECTION, "Choose", "Look at it"),
    "worth": (RESULTS, "", "All figures"),
    "report": (RESULTS, "", "Word, HTML, tables"),
}
WORDS: Mapping[home_steps.Name, tuple[Term, ...]] = {
    "texts": (terms.TASK, terms.DOMAIN, terms.LABELS, terms.LEAK),
    "choice": (terms.CHOICE, terms.STRATEGY),
    "worth": (terms.TAGGER, terms.PRETRAINING, terms.INTERVAL),
}
REFRESH = 3.0  # seconds between updates while the run of a step is active
FURTHER: Mapping[str, tuple[str, str]] = {
    "label": (LABEL, "Label the 25 sentences that help most"),
    "similarity": (SIMILARITY, "Which source is close?"),
    "bias": (BIAS, "Does the name or the context reveal an entity's type?"),
    "assisting": (ASSISTING, "Borrow labels"),
}


def draw() -> Callable[[], None]:
    """Draw the steps and the links below them.

    Return a function that adds two captions: the selection's health, and what an experiment could detect. Call that
    function at the end of the page, because it may need a second.
    """
    steps = home_steps.steps()
    following = next((step.name for step in steps if not step.ready and step.open), "")
    places = {
        step.name: _draw_step(number, step, is_next=step.name == following) for number, step in enumerate(steps, 1)
    }
    if any(step.run and not step.ready for step in steps):
        st.fragment(run_every=REFRESH)(_refresh)([step.known for step in steps])
    further = home_steps.further()
    for row in further:
        if row.reason:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.caption(plain(row.reason), width="content")
                _link_to(row)
    if rest := [row for row in further if not row.reason]:
        with st.expander("Look further", icon=":material/search:"):
            for row in rest:
                _link_to(row)
    return partial(_measure, {step.name: step for step in steps}, places)


def _draw_step(number: int, step: HomeStep, *, is_next: bool) -> DeltaGenerator:
    """Draw a step with its links, and return an empty element for a caption. is_next: True for the next step to do."""
    look: Any = {"border": True, "vertical_alignment": "center", "horizontal_alignment": "distribute"}
    with st.container(horizontal=True, key=f"road.{step.name}", **look):
        with st.container(width="stretch"):
            found = corpora.check_project() if step.name == "texts" else ()
            done = data_check.ICONS[worst(found)] if step.ready else ":material/radio_button_unchecked:"
            words = f"{done} **{number} · {step.title}**  \n{_known(step)}"
            st.markdown(words, help=_meanings(step.name))
            place = st.empty()
        _next(step, is_next=is_next)
    if found:
        data_check.show(found, "home")
    if step.name == "worth" and (step.again or not step.ready):
        _draw_experiment(step)
    return place


def _known(step: HomeStep) -> str:
    """Return the status or result of a step in Markdown. If it begins with a verdict's word, this word is coloured."""
    if step.word is None:
        return plain(step.known)
    return f":{WORD_TINTS[step.word]}[**{plain(step.word)}**]{plain(step.known.removeprefix(step.word))}"


def _measure(steps: Mapping[home_steps.Name, HomeStep], places: Mapping[home_steps.Name, DeltaGenerator]) -> None:
    choice, worth = steps["choice"], steps["worth"]
    asks = worth.open and not (worth.ready or worth.run or asked())
    if asks and (words := outlook()):
        places["worth"].caption(plain(words))
    if choice.ready and (words := home_steps.health(choice.run)):
        places["choice"].caption(plain(words))


def _link_to(row: FurtherMeasurement) -> None:
    page, label = FURTHER[row.name]
    page_link(page, label=label, icon=":material/arrow_forward:", width="content")


def _meanings(name: home_steps.Name) -> str | None:
    """Return the terms of a step with their meanings, in Markdown; None if it has no terms."""
    return "\n\n".join(f"**{term.named}**: {term.meaning}" for term in WORDS.get(name, ())) or None


def _refresh(known: Sequence[str]) -> None:
    """Rerun the page if the status of a step has changed. known: status of each step when the page was drawn."""
    with guard():
        if known != [step.known for step in home_steps.steps()]:
            st.rerun(scope="app")


def _next(step: HomeStep, *, is_next: bool) -> None:
    """Draw the links of a step. is_next: True for the step that the user should do next, whose link is bold."""
    page, before, after = NEXT[step.name]
    at_work = bool(step.run) and not step.ready
    # Link to the selection once it is finished; before, link to its run.
    query = {"choice" if step.name == "choice" and not at_work else "run": step.run} if step.run else None
    if step.name == "report" and step.ready:
        query = {**(query or {}), OPEN: "download"}
        st.download_button(
            "Report (.pdf)",
            later(partial(deliver.report, step.run, "pdf")),
            file_name=f"{projects.current().slug}-report.pdf",
            mime="application/pdf",
            icon=":material/download:",
            on_click="ignore",
            key="home.report.pdf",
        )
    if step.name == "choice" and step.ready:
        page_link(EXPLORE, label="Map", icon=":material/scatter_plot:", query=query, width="content")
        tab = {**(query or {}), TAB: HEALTH}
        page_link(EXPLORE, label="Health", icon=":material/health_and_safety:", query=tab, width="content")
    if step.saved:
        query_saved = {"choice": step.saved}
        page_link(EXPLORE, label="Saved selection", icon=":material/bookmark:", query=query_saved, width="content")
    if step.name == "worth" and not step.ready:
        _ask(step, is_next=is_next)
        return
    label = "Watch it" if at_work else after if step.ready else before
    if label and step.open:
        icon = ":material/arrow_forward:"
        page_link(page, label=f"**{label}**" if is_next else label, icon=icon, query=query, width="content")
    if step.again:
        seconds = results.seconds_to_settle(step.run)
        ask(f"Make it surer ({duration(seconds)})" if seconds else "Make it surer", primary=results.weak(step.run))


def _ask(step: HomeStep, *, is_next: bool) -> None:
    """Draw the buttons of the step "worth" (the experiment), which has no result yet."""
    task = corpora.roles().get("task", "")
    if step.run:
        page_link(TRAINING, label="Watch it", icon=":material/arrow_forward:", query={"run": step.run}, width="content")
    elif step.open:
        ask("Find out", primary=is_next)
    elif home_steps.without_entities():
        icon = ":material/arrow_forward:"
        page_link(CORPORA, label="Import labelled data with entities", icon=icon, width="content")
    elif task and home_steps.unlabelled():
        page_link(LABEL, label="Label sentences", icon=":material/label:", width="content")
        st.download_button(
            "Sentences to label",
            later(partial(labelling.to_label, task)),
            file_name="to-label.jsonl",
            mime="application/x-ndjson",
            icon=":material/download:",
            on_click="ignore",
            key="home.label",
            help=f"Up to {labelling.MOST} sentences of your task corpus, drawn at random, for Doccano, Label Studio or "
            "Prodigy. Use a third as training set, a sixth as dev set and half as test set.",
        )


def _draw_experiment(step: HomeStep) -> None:
    """Draw the progress of a running experiment, or the plan of a new one if the user has asked for it."""
    if step.run and not step.ready:
        run_panel(step.run, "home.worth")
    elif step.open and asked():
        plan(step.run if step.again else "")
