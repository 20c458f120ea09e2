"""One look for every figure. Colours: Okabe and Ito's, safe for colour-blind readers, one a role on every page."""

from collections.abc import Mapping
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
DASHES: Mapping[str, str] = {"T_C": "dash", "S_C": "solid", "D_C": "dot", "L_C": "dashdot"}
ENTITY_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8F8F8F")
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


def plain(text: str) -> str:
    """A user's text as plotly shows it letter by letter: plotly reads a little HTML."""
    return escape(text, quote=False)


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
