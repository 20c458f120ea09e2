"""The page Explore: a map of selected and other sentences, the reasons for each, and edits by hand."""

import streamlit as st

from core import shown_command as commands
from core import terms
from core.errors import Overtaken
from core.experiment import results
from core.explore import regions
from core.explore import view as maps
from core.kinds import KINDS
from core.projects import preferences, runs
from core.selection import view as selections
from core.selection.choice import run_of
from core.shown import count
from pages.ui import choice
from pages.ui.empty import empty
from pages.ui.explore import health, panel, state
from pages.ui.explore import map as map_view
from pages.ui.explore.controls import FILTERS, compare, controls, offer_tagging, side_by_side
from pages.ui.frame import looked, page
from pages.ui.middleware import preload_chart
from pages.ui.removal import orphaned
from pages.ui.runs.links import SELECTION
from pages.ui.runs.panel import run_panel
from pages.ui.runs.words import removed
from pages.ui.widgets import command_lines, config_form, plain, pressed, same_command

SEEN = "explore.seen"  # session key: {selection: time of the latest edit that the page shows}
SUMMARY = "See which sentences are selected and why, and change the selection by hand."
NEEDS = "There is no finished selection to look at yet. Make one first, then draw its map here."
MAKING = ("sample", "limit", "clusters", "neighbours", "min_distance", "fast", "seed")

WORDS = (terms.TASK, terms.DOMAIN, terms.CHOICE, terms.FILTERED, terms.SCORE, terms.BUDGET, terms.STRATEGY)


def main() -> None:
    """Draw the page."""
    with page("Explore", SUMMARY, WORDS, low=True) as heading:
        choice_id = choice.attached(finished=True)
        if choice_id is None:
            _nothing()
            return
        preload_chart()
        run_id = run_of(choice_id)
        choice.follow_address(choice_id)
        st.session_state["explore.shown"] = choice_id
        with heading.container():
            choice.say_refused()
            choice.bar(choice_id, "explore")
        if {"task", "domain"}.isdisjoint(results.removed_inputs(run_id)):
            looked(*(runs.get(run_id).manifest.inputs[part] for part in ("task", "domain")))
            _edited(choice_id)
            _tabs(choice_id)
        else:
            st.caption(f":material/link_off: {removed(run_id)}")
            orphaned(choice_id)


def _nothing() -> None:
    """Draw the page without a selection: what it needs, and a link to make one.

    If the project has a finished selection, leave out what the page needs, because `choice.attached` has offered that
    selection.
    """
    empty("" if runs.own("select", state="succeeded") else NEEDS, "explore", SELECTION, make="Make a selection")


def _edited(choice_id: str) -> None:
    """Show the stored hand edits of a selection, and offer to undo the last one or to save the result as a corpus."""
    edits = selections.edits(choice_id)
    if not edits.history:
        return
    last = edits.history[-1]
    shown = st.session_state.get(SEEN, {}).get(choice_id)  # time of the edit that the pressed button offers to undo
    st.session_state[SEEN] = {choice_id: last.time}
    with st.container(horizontal=True, vertical_alignment="center", key="explore-edits"):
        st.markdown(f"**By hand:** {len(edits.added):,} added, {len(edits.removed):,} removed.", width="content")
        label = f"Undo {last.action} of {len(last.rows):,}"
        if pressed(label, "explore.undo", icon=":material/undo:", shortcut="Alt+Z"):
            try:
                selections.undo(choice_id, shown)
            except Overtaken as error:
                st.warning(plain(str(error)), icon=":material/group:")
            else:
                st.rerun()
        if pressed("Keep as a corpus", "explore.seal", icon=":material/inventory_2:"):
            sealed = selections.seal(choice_id)
            st.toast(f"The selection with its hand edits is now a corpus of {count(len(sealed), 'sentence')}.")
    if reasons := state.flagged(choice_id, edits.added):
        st.warning(f"You added flagged sentences to the selection: {reasons}.", icon=":material/flag:")


