"""Figures of the page Bias: CEIM histograms, V-information bars, PVI scatter plot, F1 on plain and harder sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.bias.result import Bits, Intervals
from core.charts import COLOURS, INK, figure, plain
from core.results import BoolArray, FloatArray, IntArray

# Width of a bar of the histogram, in bits. The CEIM bins end at -0.5 and 0.5 bits, so the width must divide 0.5 evenly.
BAR = 0.25
# Number of bars on each side of zero. The two outermost bars also count all values beyond them.
SIDE = 24
# {CEIM bin: (name in the legend, colour, symbol)}
BIN_LOOKS: Mapping[str, tuple[str, str, str]] = {
    "low": ("context more informative", "#0072B2", "triangle-down"),
    "near_zero": ("about equal", "#8F8F8F", "circle"),
    "high": ("name more informative", "#D55E00", "triangle-up"),
}
NAME, CONTEXT = "#D55E00", "#0072B2"
_PALE = 0.35


def ceim_bars(ceim: FloatArray, band: float = 0.5) -> IntArray:
    """Return the histogram bar of each CEIM value, `(n,)`. Bar i covers 0.25 i to 0.25 (i + 1) bits.

    A value on the border of two bars is in the upper bar; if the value is -band or less, it is in the lower bar. All
    values of a bar are therefore in the same CEIM bin: low (<= -band), near zero, or high (>= band).
    """
    outer: FloatArray = np.where(ceim <= -band, np.ceil(ceim / BAR) - 1, np.floor(ceim / BAR))
    bars: IntArray = np.clip(outer, -SIDE, SIDE - 1).astype(np.int64)
    return bars


def bar_words(bar: int) -> str:
    """Return the range of a bar as text, such as `0.25 to 0.50 bits`."""
    low, high = bar * BAR, (bar + 1) * BAR
    if bar in (-SIDE, SIDE - 1):
        return f"{high:z.2f} bits or less".replace("-", "−") if bar < 0 else f"{low:z.2f} bits or more"
    return f"{low:z.2f} to {high:z.2f} bits".replace("-", "−")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CeimPanel:
    """One panel of the histogram: the mentions of one type, or of all types.

    bars: `(n,)`, number of the bar of each mention (`ceim_bars`). bins: CEIM bin of each mention. weak: warning if n is
    small, else "".
    """

    name: str
    bars: IntArray
    bins: Sequence[str]
    weak: str = ""


def ceim_histogram(panels: Sequence[CeimPanel], band: float = 0.5) -> go.Figure:
    """Draw one histogram per panel, one above the other. A click on a bar sends its `customdata`: (panel, bar)."""
    fig = _stacked(panels)
    for number, panel in enumerate(panels):
        kinds = np.asarray(panel.bins, dtype=object)
        for kind, (name, colour, _) in BIN_LOOKS.items():
            bars, counts = np.unique(panel.bars[kinds == kind], return_counts=True)
            fig.add_bar(
                x=(bars + 0.5) * BAR,
                y=counts,
                width=BAR * 0.94,
                row=number + 1,
                col=1,
                name=name,
                legendgroup=kind,
                showlegend=number == 0,
                marker_color=colour,
                opacity=_PALE if panel.weak else 1,
                customdata=[[number, bar] for bar in bars.tolist()],
                unselected={"marker": {"opacity": _PALE}},
                hovertext=[f"{bar_words(bar)}: {n:,}" for bar, n in zip(bars.tolist(), counts.tolist(), strict=True)],
                hovertemplate="%{hovertext} mentions<extra></extra>",
            )
    widest = max((int(max(-panel.bars.min(), panel.bars.max() + 1)) for panel in panels if len(panel.bars)), default=8)
    # The axis is symmetric, with at least two bits on each side, so that the sign of CEIM is visible.
    end = max(widest, 8) * BAR + BAR / 2
    fig.update_xaxes(range=[-end, end], showgrid=False, zeroline=False, fixedrange=True)
    fig.update_xaxes(title="name minus context (CEIM), bits", row=len(panels))
    fig.update_yaxes(title="mentions" if len(panels) == 1 else "", rangemode="tozero", nticks=4, fixedrange=True)
    for border in (-band, band):
        fig.add_vline(x=border, line={"dash": "dash", "width": 1.5, "color": COLOURS["filtered"]})
    return fig


def _stacked(panels: Sequence[CeimPanel]) -> go.Figure:
    look = figure(330 if len(panels) == 1 else 96 * len(panels) + 90, x="", y="").layout
    titles = [plain(panel.name) + (f" <i>({plain(panel.weak)})</i>" if panel.weak else "") for panel in panels]
    fig = make_subplots(
        rows=len(panels),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.28 / max(len(panels), 1),
        subplot_titles=titles if len(panels) > 1 else None,
    )
    base = {"height", "margin", "paper_bgcolor", "plot_bgcolor", "dragmode", "hoverlabel", "legend"}
    fig.update_layout({name: look[name] for name in base}, bargap=0.04, barmode="overlay")
    fig.update_annotations(x=0, xanchor="left", font_size=13)
    fig.update_xaxes(gridcolor=look.xaxis.gridcolor, automargin=True)
    fig.update_yaxes(gridcolor=look.yaxis.gridcolor, automargin=True, zeroline=False)
    if len(panels) > 1:
        fig.update_layout(margin_t=58, legend={"y": 1.0, "yref": "container", "yanchor": "top"})
    return fig


@dataclass(frozen=True, slots=True, kw_only=True)
class Informed:
    """A data set and the V-information of its names and contexts."""

    name: str
    bits: Bits
    intervals: Intervals


def v_information_bars(rows: Sequence[Informed]) -> go.Figure:
    """Draw V-information of names and contexts per data set, with 95% intervals (Ma et al. 2023, Fig. 3)."""
    fig = figure(110 + 74 * len(rows), x="V-information, bits per mention", y="")
    names = [plain(row.name) for row in rows]
    sides = (
        ("of the context alone", CONTEXT, "/", [(row.bits.context, row.intervals.context) for row in rows]),
        ("of the name alone", NAME, "", [(row.bits.entity, row.intervals.entity) for row in rows]),
    )
    for label, colour, shape, measured in sides:
        values = np.array([value for value, _ in measured], dtype=np.float64)
        spans = np.array([span for _, span in measured], dtype=np.float64)
        fig.add_bar(
            y=names,
            x=values,
            orientation="h",
            name=label,
            marker={"color": colour, "pattern_shape": shape},
            error_x={"array": spans[:, 1] - values, "arrayminus": values - spans[:, 0], "width": 4, "color": INK},
            customdata=spans,
            hovertemplate="%{x:.2f} bits [%{customdata[0]:.2f}, %{customdata[1]:.2f}] " + label + "<extra></extra>",
        )
    fig.update_layout(barmode="group", bargap=0.25, legend_traceorder="reversed")
    fig.update_yaxes(autorange="reversed", showgrid=False)
    fig.update_xaxes(showgrid=True, zeroline=True, zerolinecolor=COLOURS["filtered"])
    return fig


def pvi_scatter(context: FloatArray, entity: FloatArray, bins: Sequence[str], numbers: IntArray) -> go.Figure:
    """Draw mentions by the PVI of their context (x) and of their name (y), `(m,)` bits, with WebGL.

    numbers: `(m,)` numbers of the mentions; a click on a point sends the mention's number.
    """
    fig = figure(460, x="information of the context (PVI), bits", y="information of the name (PVI), bits")
    kinds = np.asarray(bins, dtype=object)
    for kind, (name, colour, symbol) in BIN_LOOKS.items():
        mask = kinds == kind
        if mask.any():
            fig.add_scattergl(
                x=context[mask].astype(np.float32),
                y=entity[mask].astype(np.float32),
                mode="markers",
                name=f"{name} ({mask.sum():,})",
                customdata=numbers[mask].astype(np.int32),
                opacity=0.75,
                marker={"color": colour, "symbol": symbol, "size": 7},
                unselected={"marker": {"opacity": 0.15}},
                hovertemplate="context %{x:.2f}, name %{y:.2f}<extra></extra>",
            )
    axis = {"fixedrange": False, "showgrid": True, "zeroline": True, "zerolinecolor": COLOURS["filtered"]}
    fig.update_xaxes(**axis)
    fig.update_yaxes(**axis)
    fig.update_layout(dragmode="select", hovermode="closest", uirevision="pvi", legend={"itemsizing": "constant"})
    return fig


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerPoint:
    """One tagger. plain, hard: F1 per seed on the plain and on the harder set. best: True on the Pareto front."""

    name: str
    plain: Sequence[float]
    hard: Sequence[float]
    best: bool


def frontier(points: Sequence[TaggerPoint], *, x: str, y: str) -> go.Figure:
    """Draw test F1 against F1 on a harder set, one point per tagger: mean and standard deviation over seeds."""
    fig = figure(380, x=plain(x), y=plain(y))
    means = [float(np.mean(point.plain)) for point in points]
    # Labels extend towards the middle of the figure, so that none is cut off at the border.
    middle = (min(means) + max(means)) / 2
    looks = (
        (False, COLOURS["filtered"], "circle-open", "another tagger is at least as good on both and better on one"),
        (True, COLOURS["S_C"], "diamond", "no other tagger is at least as good on both and better on one"),
    )
    for best, colour, symbol, label in looks:
        members = sorted(
            (point for point in points if point.best == best), key=lambda point: float(np.mean(point.plain))
        )
        if not members:
            continue
        spreads = [[_spread(point.plain) for point in members], [_spread(point.hard) for point in members]]
        fig.add_scatter(
            x=[np.mean(point.plain) for point in members],
            y=[np.mean(point.hard) for point in members],
            name=label,
            error_x={"array": spreads[0], "width": 3, "thickness": 1},
            error_y={"array": spreads[1], "width": 3, "thickness": 1},
            mode="lines+markers+text" if best else "markers+text",
            text=[_short(point.name) for point in members],
            textposition=["top left" if np.mean(point.plain) > middle else "top right" for point in members],
            line={"dash": "dot", "width": 1.5, "color": colour},
            marker={"color": colour, "symbol": symbol, "size": 11, "line": {"width": 2, "color": colour}},
            hovertemplate="%{text}: %{x:.2f} and %{y:.2f}<extra></extra>",
        )
    fig.update_xaxes(showgrid=True)
    return fig


def _spread(f1s: Sequence[float]) -> float:
    return float(np.std(f1s, ddof=1)) if len(f1s) > 1 else 0.0


def best_of_both(plain_f1: FloatArray, hard_f1: FloatArray) -> BoolArray:
    """Return a mask `(n,)` of the taggers on the Pareto front.

    A tagger is on the front unless another tagger is at least as good on both sets and better on one.
    """
    # Two taggers with equal scores do not beat each other, so both can be on the front.
    ahead = (plain_f1[None] >= plain_f1[:, None]) & (hard_f1[None] >= hard_f1[:, None])
    better = (plain_f1[None] > plain_f1[:, None]) | (hard_f1[None] > hard_f1[:, None])
    beaten: BoolArray = np.any(ahead & better, axis=1)
    return ~beaten


def _short(name: str) -> str:
    """Shorten `name` to 24 characters. Keep its end, because it contains the run's id."""
    return plain(name if len(name) <= 24 else f"{name[:15]}…{name[-8:]}")
