"""The page Bias: how much names and contexts reveal about types, rebuilt training sets, robustness of taggers."""

from collections.abc import Callable

import streamlit as st

from core import shown_command as commands
from core import terms
from core.importing import view as corpora
from core.projects import runs
from pages.ui.bias.measure import finished, measure
from pages.ui.bias.rebuild import rebuild
from pages.ui.bias.robust import robust
from pages.ui.bias.views import notes, review_link, scatter, views
from pages.ui.empty import empty
from pages.ui.frame import page
from pages.ui.removal import text_gone
from pages.ui.widgets import same_command

WHAT = (
    "A tagger can memorise that Acme is a company, or learn that the signer of a contract is a company. Only what it "
    "learns about such contexts helps with new names. Measure which of the two your labels teach."
)
WORDS = (terms.MENTION, terms.INFORMATION, terms.NAME_OR_CONTEXT, terms.LABELS, terms.TAGGER, terms.SCORE)
FIRST = "Measure a corpus first, in the first tab; this tab needs its result."
NEEDS = "This needs a labelled corpus: sentences whose entities are marked with their types."


def main() -> None:
    """Draw the page."""
    with page("Bias", WHAT, WORDS):
        if not any(corpus.types for corpus in corpora.listed()) and not runs.listed("difficulty"):
            empty(NEEDS, "bias", "pages/7_Bias.py")
            return
        tabs = st.tabs(["Names or contexts?", "Rebuild", "Robustness"])
        with tabs[0]:
            run_id = measure()
            if run_id is not None and finished(run_id):
                notes(run_id)
                views(run_id)
                scatter(run_id)
                review_link(run_id)
                same_command("bias.run.command", commands.command("difficulty", runs.get(run_id).manifest.config))
        with tabs[1]:
            _needs_a_run(run_id, rebuild)
        with tabs[2]:
            robust()


def _needs_a_run(run_id: str | None, draw: Callable[[str], None]) -> None:
    if run_id is None or not finished(run_id):
        st.info(FIRST)
    elif not text_gone(run_id):
        draw(run_id)


main()
