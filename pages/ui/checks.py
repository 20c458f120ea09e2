"""The data check on a page: its items with links, and a box to tick before a run starts despite a red item."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from core.corpora.checks import Check
from pages.ui.project import page_link
from pages.ui.runs.links import CORPORA, SELECTION, TRAINING
from pages.ui.widgets import plain

PAGES = {"corpora": CORPORA, "selection": SELECTION, "training": TRAINING}
ICONS = {"red": ":material/error:", "amber": ":material/warning:", "green": ":material/check_circle:"}
FITS = "10%"  # the default budget, which fits every domain corpus

Cures = Mapping[str, tuple[str, Callable[[], None]]]  # {name of a check item: (label of its button, its function)}


def show(found: Sequence[Check], key: str, *, here: str = "", cures: Cures | None = None) -> None:
    """Show red and amber items, and the green items in a collapsed section.

    key: prefix of the widget keys. here: the page that shows the check, which gets no link. cures: buttons that
    solve an item on this page.
    """
    open_items = sorted((one for one in found if one.level != "green"), key=lambda one: one.level != "red")
    good = [one for one in found if one.level == "green"]
    with st.container(key=f"{key}.checks"):
        for one in open_items:
            _item(one, key, here, cures or {})
        if good:
            icon = ICONS[open_items[0].level if open_items else "green"]
            with st.expander(f"Data check: {len(good)} of {len(found)} items are fine", icon=icon):
                for one in good:
                    st.markdown(plain(one.sentence))


def fitting_budget(key: str) -> Cures:
    """Return the cure for a budget that exceeds the domain corpus: a button that sets the field `key` to `FITS`."""

    def fit() -> None:
        st.session_state[key] = FITS

    return {"budget": (f"Set the budget to {FITS}", fit)}


def _item(one: Check, key: str, here: str, cures: Cures) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        colour = "red" if one.level == "red" else "orange"
        st.markdown(f":{colour}[{ICONS[one.level]}] {plain(one.sentence)}", width="stretch")
        if one.name in cures:
            label, cure = cures[one.name]
            st.button(label, key=f"{key}.cure.{one.name}", on_click=cure, icon=":material/build:", width="content")
        elif PAGES[one.page] == here:
            st.caption(one.cure, width="content")
        else:
            page_link(PAGES[one.page], label=one.cure, icon=":material/arrow_forward:", width="content")


def gate(found: Sequence[Check], key: str, *, here: str = "", cures: Cures | None = None) -> tuple[bool, bool]:
    """Show the items and, if one is red, ask for consent. Ask again if other items are red.

    Return two values: True if the run may start, and True if it starts despite red items.
    """
    show(found, key, here=here, cures=cures)
    red = [one for one in found if one.level == "red"]
    if not red:
        return True, False
    if any(one.final for one in red):
        return False, False
    if st.session_state.get(f"{key}.red") != (asked := [one.sentence for one in red]):
        st.session_state[f"{key}.red"], st.session_state[f"{key}.anyway"] = asked, False
    anyway = st.checkbox("Run anyway, although the data check has red items", key=f"{key}.anyway")
    return anyway, anyway
