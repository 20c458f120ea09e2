"""Figures of the page Explore: a WebGL scatter plot of sentences, and the agreement of two selections."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.charts import COLOURS, NAME_COLOURS, figure, plain
from core.results import BoolArray, FloatArray, IntArray
from core.terms import FILTERED, TASK

Corners = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colour, shape and size of one kind of point. Shape and size are for readers who cannot see the colour."""

    name: str
    colour: str
    symbol: str
    size: int


CLASS_LOOKS = (
    Look(name=TASK.word, colour=COLOURS["T_C"], symbol="diamond-open", size=9),
    Look(name="selected", colour=COLOURS["S_C"], symbol="circle", size=5),
    Look(name=FILTERED.word, colour=COLOURS["filtered"], symbol="circle-open", size=4),
)
SIDE_LOOKS = (
    Look(name="neither", colour=COLOURS["filtered"], symbol="circle-open", size=5),
    Look(name="only A", colour="#0072B2", symbol="triangle-up", size=8),
    Look(name="only B", colour="#CC79A7", symbol="triangle-down", size=8),
    Look(name="both", colour="#009E73", symbol="circle", size=6),
    Look(name=TASK.word, colour=COLOURS["T_C"], symbol="diamond-open", size=9),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dots:
    """Points of the map that are drawn.

    x, y: positions, `(m,)` float32. points: numbers of the points on the map, `(m,)`; a click returns them. kinds:
    indices into a sequence of `Look`, `(m,)`. hovered: `(m,)`, True if a point has a tooltip (sent separately).
    """

    x: FloatArray
    y: FloatArray
    points: IntArray
    kinds: IntArray
    hovered: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """State of the map in the browser.

    zoom: visible range (x0, x1, y0, y1); None for the whole map. outlines: polygons of the picked region. tool: what
    dragging the mouse does, as plotly's `dragmode`.
    """

    zoom: tuple[float, float, float, float] | None = None
    outlines: tuple[tuple[tuple[float, float], ...], ...] = ()
    tool: str = "lasso"
    height: int = 560  # height of a saved picture, in pixels; on the page, the height depends on the window


def by_class(dots: Dots, totals: Sequence[int], view: View, looks: Sequence[Look] = CLASS_LOOKS) -> go.Figure:
    """Draw points in their class's colour and shape. totals: number of points per class, whether drawn or not."""
    fig = _canvas(view)
    for kind, mask in _kinds(dots, looks):
        n = int(mask.sum())
        if totals[kind]:
            of = f"{n:,}" if n == totals[kind] else f"{n:,} of {totals[kind]:,}"
            meta = _class(kind) if looks is CLASS_LOOKS else None
            _add(fig, dots, mask, looks[kind], name=f"{looks[kind].name} ({of})", legendrank=kind, meta=meta)
    return fig


def by_value(dots: Dots, values: FloatArray, title: str, view: View) -> go.Figure:
    """Draw points coloured by `values` `(m,)` and shaped by class; points with NaN keep their class's colour.

    The colours span the 1st to the 99th percentile, so that one outlier does not flatten all others.
    """
    fig = _canvas(view)
    known = ~np.isnan(values)
    for kind, mask in _kinds(dots, CLASS_LOOKS):
        look = CLASS_LOOKS[kind]
        for part, colour in ((mask & ~known, look.colour), (mask & known, values[mask & known].astype(np.float32))):
            if part.any():
                marker = {} if isinstance(colour, str) else {"color": colour, "coloraxis": "coloraxis"}
                _add(fig, dots, part, look, showlegend=False, marker=marker)
        _key(
            fig,
            look,
            COLOURS["T_C"] if look.name == TASK.word else COLOURS["filtered"],
            legendrank=kind,
            meta=_class(kind),
        )
    low, high = np.percentile(values[known], [1, 99]).tolist() if known.any() else (0.0, 1.0)
    bar = {"title": {"text": plain(title), "side": "right"}, "thickness": 12, "outlinewidth": 0}
    fig.update_layout(coloraxis={"colorscale": "Viridis", "cmin": low, "cmax": high, "colorbar": bar})
    return fig


def by_name(dots: Dots, names: Sequence[str], view: View, column: str | None = None) -> go.Figure:
    """Draw points coloured by name and shaped by class. The most frequent names get a colour, all others are grey.

    column: column that holds the names. If given, a click on a name in the legend picks the sentences with this name.
    """
    fig = _canvas(view)
    labels = np.asarray(names, dtype=object)
    distinct, counts = np.unique(labels.astype(str), return_counts=True)
    first = distinct[np.argsort(-counts, kind="stable")][: len(NAME_COLOURS)]
    # Names of equal frequency are in alphabetical order (a stable sort), so that colours do not change.
    groups = [(name, labels == name, colour) for name, colour in zip(first.tolist(), NAME_COLOURS, strict=False)]
    if len(distinct) > len(first):
        groups.append((f"{len(distinct) - len(first)} more", ~np.isin(labels.astype(str), first), COLOURS["filtered"]))
    for rank, (name, inside, colour) in enumerate(groups):
        shown = True
        for kind, mask in _kinds(dots, CLASS_LOOKS):
            if (mask & inside).any():
                more = {"legendgroup": name, "showlegend": shown, "legendrank": rank, "marker": {"color": colour}}
                if column and rank < len(first):
                    more["meta"] = ["column", {column: [name]}]
                _add(fig, dots, mask & inside, CLASS_LOOKS[kind], name=f"{_short(name)} ({inside.sum():,})", **more)
                shown = False
    for kind, look in enumerate(CLASS_LOOKS):
        _key(fig, look, COLOURS["filtered"], legendrank=1000 + kind, meta=_class(kind))
    return fig


def mark(fig: go.Figure, dots: Dots, points: IntArray, name: str) -> None:
    """Draw a ring around each dot of `points`. If there is at least one such dot, all other dots ignore the mouse."""
    hit = np.isin(dots.points, points)
    if hit.any():
        fig.update_traces(hoverinfo="skip")
    ring = Look(name=name, colour=COLOURS["cut"], symbol="circle-open", size=13)
    _add(fig, dots, hit, ring, name=f"{plain(name)} ({hit.sum():,})", opacity=1, marker={"line": {"width": 2}})


def fade_others(fig: go.Figure, points: IntArray) -> None:
    """Draw all but `points` faintly."""
    for trace in fig.data:
        if trace.customdata is not None:
            trace.marker.opacity = np.where(np.isin(trace.customdata, points), 0.9, 0.1).astype(np.float32)


def picked_scores(values: FloatArray, picked: FloatArray, unit: str) -> go.Figure:
    """Draw a histogram of the map's scores `(n,)` and of the picked points' scores `(k,)`.

    The user can pick a range of scores by dragging.
    """
    edges = np.histogram_bin_edges(values, 40)
    fig = figure(150, x=plain(unit), y="")
    for name, part, colour in (("on the map", values, COLOURS["filtered"]), ("picked", picked, COLOURS["S_C"])):
        counts = np.histogram(part, edges)[0]
        middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        fig.add_bar(x=middles, y=counts, width=widths, name=name, marker={"color": colour, "line": {"width": 0}})
    fig.update_layout(barmode="overlay", bargap=0, margin={"t": 8, "b": 32}, dragmode="select", selectdirection="h")
    fig.update_xaxes(fixedrange=False)
    return fig


def overlap_lines(points: Sequence[tuple[int, int]], of: float) -> go.Figure:
    """Plot how much two selections agree: the share of their best n sentences that are in both, against n.

    A second line shows the share that is expected by chance.

    points: (n, number of shared sentences). of: number of sentences to select from (see `insights.chance_of`).
    """
    sizes = np.array([n for n, _ in points], dtype=np.float64)
    shares = np.array([shared / max(n, 1) for n, shared in points])
    fig = figure(300, x="sentences in each selection", y="share in both")
    fig.add_scatter(
        x=sizes,
        y=shares,
        name="these two",
        mode="lines+markers",
        line={"width": 2.5, "color": COLOURS["S_C"]},
        hovertemplate="best %{x:,}: %{y:.1%} shared<extra></extra>",
    )
    fig.add_scatter(
        x=sizes,
        y=sizes / max(of, 1),
        name="chance",
        mode="lines",
        line={"width": 1.5, "dash": "dot", "color": COLOURS["D_C"]},
        hovertemplate="best %{x:,}: %{y:.1%} by chance<extra></extra>",
    )
    fig.update_yaxes(tickformat=".0%", range=[0, 1.05])
    return fig


class HoverRow(TypedDict):
    """Contents of a point's tooltip. score: NaN if there is none. row: in its corpus. place: file and page, or ""."""

    score: float
    row: int
    text: str
    place: str


def hover_lines(classes: Sequence[str], rows: Sequence[HoverRow]) -> list[str]:
    """Return one tooltip per row as plain text: a line with class, score, row and place, then the sentence."""
    return [f"{' · '.join(_about(name, row))}\n{row['text']}" for name, row in zip(classes, rows, strict=True)]


def _about(name: str, row: HoverRow) -> Iterator[str]:
    yield name
    if not np.isnan(row["score"]):
        yield f"score {row['score']:.4g}"
    yield f"row {row['row']:,}"
    if row["place"]:
        yield row["place"]


def _key(fig: go.Figure, look: Look, colour: str, **more: object) -> None:
    """Add a legend entry for the shape of a class whose points have different colours."""
    fig.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        name=look.name,
        hoverinfo="skip",
        **more,
        marker={"color": colour, "symbol": look.symbol, "size": look.size},
    )


