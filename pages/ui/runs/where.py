"""Where a run computes: asked beside its button where there is a choice, and the machines that it was on."""

import streamlit as st

from core.projects import runs
from core.runs.where import Node
from core.shown import count
from pages.ui.widgets import plain, table

_PLACES = {"local": "here, in one process", "ray": "here, workers on every core or card (Ray)"}
HELP = (
    "The same bytes come of it everywhere, so what is stopped here may be resumed there. Workers pay from about 50,000 "
    "sentences on; they take 10 to 20 seconds to begin. Type ray:HOST:PORT for a cluster that this machine is of: its "
    "machines that see this folder of Winnow's also take steps of an experiment."
)
COLUMNS = {"name": "Machine", "cores": "Cores", "cards": "GPUs", "doing": "Now", "chunks": "Chunks made"}


def where(key: str, at: str = "") -> str:
    """Place to compute, as of `--on`. at: where it was, which then stands first."""
    places = list(dict.fromkeys(filter(None, (at, *runs.places()))))
    if len(places) == 1:
        return places[0]
    chosen = st.selectbox(
        "Where", places, format_func=_called, key=f"{key}.where", accept_new_options=True, help=HELP, width=420
    )
    return str(chosen or places[0]).strip()


def _called(place: str) -> str:
    return _PLACES.get(place) or f"the cluster at {place.removeprefix('ray:')}"


def machines(run_id: str) -> None:
    """The machines that a run is or was on: who does what, what died. Nothing for one that stays here."""
    nodes = runs.place(run_id).nodes
    if not nodes:
        return
    with st.expander(_in_short(nodes), icon=":material/lan:"):
        table([_row(node) for node in nodes], COLUMNS, "Machines of this run", names=("name",))


def _row(node: Node) -> dict[str, str | int]:
    return {"name": node.name, "cores": node.cores, "cards": node.cards, "doing": _doing(node), "chunks": node.chunks}


def _doing(node: Node) -> str:
    at_work = "gone" if node.gone else f"{node.workers} at work" if node.workers else "idle"
    return f"{at_work}; {node.lost} died" if node.lost else at_work


def _in_short(nodes: tuple[Node, ...]) -> str:
    n, gone = len(nodes), sum(node.gone for node in nodes)
    cards = sum(node.cards for node in nodes)
    has = f"{cards} GPUs" if cards else f"{count(sum(node.cores for node in nodes), 'core')}"
    died = f", {gone} gone" if gone else ""
    return plain(f"{n} machine{'s' * (n > 1)}, {has}{died}")
