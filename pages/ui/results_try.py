"""A tagger on what somebody types."""

from collections.abc import Mapping

import streamlit as st

from core import facade
from pages.ui.run_panel import run_panel
from pages.ui.widgets import sentence_list

RUN = "results.try.run"


def try_it(arms: Mapping[str, str]) -> None:
    """Text in, entities in colour out; tagged in a run of its own, for no page loads a model."""
    with st.form("results.try.form"):
        model = st.selectbox("Tagger", list(arms), format_func=arms.__getitem__, key="results.try.model")
        text = st.text_area("Sentences, one a line", key="results.try.text", max_chars=20_000)
        sent = st.form_submit_button("Find entities", type="primary", icon=":material/search:", key="results.try.start")
    if sent:
        st.session_state[RUN] = facade.try_sentences(model, text)
    run_id = st.session_state.get(RUN)
    if run_id is None:
        return
    if run_panel(run_id, "results.try").state == "succeeded":
        found = facade.tried(run_id)
        sentence_list(found, facade.run(run_id).result()["types"], "What you typed, with the entities that were found")
        if not any(sentence.entities for sentence in found):
            st.caption("The tagger found no entity.")