def _class(kind: int) -> list[str]:
    """Return the region that a click on a class in the legend picks, as [kind, value] (see `core.explore.regions`)."""
    return ["class", ("T_C", "selected", "filtered")[kind]]


def _short(name: str) -> str:
    return plain(name if len(name) <= 30 else name[:29] + "…")


def _kinds(dots: Dots, looks: Sequence[Look]) -> Iterator[tuple[int, BoolArray]]:
    """Yield (kind of point, mask of its points) in drawing order: filtered points, then T_C, then selected points."""
    layers = [0 if look.colour == COLOURS["filtered"] else 1 if look.name == TASK.word else 2 for look in looks]
    for kind in sorted(range(len(looks)), key=layers.__getitem__):
        yield kind, dots.kinds == kind


def _canvas(view: View) -> go.Figure:
    """Return an empty figure whose axes have no numbers, because only distances between points have a meaning."""
    fig = figure(view.height, x="", y="")
    bare = {"showgrid": False, "showticklabels": False, "ticks": "", "title": None, "fixedrange": False}
    fig.update_xaxes(**bare)
    fig.update_yaxes(**bare)
    if view.zoom:
        fig.update_xaxes(range=view.zoom[:2])
        fig.update_yaxes(range=view.zoom[2:])
    line = {"color": COLOURS["cut"], "width": 2, "dash": "solid"}
    paths = ["M" + "L".join(f"{x},{y}" for x, y in corners) + "Z" for corners in view.outlines]
    fig.update_layout(
        dragmode=view.tool,
        hovermode="closest",
        uirevision="map",
        newselection={"line": line},
        modebar={
            "orientation": "v",
            "bgcolor": "rgba(0,0,0,0)",
            "color": COLOURS["D_C"],
            "activecolor": COLOURS["S_C"],
        },
        selections=[{"type": "path", "xref": "x", "yref": "y", "path": path, "line": line} for path in paths],
        legend={"itemsizing": "constant"},
        margin={"l": 4, "r": 40, "t": 28, "b": 4},
    )
    return fig


