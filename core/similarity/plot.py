"""Figures of the page Similarity."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.charts import COLOURS, ENTITY_COLOURS, figure, labels, plain
from core.similarity.result import CurvePoint, SimilarityRow

_MARKS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_ENDS = {"high": "higher is closer", "low": "lower is closer"}


def similarity_bars(
    rows: Sequence[SimilarityRow], titles: Mapping[str, str], best: Mapping[str, float | None]
) -> go.Figure:
    """Draw a panel per measure with a bar per source. The closest source has another colour.

    Whiskers span the values of the random samples. rows: `measurements` of one target. titles: {measure: heading}.
    best: {measure: value of the closest source, or None}.
    """
    measures = list(dict.fromkeys(row.measure for row in rows))
    sources = labels(row.source for row in rows)
    fig = _columns(rows, measures, titles, height=110 + 34 * len(sources))
    for column, measure in enumerate(measures, 1):
        valued = [row for row in rows if row.measure == measure and row.value is not None]
        values = [row.value for row in valued if row.value is not None]
        ends = [(min(row.draws), max(row.draws)) for row in valued]
        fig.add_bar(
            x=values,
            y=[sources[row.source] for row in valued],
            orientation="h",
            marker_color=[COLOURS["S_C"] if row.value == best[measure] else COLOURS["D_C"] for row in valued],
            error_x={
                "type": "data",
                "symmetric": False,
                "thickness": 1.5,
                "width": 4,
                "color": COLOURS["cut"],
                "array": [high - value for value, (_, high) in zip(values, ends, strict=True)],
                "arrayminus": [value - low for value, (low, _) in zip(values, ends, strict=True)],
            },
            customdata=[[*(f"{end:.4g}" for end in span), row.unit] for row, span in zip(valued, ends, strict=True)],
            hovertemplate="%{y}: %{x:.4g} %{customdata[2]}<br>%{customdata[0]} to %{customdata[1]}<extra></extra>",
            showlegend=False,
            row=1,
            col=column,
        )
    return fig


def _columns(
    rows: Sequence[SimilarityRow], measures: Sequence[str], titles: Mapping[str, str], height: int
) -> go.Figure:
    """Return empty panels side by side, one per measure. Each heading says if higher or lower values are closer."""
    ends = {row.measure: _ENDS[row.prefer] for row in rows}
    headings = [f"<b>{plain(titles[m])}</b><br>{ends[m]}" for m in measures]
    fig = make_subplots(1, len(measures), shared_yaxes=True, subplot_titles=headings, horizontal_spacing=0.03)
    fig.update_layout(figure(height, x="", y="").layout)
    fig.update_layout(margin={"t": 52}, bargap=0.3)
    fig.update_annotations(font_size=13)
    fig.update_xaxes(
        gridcolor="rgba(128, 128, 128, 0.25)", zeroline=False, fixedrange=True, nticks=4, rangemode="tozero"
    )
    fig.update_yaxes(autorange="reversed", type="category", showgrid=False, fixedrange=True, automargin=True)
    return fig


def size_curve(points: Sequence[CurvePoint], title: str) -> go.Figure:
    """Plot a measure against the number of tokens, with a line per source. points: points of one target and measure."""
    fig = figure(300, x="tokens of the source", y=plain(title))
    for number, (source, label) in enumerate(labels(point.source for point in points).items()):
        valued = [point for point in points if point.source == source and point.value is not None]
        fig.add_scatter(
            x=[point.tokens for point in valued],
            y=[point.value for point in valued],
            name=label,
            mode="lines+markers",
            line={"color": ENTITY_COLOURS[number % len(ENTITY_COLOURS)], "dash": _DASHES[number % len(_DASHES)]},
            marker={"symbol": _MARKS[number % len(_MARKS)], "size": 9},
            hovertemplate="%{x:,} tokens: %{y:.4g}<extra>" + label + "</extra>",
        )
    fig.update_xaxes(type="log", showgrid=True)
    return fig
