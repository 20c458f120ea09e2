"""Files that were uploaded and are not imported yet: the one that this visit is about, and those that wait."""

from pathlib import Path

import streamlit as st

from core import facade
from pages.ui.presses import pressed
from pages.ui.widgets import plain

SHOWN = 5
OPEN = "corpora.importing"  # set while a person looks for another file: the form stays open between the two


def taken(token: str) -> Path | None:
    """The upload that the address names; None where it is gone."""
    try:
        path = facade.spooled(token)
    except facade.InputError as error:
        del st.query_params["upload"]
        st.warning(plain(str(error)))
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(path.name)}**", width="content")
        if pressed("Take another file", "corpora.discard", icon=":material/close:"):
            facade.discard(token)
            del st.query_params["upload"]
            st.session_state[OPEN] = True
            st.rerun()
    return path


def waiting() -> None:
    """The uploads of this home that no import reads: to go on with or to delete."""
    uploads = facade.waiting()
    if uploads:
        n = len(uploads)
        st.caption(f"{n} upload{'s' * (n > 1)} waiting: kept on this machine for a day, then deleted.")
    for token, name in list(uploads.items())[:SHOWN]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(name)}**", width="content")
            if pressed("Go on", f"corpora.waiting.{token}", icon=":material/arrow_forward:"):
                st.query_params["upload"] = token
                st.rerun()
            if pressed("Delete", f"corpora.forget.{token}", icon=":material/delete:"):
                facade.discard(token)
                st.rerun()
