"""Guess first: the user ranks the sources before the numbers appear, as the people of S1's survey did."""

import streamlit as st

from core import facade
from pages.ui.widgets import plain


def guessed(run_id: str, target: str) -> bool:
    """Ask for a guess, once a run and target; True as soon as the numbers may be seen."""
    sources = list(facade.run(run_id).result()["sources"])
    if facade.guess(run_id, target) is None and len(sources) > 1:
        _ask(run_id, target, sources)
        return False
    return True


def _ask(run_id: str, target: str, sources: list[str]) -> None:
    key = f"similarity.guess.{run_id}.{target}"
    with st.container(border=True):
        st.subheader("Guess first", anchor=False)
        st.markdown(
            f"The numbers for **{plain(target)}** are there. Before you look: which source is closest to it? "
            "Pick the sources in order, the closest first; leave out what you cannot place."
        )
        order = st.multiselect("Closest first", sources, key=f"{key}.order", placeholder="the closest, then the next")
        with st.container(horizontal=True):
            shown = st.button(
                "Show the numbers", type="primary", disabled=not order, key=f"{key}.show", icon=":material/visibility:"
            )
            skipped = st.button("Skip", key=f"{key}.skip", icon=":material/skip_next:")
    if shown or skipped:
        facade.save_guess(run_id, target, [] if skipped else order)
        st.rerun()


def guess_told(run_id: str, target: str) -> None:
    """What became of the guess."""
    order = facade.guess(run_id, target)
    if not order:
        return
    rows = facade.similarity_rows(run_id, target)
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    best = {m: facade.best_value([row for row in rows if row["measure"] == m]) for m in measures}
    mine = [row for row in rows if row["source"] == order[0] and row["value"] is not None]
    first = sum(row["value"] == best[row["measure"]] for row in mine)
    text = f"You put **{plain(order[0])}** first; so do {first} of {len(measures)} measures."
    if len(order) > 1:
        held = facade.guess_held(run_id, target)
        told = [f"{facade.measure_title(m)} {agree} of {pairs}" for m, (agree, pairs) in held.items() if pairs]
        text += f" Pairs of sources ordered as you did: {', '.join(told)}." if told else ""
    st.markdown(f":material/lightbulb: {text}")
