"""Score only those sentences of the domain corpus that have chosen values in a column, such as client or year."""

import streamlit as st

from core.importing import view as corpora
from core.shown import count
from pages.ui.corpora.parts import filter_columns, value_fields

LABEL = "Only some documents, years, or clients"
HELP = "Filters by the columns that were kept at import. Other sentences of the domain corpus are not scored."


def part(domain: str) -> dict[str, list[str]]:
    """Ask for the column values of sentences to score. Return {column: values}; {} to score all sentences of D_C."""
    # The columns of a large corpus are read only on request.
    if not domain or not st.toggle(LABEL, key="selection.part", help=HELP):
        return {}
    source = corpora.find(domain)
    columns = filter_columns(source)
    if not columns:
        return {}
    where = value_fields(columns, f"selection.part.{domain}")
    if where:
        n = int(corpora.matching(source, where).sum())
        st.caption(
            f"{count(n, 'sentence')} of {len(source):,} will be scored. A budget in percent is a share of these."
        )
    return where


def narrowed_before(domain: str, where: dict[str, list[str]]) -> str:
    """Return the fingerprint of the corpus that `narrowed` would store, if it exists already; else `domain`."""
    before = corpora.filtered_before(corpora.find(domain), where) if where else None
    return before.fingerprint if before else domain


def narrowed(domain: str, where: dict[str, list[str]]) -> str:
    """Store the sentences to score as a corpus, and return its fingerprint. If `where` is empty, return `domain`."""
    if not where:
        return domain
    with st.spinner("Filtering the domain corpus"):
        return corpora.filtered(corpora.find(domain), where).fingerprint