def _map_of(choice_id: str) -> str | None:
    """Return the id of the finished `map` run to draw.

    If the selection has no map, show the run that makes one or offer to start it, and return None.
    """
    map_ids = [run.id for run in runs.listed("map") if run.manifest.config["selection"] == run_of(choice_id)]
    drawing = runs.state(map_ids[0]) if map_ids else None
    if drawing is not None and drawing.state != "succeeded":
        run_panel(map_ids[0], "explore.made")
    map_run = maps.of(choice_id)
    if map_run is None and (drawing is None or not drawing.active):
        with st.container(border=True):
            st.subheader("This selection has no map yet", anchor=False)
            st.markdown(
                "A map shows the task corpus and the domain corpus, with the selected sentences in colour. Similar "
                "sentences are close together. The map is made once, from the stored embeddings, and kept."
            )
            _make(choice_id)
    return map_run


def _make(choice_id: str) -> None:
    options = maps.options(choice_id)
    if preferences.expert():
        with st.expander("More options", icon=":material/settings:"):
            options = maps.options(choice_id, **config_form(KINDS["map"].config, MAKING, "explore.make"))
    if pressed("Make the map", "explore.make", type="primary", icon=":material/scatter_plot:"):
        runs.start("map", options)
        st.rerun()
    same_command("explore.make.command", commands.command("map", options))


def _tabs(choice_id: str) -> None:
    """Draw the tabs; only the open one is computed."""
    drawn = {"Map": _map, "Compare": _compare, "Side by side": _side_by_side, health.TITLE: health.health}
    shown = st.tabs(list(drawn), key=health.TAB, on_change="rerun", bind="query-params")
    for tab, draw in zip(shown, drawn.values(), strict=True):
        if tab.open:
            with tab:
                draw(choice_id)


def _compare(choice_id: str) -> None:
    compare(choice_id, maps.of(choice_id))


def _side_by_side(choice_id: str) -> None:
    if map_run := _map_of(choice_id):
        side_by_side(map_run)


def _map(choice_id: str) -> None:
    map_run = _map_of(choice_id)
    if map_run is None:
        return
    kinds = maps.classes(map_run)
    state.follow_address(map_run)
    asked = controls(map_run)
    state.name_in_address(choice_id, map_run)
    points = regions.region_points(map_run, state.filtered(state.picked(map_run)), kinds)
    with st.container(key="explore-panes"):
        # Always make both columns, because Streamlit redraws a chart whose position on the page changes.
        left, right = st.columns((8, 5))
    with left:
        drawn = map_view.draw(choice_id, map_run, kinds, asked)
    if state.picked(map_run) or st.session_state.get(FILTERS):
        with right.container(key="explore-side"):
            panel.panel(choice_id, map_run, kinds, points)
    panel.rows(choice_id, map_run, kinds, points)
    offer_tagging(choice_id)
    title = "Do this on the command line, or make another map"
    with st.expander(title, icon=":material/terminal:", key="explore.command", on_change="rerun") as more:
        if more.open:  # Commands are drawn on request, because their highlighting loads 1.5 MB of JavaScript.
            _commands(choice_id, map_run)
            _make(choice_id)
    map_view.tell(choice_id, map_run, kinds, drawn, asked)


def _commands(choice_id: str, map_run: str) -> None:
    """Show the shell commands that make this map and export the picked sentences, as the page does."""
    command_lines(commands.command("map", maps.config(map_run)))
    region = state.filtered(state.picked(map_run))
    if token := regions.region_token(region):
        st.caption(
            "This command writes the picked sentences as text. For other formats, end the file name in .jsonl or "
            ".parquet."
        )
        name = f"{regions.region_file(choice_id, map_run, region)}.txt"
        command_lines(regions.region_command(choice_id, token, name))


main()
