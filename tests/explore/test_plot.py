"""The figure of the map: points, colours, contours, labels, tooltips, and its size."""

import io
from base64 import b64decode

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from core import charts
from core.explore import plot
from core.explore.plot import FEWEST, Dots, HoverRow, View, _kinds, density_lines, enclosing


def drawn(n: int) -> Dots:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n)).astype(np.float32)
    kinds = np.arange(n) % 3
    return Dots(x=x, y=y, points=np.arange(n) * 2, kinds=kinds.astype(np.uint8), hovered=kinds != 2)


def points_in(fig: go.Figure) -> list[int]:
    return sorted(point for trace in fig.data if trace.customdata is not None for point in trace.customdata.tolist())


def test_every_point_is_drawn_once_in_every_colouring() -> None:
    some = drawn(99)
    values = np.where(np.arange(99) % 5 == 0, np.nan, np.arange(99.0))
    names = [f"topic {i % 11}" for i in range(99)]
    for fig in (
        plot.by_class(some, [33, 33, 33], View()),
        plot.by_value(some, values, "cosine", View()),
        plot.by_name(some, names, View()),
    ):
        assert points_in(fig) == (np.arange(99) * 2).tolist()
        for trace in fig.data:
            if trace.customdata is not None:
                at = np.asarray(trace.customdata) // 2
                assert np.array_equal(trace.x, some.x[at])
                assert np.array_equal(trace.y, some.y[at])
    coloured = np.linspace(0, 1, 99)
    fig = plot.by_value(some, coloured, "cosine", View())
    for trace in fig.data:
        if trace.customdata is not None:
            assert np.allclose(trace.marker.color, coloured[np.asarray(trace.customdata) // 2])
    assert fig.layout.coloraxis.cmin == pytest.approx(0.01)


def test_selected_points_are_drawn_above_and_task_points_are_open() -> None:
    for looks in (plot.CLASS_LOOKS, plot.SIDE_LOOKS):
        assert len({look.symbol for look in looks}) == len({look.colour for look in looks}) == len(looks)
        order = [looks.index(look) for kind, _ in _kinds(drawn(9), looks) for look in looks[kind : kind + 1]]
        names = [looks[kind].name for kind in order]
        assert names.index("task corpus") < min(
            names.index(name) for name in names if name in {"selected", "both", "only A"}
        )
        assert names[0] in {"not selected", "neither"}
    task, selected, filtered = plot.CLASS_LOOKS
    assert task.symbol.endswith("-open")  # does not hide points below
    assert task.size > selected.size > filtered.size


def test_twelve_topics_have_distinct_colours() -> None:
    names = [f"topic {i % 12}" for i in range(96)]
    fig = plot.by_name(drawn(96), names, View())
    colours = {trace.legendgroup: trace.marker.color for trace in fig.data if trace.legendgroup}
    assert len(set(colours.values())) == len(colours) == 12
    assert charts.COLOURS["filtered"] not in colours.values()
    more = plot.by_name(drawn(96), [f"topic {i % 15}" for i in range(96)], View())
    assert any(trace.name and trace.name.startswith("3 more (") for trace in more.data)


def test_topic_labels_do_not_overlap() -> None:
    rng = np.random.default_rng(1)
    topics = np.repeat(np.arange(12), 50)
    x, y = (rng.normal(size=(2, 12)) @ np.eye(12)[topics].T * 0.2 + rng.normal(size=(2, 600))).astype(np.float32)
    names = [f"word{i}, <b>other</b>, more" for i in range(11)] + ["nobody's"]
    topics[topics == 11] = 10
    kinds = np.zeros(600, dtype=np.uint8)
    some = Dots(x=x, y=y, points=np.arange(600), kinds=kinds, hovered=kinds > 0)
    fig = plot.by_name(some, [names[i] for i in topics], View())
    plot.label_topics(fig, x, y, topics, names)
    written = fig.layout.annotations
    assert sorted(note.text.partition("</span> ")[2] for note in written) == sorted(
        name.replace("<", "&lt;").replace(">", "&gt;") for name in names[:11]
    )  # one with points is named once, letter by letter
    assert not any(trace.showlegend for trace in fig.data if trace.customdata is not None)
    assert len({note.text[: note.text.index("●")] for note in written}) == 11
    width, height = 840 / np.ptp(x), (View().height - 80) / np.ptp(y)
    places = [(note.x * width + (note.ax or 0), note.y * height - (note.ay or 0)) for note in written]
    for i, (x0, y0) in enumerate(places):
        for x1, y1 in places[:i]:
            assert abs(x0 - x1) > 6 * 20 or abs(y0 - y1) >= 16
    for topic, note in enumerate(sorted(written, key=lambda note: int(note.text.partition("word")[2].split(",")[0]))):
        assert (note.x, note.y) in set(zip(x[topics == topic].tolist(), y[topics == topic].tolist(), strict=True))


def test_line_of_a_topic_label_ends_at_the_border_of_the_topic() -> None:
    rng = np.random.default_rng(3)
    topics = np.repeat([0, 1], 2000)
    x, y = rng.normal(size=(2, 4000)).astype(np.float32)
    x += np.float32(0.5) * topics
    fig = plot.by_class(
        Dots(x=x, y=y, points=np.arange(4000), kinds=topics, hovered=topics > 1), [2000, 2000, 0], View()
    )
    plot.label_topics(fig, x, y, topics, ["a long first name", "a long second name"])
    moved = [note for note in fig.layout.annotations if note.showarrow]
    assert moved
    wide, high = 840 / np.ptp(x), (View().height - 80) / np.ptp(y)
    for note in moved:
        topic = int("second" in note.text)
        mine = np.stack([x[topics == topic] * wide, y[topics == topic] * high], axis=1)
        end = np.array([note.x * wide, note.y * high])
        label = end + np.array([note.ax, -note.ay])
        middle = np.median(mine, axis=0)
        core = mine[np.argsort(np.linalg.norm(mine - middle, axis=1))[:1000]]
        along = (core - end) @ (label - end) / np.linalg.norm(label - end)
        across = np.abs((core - end) @ np.array([note.ay, note.ax]) / np.linalg.norm(label - end))
        crossed = (along > 12) & (across < 3)  # points under the line, beyond a few pixels of rounding
        assert crossed.sum() <= 4


def test_marks_zoom_outlines_and_an_empty_map_are_drawn() -> None:
    fig = plot.by_class(drawn(30), [10, 10, 10], View())
    plot.mark(fig, drawn(30), np.array([0, 4, 5, 1000]), "found")
    assert fig.data[-1].customdata.tolist() == [0, 4]
    assert fig.data[-1].name == "found (2)"
    *others, found = fig.data  # a ring covers dots beside it, and a click on the ring must open its own sentence
    assert found.hoverinfo == "none"
    assert {trace.hoverinfo for trace in others} == {"skip"}
    fig = plot.by_class(drawn(30), [10, 10, 10], View())
    before = [trace.hoverinfo for trace in fig.data]
    plot.mark(fig, drawn(30), np.array([1000]), "found")
    assert [trace.hoverinfo for trace in fig.data[:-1]] == before
    assert "none" in before
    view = View(zoom=(0, 1, 2, 3), outlines=(((0, 0), (1, 0), (1, 1)),))
    fig = plot.by_class(drawn(9), [3, 3, 3], view)
    assert (fig.layout.xaxis.range, fig.layout.yaxis.range) == ((0, 1), (2, 3))
    assert fig.layout.selections[0].path == "M0,0L1,0L1,1Z"
    assert fig.layout.uirevision == "map"
    fig = plot.by_class(drawn(0), [0, 0, 0], View())  # a map without points
    plot.label_topics(fig, np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0, np.int16), ["a"])
    assert not fig.layout.annotations


def test_figure_is_small_and_only_points_with_tooltips_react() -> None:
    fig = plot.by_class(drawn(50_000), [17_000] * 3, View())
    assert len(fig.to_json()) < 1_500_000
    filtered, task, selected = fig.data
    assert (task.hoverinfo, selected.hoverinfo, filtered.hoverinfo) == ("none", "none", "skip")


def test_tooltip_shows_class_score_row_place_and_sentence() -> None:
    text = "<b>bold</b> & more"
    rows: list[HoverRow] = [
        {"score": float("nan"), "row": 7, "text": text, "place": ""},
        {"score": 0.25, "row": 1200, "text": text, "place": "lease.pdf, page 3"},
    ]
    lines = plot.hover_lines(["T_C", "selected"], rows)
    assert lines == [f"T_C · row 7\n{text}", f"selected · score 0.25 · row 1,200 · lease.pdf, page 3\n{text}"]


def test_overlap_is_drawn_beside_chance() -> None:
    ours, chance = plot.overlap_lines([(10, 5), (100, 100)], 100).data
    assert list(ours.y) == [0.5, 1.0]
    assert list(chance.y) == [0.1, 1.0]


def test_cell_holds_the_mass_of_all_denser_cells() -> None:
    held = enclosing(np.array([[1.0, 5.0], [0.0, 4.0]]))
    assert held.ravel().tolist() == pytest.approx([1.0, 0.5, 1.0, 0.9])


def test_contour_of_half_contains_half_of_the_points() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 20_000)).astype(np.float32)
    fig = go.Figure()
    density_lines(fig, x, y, np.zeros(20_000, dtype=np.uint8))
    [trace] = fig.data
    edges = [np.asarray(axis) for axis in (trace.x, trace.y)]
    column, row = (
        np.clip(np.searchsorted(axis, values), 0, len(axis) - 1) for axis, values in zip(edges, (x, y), strict=True)
    )
    inside = np.asarray(trace.z)[row, column] <= 0.5
    assert inside.mean() == pytest.approx(0.5, abs=0.05)
    assert np.hypot(x[inside], y[inside]).max() < np.hypot(x[~inside], y[~inside]).max()


