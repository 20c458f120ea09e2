"""The regions that the user picked on the map, stored in the session and the URL, and tooltips of points."""

import json
from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.errors import WinnowError
from core.explore import regions
from core.explore import view as maps
from core.explore.view import Mode
from core.results import IntArray
from core.selection import insights
from core.selection import view as selections
from pages.ui import choice
from pages.ui.frame import ASSETS
from pages.ui.selection.chosen import REASONS
from pages.ui.widgets import plain

_tooltip_component = st.components.v2.component(
    "winnow_tooltips", js=(ASSETS / "tooltips.js").read_text(encoding="utf-8")
)


def packed(chart: str, points: IntArray, lines: Sequence[str]) -> bytes:
    """Return the tooltips of a chart, encoded for the function `tooltips`.

    chart: key of the chart. points: `customdata` of the points. lines: text of each point's tooltip.
    """
    return json.dumps({"chart": chart, "points": points.tolist(), "lines": lines}, ensure_ascii=False).encode()


def tooltips(key: str, data: bytes) -> None:
    """Send tooltips of a chart to the browser. data: result of `packed`, which the caller caches."""
    _tooltip_component(key=key, data=data, height=1)


LIST = "explore-sentences"  # HTML id of the start of the list of sentences, below the map
PICKED, NTH, TURN = "explore.picked", "explore.nth", "explore.turn"
ZOOM, BAKED, SEARCHED, ADDRESS = "explore.zoom", "explore.baked", "explore.searched", "explore.address"


class Region(regions.Region):
    """A region that the user picked. map: id of the `map` run on which it was picked."""

    map: str


def picked(map_run: str) -> Region | None:
    """Return what the user has picked on this map, also after a reload; None for nothing.

    The pick may combine several regions.
    """
    region: Region | None = st.session_state.get(PICKED)
    if region is None or region["map"] != map_run:
        kept = regions.kept_region(map_run)
        region = st.session_state[PICKED] = Region(map=map_run, **kept) if kept else None
    return region


def pick(map_run: str, kind: str, value: Any) -> None:
    """Add a region to the pick, which narrows it. The region replaces an earlier one of the same kind.

    kind: lasso, box, point, topic, class, score, column or hits. A lasso and a box replace each other.
    """
    replaced = regions.SHAPES if kind in regions.SHAPES else (kind,)
    _keep(map_run, [*_others(map_run, *replaced), regions.Region(kind=kind, value=value)])


def toggle(map_run: str, region: regions.Region) -> None:
    """Add a region to the pick, or remove it if the pick has it already."""
    if part(picked(map_run), region["kind"]) == region:
        drop(map_run, region["kind"])
    else:
        pick(map_run, **region)


def drop(map_run: str, *kinds: str) -> None:
    """Remove regions of these kinds from the pick. If `kinds` has a lasso or a box, the figure is redrawn."""
    _keep(map_run, _others(map_run, *kinds))
    if not {*kinds}.isdisjoint(regions.SHAPES):
        st.session_state[TURN] = turn() + 1


def _others(map_run: str, *kinds: str) -> list[regions.Region]:
    return [part for part in regions.parts(picked(map_run)) if part["kind"] not in kinds]


def _keep(map_run: str, parts: Sequence[regions.Region]) -> None:
    region = regions.joined(parts)
    st.session_state[PICKED] = Region(map=map_run, **region) if region else None
    regions.keep_region(map_run, region)
    st.session_state[NTH] = nth() + 1
    st.session_state["explore.page"] = 0


def part(region: regions.Region | None, *kinds: str) -> regions.Region | None:
    """Return the first region of a pick that has one of these kinds, or None."""
    return next((each for each in regions.parts(region) if each["kind"] in kinds), None)


def filtered(region: regions.Region | None) -> regions.Region | None:
    """Return the pick without the clicked point. The table lists this pick, and the buttons act on it."""
    return regions.joined([each for each in regions.parts(region) if each["kind"] != "point"])


def pick_named(map_run: str, token: str) -> None:
    """Pick a named lasso or box, and redraw the figure with its outline. token: its encoding, see `regions`."""
    for each in regions.parts(regions.region_of(map_run, token)):
        pick(map_run, **each)
    st.session_state[TURN] = turn() + 1


def searched(map_run: str, query: str, mode: Mode) -> None:
    """Pick the hits of a search, but only once per search, so that a later pick is not overwritten."""
    search = (query, mode) if query else None
    if search == st.session_state.get(SEARCHED):
        return
    st.session_state[SEARCHED] = search
    if search and len(maps.search(map_run, query, mode).points):
        pick(map_run, "hits", search)
    elif part(picked(map_run), "hits"):
        drop(map_run, "hits")


def clear() -> None:
    """Clear the pick. The figure gets a new key, because only that removes an outline in the browser."""
    _forget()
    st.session_state[NTH] = nth() + 1
    st.session_state[TURN] = turn() + 1
    st.session_state["explore.page"] = 0


def _forget() -> None:
    if region := st.session_state.pop(PICKED, None):
        regions.keep_region(region["map"], None)


