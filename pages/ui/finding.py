"""A verdict in its three parts, the same wherever it stands."""

import streamlit as st

from core.experiment.words import Finding
from pages.ui.widgets import plain


def finding(verdict: Finding) -> None:
    """Show what came out as a heading; how sure that is, and what to do next, below it."""
    st.subheader(plain(verdict.what), anchor=False)
    if verdict.sure:
        st.markdown(plain(verdict.sure))
    st.markdown(f"**{plain(verdict.next)}**")
