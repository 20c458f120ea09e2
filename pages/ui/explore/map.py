"""The map of a selection, with its colours, tooltips and picked points, and the histogram of scores."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import streamlit as st

from core import charts
from core.explore import plot, regions
from core.explore import view as maps
from core.explore.regions import Region
from core.explore.result import CLASSES
from core.explore.zoom_names import WIDTHS
from core.paths import home
from core.results import BoolArray, IntArray
from core.selection import view as selections
from core.shown import count
from core.terms import plainly
from pages.ui.explore import state
from pages.ui.explore.controls import MOST_DRAWN, Colouring, Controls
from pages.ui.explore.state import packed, tooltips
from pages.ui.frame import ASSETS, guard
from pages.ui.widgets import budget_words, chart, is_dark


def scores(map_run: str, points: IntArray) -> None:
    """Draw a histogram of the scores on the map, with `points` highlighted, and a slider that picks a range."""
    values = regions.scores_on_map(map_run, np.arange(len(maps.get(map_run))))
    # Without two different scores there is no range to pick, and a slider needs two different ends.
    if len(values) < 2 or values.min() == values.max():
        return
    region = state.filtered(state.picked(map_run))
    low, high = float(values.min()), float(values.max())
    picked = regions.scores_on_map(map_run, points) if region else values[:0]
    unit = selections.scored(maps.get(map_run).selection).scores.unit
    name = f"Scores of {count(len(values), 'sentence')} on the map, {len(picked):,} of them picked"
    # Each pick changes the key, which removes the box that the user drew. The colour of the bars shows the range.
    bars = f"explore.scores.{map_run[-4:]}.{state.nth()}"
    chart(
        plot.picked_scores(values, picked, unit),
        bars,
        name,
        on_select=lambda: _dragged(map_run, bars, (low, high)),
        selection_mode="box",
    )
    st.caption("Drag over the bars to pick a range.")
    _slider(map_run, state.part(region, "score"), (low, high))


def _slider(map_run: str, region: Region | None, span: tuple[float, float]) -> None:
    low, high = span
    now = tuple(region["value"]) if region else span
    key = f"explore.range.{map_run[-4:]}.{state.nth()}"

    def chosen() -> None:
        state.pick(map_run, "score", [float(bound) for bound in st.session_state[key]])

    st.slider(
        "Pick a range of scores",
        low,
        high,
        (max(low, now[0]), min(high, now[1])),
        (high - low) / 200,
        format="%.3g",
        key=key,
        on_change=chosen,
    )


def _dragged(map_run: str, key: str, span: tuple[float, float]) -> None:
    """Pick the range of scores under the box that the user drew. A box beside the bars picks nothing.

    key: key of the chart. span: lowest and highest score.
    """
    for box in st.session_state[key].selection.box[:1]:
        first, last = (min(max(float(end), span[0]), span[1]) for end in sorted(box["x"]))
        if first < last:
            state.pick(map_run, "score", [first, last])


KEY = "explore-map"
COLUMNS = ("doc", "file", "group")  # colourings by a column that every import stores

MOST_HOVERED = 20_000  # number of drawn points above which only some get a tooltip, because tooltips are large

# {colour of the topic words: colour behind them}
PAPER = {
    "#31333f": "rgba(255, 255, 255, 0.6)",
    "#e6e6e6": "rgba(14, 17, 23, 0.6)",
}
WHEEL = {"scrollZoom": True, "displayModeBar": True, "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d"]}
_names = st.components.v2.component("winnow_names", js=(ASSETS / "names.js").read_text(encoding="utf-8"))
_bridge = st.components.v2.component("winnow_map", js=(ASSETS / "map.js").read_text(encoding="utf-8"))


def _picture(map_run: str) -> dict[str, Any]:
    """Return the Plotly options of the map, which include the file format of a saved picture."""
    form = st.session_state.get("explore.picture", "png")
    return WHEEL | {"toImageButtonOptions": {"format": form, "filename": f"map-{map_run[-4:]}", "scale": 3}}


def draw(choice_id: str, map_run: str, kinds: IntArray, asked: Controls) -> IntArray:
    """Draw the map and its caption, and return the points that are drawn.

    kinds: class of each sentence on the map. asked: result of `controls`.
    """
    key = f"{KEY}-{map_run[-4:]}-{state.turn()}"
    data = _data(choice_id, map_run, asked)
    view = _view(data, map_run)
    fig, drawn = _figure(data, view, kinds)
    with st.container(key=KEY):
        _bridged(map_run)
        st.plotly_chart(
            fig,
            key=key,
            height="stretch",
            config=_picture(map_run),
            alt=_alt(map_run, kinds, drawn),
            on_select=lambda: state.take(map_run, key),
            selection_mode=("points", "lasso", "box"),
        )
    _caption(map_run, len(drawn), asked[1])
    return drawn


def _data(choice_id: str, map_run: str, asked: Controls) -> tuple[Any, ...]:
    """Return all values on which the figure depends, as the key of its cache entry."""
    by, n, query, mode, layers, column = asked
    tagged = "".join(run.id for run in maps.tag_runs(choice_id)) if by == "entities" else ""
    return (
        # All projects share the server's cache, so the key contains the project's folder.
        str(home()),
        map_run,
        state.stamp(choice_id) + tagged,
        by,
        min(n, MOST_DRAWN),
        query,
        mode,
        layers,
        column,
        is_dark(),
        _faded(map_run),
    )


def tell(choice_id: str, map_run: str, kinds: IntArray, drawn: IntArray, asked: Controls) -> None:
    """Send the browser the tooltips of the drawn points and the topic names that it shows after a zoom.

    Call this at the end of the page, because both need the text of many sentences. asked: result of `controls`.
    """
    tooltips(
        "explore.tooltips", _tooltip_component((str(home()), map_run, state.stamp(choice_id), len(drawn)), kinds, drawn)
    )
    levels = zip(WIDTHS, maps.zoom_names(map_run), strict=True) if "words" in asked[4] else ()
    _names(
        key="explore.names",
        data={
            "chart": KEY,
            "spans": [float(np.ptp(axis)) for axis in maps.get(map_run).xy[:2]],
            "levels": [{"width": width, "names": [asdict(name) for name in names]} for width, names in levels],
        },
        height=1,
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _tooltip_component(data: tuple[Any, ...], _kinds: IntArray, _drawn: IntArray) -> bytes:
    """Return the packed text of the tooltips. data: all values on which the text depends, as the cache key."""
    points = _drawn[_hovered(_kinds[_drawn])]
    names = [plainly(CLASSES[kind]) for kind in _kinds[points].tolist()]
    return packed(KEY, points, plot.hover_lines(names, maps.hover(data[1], points)))


def _hovered(kinds: IntArray) -> BoolArray:
    """Return a mask of the points with a tooltip: all points, or above `MOST_HOVERED` only T_C and S_C.

    kinds: class of each point.
    """
    return np.full(len(kinds), True) if len(kinds) <= MOST_HOVERED else kinds != 2


def _view(data: tuple[Any, ...], map_run: str) -> plot.View:
    """Return the zoom and the outlines with which to build the figure.

    For the same `data`, return the same view even after the user has zoomed or drawn a lasso. Otherwise the figure
    would be redrawn, although the browser shows these changes already.
    """
    baked = st.session_state.get(state.BAKED)
    fresh = (data, state.turn())
    # If the bridge has no state, the user has left the page meanwhile, and the browser has lost its zoom and lasso.
    if baked is None or baked[0] != fresh or "explore.bridge" not in st.session_state:
        zoom = st.session_state.get(state.ZOOM) or {}
        region = state.picked(map_run)
        view = plot.View(zoom=zoom.get(map_run), outlines=state.outlines(region))
        baked = st.session_state[state.BAKED] = (fresh, view)
    return baked[1]


@st.cache_resource(max_entries=6, show_spinner="Drawing the map")
def _figure(data: tuple[Any, ...], view: plot.View, _kinds: IntArray) -> tuple[Any, IntArray]:
    """Return the figure and the points that it draws. data: result of `_data`."""
    _, map_run, _, by, n, query, mode, layers, column, dark, shown = data
    mapped = maps.get(map_run)
    points = maps.get(map_run).draw(_kinds, n)
    kinds = _kinds[points]
    drawn = plot.Dots(
        x=mapped.xy[0][points], y=mapped.xy[1][points], points=points, kinds=kinds, hovered=_hovered(kinds)
    )
    if by == "class":
        fig = plot.by_class(drawn, np.bincount(_kinds, minlength=3).tolist(), view)
    else:
        fig = _coloured(by, column, map_run, drawn, view)
    behind = np.full(len(mapped), True)
    if shown:
        inside = regions.region_points(map_run, json.loads(shown), _kinds)
        plot.fade_others(fig, inside)
        behind = np.isin(np.arange(len(mapped)), inside)
    behind[points] = False
    if behind.any():
        colours = [look.colour if by == "class" else charts.COLOURS["filtered"] for look in plot.CLASS_LOOKS]
        shades = [charts.shade(colour, dark=dark) for colour in colours]
        plot.backdrop(fig, mapped.xy[0][behind], mapped.xy[1][behind], _kinds[behind], shades)
    if query:
        plot.mark(fig, drawn, maps.search(map_run, query, mode).points, "found")
    if "density" in layers:
        plot.density_lines(fig, mapped.xy[0], mapped.xy[1], _kinds)
    if "words" in layers:
        names = [cluster.name for cluster in mapped.clusters]
        plot.label_topics(fig, drawn.x, drawn.y, mapped.cluster[points], names)
        ink = charts.DARK_INK if dark else charts.INK
        fig.update_annotations(bgcolor=PAPER[ink], arrowcolor=ink, opacity=0.9)
    return charts.dressed(fig, dark=dark), points


def _faded(map_run: str) -> str:
    """Return the picked regions as JSON; the figure fades all points outside of them. Return "" to fade no points.

    A lasso, a box and a clicked point are left out, because the browser shows them without a new figure.
    """
    kinds = (*regions.SHAPES, "point")
    parts = [part for part in regions.parts(state.picked(map_run)) if part["kind"] not in kinds]
    return json.dumps(regions.joined(parts)) if parts else ""


def _coloured(by: Colouring, column: str, map_run: str, drawn: plot.Dots, view: plot.View) -> Any:
    """Return the figure of the map with any colouring but "class".

    column: the corpus's column that gives the colours if `by` is "column".
    """
    points = drawn.points
    if by == "score":
        unit = selections.scored(maps.get(map_run).selection).scores.unit
        return plot.by_value(drawn, maps.colour_numbers(map_run, points, "score"), unit, view)
    if by == "length":
        return plot.by_value(drawn, maps.colour_numbers(map_run, points, "length"), "tokens", view)
    if by == "page":
        return plot.by_value(drawn, maps.colour_numbers(map_run, points, "page"), "page", view)
    if by == "entities":
        return plot.by_value(drawn, maps.entity_counts(map_run, points), "predicted entities", view)
    if by == "column":
        return _by_column(column, map_run, drawn, view)
    return plot.by_name(drawn, maps.colour_names(map_run, points, by), view, by if by in COLUMNS else None)


def _by_column(column: str, map_run: str, drawn: plot.Dots, view: plot.View) -> Any:
    """Return the figure of the map coloured by a column of the imported files, on a colour scale if it is numeric."""
    if maps.further_columns(map_run)[column]:
        return plot.by_value(drawn, maps.column_numbers(map_run, drawn.points, column), column, view)
    return plot.by_name(drawn, maps.column_names(map_run, drawn.points, column), view, column)


@st.fragment
def _bridged(map_run: str) -> None:
    """Receive zooms and clicks from the browser. As a fragment, it keeps a zoom from rerunning the whole page."""
    with guard():
        event = _bridge(
            key="explore.bridge",
            data={"chart": KEY},
            height=1,
            on_zoom_change=lambda: None,
            on_click_change=lambda: None,
            on_legend_change=lambda: None,
        )
        if event.zoom is not None or "zoom" in event:
            zoom = event.zoom
            st.session_state[state.ZOOM] = {map_run: tuple(zoom) if zoom else None}
        if event.click is not None:
            state.pick(map_run, "point", int(event.click))
            st.rerun(scope="app")
        if event.legend is not None and (region := regions.checked(*event.legend)):
            state.toggle(map_run, region)
            st.rerun(scope="app")


def _alt(map_run: str, kinds: IntArray, drawn: IntArray) -> str:
    counts = ", ".join(f"{of:,} {name}" for name, (_, of) in maps.class_counts(drawn, kinds).items())
    return (
        f"Map of {count(len(drawn), 'sentence')}, similar ones close together. On the map: {counts}. "
        "The table below lists the same sentences."
    )


def _caption(map_run: str, drawn: int, asked: int) -> None:
    mapped = maps.get(map_run)
    parts = [f"{drawn:,} shown of {len(mapped):,}"]
    if drawn < len(mapped):
        parts[0] += f", stratified by class, seed {mapped.seed}; the shaded area behind them shows the others"
        parts.append("a lasso also picks sentences that are not drawn")
    if len(mapped) < mapped.of:
        parts.append(f"the map has {len(mapped):,} of {count(mapped.of, 'sentence')}")
    if asked > MOST_DRAWN:
        parts.append(f"you asked for {asked:,}, but browsers are slow above {MOST_DRAWN:,}")
    if drawn > MOST_HOVERED:
        parts.append("on a map of this size, sentences that are not selected have no tooltip")
    parts.append(f"selected: {budget_words(selections.kept_budget(mapped.selection))}")
    st.caption(". ".join(part[:1].upper() + part[1:] for part in parts) + ".")