def _add(
    fig: go.Figure, dots: Dots, mask: BoolArray, look: Look, marker: Mapping[str, object] | None = None, **more: object
) -> None:
    """Add the masked dots as one WebGL trace. marker, more: further properties of the marker and of the trace."""
    edge = 1 if look.symbol.endswith("open") else 0  # an open symbol has only an edge
    drawn = {"color": look.colour, "symbol": look.symbol, "size": look.size, "line": {"width": edge}}
    rows = np.flatnonzero(mask)
    fig.add_trace(
        go.Scattergl(
            x=dots.x[rows],
            y=dots.y[rows],
            customdata=dots.points[rows].astype(np.int32),
            mode="markers",
            marker={**drawn, **(marker or {})},
            hoverinfo="none" if dots.hovered[rows].any() else "skip",  # points without a tooltip ignore the mouse
            unselected={"marker": {"opacity": 0.15}},
            **({"opacity": 0.85} | more),
        )
    )


CELLS, SMOOTHING = 96, 2.5  # grid cells along an axis; standard deviation of the smoothing, in cells

# Lines enclose 20%, 50% and 80% of a class's points: share in the innermost line, step, share in the outermost line.
INNERMOST, BETWEEN, OUTERMOST = 0.2, 0.3, 0.8

FEWEST = 30  # minimum number of sentences of a class; contour lines of fewer would be meaningless


