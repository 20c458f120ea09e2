"""Figure of the page Label."""

from collections.abc import Sequence

import plotly.graph_objects as go

from core.charts import figure, plain
from core.labelling.view import Point

COLOUR = "#0072B2"


def learning_curve(points: Sequence[Point]) -> go.Figure:
    """Plot test F1 by the number of labelled training sentences, with 95% intervals. points: the smallest set first."""
    fig = figure(320, x="labelled training sentences", y="test score (F1), mean of seeds")
    fig.add_scatter(
        x=[point.sentences for point in points],
        y=[point.mean for point in points],
        error_y={
            "array": [point.interval[1] - point.mean for point in points],
            "arrayminus": [point.mean - point.interval[0] for point in points],
            "symmetric": False,
            "thickness": 1.5,
            "width": 6,
        },
        customdata=[(plain(point.name), *point.interval) for point in points],
        mode="lines+markers",
        line={"width": 2.5, "color": COLOUR},
        marker={"size": 9, "color": COLOUR},
        hovertemplate="%{customdata[0]}: %{y:.1f} [%{customdata[1]:.1f}, %{customdata[2]:.1f}]<extra></extra>",
        showlegend=False,
    )
    fig.update_xaxes(rangemode="tozero")
    return fig
