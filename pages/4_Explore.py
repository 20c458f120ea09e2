"""Explore: what was selected and what was filtered, on a map; why; and changing it by hand."""

from typing import Any

import streamlit as st

from core import facade
from pages.ui import explore_health, explore_map, explore_more, explore_panel, explore_state, explore_tag
from pages.ui.frame import page
from pages.ui.run_panel import run_panel
from pages.ui.widgets import config_form, sample_buttons

RUN = "explore.run"
MAKING = ("sample", "limit", "clusters", "neighbours", "min_distance", "fast", "seed")


def main() -> None:
    """The page."""
    with page("Explore", "See what was selected and what was filtered, ask why, and change it by hand."):
        runs = _finished()
        if not runs:
            _nothing()
            return
        run_id = _pick(runs)
        _edited(run_id)
        _tabs(run_id)


def _finished() -> dict[str, dict[str, Any]]:
    """Finished selections, newest first."""
    return {
        run.id: dict(run.manifest.config)
        for run in facade.runs("select")
        if run.manifest.parent is None and facade.state(run.id).state == "succeeded"
    }


def _nothing() -> None:
    st.info("There is no finished selection to look at yet. Make one first; its map is one click away then.")
    if facade.corpora():
        st.page_link("pages/3_Selection.py", label="Make a selection", icon=":material/filter_alt:")
    else:
        sample_buttons("explore", "pages/3_Selection.py")


def _pick(runs: dict[str, dict[str, Any]]) -> str:
    named = st.query_params.get("run") or st.session_state.get(RUN)
    run_id = str(named) if named in runs else next(iter(runs))
    if len(runs) > 1:

        def label(name: str) -> str:
            domain = facade.corpus(runs[name]["domain"]).name
            strategy, budget = runs[name]["strategy"], runs[name]["budget"]
            return f"{budget} of {domain} by {strategy} ({name[9:11]}:{name[11:13]} UTC, {name[-4:]})"

        picked = st.selectbox("Selection", list(runs), list(runs).index(run_id), label, key=f"explore.which.{run_id}")
        if picked != run_id:
            st.session_state[RUN] = st.query_params["run"] = picked
            st.rerun()
    st.session_state[RUN] = st.session_state["explore.shown"] = run_id
    return run_id


def _edited(run_id: str) -> None:
    """Hand edits as they are on disk, and the way back."""
    edits = facade.edits(run_id)
    if not edits.history:
        return
    last = edits.history[-1]
    with st.container(horizontal=True, vertical_alignment="center", key="explore-edits"):
        st.markdown(f"**By hand:** {len(edits.added):,} added, {len(edits.removed):,} removed.", width="content")
        label = f"Undo {last.action} of {len(last.rows):,}"
        if st.button(label, key="explore.undo", icon=":material/undo:", shortcut="Alt+Z"):
            facade.undo(run_id)
            st.rerun()
        if st.button("Keep as a corpus", key="explore.seal", icon=":material/inventory_2:"):
            sealed = facade.seal_edited(run_id)
            st.toast(f"S_C with its hand edits is now a corpus of {len(sealed):,} sentences.")


def _map_of(run_id: str) -> str | None:
    """The selection's latest map; a run at work on one, and the way to one, where there is none."""
    mine = [run.id for run in facade.runs("map") if run.manifest.config["selection"] == run_id]
    state = facade.state(mine[0]) if mine else None
    if state is not None and state.state != "succeeded":
        run_panel(mine[0], "explore.made")
    done = facade.maps(run_id)
    if not done and (state is None or not state.active):
        with st.container(border=True):
            st.subheader("This selection has no map yet", anchor=False)
            st.markdown(
                "A map lays T_C, the selected and the filtered sentences out so that similar ones lie close together. "
                "It is made once, from the embeddings on disk, and kept."
            )
            _make(run_id)
    return done[0].id if done else None


def _make(run_id: str) -> None:
    with st.expander("More options", icon=":material/settings:"):
        options = facade.map_options(run_id, **config_form(facade.RECIPES["map"].config, MAKING, "explore.make"))
    if st.button("Make the map", type="primary", icon=":material/scatter_plot:", key="explore.make"):
        facade.start("map", options)
        st.rerun()
    st.code(facade.command("map", options), language="bash", wrap_lines=True)


def _tabs(run_id: str) -> None:
    """Only the open one is worked out."""
    drawn = {"Map": _map, "Compare": _compare, "Side by side": _side_by_side, "Health of S_C": explore_health.health}
    shown = st.tabs(list(drawn), key="explore.tab", on_change="rerun")
    for tab, draw in zip(shown, drawn.values(), strict=True):
        if tab.open:
            with tab:
                draw(run_id)


def _compare(run_id: str) -> None:
    done = facade.maps(run_id)
    explore_more.compare(run_id, done[0].id if done else None)


def _side_by_side(run_id: str) -> None:
    if map_run := _map_of(run_id):
        explore_more.side_by_side(map_run)


def _map(run_id: str) -> None:
    map_run = _map_of(run_id)
    if map_run is None:
        return
    kinds = facade.classes(map_run)
    region = explore_state.picked(map_run)
    points = explore_state.points_of(map_run, region, kinds)
    asked = explore_map.controls(map_run)
    left, right = st.columns((8, 5))
    with left:
        explore_map.draw(run_id, map_run, kinds, asked)
    with right:
        explore_panel.panel(run_id, map_run, kinds, points)
    explore_panel.rows(run_id, map_run, kinds, points)
    explore_tag.offer(run_id)
    with st.expander("The same on the command line, and another map", icon=":material/terminal:"):
        st.code(facade.command("map", facade.run(map_run).manifest.config), language="bash", wrap_lines=True)
        _make(run_id)


main()
