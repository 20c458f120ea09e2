"""Buttons whose press is not lost to another rerun of the page."""

from typing import Any

import streamlit as st

_PRESSES = "pressed"  # keys of buttons that were pressed and not yet drawn


def pressed(label: str, key: str, **look: Any) -> bool:
    """A button beside fields whose typed values it takes. Its press counts once, and is not lost on the way.

    Leaving a field reruns the page, and so does the press: a rerun that ends before the button is drawn would take
    an ordinary button's press with it. `forget_presses` ends a press that no button took, as after an error.
    """
    st.button(label, key=key, on_click=_press, args=(key,), **look)
    taken = key in st.session_state.get(_PRESSES, ())
    if taken:
        st.session_state[_PRESSES].discard(key)
    return taken and not look.get("disabled", False)


def _press(key: str) -> None:
    st.session_state.setdefault(_PRESSES, set()).add(key)


def forget_presses() -> None:
    """At a page's end: what was pressed and not drawn shall not happen later."""
    st.session_state.pop(_PRESSES, None)
