"""Live curves of trainings, with Altair, because a Plotly figure is redrawn and flickers at every new point.

A chart's specification depends on the lines but not on their points, so that a browser receives only new points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from core.charts import ENTITY_COLOURS, INK, shade
from core.results import FloatArray, IntArray

if TYPE_CHECKING:
    import altair

# Titles of the horizontal axis.
STEPS, EPOCHS = "optimizer steps", "epochs"
# Maximum number of points in one chart.
MOST = 2_000
# Dash patterns that distinguish the lines for readers who cannot distinguish their colours.
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
_PALE = 0.35
# Number of points per line that have a tooltip. It is limited because each of them is a separate element of the page.
_HELD = 100
_KINDS = {
    "step": pa.float64(), "value": pa.float64(), "line": pa.string(), "part": pa.string(), "pale": pa.bool_(),
    "held": pa.bool_(),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """One line of a chart.

    name: name in the legend. part: text that distinguishes lines of the same name, such as a seed. steps: steps or
    epochs, `(n,)`, ascending. values: `(n,)`. pale: True to draw the line pale, because a later line has the same name.
    """

    name: str
    part: str
    steps: IntArray | FloatArray
    values: FloatArray
    pale: bool = False


def thinned(values: FloatArray, most: int) -> IntArray:
    """Return the positions of the values `(n,)` to draw: the first, the last, and the extremes of every block.

    most: maximum number of positions, at least 8. The length of a block is a power of two, and blocks start at
    multiples of their length. Drawn points therefore do not move while a curve grows.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    # Two points are drawn per block. Subtract 4 for the first and last value, and for an incomplete block at the end.
    width = 1 << int(np.ceil(np.log2(2 * n / (most - 4))))
    padded = np.resize(values, -(-n // width) * width)
    padded[n:] = values[-1]
    stretches = padded.reshape(-1, width)
    first = np.arange(len(stretches)) * width
    positions = np.concatenate([[0], first + stretches.argmin(axis=1), first + stretches.argmax(axis=1), [n - 1]])
    return np.unique(np.minimum(positions, n - 1))


def curve_table(lines: Sequence[Line], most: int = MOST) -> pa.Table:
    """Return the points to draw, at most `most` over all lines.

    The columns are step, value, line, part, pale, and held (True if the point has a tooltip). Values that are not
    finite are left out.
    """
    columns: dict[str, list[object]] = {name: [] for name in _KINDS}
    for line in lines:
        finite = np.isfinite(line.values)
        steps, values = line.steps[finite], line.values[finite]
        positions = thinned(values, max(most // len(lines), 8))
        columns["step"] += steps[positions].tolist()
        columns["value"] += values[positions].tolist()
        columns["held"] += (np.arange(len(positions)) % max(-(-len(positions) // _HELD), 1) == 0).tolist()
        for name, value in (("line", line.name), ("part", line.part), ("pale", line.pale)):
            columns[name] += [value] * len(positions)
    return pa.table(columns, schema=pa.schema(_KINDS))


def curves(
    lines: Sequence[Line], *, y: str, height: int, x: str = STEPS, dots: bool = False, dark: bool = False
) -> "altair.LayerChart | altair.FacetChart":
    """Return a chart of lines over optimizer steps or epochs.

    x: title of the horizontal axis, STEPS or EPOCHS. y: name of the values, for the tooltip. dots: True to mark the
    points that have a tooltip. dark: True if the page's theme is dark.
    """
    import altair as alt

    names = list(dict.fromkeys(line.name for line in lines))
    ink, colours = shade(INK, dark=dark), [shade(colour, dark=dark) for colour in ENTITY_COLOURS]
    looks = alt.Scale(domain=names, range=[colours[i % len(colours)] for i in range(len(names))])
    dashes = alt.Scale(domain=names, range=[_DASHES[i % len(_DASHES)] for i in range(len(names))])
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3) if len(names) > 1 else None
    axes = alt.Chart(curve_table(lines)).encode(
        x=alt.X("step:Q", title=x, axis=alt.Axis(format=",~f", tickMinStep=1), scale=alt.Scale(nice=False)),
        # Use three significant digits. The default would show a rate as 0.0000998 and an F1 of 0 as 0.000000.
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format=".3~g"), scale=alt.Scale(zero=False)),
        color=alt.Color("line:N", scale=looks, legend=legend),
        detail="part:N",
        tooltip=[
            alt.Tooltip("line:N", title="line"),
            alt.Tooltip("part:N", title="part"),
            alt.Tooltip("step:Q", title=x, format=",.2~f"),
            alt.Tooltip("value:Q", title=y, format=".4~g"),
        ],
    )
    lines_drawn = axes.mark_line(strokeWidth=2, interpolate="linear").encode(
        strokeDash=alt.StrokeDash("line:N", scale=dashes, legend=legend),
        opacity=alt.condition("datum.pale", alt.value(_PALE), alt.value(1)),
    )
    held = axes.transform_filter("datum.held").mark_point(filled=True, size=40, opacity=0.9 if dots else 0)
    chart = alt.layer(lines_drawn, held).properties(height=height)
    chart.config = alt.Config(
        axis=alt.AxisConfig(labelColor=ink, titleColor=ink), legend=alt.LegendConfig(labelColor=ink)
    )
    return chart
