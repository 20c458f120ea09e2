"""Words on the map: each topic's name beside its points, in room that no other name takes and few points do."""

from collections.abc import Iterator, Sequence

import numpy as np
import plotly.graph_objects as go

from core.charts import plain
from core.results import FloatArray, IntArray

WIDTH, ABOVE = 440, 80  # pixels of a map on a usual screen, and above and below it; a wider one only has more room
STEP = 4  # pixels: names are moved, and points counted, in squares of this size
LETTER, LINE = 6.2 / STEP, 20 // STEP  # steps that a letter takes, about, and that a line does
Box = tuple[slice, slice]  # steps across and up that a name covers


def label_topics(fig: go.Figure, x: FloatArray, y: FloatArray, topics: IntArray, names: Sequence[str]) -> None:
    """Write `names` on a map of points `x, y` `(m,)`, the largest topic's first.

    topics: `(m,)` indices into `names`. A name goes near the middle of its topic where it covers the fewest points,
    and over no other name; a line leads to the middle. One that finds no room is left out. Where the figure colours
    by these names, a dot of the colour stands before each, so that the legend need not repeat it.
    """
    if not len(x):
        return
    across, up = _steps(x, WIDTH), _steps(y, int(fig.layout.height) - ABOVE)
    cost = np.zeros((int(across.max()) + 1, int(up.max()) + 1))
    np.add.at(cost, (across, up), 1)
    colours = {trace.legendgroup: trace.marker.color for trace in fig.data if trace.legendgroup in names}
    for trace in fig.data:
        if trace.legendgroup in colours:
            trace.update(showlegend=False, legendgroup=None)  # a group, even an unseen one, stacks the legend
    notes = list(fig.layout.annotations)  # written at once: Plotly takes up all again for each that is added
    for topic in np.argsort(-np.bincount(topics, minlength=len(names)), kind="stable").tolist():
        inside = np.flatnonzero(topics == topic)
        if not len(inside):
            continue
        middle = _middle(x, y, inside)
        position = int(across[middle]), int(up[middle])
        boxes = _boxes(*position, round(LETTER * (len(names[topic]) + 3) / 2), cost.shape)
        best, move, box = min(
            ((float(cost[box].sum()) + abs(move[0]) + 2 * abs(move[1]), move, box) for move, box in boxes),
            key=lambda candidate: candidate[0],  # the first of equals, so that a map is drawn alike every time
            default=(np.inf, (0, 0), (slice(0), slice(0))),
        )
        if np.isfinite(best):  # an infinite cost is another name's room
            cost[box] = np.inf
            colour = colours.get(names[topic])
            dot = f'<span style="color:{colour}">●</span> ' if colour else ""
            notes.append(_note((float(x[middle]), float(y[middle])), dot + plain(names[topic]), move))
    fig.layout.annotations = notes


def _steps(axis: FloatArray, pixels: int) -> IntArray:
    """`(m,)` where values lie on an axis that is so many pixels long."""
    steps: IntArray = ((axis - axis.min()) * (pixels / STEP / max(float(np.ptp(axis)), 1e-9))).astype(np.int64)
    return steps


def _middle(x: FloatArray, y: FloatArray, inside: IntArray) -> int:
    """The point nearest to the medians, so that a name never points to where its topic has nothing."""
    far = (x[inside] - np.median(x[inside])) ** 2 + (y[inside] - np.median(y[inside])) ** 2
    return int(inside[far.argmin()])


def _boxes(x: int, y: int, half: int, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], Box]]:
    """Boxes where a name `2 * half` wide may stand, each with how far it is from its topic's middle."""
    for right in range(-3 * half, 3 * half + 1, max(half // 3, 1)):
        for higher in range(-8 * LINE, 8 * LINE + 1, 2):
            left, low = x + right - half, y + higher - LINE // 2
            if left >= 0 and low >= 0 and left + 2 * half <= shape[0] and low + LINE <= shape[1]:
                yield (right, higher), (slice(left, left + 2 * half), slice(low, low + LINE))


def _note(middle: tuple[float, float], text: str, move: tuple[int, int]) -> go.layout.Annotation:
    return go.layout.Annotation(
        x=middle[0],
        y=middle[1],
        text=text,
        showarrow=move != (0, 0),
        ax=STEP * move[0],
        ay=-STEP * move[1],
        arrowhead=0,
        arrowwidth=0.7,
        font={"size": 11},
    )
