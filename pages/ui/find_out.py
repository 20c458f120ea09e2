"""Find out, on Home: what will be compared, how long, what it could show; then one button that begins it."""

import streamlit as st

from core.cards import hindrance
from core.experiment import find_out
from core.experiment import view as experiments
from core.importing import view as corpora
from core.projects import runs
from pages.ui import checks as data_check
from pages.ui.presses import pressed
from pages.ui.project import page_link
from pages.ui.runs.links import TRAINING
from pages.ui.runs.panel import run_panel
from pages.ui.runs.where import where
from pages.ui.training.parts import start_from
from pages.ui.training.preflight import fewer_labels
from pages.ui.widgets import plain

ASKED = "find"  # in the address: a reload shows the plan again
STRONG = {n: f"{n} times each" + (", a first look" if n == find_out.REPLICATES[0] else "") for n in find_out.REPLICATES}


def asked() -> bool:
    """Whether the plan is to be seen."""
    return ASKED in st.query_params


def ask(label: str, *, primary: bool) -> None:
    """The button that shows the plan."""
    style = "primary" if primary else "secondary"
    if pressed(label, "home.find", type=style, icon=":material/query_stats:") and not asked():
        st.query_params[ASKED] = "out"
        st.rerun()


def plan(run_id: str = "") -> None:
    """The plan, this machine timed first where its speed is not known, and Start. run_id: what is asked again."""
    with st.container(border=True, key="home.plan"):
        st.markdown("**Before anything starts**")
        options = find_out.again(runs.get(run_id)) if run_id else _chosen()
        if not find_out.is_timed(options):
            _time(options)
            return
        if not run_id:  # asked again, it reuses what was trained on all labels
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
    """Options: how often all is made anew, and from which encoder."""
    left, right = st.columns(2)
    with left:
        times = st.selectbox("Repetitions", STRONG, format_func=STRONG.__getitem__, key="home.find.times")
    with right:
        return find_out.options(times, start_from("find-out"))


def _put_away() -> None:
    del st.query_params[ASKED]
    st.rerun()


def _time(options: dict[str, object]) -> None:
    """The run that times this machine on these texts: begun once, by itself, for it is asked for by Find out."""
    wanted = experiments.calibrations(options)[0]
    st.caption("First this machine is timed on your text for less than a minute, to estimate how long it will take.")
    begun = runs.begun("calibrate", wanted)
    run_panel(begun.id if begun else runs.start("calibrate", wanted), "home.timing")
