"""Figures of the page Corpora, drawn with Vega-Lite.

Every new browser tab opens this page. Plotly would be six times as large to load.
"""

from collections.abc import Mapping
from itertools import pairwise

from core.charts import (
    COLOURS,
    ENTITY_COLOURS,
    HEADROOM,
    INK,
    Spec,
    binned,
    layered,
    length_edges,
    number,
    quantile,
    shade,
    upright,
)
from core.results import IntArray


def length_histogram(counts: IntArray, role: str, *, dark: bool = False) -> Spec:
    """Draw a histogram of sentence lengths.

    counts: how many sentences have 0, 1, 2, ... tokens. role: T_C, D_C, L_C or S_C; it decides the colour.
    """
    edges = length_edges(counts, 30)
    heights = binned(counts, edges).tolist()
    rows = [
        {"low": low, "high": high, "n": n, "span": f"{low + 0.5:.0f} to {high - 0.5:.0f}"}
        for (low, high), n in zip(pairwise(edges.tolist()), heights, strict=True)
    ]
    rows[-1]["span"] = f"{edges[-2] + 0.5:.0f} or more"
    bars: Spec = {
        "data": {"values": rows},
        "mark": {"type": "bar", "color": shade(COLOURS[role], dark=dark)},
        "encoding": {
            "x": number(
                "low", "tokens per sentence", bin={"binned": True}, scale={"nice": False}, axis={"grid": False}
            ),
            "x2": {"field": "high"},
            "y": number("n", "sentences", scale={"domain": [0, HEADROOM * max(*heights, 1)]}),
            "tooltip": [{"field": "span", "title": "tokens"}, number("n", "sentences", format=",d")],
        },
    }
    layers = [bars]
    if counts.any():
        median = quantile(counts, 0.5)
        layers.append(upright(median, f"median {median:.0f}", [2, 3], left=bool(median < edges[-1] / 2), dark=dark))
    return layered(layers, 230, dark=dark)


def type_bars(types: Mapping[str, int], limit: int = 12, *, dark: bool = False) -> Spec:
    """Draw the number of entities per type, most frequent first. The types beyond the first `limit` share a bar."""
    ordered = sorted(types.items(), key=lambda item: -item[1])
    shown, rest = ordered[:limit], ordered[limit:]
    if rest:
        shown.append((f"{len(rest)} more types", sum(n for _, n in rest)))
    colours = [shade(colour, dark=dark) for colour in ENTITY_COLOURS]
    rows = [{"name": name, "n": n, "colour": colours[i % len(colours)]} for i, (name, n) in enumerate(shown)]
    top = max((n for _, n in shown), default=1)
    # Force all labels. With Streamlit's theme, Vega would leave out labels that are close to each other.
    named = {"labelLimit": 200, "labelOverlap": False}
    encoding: Spec = {
        "x": number("n", "entities", scale={"domain": [0, 1.15 * top]}),
        "y": {"field": "name", "type": "nominal", "title": None, "sort": None, "axis": named},
        "tooltip": [{"field": "name", "title": "type"}, number("n", "entities", format=",d")],
    }
    written = {"type": "text", "align": "left", "dx": 4, "color": shade(INK, dark=dark)}
    layers: list[Spec] = [
        {"mark": "bar", "encoding": {"color": {"field": "colour", "scale": None, "legend": None}}},
        {"mark": written, "encoding": {"text": number("n", "entities", format=",d")}},
    ]
    bars: Spec = {"data": {"values": rows}, "encoding": encoding, "layer": layers}
    return layered([bars], 70 + 22 * max(len(rows), 1), dark=dark)
