"""Buttons whose press is not lost to another rerun of the page.

An ordinary button says that it was pressed to one run of the page alone: the next run, which a field that is left or a
second press begins, ends that one before the button is drawn, and nothing happens. These remember the press until a
button takes it.
"""

from typing import Any

import streamlit as st

_PRESSES = "pressed"  # keys of buttons that were pressed and not yet drawn


def pressed(label: str, key: str, **kwargs: Any) -> bool:
    """Draw a button; whether it was pressed, once a press. kwargs: of `st.button`."""
    presses = _presses()
    st.button(label, key=key, on_click=presses.add, args=(key,), **kwargs)
    return _take(presses, key, disabled=kwargs.get("disabled", False))


def submitted(label: str, key: str, **kwargs: Any) -> bool:
    """Draw the button of a form; whether it was pressed, once a press. kwargs: of `st.form_submit_button`."""
    presses = _presses()
    st.form_submit_button(label, key=key, on_click=presses.add, args=(key,), **kwargs)
    return _take(presses, key, disabled=kwargs.get("disabled", False))


def forget_presses(prefix: str) -> None:
    """Forget what was pressed and not drawn, as after an error, so that it does not happen later: at the end of a page
    and, for it runs alone too, of a fragment. prefix: of the keys of its buttons; "" forgets all."""
    presses = _presses()
    presses.difference_update([key for key in presses if key.startswith(prefix)])


def _presses() -> set[str]:
    """One set for the visit, changed in place: a callback that reached into the session could be cut short there."""
    presses: set[str] = st.session_state.setdefault(_PRESSES, set())
    return presses


def _take(presses: set[str], key: str, *, disabled: bool) -> bool:
    """Take a button's press, if there is one, out of `presses`; whether it may act."""
    there = key in presses
    presses.discard(key)
    # A rerun has disabled it since: what it needs is gone, and the press does not wait until that is back.
    return there and not disabled
