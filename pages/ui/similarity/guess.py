"""Guess first: whoever likes hides the numbers and ranks the sources himself, as the people of a survey did."""

import streamlit as st

from core.similarity import view as similarity
from pages.ui.presses import submitted
from pages.ui.widgets import plain


def guessing(run_id: str, target: str) -> bool:
    """True while the user ranks the sources, the numbers out of sight."""
    if not st.session_state.get(_key(run_id, target)):
        return False
    _ask(run_id, target, list(similarity.result(run_id).sources))
    return True


def guess_button(run_id: str, target: str) -> None:
    """The offer, beside the result, until a guess was made; there is nothing to rank in one source."""
    if len(similarity.result(run_id).sources) > 1 and not similarity.guess(run_id, target):
        st.button(
            "Guess first",
            key="similarity.guess",
            icon=":material/visibility_off:",
            on_click=_turn,
            args=(run_id, target, True),
            help="Hides the numbers and asks you which source is closest; then shows who was right.",
        )


def _ask(run_id: str, target: str, sources: list[str]) -> None:
    with st.form(f"{_key(run_id, target)}.form"):
        st.subheader("Guess first", anchor=False)
        st.markdown(
            f"Which source is closest to **{plain(target)}**? Pick the sources in order, the closest first; leave out "
            "what you cannot place."
        )
        order = st.multiselect(
            "Closest first", sources, key=f"{_key(run_id, target)}.order", placeholder="the closest, then the next"
        )
        shown = submitted("Show the numbers", "similarity.guess.show", type="primary", icon=":material/visibility:")
    if shown:
        similarity.save_guess(run_id, target, order)
        _turn(run_id, target, False)
        st.rerun()


def _turn(run_id: str, target: str, on: bool) -> None:
    st.session_state[_key(run_id, target)] = on


def _key(run_id: str, target: str) -> str:
    return f"similarity.guess.{run_id}.{target}"


def guess_outcome(run_id: str, target: str) -> None:
    """Show what became of the guess."""
    order = similarity.guess(run_id, target)
    if not order:
        return
    rows = similarity.rows(run_id, target)
    measures = list(dict.fromkeys(row.measure for row in rows))
    best = {m: similarity.best_value([row for row in rows if row.measure == m]) for m in measures}
    first = sum(row.value is not None and row.value == best[row.measure] for row in rows if row.source == order[0])
    text = f"You put **{plain(order[0])}** first; so do {first} of {len(measures)} measures."
    if len(order) > 1:
        held = similarity.guess_held(run_id, target)
        pairs = [f"{similarity.title(m)} {agree} of {n}" for m, (agree, n) in held.items() if n]
        text += f" Pairs of sources ordered as you did: {', '.join(pairs)}." if pairs else ""
    st.markdown(f":material/lightbulb: {text}")
