"""Files that were uploaded and are not imported yet: the one that this visit is about, and those that wait."""

from pathlib import Path

import streamlit as st

from core.errors import InputError
from core.importing import uploads
from pages.ui.presses import pressed
from pages.ui.widgets import plain

SHOWN = 5
OPEN = "corpora.importing"  # set while a person looks for another file: the form stays open between the two


def taken(token: str) -> Path | None:
    """The upload that the address names; None where it is gone."""
    try:
        path = uploads.spooled(token)
    except InputError as error:
        del st.query_params["upload"]
        st.warning(plain(str(error)))
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(uploads.called(path))}**", width="content")
        if pressed("Take another file", "corpora.discard", icon=":material/close:"):
            uploads.discard(token)
            for name in {"upload", "as"} & set(st.query_params):
                del st.query_params[name]
            st.session_state[OPEN] = True
            st.rerun()
    return path


def waiting() -> None:
    """The uploads of this home that no import reads: to go on with or to delete."""
    files = uploads.waiting()
    if files:
        n = len(files)
        st.caption(f"{n} upload{'s' * (n > 1)} waiting: kept on this machine for a day, then deleted.")
    for token, name in list(files.items())[:SHOWN]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(name)}**", width="content")
            if pressed("Go on", f"corpora.waiting.{token}", icon=":material/arrow_forward:"):
                st.query_params["upload"] = token
                st.rerun()
            if pressed("Delete", f"corpora.forget.{token}", icon=":material/delete:"):
                uploads.discard(token)
                st.rerun()
