"""The page Home: the steps from texts to the report, running runs and finished runs."""

import streamlit as st

from core import cards, terms
from core.importing import view as corpora
from core.kinds import KINDS
from core.paths import home
from core.processes import cores
from core.projects import machine, runs
from core.projects import view as projects
from core.shown import count
from core.tagging import view as taggers
from pages.ui import home_steps
from pages.ui.empty import picture, sample_buttons
from pages.ui.frame import page, privacy_line, spoilt_files
from pages.ui.middleware import no_such_page
from pages.ui.project import open_project, page_link
from pages.ui.results import try_it
from pages.ui.runs.links import RESULTS, RUNS, SELECTION
from pages.ui.runs.table import run_list
from pages.ui.widgets import plain, pressed, size

LISTED = {kind.name for kind in KINDS.values() if kind.page}
WORDS = (
    terms.TASK,
    terms.DOMAIN,
    terms.CHOICE,
    terms.LABELS,
    terms.LEAK,
    terms.TAGGER,
    terms.PRETRAINING,
    terms.REPLICATE,
)


def main() -> None:
    """Draw the page."""
    with page("Winnow", "Find the part of a large corpus that is worth pre-training on.", WORDS):
        privacy_line()
        no_such_page()
        listed = runs.own(*LISTED)
        _try()
        if not listed:  # New users see a finished example first.
            _samples()
        measure = home_steps.draw()
        if listed:
            _samples()
        elif not corpora.listed():
            picture("home")
        spoilt_files()
        st.subheader("Runs", anchor=False)
        if listed:
            run_list(listed)
            page_link(RUNS, label="All runs: search, name, compare, remove", icon=":material/table_rows:")
        else:
            st.caption("No runs yet. Runs are listed here, and continue if you close this window.")
        _machine()
        measure()


def _try() -> None:
    """Link to the form that tries a tagger on a document. Draw nothing if there is no tagger."""
    if not taggers.here():
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        label = ":primary[**Try it on a document**]"
        page_link(RESULTS, label=label, icon=":material/find_in_page:", query=try_it.query(), width="content")
        st.caption("Paste a sentence or drop a PDF: the tagger marks the entities in its text.", width="content")


def _samples() -> None:
    with st.container(border=True):
        st.markdown(
            "**See a finished example:** invented contracts (legal) or patient notes (medical), with a verdict, a map "
            "and a tagger to try. It opens in a separate project."
        )
        with st.container(horizontal=True):
            for name in projects.FINISHED:
                if pressed(f"Open the finished {name} sample", f"home.finished.{name}", icon=":material/done_all:"):
                    with st.spinner("Opening the finished sample"):
                        open_project(projects.open_finished_sample(name))
        st.caption("Or import only the texts of a sample, ready to score in one click.")
        sample_buttons("home", SELECTION)


def _machine() -> None:
    free, total = machine.disk()
    if reason := cards.hindrance():
        st.warning(plain(reason), icon=":material/memory:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{count(cores(), 'core')}, {_card()}, {size(free)} of {size(total)} free in {plain(str(home()))}")


def _card() -> str:
    """Return the name and free memory of the GPU that trains taggers, and the number of further GPUs."""
    card, n = machine.card(), len(cards.usable())
    if card is None:
        return "no GPU"
    free, total = machine.memory()
    more = f" and {n - 1} more" if n > 1 else ""
    return f"{plain(card.name)} ({size(free)} of {size(total)} free){more}"


main()
