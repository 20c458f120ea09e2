"""The whole map, taken to another program."""

from pathlib import Path

import streamlit as st

from core.explore import atlas
from pages.ui.frame import guard
from pages.ui.presses import pressed
from pages.ui.widgets import command_lines

WRITTEN = "explore.atlas.written"


def for_atlas(map_run: str) -> None:
    """Write the folder that Embedding Atlas opens, and say how."""
    if pressed("Folder for Embedding Atlas", "explore.atlas", icon=":material/folder_open:"):
        with guard():  # what goes wrong is said here; the page below stays
            st.session_state[WRITTEN] = {map_run: str(atlas.export(map_run))}
    if folder := st.session_state.get(WRITTEN, {}).get(map_run):
        st.caption("Written, with the text of all sentences on the map. Embedding Atlas opens it with:")
        command_lines(atlas.command(Path(folder)))
