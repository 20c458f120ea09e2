"""How differently two corpora label the same entities: a table, fields that rename types, and options of SKL."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core.assisting import view as assisting
from core.assisting.skl import DRIFTS, Assisted, DriftRow, SklResult
from core.corpora.corpus import Corpus
from core.kinds import KINDS
from core.projects import preferences, runs
from core.runs.result import read
from pages.ui.frame import guard
from pages.ui.project import later
from pages.ui.widgets import config_form, grid, plain

SHOWN = 2000  # largest number of rows on the page; the CSV file has all


@st.fragment
def drift(run_id: str) -> None:
    """Show the entities that both corpora have, largest drift first. run_id: a finished `skl` run."""
    with guard():
        assisted = assisting.get(run_id)
        result = read(runs.get(run_id), SklResult)
        st.markdown(
            f"**{result.overlapping:,}** entities are in both corpora (of {result.entities.primary:,} in"
            f" {plain(assisted.primary.name)}, {result.entities.assisting:,} in {plain(assisted.assisting.name)});"
            f" **{result.entities.drifting:,}** of them drift: their symmetric KL divergence (SKL) is above"
            f" {DRIFTS:g}."
        )
        rows = assisting.drift(run_id, **_filters())
        if not rows:
            st.info("No shared entity matches; loosen the filters.")
            return
        _table(rows, assisted)
        st.download_button(
            f"These {len(rows):,} as CSV",
            later(partial(assisting.drift_csv, run_id, rows)),
            f"drift-{run_id[-4:]}.csv",
            on_click="ignore",
            key="assisting.drift.csv",
            icon=":material/download:",
        )


def _filters() -> dict[str, Any]:
    columns = st.columns(3)
    search = columns[0].text_input("Entity contains", key="assisting.search")
    least = columns[1].number_input("SKL at least", 0.0, 20.0, 0.0, 0.5, key="assisting.least")
    count = columns[2].number_input("Occurrences in each corpus, at least", 1, 1_000_000, 1, key="assisting.times")
    return {"search": search, "least_skl": least, "least_count": count}


def _table(rows: list[DriftRow], assisted: Assisted) -> None:
    shown = [asdict(row) for row in rows[:SHOWN]]
    columns = {name: [row[name] for row in shown] for name in shown[0]}
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    grid(
        columns,
        hide_index=True,
        height=420,
        key=f"assisting.drift.{len(rows)}",
        alt="Shared entities, their types and counts in each corpus, and their SKL",
        column_config={
            "entity": text("Entity"),
            "skl": number("SKL", format="%.3f"),
            "primary": text(f"In {assisted.primary.name}"),
            "assisting": text(f"In {assisted.assisting.name}"),
            "in_primary": number(f"Times in {assisted.primary.name}"),
            "in_assisting": number(f"Times in {assisted.assisting.name}"),
        },
    )
    if len(rows) > SHOWN:
        st.caption(f"The first {SHOWN:,} of {len(rows):,}; the CSV file has all.")


OPTIONS = ("unit", "min_count", "shrinkage", "floor", "add_k", "log")
LABELS = {
    "unit": "What counts as an entity",
    "min_count": "Least occurrences in each corpus",
    "shrinkage": "Pull towards an average entity",
    "floor": "Least probability of a type",
    "add_k": "Added to every count",
    "log": "Logarithm",
}
LARGEST_FILE = 1_000_000  # bytes
STAYS, OUT = "stays as it is", "is left out"


def type_map(primary: Corpus, other: Corpus) -> list[str]:
    """Ask how to rename the types that only one of the corpora has, and return the OLD=NEW pairs.

    The user picks a new name per type, or gives a file with such pairs.
    """
    unshared = assisting.unshared_types(primary, other)
    if not unshared:
        st.caption("Both corpora have the same types.")
        return []
    st.markdown("**Types that only one of the two corpora has**")
    file = st.file_uploader("Text file with a line OLD=NEW per renamed type (or pick names below)", key="assisting.map")
    if file is not None and file.size > LARGEST_FILE:
        st.error(
            "This file is larger than 1 MB, so it is not a list of types. Give a text file with lines such as OLD=NEW."
        )
    elif file is not None:
        pairs = list(_from_file(file.getvalue()))
        st.caption(f"From the file: {plain(', '.join(pairs))}.")
        return pairs
    # The key contains both corpora, so that the fields are reset if one of the two changes.
    key = f"assisting.type.{primary.fingerprint[:8]}.{other.fingerprint[:8]}"
    pairs = _picked([name for name in unshared if name in other.types], other, sorted(primary.types), key)
    return pairs + _picked([name for name in unshared if name in primary.types], primary, (), key)


def _from_file(data: bytes) -> tuple[str, ...]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "types"
        path.write_bytes(data)
        return assisting.read_type_map(path)


def _picked(names: Sequence[str], corpus: Corpus, may_be: Sequence[str], key: str) -> list[str]:
    """Ask for a new name for each type of a corpus, and return the OLD=NEW pairs.

    may_be: new names to offer; empty for the primary corpus, whose types can only be kept or left out.
    """
    if not names:
        return []
    pairs = []
    # The corpus name is not in the fields' labels, because a screen reader would spell out its escaped characters.
    st.markdown(f"Types of **{plain(corpus.name)}**:")
    columns = st.columns(min(4, len(names)))
    for index, name in enumerate(names):
        choices = [STAYS, OUT, *(f"is {other}" for other in may_be)]
        with columns[index % len(columns)]:
            choice = st.selectbox(
                f"{plain(name)} ({corpus.types[name]:,})",
                choices,
                key=f"{key}.{name}",
            )
        if choice != STAYS:
            pairs.append(f"{name}={'' if choice == OUT else choice.removeprefix('is ')}")
    return pairs


def options_form() -> dict[str, Any]:
    """Show fields for options of SKL in expert mode, and return their values; otherwise return {}."""
    if not preferences.expert():
        return {}
    with st.expander("More options", icon=":material/settings:"):
        return config_form(KINDS["skl"].config, OPTIONS, "assisting", LABELS)
