"""Dai et al. 2019, Fig. 2: F1 by how much of a source was read, for word vectors and language models."""

from collections.abc import Sequence

import plotly.graph_objects as go

from core.charts import ENTITY_COLOURS, figure, plain
from core.experiment.plot import VERDICT_MARKS, known_interval
from core.experiment.result import ArmRow, baseline, source_tokens

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def source_curve(rows: Sequence[ArmRow]) -> go.Figure | None:
    """F1 by tokens read of its source, a line an arm, `none` dashed; None where every source was read in one size.

    Bars reach as far as the interval of the difference to `none`: on one test set that is what is known.
    """
    arms = _sizes(rows)
    if not arms:
        return None
    fig = figure(380, x="tokens read of the source", y="test score (F1, percent), mean of the seeds")
    if base := baseline(next(iter(arms.values()))[0][1], rows):
        fig.add_hline(y=base.mean, line={"dash": "dash", "width": 1.5, "color": VERDICT_MARKS["baseline"].colour})
        place = {"x": 0, "xref": "paper", "xanchor": "left", "y": base.mean, "yanchor": "bottom"}
        fig.add_annotation(**place, text="none", showarrow=False)
    for number, (arm, points) in enumerate(arms.items()):
        colour = ENTITY_COLOURS[number % len(ENTITY_COLOURS)]
        reach = [_reach(row) for _, row in points]
        fig.add_scatter(
            x=[tokens for tokens, _ in points],
            y=[row.mean for _, row in points],
            error_y={
                "array": [more for _, more in reach],
                "arrayminus": [less for less, _ in reach],
                "width": 4,
                "thickness": 1.5,
                "color": colour,
            },
            name=plain(arm),
            mode="lines+markers",
            marker={"size": 9, "color": colour, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
            line={"width": 2.5, "color": colour},
            hovertemplate=f"{plain(arm)}, %{{x:,}} tokens: %{{y:.2f}}<extra></extra>",
        )
    fig.update_xaxes(rangemode="tozero")
    return fig


def _sizes(rows: Sequence[ArmRow]) -> dict[str, list[tuple[int, ArmRow]]]:
    """{arm: (tokens that it read of its source, its line), fewest first}, of those that read several sizes."""
    arms: dict[str, list[tuple[int, ArmRow]]] = {}
    for row in rows:
        if tokens := source_tokens(row):
            arms.setdefault(row.arm, []).append((tokens, row))
    return {arm: sorted(arms[arm], key=lambda point: point[0]) for arm in sorted(arms)}


def _reach(row: ArmRow) -> tuple[float, float]:
    low, high = row.interval if known_interval(row) else (row.delta, row.delta)
    return row.delta - low, high - row.delta
