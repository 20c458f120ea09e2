"""A table of the selected sentences by document, year, client or another column of the domain corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.results import BoolArray, Selection
from core.selection import groups
from pages.ui.corpora.parts import NO_COLUMN, TITLES
from pages.ui.widgets import table

COLUMNS = {"sentences": "Sentences", "selected": "Selected", "of_group": "of these (%)", "of_selection": "Share (%)"}
MOST = 100  # largest number of rows of the table
HELP = "Groups by a column that was kept at import. Exports as JSONL, Parquet and folder contain all columns."
NONE = "(none)"  # name of the group of sentences without a value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """A column to group by. inside: mask, `(n,)`, of the rows of D_C in the chosen group; None for all groups."""

    column: str
    inside: BoolArray | None

    @property
    def title(self) -> str:
        """Name of the column for users."""
        return TITLES.get(self.column, self.column)

    def added(self, choice_id: str, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return `rows` with a further key `group`, each sentence's value in the column."""
        values = groups.values_at(choice_id, [row["row"] for row in rows], self.column)
        return [{**row, "group": value or NONE} for row, value in zip(rows, values, strict=True)]


def grouping(choice_id: str, chosen: Selection) -> Grouping | None:
    """Ask for a column and one of its groups, and draw a table of selected sentences by group.

    Return None if the user does not group.
    """
    # The columns of a large corpus are read only on request.
    if not st.toggle("Count by document, year, or client", key="selection.groups", help=HELP):
        return None
    names = groups.columns(choice_id)
    if not names:
        st.info(NO_COLUMN)
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.selectbox(
            "Group by",
            names,
            format_func=lambda name: TITLES.get(name, name),
            key="selection.group",
            width=300,
        )
        found = groups.groups(choice_id, chosen, by, MOST + 1)
        values = [row["value"] for row in found[:MOST]]
        only = st.selectbox(
            "Show sentences of",
            values,
            None,
            format_func=lambda value: value or NONE,
            key=f"selection.group.{choice_id}.{by}",
            placeholder="all groups",
            width=300,
        )
    chosen_group = Grouping(column=by, inside=None if only is None else groups.members(choice_id, by, only))
    rows = [{**row, "value": row["value"] or NONE} for row in found[:MOST]]
    table(rows, {"value": chosen_group.title, **COLUMNS}, f"Selected sentences by {chosen_group.title}")
    if len(found) > MOST:
        st.caption(f"The table has the {MOST} values with the most selected sentences.")
    return chosen_group
