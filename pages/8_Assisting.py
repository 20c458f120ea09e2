"""The page Assisting: find sentences in another corpus that are labelled as in yours, and test whether they help."""

from collections.abc import Mapping

import streamlit as st

from core import terms
from core.assisting import view as assisting
from core.assisting.skl import SklResult
from core.corpora.corpus import Corpus
from core.importing import view as corpora
from core.projects import runs
from core.runs.result import read
from pages.ui.assisting.drift import drift, options_form, type_map
from pages.ui.assisting.threshold import sweep, threshold
from pages.ui.empty import empty
from pages.ui.frame import page
from pages.ui.runs.links import attach, attached
from pages.ui.runs.panel import run_panel
from pages.ui.runs.words import last_duration
from pages.ui.widgets import corpus_picker, plain, submitted

RUN = "assisting.run"
WHAT = (
    "Borrow labelled sentences from another corpus (another language, another firm), but only those in which shared "
    "entities are labelled as in your corpus."
)
WORDS = (terms.LABELS, terms.DISAGREEMENT, terms.MENTION, terms.DEV, terms.TEST, terms.SCORE)
NEEDS = (
    "This needs two labelled corpora: yours, and another one to borrow from. The dev set and the test set are not "
    "offered, because a tagger must not learn from them."
)


def main() -> None:
    """Draw the page."""
    with page("Assisting", WHAT, WORDS):
        held_out = {corpora.roles().get(role) for role in ("dev", "test")}
        listed = [corpus for corpus in corpora.listed() if corpus.types and corpus.fingerprint not in held_out]
        labelled = {corpus.fingerprint: corpus for corpus in listed}
        run_id = attached("skl", RUN)
        if len(labelled) < 2:
            empty(NEEDS, "assisting", "pages/8_Assisting.py")
        else:
            with st.expander("Which corpora", expanded=run_id is None, icon=":material/tune:"):
                _setup(labelled)
        if run_id is not None and run_panel(run_id, RUN).state == "succeeded":
            _results(run_id)


def _setup(labelled: Mapping[str, Corpus]) -> None:
    train = corpora.roles().get("train")
    columns = st.columns(2)
    with columns[0]:
        label = "Primary corpus: your labelled data"
        primary = corpus_picker(label, "assisting.primary", train, labelled.values())
    with columns[1]:
        others = [corpus for mark, corpus in labelled.items() if mark != primary]
        label = "Assisting corpus: labelled data to borrow from"
        # The key contains the primary corpus, so that the field is reset if its corpus becomes the primary one.
        assisting = corpus_picker(label, f"assisting.assisting.{primary}", None, others)
    if primary is None or assisting is None:
        return
    pairs = type_map(labelled[primary], labelled[assisting])
    with st.form("assisting.form", border=False):
        options = options_form()
        st.caption(plain(last_duration("skl")))
        sent = submitted("Score its sentences", "assisting.start", type="primary", icon=":material/balance:")
    if sent:
        wanted = {"primary": primary, "assisting": assisting, "type_map": pairs, **options}
        attach(runs.start("skl", wanted), RUN)
        st.rerun()


def _results(run_id: str) -> None:
    assisted = assisting.get(run_id)
    for name, types in read(runs.get(run_id), SklResult).types_of_one_corpus.items():
        # The result has the names that the corpora had during the run.
        own = name in (assisted.primary.name, *assisted.primary.names)
        corpus = assisted.primary if own else assisted.assisting
        advice = "leave them out above" if own else "map these types above, or leave them out"
        st.warning(
            f"Only {plain(corpus.name)} has {plain(', '.join(types))}. Entities of these types get the largest possible"
            f" drift: {advice}.",
            icon=":material/rule:",
        )
    tabs = st.tabs(["Kept and dropped", "Which entities drift", "Does it help?"])
    with tabs[0]:
        threshold(run_id)
    with tabs[1]:
        drift(run_id)
    with tabs[2]:
        sweep(run_id)


main()
