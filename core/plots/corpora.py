"""Figures of `1_Corpora`."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from core.plots.theme import COLOURS, ENTITY_COLOURS, binned, figure, length_edges, plain
from core.results import IntArray


def length_histogram(lengths: IntArray, role: str) -> go.Figure:
    """Sentences by length, `lengths` `(n,)` in tokens, in the colour of `role` (T_C, D_C, L_C, S_C)."""
    edges = length_edges(lengths, 30)
    counts = binned(lengths, edges)
    spans = [f"{low + 0.5:.0f} to {high - 0.5:.0f}" for low, high in pairwise(edges)]
    spans[-1] = f"{edges[-2] + 0.5:.0f} or more"
    fig = figure(230, x="tokens a sentence", y="sentences")
    fig.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        customdata=spans,
        marker={"color": COLOURS[role], "line": {"width": 0}},
        hovertemplate="%{customdata} tokens: %{y:,} sentences<extra></extra>",
    )
    if len(lengths):
        median = float(np.median(lengths))
        fig.add_vline(x=median, line={"dash": "dot", "width": 1.5, "color": COLOURS["cut"]})
        fig.add_annotation(x=median, y=1, yref="paper", yanchor="bottom", text=f"median {median:.0f}", showarrow=False)
    return fig


def type_bars(types: Mapping[str, int], limit: int = 12) -> go.Figure:
    """Entities a type, the most frequent first; the rest in one bar."""
    ordered = sorted(types.items(), key=lambda item: -item[1])
    shown, rest = ordered[:limit], ordered[limit:]
    names = [plain(name) for name, _ in shown] + ([f"{len(rest)} more types"] if rest else [])
    counts = [n for _, n in shown] + ([sum(n for _, n in rest)] if rest else [])
    fig = figure(70 + 22 * max(len(names), 1), x="entities", y="")
    fig.add_bar(
        x=counts,
        y=names,
        orientation="h",
        text=[f"{n:,}" for n in counts],
        textposition="outside",
        cliponaxis=False,
        marker={"color": [ENTITY_COLOURS[i % len(ENTITY_COLOURS)] for i in range(len(names))]},
        hovertemplate="%{y}: %{x:,} entities<extra></extra>",
    )
    fig.update_xaxes(range=[0, 1.15 * max(counts, default=1)])
    fig.update_yaxes(autorange="reversed", type="category", showgrid=False)
    return fig