def density_lines(
    fig: go.Figure, x: FloatArray, y: FloatArray, kinds: IntArray, looks: Sequence[Look] = CLASS_LOOKS
) -> None:
    """Draw lines around the densest regions with 20%, 50% and 80% of each class's points.

    x, y: positions, shape (n,). kinds: indices into `looks`, shape (n,). The lines bound the highest-density regions
    (Hyndman 1996) of a smoothed count on a grid.
    """
    from scipy.ndimage import gaussian_filter

    (x_edges, x_middles), (y_edges, y_middles) = _grid(x), _grid(y)
    for kind, look in enumerate(looks):
        inside = kinds == kind
        if inside.sum() < FEWEST:
            continue
        counts, _, _ = np.histogram2d(x[inside], y[inside], bins=(x_edges, y_edges))
        outside = enclosing(gaussian_filter(counts, SMOOTHING))
        fig.add_contour(
            x=x_middles,
            y=y_middles,
            z=outside.T,
            contours={"coloring": "none", "start": INNERMOST, "end": OUTERMOST, "size": BETWEEN},
            line={"color": look.colour, "width": 1.5},
            hoverinfo="skip",
            showlegend=False,
            showscale=False,
            name=look.name,
        )


def enclosing(density: FloatArray) -> FloatArray:
    """Return for each cell the share, 0 to 1, of the total density that is in cells at least as dense as this cell."""
    order = np.argsort(-density, axis=None, kind="stable")
    held = np.empty(density.size)
    held[order] = np.cumsum(density.ravel()[order]) / max(float(density.sum()), 1e-12)
    return held.reshape(density.shape)


