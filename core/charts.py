"""One look for every figure. Colours: Okabe and Ito's, safe for colour-blind readers, one a role on every page."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from core.results import FloatArray, IntArray

# Each reads on white and on near-black alike; the dash doubles the colour wherever lines meet.
COLOURS: Mapping[str, str] = {
    "T_C": "#E69F00",
    "S_C": "#0072B2",
    "D_C": "#8F8F8F",
    "L_C": "#009E73",
    "filtered": "#8F8F8F",
    "cut": "#D55E00",
}
DASHES: Mapping[str, list[int]] = {"T_C": [6, 3], "S_C": [1, 0], "D_C": [2, 2], "L_C": [8, 3, 2, 3]}
ENTITY_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8F8F8F")
# For many names at once; a label on the map or the tooltip says which is which where two are alike to an eye.
NAME_COLOURS = (*ENTITY_COLOURS[:-1], "#A8324E", "#8A8A1F", "#7B6FD0", "#7DB93B", "#8B5A2B", "#B04FC4")
INK, DARK_INK = "#31333f", "#e6e6e6"  # what charts write in
ON_DARK: Mapping[str, str] = {  # too dim there, and what then gives way
    "#0072B2": "#56B4E9", "#56B4E9": "#F0E442", INK: DARK_INK,
}  # fmt: skip
HEADROOM = 1.12  # of the largest value: what is written at an upright line's end stands over it
Spec = dict[str, object]  # of a chart, in Vega-Lite's words
_GRID = "rgba(128, 128, 128, 0.25)"


def figure(height: int, *, x: str, y: str) -> go.Figure:
    """An empty figure with named axes that leaves background and text colour to the page's theme."""
    fig = go.Figure()
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        bargap=0.04,
        dragmode=False,
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )
    axis = {"gridcolor": _GRID, "zeroline": False, "automargin": True, "fixedrange": True}
    fig.update_xaxes(title=x, showgrid=False, **axis)
    fig.update_yaxes(title=y, **axis)
    return fig


def dressed(fig: go.Figure, *, dark: bool) -> go.Figure:
    """The same figure in the ink and the colours of a page's theme."""
    ink = DARK_INK if dark else INK
    fig.update_layout(font_color=ink, legend_font_color=ink, hoverlabel_font_color=ink)
    fig.update_xaxes(tickfont_color=ink, title_font_color=ink)
    fig.update_yaxes(tickfont_color=ink, title_font_color=ink)
    return go.Figure(_repainted(fig.to_plotly_json())) if dark else fig


def _repainted(value: object, key: str = "") -> object:
    """`value` with `ON_DARK`'s colours, under keys that name a colour alone: a user's text may be anything."""
    if isinstance(value, dict):
        return {name: _repainted(item, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repainted(item, key) for item in value]
    return ON_DARK.get(value, value) if isinstance(value, str) and key.endswith("color") else value


def shade(colour: str, *, dark: bool) -> str:
    """The same colour as a page's theme has it."""
    return ON_DARK.get(colour, colour) if dark else colour


def number(field: str, title: str, **more: object) -> Spec:
    """A field that holds numbers, as Vega-Lite draws it on an axis or names it under a mouse."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def layered(layers: Sequence[Spec], height: int, *, dark: bool) -> Spec:
    """Vega-Lite's layers as one chart, in the ink of a page's theme."""
    ink = shade(INK, dark=dark)
    inked = {"labelColor": ink, "titleColor": ink}
    config = {"axis": inked, "legend": inked | {"labelLimit": 400}}
    return {"layer": list(layers), "height": height, "config": config}


def upright(x: float, words: str, dash: Sequence[int], *, left: bool, dark: bool) -> Spec:
    """A line at `x` with words at its upper end. left: `x` lies on the left half, so they stand on its right."""
    side = {"align": "left", "dx": 6} if left else {"align": "right", "dx": -6}
    text = {"type": "text", "baseline": "top", "fontSize": 12, "color": shade(INK, dark=dark)} | side
    return {
        "data": {"values": [{"x": x, "words": words}]},
        "encoding": {"x": {"field": "x", "type": "quantitative"}},
        "layer": [
            {"mark": {"type": "rule", "color": COLOURS["cut"], "strokeWidth": 2, "strokeDash": list(dash)}},
            {"mark": text, "encoding": {"y": {"value": 0}, "text": {"field": "words"}}},
        ],
    }


def css_colour(colour: str) -> str:
    """The same colour for HTML, where the browser knows the theme."""
    return f"light-dark({colour},{ON_DARK[colour]})" if colour in ON_DARK else colour


def plain(text: str) -> str:
    """A user's text as plotly shows it letter by letter: plotly reads a little HTML."""
    return escape(text, quote=False)


def labels(names: Iterable[str], most: int = 40) -> dict[str, str]:
    """{name: what an axis or legend calls it}: at most `most` letters, no two alike, letter by letter (`plain`)."""
    short_names: dict[str, str] = {}
    for name in dict.fromkeys(names):
        short = name if len(name) <= most else f"{name[: most - 1].rstrip()}…"
        twins = sum(label.startswith(plain(short)) for label in short_names.values())
        short_names[name] = plain(short) if not twins or short == name else f"{plain(short)} ({twins + 1})"
    return short_names


def length_edges(lengths: IntArray, bins: int) -> FloatArray:
    """`(b + 1,)` whole-numbered borders up to the 99th percentile; what is longer goes into the last bin."""
    top = max(int(np.percentile(lengths, 99)) if len(lengths) else 1, 2)
    width = max(-(-top // bins), 1)
    return np.arange(0, top + width + 1, width, dtype=np.float64) + 0.5


def binned(lengths: IntArray, edges: FloatArray) -> IntArray:
    """`(b,)` sentences a bin."""
    bins = len(edges) - 1
    index = np.clip((lengths - 1) // int(edges[1] - edges[0]), 0, bins - 1)  # five times np.histogram's speed
    return np.bincount(index, minlength=bins)
