"""Terms on pages with their symbol and meaning, the glossary, and the switch for expert mode."""

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from core import terms
from core.projects import preferences
from core.terms import Term
from pages.ui.project import page_link
from pages.ui.widgets import corpus_picker

_EXPERT = "frame.expert"


def grey(term: Term) -> str:
    """Return a term for a heading in Markdown: its word, then its symbol in grey."""
    return f"{term.title} :gray[{term.symbol}]" if term.symbol else term.title


def glossary(own: Sequence[Term]) -> None:
    """Draw a button beside a page's heading that explains its terms, `own` first, then all others."""
    look = {"icon": ":material/menu_book:", "type": "tertiary", "help": "What the words on these pages mean"}
    opened = st.popover("Words", key="frame.words", on_change="rerun", **look)  # type: ignore[arg-type]
    if not opened.open:
        return
    with opened:
        _listed(own or terms.TERMS)
        if own:
            with st.expander("All words"):
                _listed([term for term in terms.TERMS if term not in own])
        page_link("pages/9_Papers.py", label="Whose methods these are", icon=":material/arrow_forward:")


def term_picker(term: Term, key: str, chosen: str | None, note: str = "", **options: Any) -> str | None:
    """Let the user pick the corpus of a role, and return its fingerprint or None. The heading explains the role.

    term: the role. chosen: the default. note: text after the term's meaning. options: passed to `corpus_picker`.
    """
    with st.container(gap=None):
        st.markdown(f":small[{grey(term)}]", help=f"{term.meaning} {note}".rstrip())
        return corpus_picker(term.title, key, chosen, label_visibility="collapsed", **options)


def _listed(listed: Sequence[Term]) -> None:
    rows = (
        f"<dt>{escape(term.title)}{f' <small>{escape(term.symbol)}</small>' if term.symbol else ''}</dt>"
        f"<dd>{escape(term.meaning)}</dd>"
        for term in listed
    )
    st.html(f'<dl class="w-glossary">{"".join(rows)}</dl>')


def expert_switch() -> None:
    """Draw the switch for expert mode. Its state is stored with the user's preferences."""
    st.session_state[_EXPERT] = preferences.expert()
    st.toggle(
        "Expert",
        key=_EXPERT,
        on_change=lambda: preferences.set_expert(st.session_state[_EXPERT]),
        help="Shows every option, and a field for variants as on the command line. While it is off, hidden options "
        "keep their defaults.",
    )