def _grid(axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return edges and midpoints of the grid cells along an axis. The grid has a margin for the smoothing."""
    room = 0.05 * max(float(np.ptp(axis)), 1e-9)
    edges = np.linspace(float(axis.min()) - room, float(axis.max()) + room, CELLS + 1)
    return edges, (edges[1:] + edges[:-1]) / 2


BACKDROP_CELLS = (512, 384)  # number of cells across and up

BACKDROP_SMOOTHING = 1.2  # standard deviation of the smoothing, in cells

FAINTEST, DARKEST = 0.15, 0.6  # opacity of a cell with one point, and of the densest cells

CURVE = 0.4  # exponent of the opacity; below 1, so that small groups stay visible next to dense groups


def backdrop(fig: go.Figure, x: FloatArray, y: FloatArray, kinds: IntArray, colours: Sequence[str]) -> None:
    """Draw the density of the points without dots as a picture behind the dots, in the colours of their classes.

    The browser's work does not depend on the number of these points. x, y: their positions, shape (n,), n > 0. kinds:
    indices into `colours`, shape (n,). colours: as "#rrggbb".
    """
    from scipy.ndimage import gaussian_filter

    (left, across), (low, up) = _room(x), _room(y)
    density = np.zeros((*BACKDROP_CELLS, len(colours)))
    for kind in range(len(colours)):
        here = kinds == kind
        spans = ((left, left + across), (low, low + up))
        counts, _, _ = np.histogram2d(x[here], y[here], bins=BACKDROP_CELLS, range=spans)
        density[..., kind] = gaussian_filter(counts, BACKDROP_SMOOTHING)
    whole = density.sum(axis=2)
    mixed = (
        density @ np.array([[*bytes.fromhex(colour[1:])] for colour in colours]) / np.maximum(whole, 1e-12)[..., None]
    )
    single = 1 / (2 * np.pi * BACKDROP_SMOOTHING**2)  # smoothed density in the cell of a point
    share = np.minimum(whole / np.percentile(whole[whole > 1e-6], 99), 1)
    opacity = FAINTEST * np.minimum(whole / single, 1) + (DARKEST - FAINTEST) * share**CURVE
    pixels = np.concatenate([mixed, 255 * opacity[..., None]], axis=2).round().astype(np.uint8)
    picture = b64encode(png(pixels.transpose(1, 0, 2)[::-1])).decode()  # reversed: a picture begins at its top
    fig.add_layout_image(
        source=f"data:image/png;base64,{picture}",
        xref="x",
        yref="y",
        x=left,
        y=low + up,
        sizex=across,
        sizey=up,
        sizing="stretch",
        layer="below",
    )


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return the bytes of a PNG file. pixels: red, green, blue and opacity, shape (rows, columns, 4)."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns, _ = pixels.shape
    # 8 bits per channel; colour type 6, which is red, green, blue and opacity. Each line begins with a 0 (no filter).
    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    lines = np.pad(pixels.reshape(rows, -1), ((0, 0), (1, 0)))
    body = zlib.compress(lines.tobytes())
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", body) + part(b"IEND", b"")


def _room(axis: FloatArray) -> tuple[float, float]:
    """Return start and length of an interval that contains all values and a margin for the smoothing."""
    length = max(float(np.ptp(axis)), 1e-9)
    return float(axis.min()) - 0.02 * length, 1.04 * length


MAP_WIDTH, MAP_MARGINS = 840, 80  # in pixels: width of the map in a window of 1280 pixels; height of the map's margins

STEP = 4  # pixels per step: points are counted in squares of this side, and names are moved by whole steps

LETTER, LINE = 6.2 / STEP, 20 // STEP  # average width of a letter and height of a line, in steps

Box = tuple[slice, slice]  # rectangle that a name covers: steps across, steps up


def label_topics(fig: go.Figure, x: FloatArray, y: FloatArray, topics: IntArray, names: Sequence[str]) -> None:
    """Write the topics' names on a map, the largest topic first.

    x, y: positions, shape (m,). topics: indices into `names`, shape (m,). A name is written near the middle of its
    topic, where it covers the fewest points and no other name. If the name is beside its topic, a line connects it to
    the nearest point in the inner half of the topic. A name for which there is no space is left out.
    If the dots are coloured by these names, a coloured dot before each name replaces the legend.
    """
    if not len(x):
        return
    across, up = _steps(x, MAP_WIDTH), _steps(y, int(fig.layout.height) - MAP_MARGINS)
    cost = np.zeros((int(across.max()) + 1, int(up.max()) + 1))
    np.add.at(cost, (across, up), 1)
    colours = {trace.legendgroup: trace.marker.color for trace in fig.data if trace.legendgroup in names}
    for trace in fig.data:
        if trace.legendgroup in colours:
            # Remove the group, because with groups Plotly stacks all entries of the legend, even hidden ones.
            trace.update(showlegend=False, legendgroup=None)
    # Collect the annotations and assign them once, because Plotly rebuilds all annotations at each assignment.
    notes = list(fig.layout.annotations)
    for topic in np.argsort(-np.bincount(topics, minlength=len(names)), kind="stable").tolist():
        inside = np.flatnonzero(topics == topic)
        if not len(inside):
            continue
        middle = _middle(x, y, inside)
        position = int(across[middle]), int(up[middle])
        boxes = _boxes(*position, round(LETTER * (len(names[topic]) + 3) / 2), cost.shape)
        best, move, box = min(
            ((float(cost[box].sum()) + abs(move[0]) + 2 * abs(move[1]), move, box) for move, box in boxes),
            key=lambda candidate: candidate[0],  # among equal costs, `min` returns the first, so it is deterministic
            default=(np.inf, (0, 0), (slice(0), slice(0))),
        )
        if np.isfinite(best):  # an infinite cost means that another name is there
            cost[box] = np.inf
            colour = colours.get(names[topic])
            dot = f'<span style="color:{colour}">●</span> ' if colour else ""
            label = position[0] + move[0], position[1] + move[1]
            end = middle
            if any(move):
                end = int(inside[_nearest(across[inside] - position[0], up[inside] - position[1], move)])
            to_label = label[0] - int(across[end]), label[1] - int(up[end])
            notes.append(_note((float(x[end]), float(y[end])), dot + plain(names[topic]), to_label))
    fig.layout.annotations = notes


def _steps(axis: FloatArray, pixels: int) -> IntArray:
    """Return the values' positions on an axis of `pixels` pixels, in steps of STEP pixels, shape (m,)."""
    steps: IntArray = ((axis - axis.min()) * (pixels / STEP / max(float(np.ptp(axis)), 1e-9))).astype(np.int64)
    return steps


def _middle(x: FloatArray, y: FloatArray, inside: IntArray) -> int:
    """Return the point of `inside` nearest to their median position, which may itself lie outside of the topic."""
    far = (x[inside] - np.median(x[inside])) ** 2 + (y[inside] - np.median(y[inside])) ** 2
    return int(inside[far.argmin()])


def _nearest(right: IntArray, higher: IntArray, label: tuple[int, int]) -> int:
    """Return the index of a topic's point nearest to the topic's label. Only the inner half of the points is searched.

    right, higher: positions of the points relative to the topic's middle, in steps, shape (m,). label: position of the
    label relative to the topic's middle, in steps.
    """
    from_middle = right**2 + higher**2
    from_label = (right - label[0]) ** 2 + (higher - label[1]) ** 2
    return int(np.where(from_middle <= np.median(from_middle), from_label, np.iinfo(np.int64).max).argmin())


def _boxes(x: int, y: int, half: int, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], Box]]:
    """Yield (offset from the topic's middle, box) for possible positions of a name that is `2 * half` steps wide."""
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
