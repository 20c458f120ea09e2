"""A page that has nothing to work with yet: what it needs, and the ways to it."""

import streamlit as st

from core.facade import corpora
from pages.ui.presses import pressed
from pages.ui.project import page_link, switch_page
from pages.ui.runs.links import CORPORA


def empty(sentence: str, key: str, then: str, make: str = "") -> None:
    """What is needed, and the ways to it: the page `then` where it makes that of the corpora that are here, which
    `make` says; else the samples, after which comes that page too, and an import.

    sentence: "" where it was said already. key: begins the buttons' keys.
    """
    if sentence:
        st.info(sentence)
    if make and corpora.listed():
        page_link(then, label=make, icon=":material/arrow_forward:")
    else:
        sample_buttons(key, then)
        page_link(CORPORA, label="Import your own corpora", icon=":material/library_books:")


def sample_buttons(key: str, then: str) -> None:
    """Every sample set in one click, then the page `then`."""
    first = "secondary" if corpora.roles() else "primary"
    with st.container(horizontal=True):
        for number, sample in enumerate(corpora.samples()):
            label, style = f"Open the {sample.name} sample", "secondary" if number else first
            if pressed(label, f"{key}.sample.{sample.name}", type=style, help=sample.description):
                with st.spinner("Reading the sample"):
                    corpora.open_sample(sample.name)
                switch_page(then)
