"""The words of the subject on pages: the plain one, its symbol in grey behind it, what it means one click away; and
the switch for what only experts need."""

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
    """The word as a heading opens with it, its symbol in grey behind it, for a place that reads Markdown."""
    return f"{term.title} :gray[{term.symbol}]" if term.symbol else term.title


def glossary(own: Sequence[Term]) -> None:
    """A button beside a page's heading: what its words mean, `own` first; then all others."""
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
    """A picker of the corpus that plays a part: its symbol in grey behind the word, its meaning beside it.

    note: what else is said there. options: of `corpus_picker`.
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


def expert() -> bool:
    """Whether what only experts need is shown."""
    return preferences.expert()


def expert_switch() -> None:
    """The switch, in the menu of every page; what it is set to is kept in the home."""
    st.session_state[_EXPERT] = preferences.expert()
    st.toggle(
        "Expert",
        key=_EXPERT,
        on_change=lambda: preferences.set_expert(st.session_state[_EXPERT]),
        help="Shows every option, and variants typed in the words of the command line. What is hidden stays as usual.",
    )
