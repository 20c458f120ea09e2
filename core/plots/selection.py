"""Figures of `3_Selection`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from core.plots.theme import COLOURS, DASHES, binned, figure, length_edges
from core.results import FloatArray, IntArray, Prefer
from core.terms import plainly

BINS = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreBins:
    """All scores of D_C as a histogram, counted once a scoring.

    edges: `(b + 1,)`, from the 0.1st to the 99.9th percentile; what lies outside counts in the outermost bins.
    counts: `(b,)`. log: the bins are of equal width in the logarithm (scores over several magnitudes).
    """

    edges: FloatArray
    counts: IntArray
    log: bool

    def count(self, values: FloatArray) -> IntArray:
        """`(b,)` how many of `values` fall into each bin."""
        counts: IntArray = np.histogram(np.clip(values, self.edges[0], self.edges[-1]), self.edges)[0]
        return counts


def score_bins(values: FloatArray) -> ScoreBins:
    """Bins of `values` `(n,)`; NaN (not scored) is left out."""
    known = values[~np.isnan(values)]
    low, middle, high = np.percentile(known, [0.1, 50, 99.9]) if len(known) else (0.0, 0.5, 1.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    # A long right tail (a median in the lowest twentieth) would put nearly all sentences into one linear bin.
    log = bool(low > 0 and middle < high / 20)
    edges = np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
    bins = ScoreBins(edges=edges, counts=np.zeros(BINS, dtype=np.int64), log=log)
    return ScoreBins(edges=edges, counts=bins.count(known), log=log)


def score_histogram(bins: ScoreBins, chosen: FloatArray, unit: str, prefer: Prefer) -> go.Figure:
    """Selected sentences on top of filtered ones by score, and the line where the budget cuts.

    chosen: `(k,)` the selected sentences' scores, best first.
    """
    inside = bins.count(chosen)
    fig = figure(
        320, x=f"score ({unit}; {'higher' if prefer == 'high' else 'lower'} is closer to the task text)", y="sentences"
    )
    for name, counts, colour in (
        ("selected", inside, COLOURS["S_C"]),
        ("filtered", bins.counts - inside, COLOURS["filtered"]),
    ):
        fig.add_scatter(
            x=bins.edges,
            y=np.append(counts, counts[-1]),
            name=f"{name} ({counts.sum():,})",
            mode="lines",
            line={"shape": "hv", "width": 0.5, "color": colour},
            fillcolor=colour,
            stackgroup="all",
            hovertemplate="from %{x:.4g}: %{y:,} " + name + "<extra></extra>",
        )
    if bins.log:
        fig.update_xaxes(type="log")
    if len(chosen):
        _mark_cut(fig, bins, float(chosen[-1]))
    return fig


def _mark_cut(fig: go.Figure, bins: ScoreBins, cut: float) -> None:
    x = float(np.clip(cut, bins.edges[0], bins.edges[-1]))
    fig.add_vline(x=x, line={"dash": "dash", "width": 2, "color": COLOURS["cut"]})
    left = (x - bins.edges[0]) < (bins.edges[-1] - bins.edges[0]) / 2
    fig.add_annotation(
        x=np.log10(x) if bins.log else x,
        y=0.98,
        yref="paper",
        xanchor="left" if left else "right",
        yanchor="top",
        xshift=6 if left else -6,
        text=f"cut at {cut:.4g}",
        showarrow=False,
    )


def lengths_compared(lengths: Mapping[str, IntArray]) -> go.Figure:
    """Shares of sentences by length, one line a corpus. lengths: {role (S_C, D_C, T_C): `(n,)` tokens}."""
    edges = length_edges(np.concatenate(list(lengths.values())), 40)
    fig = figure(280, x="tokens a sentence (the last step holds all longer ones)", y="share of sentences")
    for role, values in lengths.items():
        shares = binned(values, edges) / max(len(values), 1)
        fig.add_scatter(
            x=edges,
            y=np.append(shares, shares[-1]),
            name=f"{plainly(role)}, median {np.median(values):.0f}" if len(values) else plainly(role),
            mode="lines",
            line={"shape": "hv", "width": 2.5, "color": COLOURS[role], "dash": DASHES[role]},
            hovertemplate="from %{x:.0f} tokens: %{y:.1%} of the " + plainly(role) + "<extra></extra>",
        )
    fig.update_yaxes(tickformat=".0%")
    return fig
