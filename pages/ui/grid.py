"""A table to sort and tick in, whose own "Download as CSV" hands out no formula."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.corpora import writers


def grid(columns: Mapping[str, Sequence[Any]], **options: Any) -> Any:
    """`st.dataframe` of columns by name, a quote before what a spreadsheet would compute; `options` are its own."""
    guarded = {name: [writers.harmless(value) for value in values] for name, values in columns.items()}
    return st.dataframe(guarded, **options)
