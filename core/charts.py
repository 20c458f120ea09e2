"""Colours and theme of all figures.

The colours of the corpora's roles come from Okabe and Ito's palette, which is safe for colour-blind readers.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from core.results import FloatArray, IntArray

# All colours are readable on white and on near-black. Lines also differ by their dashes.
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
# Colours for up to twelve names. Some look alike; labels on the map and tooltips tell these names apart.
NAME_COLOURS = (*ENTITY_COLOURS[:-1], "#A8324E", "#8A8A1F", "#7B6FD0", "#7DB93B", "#8B5A2B", "#B04FC4")
INK, DARK_INK = "#31333f", "#e6e6e6"  # colour of text

ON_DARK: Mapping[str, str] = {  # {colour that is too dim on dark pages: its replacement}
    "#0072B2": "#56B4E9", "#56B4E9": "#F0E442", INK: DARK_INK,
}  # fmt: skip
# Ratio of an axis's upper end to the largest value. The space above the values is for labels of vertical lines.
HEADROOM = 1.12
Spec = dict[str, object]  # a Vega-Lite chart or a part of it
_GRID = "rgba(128, 128, 128, 0.25)"


def figure(height: int, *, x: str, y: str) -> go.Figure:
    """Return an empty figure with named axes. The page's theme sets the colours of background and text."""
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
    """Return the figure with the colours of the page's theme. dark: True for the dark theme."""
    ink = DARK_INK if dark else INK
    fig.update_layout(font_color=ink, legend_font_color=ink, hoverlabel_font_color=ink)
    fig.update_xaxes(tickfont_color=ink, title_font_color=ink)
    fig.update_yaxes(tickfont_color=ink, title_font_color=ink)
    return go.Figure(_repainted(fig.to_plotly_json())) if dark else fig


def _repainted(value: object, key: str = "") -> object:
    """Return part of a figure with its colours replaced by those of the dark theme (`ON_DARK`).

    Only values whose key ends in "color" are replaced, because other text may come from users.
    """
    if isinstance(value, dict):
        return {name: _repainted(item, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repainted(item, key) for item in value]
    return ON_DARK.get(value, value) if isinstance(value, str) and key.endswith("color") else value


def shade(colour: str, *, dark: bool) -> str:
    """Return `colour`, or its replacement (`ON_DARK`) if the page has the dark theme."""
    return ON_DARK.get(colour, colour) if dark else colour


def number(field: str, title: str, **more: object) -> Spec:
    """Return Vega-Lite's encoding of a numeric field, for an axis or a tooltip."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def layered(layers: Sequence[Spec], height: int, *, dark: bool) -> Spec:
    """Combine Vega-Lite layers into one chart, with text in the colour of the page's theme."""
    ink = shade(INK, dark=dark)
    inked = {"labelColor": ink, "titleColor": ink}
    config = {"axis": inked, "legend": inked | {"labelLimit": 400}}
    return {"layer": list(layers), "height": height, "config": config}


def upright(x: float, words: str, dash: Sequence[int], *, left: bool, dark: bool) -> Spec:
    """Return a vertical line at `x`, with `words` at its top, as a layer of a Vega-Lite chart.

    dash: lengths of dashes and gaps. left: True if `x` is in the left half of the chart, so that the words go to the
    right of the line.
    """
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
    """Return a colour as CSS that the browser adapts to the theme."""
    return f"light-dark({colour},{ON_DARK[colour]})" if colour in ON_DARK else colour


def plain(text: str) -> str:
    """Escape a user's text for plotly, which interprets some HTML."""
    return escape(text, quote=False)


def labels(names: Iterable[str], most: int = 40) -> dict[str, str]:
    """Return {name: label} for an axis or legend. Labels are unique, escaped, and cut to about `most` letters."""
    short_names: dict[str, str] = {}
    for name in dict.fromkeys(names):
        short = name if len(name) <= most else f"{name[: most - 1].rstrip()}…"
        twins = sum(label.startswith(plain(short)) for label in short_names.values())
        short_names[name] = plain(short) if not twins or short == name else f"{plain(short)} ({twins + 1})"
    return short_names


def length_edges(counts: IntArray, bins: int) -> FloatArray:
    """Return the edges `(b + 1,)` of about `bins` bins for a histogram of sentence lengths.

    All bins have the same integer width and together reach the 99th percentile. `binned` counts longer sentences in
    the last bin. counts: how many sentences have 0, 1, 2, ... tokens.
    """
    top = max(int(quantile(counts, 0.99)) if counts.any() else 1, 2)
    width = max(-(-top // bins), 1)
    return np.arange(0, top + width + 1, width, dtype=np.float64) + 0.5


def binned(counts: IntArray, edges: FloatArray) -> IntArray:
    """Return the number of sentences per bin, `(b,)`.

    counts: how many sentences have 0, 1, 2, ... tokens. edges: result of `length_edges`.
    """
    bins = len(edges) - 1
    index = np.clip((np.arange(len(counts)) - 1) // int(edges[1] - edges[0]), 0, bins - 1)
    return np.bincount(index, weights=counts, minlength=bins).astype(np.int64)


def quantile(counts: IntArray, share: float) -> float:
    """Return a quantile of the integers whose counts are given, interpolated as by `np.quantile`.

    counts: how often 0, 1, 2, ... occur; not all are 0. share: which quantile, 0 to 1, such as 0.5 for the median.
    """
    upto = counts.cumsum()
    place = share * (int(upto[-1]) - 1)
    low, high = np.searchsorted(upto, (np.floor(place), np.ceil(place)), side="right")
    return float(low + (high - low) * (place % 1))
