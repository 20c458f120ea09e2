"""Divide a corpus into new corpora: a training, dev and test set, or T_C and D_C."""

from collections.abc import Mapping, Sequence

import streamlit as st

from core.experiment import results
from core.importing import view as corpora
from core.importing.result import ROLES, SplitResult
from core.projects import runs
from core.runs.result import read as read_result
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import corpus_picker, plain, pressed, submitted, table

UNITS = {
    "document": "whole documents",
    "sentence": "sentences, duplicates together",
    "column": "the column kept at import",
}
RUN = "corpora.split.run"


def splits() -> None:
    """Ask for a corpus and how to divide it; show the latest result."""
    with st.expander("Divide a corpus into parts", icon=":material/call_split:", key="corpora.split.open"):
        st.caption(
            "Divides a labelled corpus into a training set, a dev set and a test set, or an unlabelled corpus into a"
            " task corpus and a domain corpus. Duplicates and near duplicates stay in one part."
        )
        chosen = corpus_picker("To be divided", "corpora.split.corpus", None)
        if chosen:
            _form(chosen, corpora.split_by(corpora.find(chosen)))
        # Leave out `split` runs that other runs started, because they do not come from this form.
        latest = next((run for run in runs.listed("split") if run.manifest.parent is None), None)
        if latest and run_panel(latest.id, RUN).state == "succeeded":
            _parts(read_result(latest, SplitResult))


def _form(corpus: str, kinds: Mapping[str, Sequence[str]]) -> None:
    by = st.selectbox("By", list(kinds), format_func=UNITS.__getitem__, key=f"corpora.split.by.{corpus}")
    options: dict[str, object] = {"corpus": corpus, "by": by}
    with st.form("corpora.split.form"):
        values = (
            st.multiselect(
                "Values for the first part; sentences with other values form the second",
                kinds["column"],
                key="corpora.split.values",
            )
            if by == "column"
            else []
        )
        left, middle, right = st.columns(3)
        shares = left.text_input("Shares in sentences", "70, 10, 20", key="corpora.split.shares")
        names = middle.text_input(
            "Names", key="corpora.split.names", placeholder="task, domain" if by == "column" else "train, dev, test"
        )
        seed = right.number_input("Seed", 0, value=0, key="corpora.split.seed")
        copies = st.toggle("Let duplicates stay in different parts", key="corpora.split.copies")
        sent = submitted("Divide", "corpora.split.start", type="primary", icon=":material/call_split:")
    if sent:
        options |= {"values": values} if values else {"shares": _listed(shares)}
        runs.start("split", {**options, "names": _listed(names), "seed": seed, "keep_copies": copies})
        st.rerun()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parts(result: SplitResult) -> None:
    rows = [
        {
            "name": results.corpus_name(part.corpus),
            "n": part.sentences,
            "units": part.units,
            "entities": sum(part.types.values()),
            "left": part.left_out,
        }
        for part in result.parts
    ]
    names = {"name": "Part", "n": "Sentences", "units": "Units", "entities": "Entities", "left": "Duplicates left out"}
    table(rows, names, "Parts of the divided corpus", names=("name",))
    st.caption(
        f"Units that stay in one part (documents, values or sentences): {result.units:,}. Sentences with duplicates:"
        f" {result.copies:,}. Groups of duplicates that were drawn into several parts: {result.divided:,}. Such a"
        " group stays only in the smallest of its parts, unless duplicates may stay in different parts."
    )
    here = {each.fingerprint for each in corpora.listed()}
    given = {part.name: part.corpus for part in result.parts if part.name in ROLES and part.corpus in here}
    if given and pressed(f"Use them as {plain(', '.join(given))}", "corpora.split.roles"):
        corpora.set_roles(given)
        st.rerun()