def follow_address(map_run: str) -> None:
    """Pick the region in the URL, or show an error if it does not exist."""
    token = st.query_params.get("region", "")
    # Follow a URL only once, so that a later pick is not overwritten.
    if not token or token == st.session_state.get(ADDRESS):
        return
    st.session_state[ADDRESS] = token
    try:
        region = regions.region_of(map_run, token)
        _keep(map_run, regions.parts(region))
    except WinnowError as error:
        st.warning(plain(str(error)), icon=":material/link_off:")


def name_in_address(choice_id: str, map_run: str) -> None:
    """Put the pick and its selection into the URL."""
    token, named = regions.region_token(picked(map_run)), st.query_params.get("region", "")
    st.session_state[ADDRESS] = token
    if token and (token, choice_id) != (named, st.query_params.get("choice")):
        choice.take(choice_id)
        st.query_params["region"] = token
    elif named and not token:
        del st.query_params["region"]


def turn() -> int:
    """Return how often the map was forced to redraw so far. The figure's key contains this number."""
    return int(st.session_state.get(TURN, 0))


def nth() -> int:
    """Return the number of picks so far. A widget whose key contains it is reset at each pick."""
    return int(st.session_state.get(NTH, 0))


def take(map_run: str, key: str) -> None:
    """Pick the lasso, box or clicked point that the browser sent for the figure `key`.

    An empty selection removes a picked lasso, box or point.
    """
    selection = st.session_state[key].selection
    lassos = [list(zip(shape["x"], shape["y"], strict=True)) for shape in selection.lasso]
    boxes = [[*sorted(shape["x"]), *sorted(shape["y"])] for shape in selection.box]
    if lassos or boxes:
        pick(map_run, "lasso" if lassos else "box", lassos or boxes)
    elif selection.points:
        pick(map_run, "point", int(selection.points[0]["customdata"]))
    elif part(picked(map_run), *regions.SHAPES, "point"):
        _keep(map_run, _others(map_run, *regions.SHAPES, "point"))


def outlines(region: Region | None) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Return the outlines of the picked lassos or boxes as tuples of corners, for a redrawn figure."""
    shape = part(region, *regions.SHAPES)
    if shape is None:
        return ()
    if shape["kind"] == "lasso":
        return tuple(tuple((float(x), float(y)) for x, y in corners) for corners in shape["value"])
    return tuple(((x0, y0), (x1, y0), (x1, y1), (x0, y1)) for x0, x1, y0, y1 in shape["value"])


CLASS_WORDS = {  # {class of `core.explore.result.CLASSES`: description}
    "T_C": "All of the task corpus",
    "selected": "All selected sentences",
    "filtered": "All sentences that are not selected",
}


def words(map_run: str, region: regions.Region | None) -> str:
    """Return a description of a pick in Markdown, such as "Topic leases, Scores from 0.5 to 0.8"."""
    return ", ".join(_part_words(map_run, each) for each in regions.parts(region)) or "The whole map"


def _part_words(map_run: str, region: regions.Region) -> str:
    value = region["value"]
    match region["kind"]:
        case "topic":
            return f"Topic {plain(maps.get(map_run).clusters[value].name)}"
        case "class":
            return CLASS_WORDS[value]
        case "hits":
            return f"Sentences with {plain(value[0])}"
        case "point":
            return "One sentence"
        case "column":
            pairs = value.items()
            return "; ".join(
                f"{plain(column_name(name))}: {plain(_values_words(map_run, name, each))}" for name, each in pairs
            )
        case kind:
            return _drawn_words(map_run, region, kind)


def _values_words(map_run: str, name: str, values: Sequence[str]) -> str:
    """Return the picked values of a column in words; consecutive numbers as a range, such as "2001 to 2005"."""
    numbers = maps.numbers(map_run, name) if len(values) > 2 else []
    if values[0] in numbers and list(values) == numbers[numbers.index(values[0]) :][: len(values)]:
        return f"{values[0]} to {values[-1]}"
    return ", ".join(values)


def column_name(name: str) -> str:
    """Return the name under which users see a column of `maps.group_columns`."""
    return {maps.TOPIC: "topic", "doc": "document"}.get(name, name)


def heading(name: str) -> str:
    """Return the name of a column (see `column_name`) with a capital letter; the other letters stay as imported."""
    shown = column_name(name)
    return shown[:1].upper() + shown[1:]


def _drawn_words(map_run: str, region: regions.Region, kind: str) -> str:
    """Return a range of scores in words, or a lasso or box by its name, if it has one. kind: kind of the region."""
    value = region["value"]
    if kind == "score":
        return f"Scores from {value[0]:.4g} to {value[1]:.4g}"
    called = regions.named_regions(map_run).get(regions.region_token(region))
    return plain(called) if called else f"Your {kind if len(value) == 1 else f'{len(value)} {kind}s'}"


def flagged(choice_id: str, rows: IntArray) -> str:
    """Return the number of flagged sentences per flag in words; "" if none is flagged. rows: rows of D_C.

    A sentence with several flags is counted under one of them.
    """
    counts = insights.flag_counts(choice_id, rows)
    return ", ".join(f"{n:,} {REASONS[flag]}" for flag, n in counts.items() if n)


def stamp(choice_id: str) -> str:
    """Return a value that changes with a selection's budget and hand edits."""
    # Include the time of the last edit, because an undo and a new edit leave the number of edits unchanged.
    history = selections.edits(choice_id).history
    return f"{selections.kept_budget(choice_id)}.{len(history)}.{history[-1].time if history else 0}"
