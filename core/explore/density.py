"""Lines around where sentences of a class lie dense on the map."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.explore.plot import CLASS_LOOKS, Look
from core.results import FloatArray, IntArray

CELLS, WIDTH = 96, 2.5  # squares of the grid along an axis; standard deviation of the smoothing, in squares
LEAST, STEP, MOST = 0.2, 0.3, 0.8  # of a class's sentences lie within its lines
FEWEST = 30  # sentences of a class; of fewer a line says nothing


def density_lines(
    fig: go.Figure, x: FloatArray, y: FloatArray, kinds: IntArray, looks: Sequence[Look] = CLASS_LOOKS
) -> None:
    """Draw lines around the densest places that hold 20%, 50% and 80% of each class's points, in its colour.

    x, y, kinds: `(n,)`, kinds indices into `looks`. The highest-density regions of Hyndman (1996), over a smoothed
    count on a grid.
    """
    from scipy.ndimage import gaussian_filter

    (x_edges, x_middles), (y_edges, y_middles) = _grid(x), _grid(y)
    for kind, look in enumerate(looks):
        inside = kinds == kind
        if inside.sum() < FEWEST:
            continue
        counts, _, _ = np.histogram2d(x[inside], y[inside], bins=(x_edges, y_edges))
        outside = enclosing(gaussian_filter(counts, WIDTH))
        fig.add_contour(
            x=x_middles,
            y=y_middles,
            z=outside.T,
            contours={"coloring": "none", "start": LEAST, "end": MOST, "size": STEP},
            line={"color": look.colour, "width": 1.5},
            hoverinfo="skip",
            showlegend=False,
            showscale=False,
            name=look.name,
        )


def enclosing(density: FloatArray) -> FloatArray:
    """The share of all that lies where it is at least as dense, cell by cell: 0 to 1, smallest where it is densest."""
    order = np.argsort(-density, axis=None, kind="stable")
    held = np.empty(density.size)
    held[order] = np.cumsum(density.ravel()[order]) / max(float(density.sum()), 1e-12)
    return held.reshape(density.shape)


def _grid(axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Edges and middles of squares along an axis, with room for what smoothing spreads."""
    room = 0.05 * max(float(np.ptp(axis)), 1e-9)
    edges = np.linspace(float(axis.min()) - room, float(axis.max()) + room, CELLS + 1)
    return edges, (edges[1:] + edges[:-1]) / 2
