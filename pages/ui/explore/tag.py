"""Finding entities in D_C with a tagger: then the map can be coloured by them, and sentences show them."""

import streamlit as st

from core.experiment import deliver
from core.explore import entities
from core.importing import view as corpora
from core.projects import runs
from core.selection.choice import run_of
from core.shown import count
from core.tagging import view as taggers
from pages.ui.presses import pressed
from pages.ui.project import page_link
from pages.ui.runs.panel import run_panel
from pages.ui.runs.where import where

RUN = "explore.tag.run"


def offer(choice_id: str) -> None:
    """Ask which tagger shall read the selection's D_C, where none has yet; the run at work on it."""
    if entities.tag_runs(choice_id):
        return
    with st.expander("Find entities in the domain corpus", icon=":material/label:"):
        options = _options(choice_id)
        on = where("explore.tag") if options else ""
        if options and pressed("Find entities", "explore.tag.start", icon=":material/search:"):
            st.session_state[RUN] = runs.start("tag", options, on)
            st.rerun()
        started = st.session_state.get(RUN)
        if options and started and runs.get(started).manifest.inputs["corpus"] == options["corpus"]:
            run_panel(started, "explore.tag")


def _options(choice_id: str) -> dict[str, str] | None:
    names = taggers.here()
    if not names:
        page_link("pages/5_Training.py", label="Fine-tune a tagger first", icon=":material/model_training:")
        return None
    tagger = st.selectbox("Tagger", list(names), format_func=names.__getitem__, key="explore.tag.model")
    domain = runs.get(run_of(choice_id)).manifest.inputs["domain"]
    n = len(corpora.find(domain))
    st.caption(
        f"It reads all {count(n, 'sentence')} of the domain corpus once; a small encoder reads a few hundred a second "
        "without a GPU."
    )
    return {"corpus": domain, "model": str(deliver.model_folder(tagger))}
