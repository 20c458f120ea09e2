"""A page that has nothing to work with yet: what it needs, and the ways to it."""

import streamlit as st

from core.facade import corpora
from pages.ui.presses import pressed


def empty(sentence: str, key: str, then: str) -> None:
    """What is needed, and the ways to it. key: begins the buttons' keys. then: the page after a sample."""
    st.info(sentence)
    corpora_needed(key, then)


def corpora_needed(key: str, then: str) -> None:
    """The ways to corpora: the samples, an import."""
    sample_buttons(key, then)
    st.page_link("pages/1_Corpora.py", label="Import your own corpora", icon=":material/library_books:")


def sample_buttons(key: str, then: str) -> None:
    """Every sample set in one click, then the page `then`."""
    first = "secondary" if corpora.roles() else "primary"
    with st.container(horizontal=True):
        for number, sample in enumerate(corpora.samples()):
            label, style = f"Open the {sample.name} sample", "secondary" if number else first
            if pressed(label, f"{key}.sample.{sample.name}", type=style, help=sample.description):
                with st.spinner("Reading the sample"):
                    corpora.open_sample(sample.name)
                st.switch_page(then)
