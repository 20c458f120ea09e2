"""Make a corpus of those sentences that have chosen values in a column, such as document, client or year."""

from collections.abc import Mapping

import streamlit as st

from core import shown_command as commands
from core.corpora.corpus import Corpus
from core.importing import view as corpora
from core.importing.result import ROLES
from core.shown import count
from pages.ui.frame import guard
from pages.ui.widgets import corpus_picker, plain, pressed, same_command, submitted

MADE = "corpora.filter.made"  # session key: fingerprint of the corpus that this form made last
TITLES = {"doc": "Document", "file": "File", "group": "Group"}
NO_COLUMN = (
    "This corpus has no column for this: its import kept no document, file, group or other column with several values."
)


def parts() -> None:
    """Ask for a corpus and values of its columns. Make a corpus of the sentences with these values; offer it a role."""
    with st.expander("Keep only some documents, years, or clients", icon=":material/filter_alt:", key="corpora.filter"):
        st.caption(
            "Makes a corpus of the sentences that have the chosen values, for example to select from one year. The "
            "columns are those kept at import."
        )
        chosen = corpus_picker("Corpus", "corpora.filter.corpus", None)
        if chosen:
            _form(chosen)
        made = st.session_state.get(MADE)
        if made in {each.fingerprint for each in corpora.listed()}:
            _made(made)


def _form(corpus: str) -> None:
    source = corpora.find(corpus)
    columns = filter_columns(source)
    if not columns:
        return
    with st.form("corpora.filter.form", border=False):
        where = value_fields(columns, f"corpora.filter.{corpus}")
        sent = submitted("Keep these sentences", "corpora.filter.start", icon=":material/filter_alt:")
    if sent and not where:
        st.warning("Choose a value first.")
    elif sent:
        with guard():
            st.session_state[MADE] = corpora.filtered(source, where).fingerprint
            st.rerun()


def filter_columns(source: Corpus) -> Mapping[str, Mapping[str, int]]:
    """Return {column: {value: number of sentences}} of the columns to filter by, and say which ones are left out."""
    columns, long = corpora.filter_values(source), corpora.long_columns(source)
    if long:
        names = ", ".join(TITLES.get(name, name) for name in long)
        st.caption(
            f"Columns with more than {count(corpora.MOST_VALUES, 'value')} are not listed: {plain(names)}. "
            "The command line filters by any value: `corpus filter CORPUS --where COLUMN=VALUE`."
        )
    elif not columns:
        st.info(NO_COLUMN)
    return columns


def value_fields(columns: Mapping[str, Mapping[str, int]], prefix: str) -> dict[str, list[str]]:
    """Draw a field per column, and return {column: chosen values} without columns in which nothing was chosen.

    columns: {column: {value: number of sentences}}. prefix: prefix of the widget keys.
    """
    wanted = {name: _values(name, values, f"{prefix}.{name}") for name, values in columns.items()}
    return {name: values for name, values in wanted.items() if values}


def _values(name: str, values: Mapping[str, int], key: str) -> list[str]:
    """Draw the field of a column, and return the chosen values. values: {value: number of sentences}."""

    def shown(value: str) -> str:
        return f"{value} ({values[value]:,})"

    return st.multiselect(plain(TITLES.get(name, name)), list(values), format_func=shown, key=key)


def _made(mark: str) -> None:
    made = corpora.find(mark)
    st.success(f"{plain(made.name)}: {count(len(made), 'sentence')}.", icon=":material/check:")
    with st.container(horizontal=True):
        for role in ("task", "domain"):
            if pressed(f"Use it as {ROLES[role].word}", f"corpora.filter.{role}", icon=":material/check:"):
                corpora.set_role(role, mark)
                st.rerun()
    if "where" in made.origin:  # missing if a corpus of the same sentences was imported before
        same_command("corpora.filter.command", commands.filter_command(made))
