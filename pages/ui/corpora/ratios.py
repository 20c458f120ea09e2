"""How large the corpora in use are against each other."""

import streamlit as st

from core import terms
from core.importing import view as corpora
from pages.ui.widgets import table


def against(most: int | None) -> None:
    """The ratios that papers print, where two of the corpora are here. most: choices, the newest; None: all of them."""
    known = corpora.ratios()
    choices = [each for each in known if each.name == corpora.SELECTED]
    rows = [
        {"name": _words(each.name), "value": f"{each.value:.4g}", "of": each.of, "to": each.to}
        for each in (*(each for each in known if each.name != corpora.SELECTED), *choices[:most])
    ]
    if rows:
        st.subheader("Against each other", anchor=False)
        names = {"name": "Sentences", "value": "Ratio", "of": "Of", "to": "To"}
        table(rows, names, "Sizes against each other", names=("of", "to"))


def _words(name: str) -> str:
    """A ratio's name, its symbols behind the words: "Task corpus to domain corpus (N_T/N_D)"."""
    one, other = (terms.plainly(f"{part[-1]}_C") for part in name.split("/"))
    return f"{one[:1].upper()}{one[1:]} to {other} ({name})"
