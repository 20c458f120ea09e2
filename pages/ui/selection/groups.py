"""The selected sentences by document, year, client or another column of the domain corpus."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.results import Selection
from core.selection import groups
from pages.ui.corpora.parts import TITLES
from pages.ui.widgets import table

COLUMNS = {"sentences": "Sentences", "selected": "Selected", "of_group": "of these (%)", "of_selection": "Share (%)"}
MOST = 100  # rows of the table
NONE = "(none)"  # sentences without a value


def by_column(choice_id: str, chosen: Selection) -> str | None:
    """Draw the number of selected sentences per value of a column. Return the chosen column, None for no groups."""
    names = groups.columns(choice_id)
    if not names:
        return None
    by = st.selectbox(
        "Group by",
        names,
        None,
        format_func=title,
        key="selection.group",
        placeholder="no groups",
        width=420,
        help="A column of the domain corpus. Exports as JSONL, Parquet and folder contain all of them.",
    )
    if by is None:
        return None
    found = groups.groups(choice_id, chosen, by, MOST + 1)
    rows = [{**row, "value": row["value"] or NONE} for row in found[:MOST]]
    table(rows, {"value": title(by), **COLUMNS}, f"Selected sentences by {title(by)}")
    if len(found) > MOST:
        st.caption(f"The table has the {MOST} values with the most selected sentences.")
    return by


def grouped(choice_id: str, rows: Sequence[Mapping[str, Any]], by: str | None) -> Sequence[Mapping[str, Any]]:
    """Return rows of a table with the column's value added as `group`; unchanged without a column."""
    if by is None:
        return rows
    values = groups.values_at(choice_id, [row["row"] for row in rows], by)
    return [{**row, "group": value or NONE} for row, value in zip(rows, values, strict=True)]


def title(column: str) -> str:
    """Return a column's name for users."""
    return TITLES.get(column, column)
