"""How large the corpora in use are against each other."""

import streamlit as st

from core.facade import ratios
from pages.ui.widgets import table


def against() -> None:
    """The ratios that papers print, where two of the corpora are here."""
    rows = [{"name": each.name, "value": f"{each.value:.4g}", "of": each.of, "to": each.to} for each in ratios.ratios()]
    if rows:
        st.subheader("Against each other", anchor=False)
        names = {"name": "Sentences", "value": "Ratio", "of": "Of", "to": "To"}
        table(rows, names, "Sizes against each other", names=("of", "to"))