def test_class_with_few_points_has_no_contour() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 200))
    kinds = np.repeat([0, 1], [FEWEST - 1, 200 - FEWEST + 1])
    fig = go.Figure()
    density_lines(fig, x, y, kinds)
    assert [trace.name for trace in fig.data] == ["selected"]
    density_lines(fig, np.ones(50), np.ones(50), np.zeros(50, dtype=np.uint8))  # points in one place
    assert np.isfinite(fig.data[-1].z).all()


def test_backdrop_shows_each_class_in_its_colour_where_its_points_are() -> None:
    # The left cloud has two classes, two to one; the right one is in the third class, below and sparser.
    rng = np.random.default_rng(2)
    left, right = rng.normal((0, 50), 1, size=(3_000, 2)), rng.normal((100, 0), 1, size=(60, 2))
    xy, kinds = np.concatenate([left, right]), np.repeat([0, 1, 2], [2_000, 1_000, 60])
    fig = go.Figure()
    plot.backdrop(fig, xy[:, 0], xy[:, 1], kinds, ["#ff0000", "#00ff00", "#0000ff"])
    [image] = fig.layout.images
    head, _, body = image.source.partition(",")
    assert head == "data:image/png;base64"
    picture = np.asarray(Image.open(io.BytesIO(b64decode(body))))
    rows, columns, _ = picture.shape
    assert (columns, rows) == plot.BACKDROP_CELLS

    def at(x: float, y: float) -> list[int]:
        """Return the pixel at a place: positions are those of the image on the axes, whose y points upwards."""
        found: list[int] = picture[
            int((image.y - y) / image.sizey * rows), int((x - image.x) / image.sizex * columns)
        ].tolist()
        return found

    red, green, blue, dense = at(0, 50)
    assert [red, green] == pytest.approx([170, 85], abs=25)
    assert blue == 0
    assert dense == round(255 * plot.DARKEST)
    assert at(100, 0)[:3] == [0, 0, 255]
    assert 40 < at(100, 0)[3] < dense
    assert at(100, 50)[3] == at(0, 0)[3] == at(50, 25)[3] == 0
    assert len(image.source) < 60_000
