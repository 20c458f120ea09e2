"""Choose where a run computes, if there is a choice."""

import streamlit as st

from core.projects import runs

_PLACES = {"local": "here, in one process", "ray": "here, on all cores and GPUs (Ray)"}
HELP = (
    "Every place makes the same result, so a run that stops in one place can be resumed in another. Ray pays from "
    "about 50,000 sentences or two GPUs on; its workers take 10 to 20 seconds to start. Type ray:HOST:PORT for a "
    "cluster that this machine has joined. Its machines take steps of an experiment only if they see Winnow's folder."
)


def where(key: str, at: str = "") -> str:
    """Return the chosen place, a value of `--on`. at: the place of a run that is resumed, listed first."""
    places = list(dict.fromkeys(filter(None, (at, *runs.places()))))
    if len(places) == 1:
        return places[0]
    chosen = st.selectbox(
        "Where", places, format_func=_called, key=f"{key}.where", accept_new_options=True, help=HELP, width=420
    )
    return str(chosen or places[0]).strip()


def _called(place: str) -> str:
    return _PLACES.get(place) or f"the cluster at {place.removeprefix('ray:')}"
