"""Figures of the page Assisting: histogram of SKL scores, and F1 by threshold (Murthy et al. 2018, Fig. 1 and 2)."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.assisting.assist import SweepPoint
from core.charts import COLOURS, figure
from core.results import FloatArray
from core.terms import DEV, TEST

WIDTH = 0.25  # width of a bar, in units of SKL; whole-number thresholds are then at the border of two bars


def skl_histogram(scores: FloatArray, threshold: float, log: str = "natural") -> go.Figure:
    """Draw a histogram of the SKL scores of kept and of dropped sentences.

    scores: `(n,)`, one for each sentence that shares an entity with the primary corpus. All other scores are 0 and
    would dominate the histogram.
    """
    # The axis ends at 9 or above, so that figures of different corpora can be compared.
    edges = np.arange(0, max(float(scores.max(initial=0)), threshold, 9) + WIDTH, WIDTH)
    fig = figure(300, x=f"mean symmetric KL divergence (SKL), {'bits' if log == 'base2' else 'nats'}", y="sentences")
    for name, values, colour in (
        ("kept", scores[scores < threshold], COLOURS["S_C"]),
        ("dropped", scores[scores >= threshold], COLOURS["filtered"]),
    ):
        fig.add_bar(
            x=edges[:-1] + WIDTH / 2,
            y=np.histogram(values, edges)[0],
            width=WIDTH,
            name=f"{name} ({len(values):,})",
            marker_color=colour,
            hovertemplate="around %{x:.2f}: %{y:,} " + name + "<extra></extra>",
        )
    fig.update_layout(barmode="stack", bargap=0)
    fig.add_vline(x=threshold, line={"dash": "dash", "width": 2, "color": COLOURS["cut"]})
    # Put the label on the wider side of the line, so that it is not cut off at the border.
    left = threshold < edges[-1] / 2
    fig.add_annotation(
        x=threshold,
        y=0.98,
        yref="paper",
        xanchor="left" if left else "right",
        yanchor="top",
        xshift=6 if left else -6,
        text=f"threshold {threshold:g}",
        showarrow=False,
    )
    return fig


def f1_by_threshold(points: Sequence[SweepPoint], chosen: float | None) -> go.Figure:
    """Plot dev F1 and test F1 against the threshold. chosen: the threshold chosen on the dev set, None if not known."""
    whole = max((point.threshold for point in points), default=10)
    axis = f"threshold (0: primary corpus alone, {whole:g}: whole assisting corpus)"
    fig = figure(320, x=axis, y="score (F1), percent")
    looks = {"dev": (DEV.word, COLOURS["S_C"], "solid"), "test": (TEST.word, COLOURS["T_C"], "dash")}
    for split, (words, colour, dash) in looks.items():
        line = sorted((point for point in points if point.split == split), key=lambda point: point.threshold)
        if not line:
            continue
        spreads = [np.std(point.f1, ddof=1) if len(point.f1) > 1 else 0 for point in line]
        fig.add_scatter(
            x=[point.threshold for point in line],
            y=np.array([np.mean(point.f1) for point in line]),
            error_y={"array": spreads, "width": 3},
            name=f"{words}, mean and standard deviation over {len(line[0].f1)} seeds",
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2.5},
            hovertemplate="threshold %{x:g}: score %{y:.2f}, " + words + "<extra></extra>",
        )
    if chosen is not None:
        fig.add_vline(x=chosen, line={"dash": "dot", "width": 2, "color": COLOURS["cut"]})
    return fig
