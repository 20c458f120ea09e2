"""Bias: whether labels teach names or contexts, which labels look wrong, how to rebuild them, how taggers stand it."""

from collections.abc import Callable

import streamlit as st

from core import facade
from pages.ui.bias_measure import finished, measure
from pages.ui.bias_parts import notes
from pages.ui.bias_rebuild import rebuild
from pages.ui.bias_review import review
from pages.ui.bias_robust import robust
from pages.ui.bias_scatter import scatter
from pages.ui.bias_views import views
from pages.ui.frame import page
from pages.ui.widgets import sample_buttons

WHAT = (
    "A tagger can learn that Acme is a company by heart, or that whatever signs a contract is one. Only the second "
    "helps with a name it has never seen. See which of the two your labels teach."
)
FIRST = "First measure a corpus, in the first tab; this builds on what comes out."


def main() -> None:
    """The page."""
    with page("Bias", WHAT):
        if not any(corpus.types for corpus in facade.corpora()):
            st.info("This needs a labelled corpus: sentences in which names are marked with their types.")
            sample_buttons("bias", "pages/7_Bias.py")
            st.page_link("pages/1_Corpora.py", label="Import your own corpora", icon=":material/library_books:")
            return
        tabs = st.tabs(["Names or contexts?", "Suspicious labels", "Rebuild", "Robustness"])
        with tabs[0]:
            run_id = measure()
            if run_id is not None and finished(run_id):
                notes(run_id)
                views(run_id)
                scatter(run_id)
                with st.expander("The same on the command line", icon=":material/terminal:"):
                    config = facade.run(run_id).manifest.config
                    st.code(facade.command("difficulty", config), language="bash", wrap_lines=True)
        with tabs[1]:
            _needs_a_run(run_id, review)
        with tabs[2]:
            _needs_a_run(run_id, rebuild)
        with tabs[3]:
            robust()


def _needs_a_run(run_id: str | None, what: Callable[[str], None]) -> None:
    if run_id is not None and finished(run_id):
        what(run_id)
    else:
        st.info(FIRST)


main()
