"""The form that queues sentences to label: chosen ones for training, random ones for a dev and a test set."""

import streamlit as st

from core.importing import view as corpora
from core.labelling import view as labelling
from core.projects import runs
from core.tagging import view as taggers
from pages.ui.project import page_link
from pages.ui.runs.links import CORPORA, attach
from pages.ui.widgets import plain, pressed

TRAIN, MEASURE = "Training set: where a label helps most", "Dev and test set: random, without suggestions"
MEASURES = (
    "Dev and test sentences are drawn at random from the task corpus and labelled without suggestions. On chosen "
    "sentences, or with labels that were only accepted, the measured score would be too high."
)


def queue_more(key: str) -> None:
    """Draw the form. key: run key of the page, which then shows the new queue."""
    held = corpora.roles()
    measured = "dev" in held and "test" in held
    st.session_state.setdefault("label.purpose", TRAIN if measured or "domain" not in held else MEASURE)
    purpose = st.radio("For", (TRAIN, MEASURE), key="label.purpose", horizontal=True)
    needed = ("task", "domain") if purpose == TRAIN else ("task",)
    if missing := [role for role in needed if role not in held]:
        st.info(f"This needs a {' and a '.join(f'{role} corpus' for role in missing)} in use.")
        page_link(CORPORA, label="Choose corpora", icon=":material/library_books:", width="content")
        return
    if purpose == MEASURE:
        st.caption(MEASURES)
    elif not measured:
        st.warning(
            f"There is no dev and test set yet, so no gain can be measured. {MEASURES}", icon=":material/science:"
        )
    n = st.number_input(
        "Sentences", 4, 1000, 25 if purpose == TRAIN else 120, key=f"label.n.{purpose == TRAIN}", width=160
    )
    options = labelling.queue_options(int(n)) if purpose == TRAIN else labelling.draw_options(int(n))
    _said(options, purpose)
    label = "Queue sentences" if purpose == TRAIN else "Draw sentences"
    if pressed(label, "label.start", type="primary", icon=":material/playlist_add:"):
        attach(runs.start("queue" if purpose == TRAIN else "draw", options), key)
        st.rerun()


def _said(options: dict[str, object], purpose: str) -> None:
    """Say which tagger makes the suggestions."""
    if purpose != TRAIN:
        return
    model = str(options.get("model", ""))
    if model:
        name = taggers.here().get(model, model)
        st.caption(f"Suggestions and uncertainty are those of the tagger {plain(name)}.")
    else:
        st.caption("There is no tagger yet, so the queue has typical sentences of the most similar text.")
