"""The type map for types that only one of two corpora has; the options of SKL."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from core.assisting import view as assisting
from core.corpora.corpus import Corpus
from core.kinds import KINDS
from pages.ui.terms import expert
from pages.ui.widgets import config_form, plain

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
    """Return OLD=NEW pairs, picked type by type or read from a file."""
    unshared = assisting.unshared_types(primary, other)
    if not unshared:
        st.caption("Both corpora have the same types.")
        return []
    st.markdown("**Types that only one of them has**")
    file = st.file_uploader("A text file of OLD=NEW lines (or pick below)", key="assisting.map")
    if file is not None and file.size > LARGEST_FILE:
        st.error("This file is larger than 1 MB, so it is not a list of types. Give a text file of OLD=NEW lines.")
    elif file is not None:
        pairs = list(_from_file(file.getvalue()))
        st.caption(f"From the file: {plain(', '.join(pairs))}.")
        return pairs
    # The key holds both corpora, because a map for two corpora does not apply to two others.
    key = f"assisting.type.{primary.fingerprint[:8]}.{other.fingerprint[:8]}"
    pairs = _picked([name for name in unshared if name in other.types], other, sorted(primary.types), key)
    return pairs + _picked([name for name in unshared if name in primary.types], primary, (), key)


def _from_file(data: bytes) -> tuple[str, ...]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "types"
        path.write_bytes(data)
        return assisting.read_type_map(path)


def _picked(names: Sequence[str], corpus: Corpus, may_be: Sequence[str], key: str) -> list[str]:
    """may_be: new names to offer; none for the primary corpus, which is trained on as it is."""
    if not names:
        return []
    pairs = []
    # The corpus name is not in the labels, because a screen reader would spell its escaped letters.
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
    """Show the options of SKL in expert mode; otherwise return none, so that the defaults apply."""
    if not expert():
        return {}
    with st.expander("More options", icon=":material/settings:"):
        return config_form(KINDS["skl"].config, OPTIONS, "assisting", LABELS)
