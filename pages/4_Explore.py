"""Explore: what was selected and what was filtered, on a map; why; and changing it by hand."""

import streamlit as st

from core.facade import maps, regions, results, runs, selections
from core.facade.errors import Overtaken
from core.facade.runs import Run
from pages.ui.ahead import run_ahead
from pages.ui.empty import empty
from pages.ui.explore import health, more, panel, state, tag
from pages.ui.explore import map as map_view
from pages.ui.frame import looked, page
from pages.ui.presses import pressed
from pages.ui.remains import remains
from pages.ui.runs.links import SELECTION, attached, remember
from pages.ui.runs.panel import run_panel
from pages.ui.runs.pick import begun, pick_run
from pages.ui.runs.words import removed
from pages.ui.selection.budget import follow_address, say_refused
from pages.ui.widgets import budget_words, command_lines, config_form, plain, same_command

RUN = "explore.run"
SEEN = "explore.seen"  # the time of the last edit that was shown, by selection
NEEDS = "There is no finished selection to look at yet. Make one first; its map is one click away then."
MAKING = ("sample", "limit", "clusters", "neighbours", "min_distance", "fast", "seed")


def main() -> None:
    """The page."""
    with page("Explore", "See what was selected and what was filtered, ask why, and change it by hand."):
        run_id = attached("select", RUN, finished=True, first=lambda run: maps.of(run.id) is not None)
        if run_id is None:
            _nothing()
            return
        run_ahead()
        _pick(run_id)
        if {"task", "domain"}.isdisjoint(results.removed_inputs(run_id)):
            looked(*(runs.get(run_id).manifest.inputs[part] for part in ("task", "domain")))
            _edited(run_id)
            _tabs(run_id)
        else:
            st.caption(f":material/link_off: {removed(run_id)}")
            remains(run_id)


def _nothing() -> None:
    """Where none is of the corpora in use, the latest of others was offered already."""
    empty("" if selections.finished() else NEEDS, "explore", SELECTION, make="Make a selection")


def _pick(run_id: str) -> None:
    """The selection to look at, where there are several."""

    def label(run: Run) -> str:
        budget = budget_words(selections.kept_budget(run.id))
        domain = results.corpus_name(run.manifest.config["domain"])
        return begun(run, f"{budget} of {domain} by {run.manifest.config['strategy']}")

    remember(run_id, RUN)
    follow_address(run_id, RUN)
    say_refused()
    pick_run(run_id, RUN, selections.finished(), "Selection", label, label_visibility="collapsed")
    st.session_state["explore.shown"] = run_id


def _edited(run_id: str) -> None:
    """Hand edits as they are on disk, and the way back."""
    edits = selections.edits(run_id)
    if not edits.history:
        return
    last = edits.history[-1]
    shown = st.session_state.get(SEEN, {}).get(run_id)  # which the button that was pressed spoke of
    st.session_state[SEEN] = {run_id: last.time}
    with st.container(horizontal=True, vertical_alignment="center", key="explore-edits"):
        st.markdown(f"**By hand:** {len(edits.added):,} added, {len(edits.removed):,} removed.", width="content")
        label = f"Undo {last.action} of {len(last.rows):,}"
        if pressed(label, "explore.undo", icon=":material/undo:", shortcut="Alt+Z"):
            try:
                selections.undo(run_id, shown)
            except Overtaken as error:
                st.warning(plain(str(error)), icon=":material/group:")
            else:
                st.rerun()
        if pressed("Keep as a corpus", "explore.seal", icon=":material/inventory_2:"):
            sealed = selections.seal(run_id)
            st.toast(f"S_C with its hand edits is now a corpus of {len(sealed):,} sentences.")
    if reasons := state.flagged(run_id, edits.added):
        st.warning(f"Flagged sentences are in S_C by hand: {reasons}.", icon=":material/flag:")


def _map_of(run_id: str) -> str | None:
    """The map to draw; a run at work on one, and the way to one, where there is none."""
    map_ids = [run.id for run in runs.listed("map") if run.manifest.config["selection"] == run_id]
    drawing = runs.state(map_ids[0]) if map_ids else None
    if drawing is not None and drawing.state != "succeeded":
        run_panel(map_ids[0], "explore.made")
    map_run = maps.of(run_id)
    if map_run is None and (drawing is None or not drawing.active):
        with st.container(border=True):
            st.subheader("This selection has no map yet", anchor=False)
            st.markdown(
                "A map lays T_C, the selected and the filtered sentences out so that similar ones lie close together. "
                "It is made once, from the embeddings on disk, and kept."
            )
            _make(run_id)
    return map_run


def _make(run_id: str) -> None:
    with st.expander("More options", icon=":material/settings:"):
        options = maps.options(run_id, **config_form(runs.RECIPES["map"].config, MAKING, "explore.make"))
    if pressed("Make the map", "explore.make", type="primary", icon=":material/scatter_plot:"):
        runs.start("map", options)
        st.rerun()
    same_command(runs.command("map", options))


def _tabs(run_id: str) -> None:
    """Only the open one is worked out."""
    drawn = {"Map": _map, "Compare": _compare, "Side by side": _side_by_side, "Health of S_C": health.health}
    shown = st.tabs(list(drawn), key="explore.tab", on_change="rerun")
    for tab, draw in zip(shown, drawn.values(), strict=True):
        if tab.open:
            with tab:
                draw(run_id)


def _compare(run_id: str) -> None:
    more.compare(run_id, maps.of(run_id))


def _side_by_side(run_id: str) -> None:
    if map_run := _map_of(run_id):
        more.side_by_side(map_run)


def _map(run_id: str) -> None:
    map_run = _map_of(run_id)
    if map_run is None:
        return
    kinds = maps.classes(map_run)
    state.follow_address(map_run)
    asked = map_view.controls(map_run)
    state.name_in_address(run_id, RUN, map_run)
    points = state.points_of(map_run, state.picked(map_run), kinds)
    with st.container(key="explore-panes"):
        left, right = st.columns((8, 5))
    with left:
        drawn = map_view.draw(run_id, map_run, kinds, asked)
    with right:
        panel.panel(run_id, map_run, kinds, points)
    panel.rows(run_id, map_run, kinds, points)
    tag.offer(run_id)
    title = "The same on the command line, and another map"
    with st.expander(title, icon=":material/terminal:", key="explore.command", on_change="rerun") as more:
        if more.open:  # what colours a command is 1.5 MB of script, which the first paint need not wait for
            _commands(run_id, map_run)
            _make(run_id)
    map_view.tell(run_id, map_run, kinds, drawn)


def _commands(run_id: str, map_run: str) -> None:
    """The map's, and that of what is picked: the same bytes as the page's."""
    command_lines(runs.command("map", maps.config(map_run)))
    region = state.picked(map_run)
    if token := regions.region_token(region):
        st.caption("What is picked, as text; end its name in .jsonl or .parquet for those.")
        name = f"{regions.region_file(run_id, region)}.txt"
        command_lines(regions.region_command(run_id, token, name))


main()
