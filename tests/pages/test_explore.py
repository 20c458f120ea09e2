"""The page Explore: the map, its regions, edits of the selection by hand, and the other tabs."""

import base64
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import terms
from core.charts import plain as plots_plain
from core.cli.main import run_main
from core.corpora.library import Library
from core.errors import ConfigError
from core.explore import atlas, regions
from core.explore import view as maps
from core.explore.regions import Region
from core.explore.result import CLASSES
from core.importing import view as corpora
from core.projects import removals, runs
from core.selection import insights
from core.selection import view as selections
from pages.ui.explore import controls, panel, state
from pages.ui.explore import map as map_view
from pages.ui.explore.controls import FILTERS, MOST_DRAWN
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import sentence
from tests.fake_models import found_by_list, tiny_mlm
from tests.homes import Homes
from tests.pages.drawing import ROOT, SELECTION, keys, opened, opened_on, press, texts
from tests.pages.test_selection import typed
from tests.planted import contracts, kitchen

PAGE = "pages/4_Explore.py"
NASTY = "The <img src=x onerror=alert(1)> clause of [the contract](http://evil.example) is :red[void] here ."
COURTS = ("Ulm", "<b>Hamburg</b>")
NAMES = {"supplier": "PARTY", "buyer": "<b>ODD</b>"}
FORGED = ("lasso:../../x", "lasso:00000000", "topic:" + "9" * 5000, "nonsense")
PANEL = {FILTERS: True}  # state of a page that shows the panel beside the map
SPOILT: list[tuple[Region, list[object]]] = [  # a region, and values that make it invalid
    ({"kind": "lasso", "value": [[[0, 1.5], [2, 3], [4, 1]]]}, [[], [[["", 1]]], [[[1]]], [[[float("nan"), 1]]], 3]),
    ({"kind": "box", "value": [[0, 1, 2, 3.5]]}, [[], [[0, 1, 2]], [[0, 1, 2, "x"]], None]),
    ({"kind": "score", "value": [0.5, 1]}, [[0.5], ["a", "b"], {}]),
    ({"kind": "topic", "value": 1}, [99, -1, "1", 10**30]),
    ({"kind": "point", "value": 1}, [10**6, -1, 0.5, [1]]),
    ({"kind": "class", "value": "T_C"}, ["other", 1, None]),
    ({"kind": "hits", "value": ["x", "words"]}, [["x"], ["x", "other"], "x"]),
    ({"kind": "column", "value": {"court": ["Ulm"]}}, [{}, {"court": []}, {"court": [1]}, "Ulm"]),
    (
        {"kind": "all", "value": [{"kind": "class", "value": "T_C"}, {"kind": "topic", "value": 1}]},
        [[], [{"kind": "class", "value": "T_C"}], [{"kind": "class"}, {"kind": "topic", "value": 1}], [1, 2]],
    ),
]
Made = Mapping[str, str]


def build_explored(home: Path) -> Made:
    """Make two selections from one domain corpus with columns, a map of the first, and the entities of a tagger."""
    for name, lines in (("task", contracts(40, seed=1)), ("domain", [*contracts(110, seed=2), *kitchen(110), NASTY])):
        rows = [replace(sentence(line), file=f"{name}.pdf", page=7) for line in lines]
        if name == "domain":
            columns = ((("court", COURTS[i % 2]), ("state", "one"), ("score", str(i))) for i in range(len(rows)))
            rows = [replace(row, columns=column) for row, column in zip(rows, columns, strict=True)]
        corpora.set_role(name, Library(home).seal(rows, name=name, origin={}, labelled=False).fingerprint)
    options = {**corpora.roles(), "encoder": "tiny", "budget": "40"}
    other, select = (runs.execute("select", {**options, "strategy": by}).id for by in ("random", "knn"))
    tagger = SimpleNamespace(
        types=("<b>ODD</b>", "PARTY"),
        predict=lambda some, report: found_by_list(some, NAMES),
        crf=SimpleNamespace(),
        context_pieces=0,
        cut=None,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.models.taggers.load_tagger", lambda folder: tagger)
        tag = runs.execute("tag", {"corpus": "domain", "model": str(tiny_mlm(home / "tagger"))}).id
    map_run = runs.execute("map", maps.options(select, sample=150, clusters=4)).id
    return {"select": select, "other": other, "tag": tag, "map": map_run}


@pytest.fixture
def made(homes: Homes, home: Path) -> Made:
    return homes.copy(build_explored, home)


def picked(kind: str, value: object, map_run: str) -> dict[str, Any]:
    """Return the page's state after a choice on the map, which only a browser can make."""
    return {state.PICKED: {"map": map_run, "kind": kind, "value": value}}


def counted(app: AppTest) -> dict[str, tuple[int, int]]:
    """Return {class: (sentences in the region, sentences on the map)} as the page shows them."""
    table = next(m.value for m in app.markdown if m.value.startswith("| Class |"))
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {name: (int(inside.replace(",", "")), int(of.replace(",", ""))) for name, inside, of in rows}


def figure_of(app: AppTest, number: int = 0) -> dict[str, Any]:
    figure: dict[str, Any] = json.loads(app.get("plotly_chart")[number].proto.spec)
    return figure


def numbers(packed: Any) -> list[float]:
    """Return an array of a figure, as plotly packs it."""
    if isinstance(packed, dict):
        return [float(number) for number in np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])]
    return list(packed)


def tooltips_of(app: AppTest) -> dict[str, Any]:
    """Return the tooltips that are sent after the map: numbers of points, and the text of each."""
    [packed] = [part.proto.bytes for part in app.get("bidi_component") if part.proto.bytes]
    unpacked: dict[str, Any] = json.loads(packed)
    return unpacked


def middle(map_run: str, low: float = 0.203, high: float = 0.707) -> Region:
    """Return a lasso around the middle of a map, between points."""
    (x0, x1), (y0, y1) = (np.quantile(axis, [low, high]).tolist() for axis in maps.get(map_run).xy[:2])
    return {"kind": "lasso", "value": [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)]]}


def group(app: AppTest) -> Any:
    """Return the list of topics, classes and named lassos."""
    return next(box for box in app.selectbox if box.label.startswith("Pick a topic"))


def test_topics_to_pick_are_readable(made: Made) -> None:
    topics = [name for name in group(opened_on(PAGE, made["select"], PANEL)).options if name.startswith("Topic")]
    assert any("," in name for name in topics)
    assert not any("&" in name for name in topics)


def test_map_is_coloured_by_class_topic_and_column_and_shows_no_text_as_markup(made: Made) -> None:
    app = opened_on(PAGE, made["select"], PANEL)
    assert not app.error
    [ahead] = [part for part in app.sidebar.get("bidi_component") if part.key == "ahead"]  # sent before the map is
    script = json.loads(ahead.proto.json)["script"]
    assert (Path(st.__file__).parent / "static" / script.lstrip("/")).is_file()
    traces = figure_of(app)["data"]
    assert [len(numbers(trace["customdata"])) for trace in traces] == [181, 40, 40]
    assert [trace["name"] for trace in traces] == ["not selected (181)", "task corpus (40)", "selected (40)"]
    assert {"All sentences that are not selected", "All selected sentences"} <= set(group(app).options)
    assert "filtered" not in texts(app)
    assert len({trace["marker"]["symbol"] for trace in traces}) == 3
    assert {trace["type"] for trace in traces} == {"scattergl"}
    assert list(counted(app).values()) == [(40, 40), (40, 40), (181, 181)]
    assert len(app.dataframe[0].value) == 10
    assert (np.diff(app.dataframe[0].value["score"]) <= 0).all()  # closest to T_C first
    app.session_state["explore.order.score.high"] = False
    assert json.loads(app.get("plotly_chart")[0].proto.config)["toImageButtonOptions"]["format"] == "png"
    names = {plots_plain(cluster.name) for cluster in maps.get(made["map"]).clusters}
    assert {note["text"] for note in figure_of(app)["layout"]["annotations"]} == names
    app.button_group(key="explore.layers").set_value(["density"])
    app.button_group(key="explore.picture").set_value("svg")
    app.selectbox(key="explore.by").set_value("column").run()
    assert (np.diff(app.dataframe[0].value["score"]) >= 0).all()
    assert "annotations" not in figure_of(app)["layout"]
    assert [trace for trace in figure_of(app)["data"] if trace["type"] == "contour"]
    assert json.loads(app.get("plotly_chart")[0].proto.config)["toImageButtonOptions"]["format"] == "svg"
    # All rows have the same state, so it is not offered.
    assert app.selectbox(key="explore.column").options == ["court", "score"]
    named = {trace["name"] for trace in figure_of(app)["data"] if trace.get("legendgroup")}
    assert named == {
        "&lt;b&gt;Hamburg&lt;/b&gt; (110)",
        "Ulm (111)",
        "unknown (40)",
    }  # sentences of the task corpus have no court
    app.selectbox(key="explore.column").select("score").run()
    traces = [trace for trace in figure_of(app)["data"] if trace.get("marker", {}).get("coloraxis")]
    assert sorted(value for trace in traces for value in numbers(trace["marker"]["color"])) == list(range(221))
    point = len(maps.get(made["map"])) - 1
    app.session_state[state.PICKED] = picked("point", point, made["map"])[state.PICKED]
    app.run()
    assert plain(NASTY.split("]", maxsplit=1)[0][-5:]) in texts(app) or "&lt;img src=x" in texts(app)
    assert "<img" not in texts(app)
    assert "<img" not in app.get("plotly_chart")[0].proto.spec
    assert not any("](http" in part.value for part in app.markdown)
    tooltips = tooltips_of(app)  # not escaped, because the browser shows tooltips as text
    line = tooltips["lines"][tooltips["points"].index(point)]
    assert " · domain.pdf, page 7\n" in line
    assert line.endswith(f"\n{NASTY}")


def test_map_button_reuses_the_map_of_another_selection_or_starts_one(
    made: Made, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    app = opened_on(SELECTION, made["other"])
    press(app, "selection.map")
    assert app.title[0].value == "Explore"
    assert [len(numbers(trace["customdata"])) for trace in figure_of(app)["data"]] == [181, 40, 40]
    assert started_runs == []
    removals.remove_run(made["map"])
    press(opened_on(PAGE, made["select"]), "explore.make")
    app = press(opened_on(SELECTION, made["select"]), "selection.map")
    assert [(kind, options["selection"]) for kind, options in started_runs] == [("map", made["select"])] * 2
    assert app.session_state["explore.shown"] == made["select"]


def test_lasso_counts_its_points_stays_until_cleared_and_can_be_named(
    made: Made,
) -> None:
    map_run, kinds = made["map"], maps.classes(made["map"])
    region = middle(map_run)
    (x0, y0), _, (x1, y1), _ = region["value"][0]
    x, y = maps.get(map_run).xy.astype(np.float64)
    inside = (x > x0) & (x < x1) & (y > y0) & (y < y1)
    expected = [(int((inside & (kinds == kind)).sum()), int((kinds == kind).sum())) for kind in range(3)]
    assert list(maps.class_counts(maps.get(map_run).lasso(region["value"][0]), kinds).values()) == expected
    app = opened(PAGE, picked("lasso", region["value"], map_run))
    assert list(counted(app).values()) == expected
    assert f"**{inside.sum():,} sentences**" in texts(app)
    token = regions.region_token(region)
    app.text_input(key=f"explore.named.{token}").set_value("<b>boiler</b> plate")
    press(app, "explore.name")
    assert "<b>boiler" not in texts(app)
    mark = made["select"][-4:]
    assert regions.region_file(made["select"], map_run, region) == f"b_boiler_b_plate-{mark}-40"
    several = regions.joined([{"kind": "topic", "value": 1}, {"kind": "class", "value": "selected"}])
    assert re.fullmatch(rf"topic_class_[0-9a-f]{{4}}-{mark}-40", regions.region_file(made["select"], map_run, several))
    hits: Region = {"kind": "hits", "value": ["rent", "words"]}
    assert regions.region_file(made["select"], map_run, hits) == f"search-{mark}-40"  # without the words searched for
    regions.keep_region(map_run, region)
    app = opened(PAGE, PANEL)
    assert list(counted(app).values()) == expected
    assert len(figure_of(app)["layout"]["selections"]) == 1
    press(app, "explore.clear")
    assert list(counted(app).values()) == [(40, 40), (40, 40), (181, 181)]
    assert regions.kept_region(map_run) is None
    group(app).set_value(("named", token)).run()
    assert list(counted(app).values()) == expected
    assert regions.region_token(regions.region_of(map_run, "<b>boiler</b> plate")) == token  # for the command line
    regions.name_region(map_run, region, "")
    assert regions.named_regions(map_run) == {}


def test_names_of_regions_may_look_like_tokens_but_must_be_unique(made: Made) -> None:
    map_run, one, two = made["map"], middle(made["map"]), middle(made["map"], 0.4, 0.9)
    tokens = [regions.region_token(region) for region in (one, two)]
    for name in ("Q1: leases", "A: rent, fees", "old,new"):
        regions.name_region(map_run, one, name)
        assert regions.region_token(regions.region_of(map_run, name)) == tokens[0]
    regions.name_region(map_run, one, "topic:1")
    assert regions.region_of(map_run, "topic:1") == {"kind": "topic", "value": 1}
    for region in (one, two):
        regions.name_region(map_run, region, "boilerplate")
    both = regions.region_of(map_run, ",".join(tokens))
    assert [regions.region_token(region) for region in both["value"]] == tokens
    with pytest.raises(ConfigError, match="2 regions of this map are named 'boilerplate'; give one of them") as error:
        regions.region_of(map_run, "boilerplate")
    assert all(token in str(error.value) for token in tokens)


def test_forged_regions_and_damaged_names_of_regions_are_refused(made: Made) -> None:
    for forged in ("score:-inf~1", "score:1~inf", "score:nan~nan", "score:2~1", *FORGED):
        with pytest.raises(ConfigError, match="is not on this map"):
            regions.region_of(made["map"], forged)
    spoilt = '{"lasso:zz": "gone", "topic:0": 3, "lasso": "no token", "box": "none", "topic:1": "no lasso"}'
    (runs.get(made["map"]).path / "region-names.json").write_text(spoilt)
    assert regions.named_regions(made["map"]) == {}


def test_damaged_region_counts_as_none(made: Made) -> None:
    file = runs.get(made["map"]).path / "region.json"
    spoilt: object
    for sound, all_spoilt in SPOILT:
        file.write_text(json.dumps(sound))
        assert regions.kept_region(made["map"]) == sound
        regions.region_points(made["map"], sound, maps.classes(made["map"]))
        for spoilt in [*({**sound, "value": value} for value in (*all_spoilt, {"a": 1})), {**sound, "kind": ["topic"]}]:
            file.write_text(json.dumps(spoilt))
            assert regions.kept_region(made["map"]) is None, spoilt


def test_score_range_applies_to_map_list_and_histogram(made: Made) -> None:
    map_run = made["map"]
    app = opened(PAGE, PANEL)
    [slider] = [each for each in app.slider if (each.key or "").startswith("explore.range.")]
    low, high = slider.value
    slider.set_value((low + (high - low) * 0.7, high)).run()
    values = maps.colour_numbers(map_run, np.arange(len(maps.get(map_run))), "score")
    bound = next(each.value for each in app.slider if (each.key or "").startswith("explore.range."))[0]
    inside = np.flatnonzero(values >= bound - 1e-5 * np.nanmax(np.abs(values)))
    assert 0 < len(inside) < len(values)
    assert f"**{len(inside):,} sentences**" in texts(app)  # the list
    opacity_of = {
        int(point): float(o)
        for trace in figure_of(app)["data"]
        if "customdata" in trace
        for point, o in zip(numbers(trace["customdata"]), numbers(trace["marker"]["opacity"]), strict=True)
    }
    # The map highlights the same points.
    assert {point for point, opacity in opacity_of.items() if opacity > 0.5} == set(inside.tolist())
    bars = {trace["name"]: numbers(trace["y"]) for trace in figure_of(app, 1)["data"]}
    assert sum(bars["picked"]) == len(inside) < sum(bars["on the map"])
    token = regions.region_token(regions.kept_region(map_run))
    again = regions.region_points(map_run, regions.region_of(map_run, token), maps.classes(map_run))
    assert again.tolist() == inside.tolist()


def test_class_score_column_and_search_filter_map_and_table_together(made: Made) -> None:
    map_run, kinds = made["map"], maps.classes(made["map"])
    mapped = maps.get(map_run)
    app = opened(PAGE, PANEL)
    ulm = next(box for box in app.multiselect if box.label.lower() == "court")
    assert "Ulm (111)" in ulm.options
    ulm.set_value(["Ulm"]).run()
    group(app).set_value(("class", "filtered")).run()
    values = maps.colour_numbers(map_run, np.arange(len(mapped)), "score")
    [slider] = [each for each in app.slider if (each.key or "").startswith("explore.range.")]
    slider.set_value((float(np.nanmedian(values)), slider.value[1])).run()
    app.text_input(key="explore.query").set_value("the").run()
    low = next(each.value for each in app.slider if (each.key or "").startswith("explore.range."))[0]
    courts = np.array(maps.column_names(map_run, np.arange(len(mapped)), "court"))
    has_word = np.array(["the" in text.lower() for text in mapped.texts(np.arange(len(mapped)))])
    inside = np.flatnonzero((courts == "Ulm") & (kinds == 2) & (values >= low - 1e-5 * np.nanmax(values)) & has_word)
    assert 0 < len(inside) < 111
    assert f"**{len(inside):,} of 261 sentences**" in texts(app)
    assert f"**{len(inside):,} sentences**" in texts(app)  # the list
    bright = {
        int(point)
        for trace in figure_of(app)["data"]
        if "customdata" in trace and "opacity" in trace["marker"]
        for point, o in zip(numbers(trace["customdata"]), numbers(trace["marker"]["opacity"]), strict=True)
        if o > 0.5
    }
    assert bright == set(inside.tolist())  # the map highlights the same points
    assert "region" not in app.query_params  # addresses contain no search terms
    app.text_input(key="explore.query").set_value("").run()
    token = str(app.query_params["region"])
    region = regions.region_of(map_run, token)
    assert {part["kind"] for part in regions.parts(region)} == {"column", "class", "score"}
    more = regions.region_points(map_run, region, kinds)
    assert set(inside.tolist()) <= set(more.tolist())
    point = int(more[0])
    app = opened(PAGE, picked("all", [*regions.parts(region), {"kind": "point", "value": point}], map_run))
    assert f"**{len(more):,} sentences**" in texts(app)  # an opened sentence does not change the list
    assert any(metric.label == "Rank by score" for metric in app.metric)
    press(app, "explore.drop.point")
    assert not app.metric
    assert f"**{len(more):,} sentences**" in texts(app)


def test_sentences_are_grouped_by_topic_and_column_with_shares(made: Made) -> None:
    map_run, kinds = made["map"], maps.classes(made["map"])
    mapped, everything = maps.get(map_run), np.arange(len(kinds))
    assert maps.group_columns(map_run)[:2] == [maps.TOPIC, "file"]
    values = maps.colour_numbers(map_run, everything, "score")
    some = everything[::3]
    for column in (maps.TOPIC, "court", "score"):
        names = maps.colour_names(map_run, some, "cluster") if column == maps.TOPIC else None
        names = names or maps.column_names(map_run, some, column)
        rows = maps.groups(map_run, some, kinds, column)
        assert sum(row["task"] + row["domain"] for row in rows) == len(some)
        sizes = [row["task"] + row["domain"] for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        assert {row["name"] for row in rows} == set(names)
        for row in rows:
            inside = [point for point, name in zip(some.tolist(), names, strict=True) if name == row["name"]]
            if column == maps.TOPIC:
                inside = [point for point in some.tolist() if mapped.cluster[point] == row["value"]]
            assert row["task"] == sum(kinds[point] == 0 for point in inside)
            assert row["selected"] == sum(kinds[point] == 1 for point in inside)
            scored = [values[point] for point in inside if kinds[point]]
            assert row["score"] == pytest.approx(np.mean(scored)) if scored else np.isnan(row["score"])

    app = opened(PAGE)
    app.selectbox(key="explore.grouped").set_value("court").run()
    assert not app.exception
    table = app.dataframe[0].value
    assert dict(zip(table["name"], table["domain"], strict=True)) == {"Ulm": 111, "<b>Hamburg</b>": 110, "unknown": 0}
    assert table["selected"].sum() == 40
    assert table["share"].tolist()[:2] == pytest.approx((table["selected"] / table["domain"]).tolist()[:2])


def test_range_of_a_column_of_numbers_is_picked_with_a_slider(made: Made) -> None:
    map_run, kinds = made["map"], maps.classes(made["map"])
    assert maps.numbers(map_run, "score") == [str(i) for i in range(221)]  # by size, not by letters
    assert maps.numbers(map_run, "court") == []
    app = opened(PAGE, PANEL)
    app.multiselect[-1].set_value(["Ulm"]).run()

    def slider() -> Any:
        return next(each for each in app.slider if (each.key or "").startswith("explore.between.score"))

    assert slider().value == (0, 220)
    slider().set_value((10, 20)).run()
    assert slider().value == (10, 20)
    assert "court: Ulm; score: 10 to 20" in texts(app)
    points = regions.region_points(map_run, regions.kept_region(map_run), kinds)
    assert maps.column_names(map_run, points, "score") == ["10", "12", "14", "16", "18", "20"]
    slider().set_value((0, 220)).run()
    assert "score:" not in texts(app)
    assert regions.kept_region(map_run) == {"kind": "column", "value": {"court": ["Ulm"]}}


def test_legend_names_what_a_click_picks(made: Made) -> None:
    app = opened(PAGE, {"explore.by": "column"})
    metas = [trace["meta"] for trace in figure_of(app)["data"] if trace.get("meta")]
    assert ["column", {"court": ["Ulm"]}] in metas
    assert ["class", "selected"] in metas
    kinds = maps.classes(made["map"])
    for meta in metas:
        region = regions.checked(*meta)
        assert region is not None
        assert len(regions.region_points(made["map"], region, kinds))
    assert regions.checked("class", "nonsense") is None
    assert regions.checked("nonsense", 1) is None


def test_map_is_exported_as_a_folder_for_embedding_atlas(made: Made, tmp_path: Path) -> None:
    select, map_run = made["select"], made["map"]
    regions.name_region(map_run, middle(map_run), "the middle")
    corner: Region = {
        "kind": "lasso",
        "value": [[(1e6, 1e6), (2e6, 1e6), (2e6, 2e6)]],
    }  # contains no point, and has the name of another lasso
    regions.name_region(map_run, corner, "the middle")
    app = opened(PAGE)
    press(app, "explore.atlas")
    [folder] = (runs.get(map_run).home / "exports").glob("atlas-*")
    assert any(f"embedding-atlas {folder}/map.parquet --x x --y y --text text" in code.value for code in app.code)
    table = pq.read_table(folder / "map.parquet")
    mapped, kinds = maps.get(map_run), maps.classes(map_run)
    assert table["x"].to_numpy() == pytest.approx(mapped.xy[0])
    assert table["text"].to_pylist() == mapped.texts(np.arange(len(mapped)))
    assert table["class"].to_pylist() == [terms.plainly(CLASSES[kind]) for kind in kinds.tolist()]
    assert table["corpus"].to_pylist() == ["task corpus"] * mapped.n_task + ["domain corpus"] * (
        len(mapped) - mapped.n_task
    )
    inside = regions.region_points(map_run, middle(map_run), kinds)
    held = [point for point, names in enumerate(table["lassos"].to_pylist()) if names == ["the middle"]]
    assert held == inside.tolist()
    assert {flag for flags in table["flags"].to_pylist() for flag in flags or ()} >= {"near duplicate"}
    of_domain = np.arange(len(mapped)) >= mapped.n_task
    rows = mapped.rows[of_domain].tolist()
    courts = table["court"].to_pylist()
    assert [courts[point] for point in np.flatnonzero(of_domain)] == [COURTS[row % 2] for row in rows]
    assert table["score (file)"].to_numpy()[of_domain].tolist() == [
        float(row) for row in rows
    ]  # Winnow's score has a column too
    assert "state" not in table.column_names
    columns = {name for name in table.column_names if table[name].null_count < len(table)}
    assert columns == set(table.column_names)  # columns without values are left out
    for region in (middle(map_run), corner):
        regions.name_region(map_run, region, "")
    for target, code in ((tmp_path / "atlas", 0), (tmp_path, 2)):
        sys.argv = ["core", "atlas", select, "--output", str(target)]
        assert run_main() == code
    unnamed = pq.read_table(tmp_path / "atlas" / "map.parquet")
    assert unnamed.num_rows == len(mapped)
    assert "lassos" not in unnamed.column_names


def test_failed_export_shows_an_error_and_the_page_stays_complete(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> Path:
        raise ConfigError("exports: there is no room; free some.")

    monkeypatch.setattr(atlas, "export", full)
    monkeypatch.setattr(maps, "export", full)
    monkeypatch.setattr(panel, "LARGEST_DOWNLOAD", 0)
    lasso = picked("lasso", middle(made["map"])["value"], made["map"])
    for button, chosen in (("explore.atlas", {}), ("explore.export.txt", lasso)):
        app = opened(PAGE, chosen)
        charts, folded = len(app.get("plotly_chart")), [part.label for part in app.expander]
        press(app, button)
        assert [error.value for error in app.error] == [plain("exports: there is no room; free some.")]
        assert len(app.get("plotly_chart")) == charts
        assert [part.label for part in app.expander] == folded  # the page is complete to its last expander


@pytest.mark.parametrize(
    ("picked", "kind"), [("lasso", "txt"), ("topic", "jsonl"), ("class", "parquet"), ("lasso", "csv")]
)
def test_shown_command_exports_the_same_bytes_of_a_region_as_the_page(
    picked: str, kind: str, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    select, map_run = made["select"], made["map"]
    pieces: dict[str, Region] = {
        "lasso": middle(map_run),
        "topic": {"kind": "topic", "value": 1},
        "class": {"kind": "class", "value": "selected"},
    }
    selections.keep_budget(select, "30.2%")
    regions.keep_region(map_run, pieces[picked])
    sent: dict[str, bytes] = {}

    def button(label: str, data: Callable[[], bytes], name: str, **_: object) -> None:
        sent[name] = data()

    monkeypatch.setattr(st, "download_button", button)
    app = opened(PAGE, {"explore.command": True})
    token = regions.region_token(pieces[picked])
    assert (app.query_params["region"], app.query_params["choice"]) == (token, select)
    words = shlex.split(next(code.value for code in app.code if "--region" in code.value))
    name = Path(words[-1]).stem
    assert re.fullmatch(rf"{picked}_[0-9a-f]{{4}}-{select[-4:]}-30\.2pct", name)
    assert (words[5:7], words[-1]) == (["--region", token], f"{name}.txt")
    assert typed([*words[:-1], f"{name}.{kind}"], tmp_path, monkeypatch).read_bytes() == sent[f"{name}.{kind}"] != b""


def test_address_restores_an_earlier_lasso_of_this_map_and_refuses_others(made: Made) -> None:
    map_run, first = made["map"], middle(made["map"])
    for region in (first, middle(map_run, 0.4, 0.9)):
        regions.keep_region(map_run, region)
    kinds = maps.classes(map_run)
    inside = maps.class_counts(regions.region_points(map_run, first, kinds), kinds)
    app = opened(PAGE, run=made["select"], region=regions.region_token(first))
    assert counted(app) == inside
    assert regions.region_token(regions.kept_region(map_run)) == regions.region_token(first)
    press(app, "explore.clear")
    assert "region" not in app.query_params
    app = opened(PAGE, run=made["select"], region=FORGED[0])
    assert [warning.value for warning in app.warning if "is not on this map" in warning.value]
    assert app.query_params.get("region") != [FORGED[0]]


def test_search_counts_all_rows_and_stays_out_of_the_address(made: Made) -> None:
    def hit(text: str, mode: str, query: str) -> bool:
        folded = text.lower()
        return query.lower() in folded if mode == "substring" else set(query.split()) <= set(folded.split())

    roles, query = corpora.roles(), "clause the"
    modes: tuple[tuple[Literal["substring", "words"], str], ...] = (("substring", "cLaUs"), ("words", query))
    for mode, words in modes:
        n = {
            role: sum(hit(s.text, mode, words) for b in corpora.find(roles[role]).batches() for s in b)
            for role in roles
        }
        found = maps.search(made["map"], words, mode)
        assert (len(found.rows), len(found.task_rows)) == (n["domain"], n["task"])
        assert n["domain"] > 0
    app = opened(PAGE, {"explore.mode": "words", "explore.query": query})
    assert f"**{n['domain']:,}** in" in texts(app)
    assert "region" not in app.query_params
    assert query not in str(app.query_params).lower()
    assert sum(inside for inside, _ in counted(app).values()) == sum(n.values())  # the region consists of the hits
    assert f"Read the {sum(n.values()):,} sentences below the map" in texts(app)
    assert f"[Read them below the map](#{state.LIST})" in texts(app)
    group(app).set_value(("class", "T_C")).run()
    assert list(counted(app).values())[1][0] == 0  # a class that was chosen after the search remains chosen
    assert not {"explore.add", "explore.remove"} & keys(app)  # sentences of the task corpus are in no selection
    press(app, "explore.drop.class")
    assert list(counted(app).values())[1][0] > 0
    press(app, "explore.clear")
    assert "Read them below the map" not in texts(app)  # the list no longer shows the hits
    press(app, "explore.hits")
    assert sum(inside for inside, _ in counted(app).values()) == sum(n.values())
    app.text_input(key="explore.query").set_value("zzzqq").run()
    assert "explore.hits" not in keys(app)
    assert "zzzqq" in texts(app)


def test_hand_edits_are_stored_and_undo_warns_of_edits_in_another_window(made: Made) -> None:
    select, map_run = made["select"], made["map"]
    found, before = maps.get(map_run), maps.classes(map_run)
    topic = int(np.bincount(found.cluster[before == 1]).argmax())
    here = found.cluster == topic
    filtered = found.rows[here & (before == 2)]
    flagged = filtered[selections.scored(select).audit.mask[filtered] != 0]
    clean = np.setdiff1d(filtered, flagged)
    assert len(flagged)
    assert len(clean)
    app = opened(PAGE, picked("topic", topic, map_run))
    assert app.button(key="explore.add").label == f"Add {len(clean):,} to the selection"
    assert app.button(key="explore.add").proto.shortcut == "alt+a"
    press(app, "explore.add")
    assert sorted(selections.edits(select).added) == sorted(clean)
    assert not app.warning
    press(app, "explore.add-flagged")
    assert sorted(selections.edits(select).added) == sorted(filtered)
    assert "explore.add" not in keys(app)
    assert app.warning  # as long as flagged sentences are selected
    press(app, "explore.remove")
    rows = found.rows[here & (before != 0)]
    assert sorted(selections.edits(select).removed) == sorted(rows)
    fresh = opened(PAGE)  # another session, as after a reload
    assert f"{len(rows):,} removed" in texts(fresh)
    selections.edit(select, "add", np.array([1, 2]))  # in another window
    for left in (4, 3):
        press(fresh, "explore.undo")
        assert len(selections.edits(select).history) == left
        assert ("another window" in "".join(each.value for each in fresh.warning)) == (left == 4)
    for _ in range(3):
        selections.undo(select)
    assert (maps.classes(map_run) == before).all()


def test_a_tick_does_not_pass_to_another_pick_of_the_same_size(made: Made) -> None:
    x, y = maps.get(made["map"]).xy[:2]

    def table(point: int) -> str:
        sides = (x[point] - 1e-6, x[point] + 1e-6, y[point] - 1e-6, y[point] + 1e-6)
        app = opened(PAGE, picked("box", [tuple(map(float, sides))], made["map"]))
        assert "**1 sentence**" in texts(app)
        return str(app.dataframe[0].proto.id).partition("-explore.table.")[2]

    assert table(0)
    assert table(0) == table(0) != table(1)


def test_best_scores_come_first_after_a_change_to_a_selection_whose_low_scores_are_best(made: Made) -> None:
    options = {**corpora.roles(), "encoder": "tiny", "budget": "40", "strategy": "ngram-perplexity"}
    low = runs.execute("select", options).id
    runs.execute("map", maps.options(low, sample=150, clusters=4))
    app = opened(PAGE, choice=made["select"])
    scores = app.dataframe[0].value["score"].tolist()
    assert scores == sorted(scores, reverse=True)
    app.query_params["choice"] = low
    app.run()
    assert app.session_state["explore.shown"] == low
    scores = app.dataframe[0].value["score"].tolist()
    assert scores == sorted(scores)
    assert scores[0] == np.nanmin(selections.scored(low).scores.values)


def test_columns_keep_the_letters_of_their_names() -> None:
    assert [state.heading(name) for name in ("ClientID", "doc", maps.TOPIC)] == ["ClientID", "Document", "Topic"]


def test_sentence_shows_why_it_was_selected_and_can_be_removed_by_hand(made: Made) -> None:
    select, map_run = made["select"], made["map"]
    found = maps.get(map_run)
    counts, chosen = maps.entity_counts(map_run, np.arange(len(found))), selections.chosen(select).rows.tolist()
    point = next(int(p) for p in np.flatnonzero(counts == 1) if p >= found.n_task and int(found.rows[p]) in chosen)
    row = int(found.rows[point])
    app = opened(PAGE, picked("point", point, map_run))
    why = insights.why(select, row)
    page_text = texts(app)
    assert why.verdict.startswith(f"Selected: number {chosen.index(row) + 1} of 40 in the selection")
    assert plain(why.verdict) in page_text
    assert any(metric.value.endswith(f" of {why.of:,}") for metric in app.metric)
    assert all(f"{row['cosine']:.4g}" in page_text for row in why.neighbours)
    [domain] = corpora.find("domain").take([row])
    (expected,) = found_by_list([sentence(domain.text)], NAMES)
    assert page_text.count('class="w-entity"') == 1
    assert expected.entities[0].type.replace("<", "&lt;").replace(">", "&gt;") in page_text
    assert "<b>ODD" not in page_text
    app.session_state["explore.by"] = "entities"
    press(app, "explore.one.map")
    assert selections.edits(select).removed.tolist() == [row]
    assert "predicted entities" in json.dumps(figure_of(app)["layout"])
    press(app, "explore.seal")
    sealed = next(corpus for corpus in corpora.listed() if "hand_edits" in corpus.origin)
    assert len(sealed) == 39
    assert sealed.origin["hand_edits"] == {"added": 0, "removed": 1}


def test_finished_tagger_can_be_run_to_find_entities(
    made: Made, home: Path, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    removals.remove_run(made["tag"])
    tagger = finished.tuned(home, finished.corpora(home), "tiny", 0.6)
    app = opened_on(PAGE, made["select"])
    assert "entities" not in app.selectbox(key="explore.by").options
    again = opened_on(PAGE, made["select"], {"explore.tag.run": made["tag"]})  # started in this visit, then removed
    assert "explore.tag.start" in keys(again)
    assert not again.error
    assert app.selectbox(key="explore.tag.model").value == tagger.id
    press(app, "explore.tag.start")
    [(kind, options)] = started_runs
    assert (kind, options["model"]) == ("tag", str(tagger.artifacts / "model"))


def test_two_selections_are_compared_by_counts_pairs_and_health(made: Made, at_once: None) -> None:
    app = opened(PAGE, {"explore.tab": "Compare"})
    ours, theirs = (set(selections.chosen(made[name]).rows.tolist()) for name in ("select", "other"))
    page_text = texts(app)
    for n in (ours & theirs, ours - theirs, theirs - ours):
        assert f"| {len(n):,} |" in page_text
    assert "domain.pdf, page 7<" in page_text
    ids = re.findall(r'<td class="w-whole">([0-9a-f]{16})</td>', page_text)  # no id is broken into lines
    assert len(ids) == min(len(ours & theirs), 8)
    assert len(app.get("plotly_chart")) == 2
    assert "**Overlap by budget**, without hand edits" in page_text
    chance = figure_of(app, 1)["data"][1]
    of = insights.chance_of(made["select"], made["other"])
    assert numbers(chance["y"])[-1] == pytest.approx(numbers(chance["x"])[-1] / of)
    app = opened(PAGE, {"explore.tab": "Side by side"})
    assert texts(app).count("domain.pdf, page 7 / domain.pdf, page 7") == 15
    selections.keep_budget(made["select"], "30")
    selections.keep_budget(made["select"], selections.budget_in(made["select"], "threshold"))
    app = opened(PAGE, {"explore.tab": "Health of the selection"})
    assert "30 sentences" in texts(app)
    assert "Nothing is scored again, and" in texts(app)
    press(app, "explore.choose")
    new = runs.listed("select")[0]
    assert new.manifest.config["budget"] == "30"
    assert (new.manifest.config["diversity"], new.manifest.config["strategy"]) == ("quota", "knn")
    assert app.session_state["selection.run"][0] == new.id
    assert texts(app).count("30 sentences, ") == 2  # beside the selection by score alone


def test_a_removed_selection_with_diversity_does_not_stop_the_tab(made: Made) -> None:
    begun = {"from": made["select"], "run": made["other"]}
    removals.remove_run(made["other"])
    app = opened_on(PAGE, made["select"], {"explore.tab": "Health of the selection", "explore.diverse": begun})
    assert not app.error
    assert "explore.choose" in keys(app)


def test_pairs_say_what_kept_the_other_sentence_out(made: Made) -> None:
    select, near = made["select"], "near_duplicate"
    selections.edit(select, "remove", selections.chosen(select).rows[::2])
    app = opened(PAGE, {"explore.tab": "Side by side"})
    cells = [re.findall(r"<td.*?>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", texts(app))]
    removed = set(selections.edits(select).removed.tolist())
    pairs = maps.pairs(made["map"], maps.classes(made["map"]), 15)
    flagged = ["near duplicate" if near in other["flags"] else "score" for _, other, _ in pairs]
    by_hand = [other["row"] in removed for _, other, _ in pairs]
    expected = ["hand edit" if hand else flag for hand, flag in zip(by_hand, flagged, strict=True)]
    assert [row[4] for row in cells if len(row) > 4] == expected
    assert {"hand edit", "score"} <= set(expected)
    config = runs.get(select).manifest.config
    keeping = runs.execute("select", {**config, "keep": [near]}).id
    rows = selections.scored(select).audit.has(near).nonzero()[0]
    out = np.setdiff1d(rows, selections.chosen(keeping).rows)
    assert controls._kept_out(select, out)[0].startswith("near duplicate")
    assert "near duplicate" not in controls._kept_out(keeping, out)


def test_large_map_draws_a_stratified_sample_and_states_its_size(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "images" not in figure_of(opened(PAGE))["layout"]  # all sentences are drawn
    monkeypatch.setattr(map_view, "MOST_DRAWN", 100)
    app = opened(PAGE)
    assert "100 shown of 261, stratified by class, seed 0; the shaded area behind them shows the others" in texts(app)
    assert len(figure_of(app)["layout"]["images"]) == 1
    assert len(tooltips_of(app)["lines"]) == 100
    monkeypatch.setattr(map_view, "MOST_HOVERED", 99)
    st.cache_resource.clear()
    app.run()
    kinds = maps.classes(made["map"])
    assert 0 < len(tooltips_of(app)["points"]) < 100
    assert set(kinds[tooltips_of(app)["points"]].tolist()) == {0, 1}


def test_20_000_points_of_a_larger_map_are_drawn_by_default() -> None:
    def script() -> None:
        from pages.ui.explore.controls import MOST_DRAWN, _to_draw

        _to_draw(MOST_DRAWN, "number")
        _to_draw(300, "small")

    large, small = AppTest.from_function(script).run().number_input
    assert (large.value, large.max) == (20_000, MOST_DRAWN)
    assert small.value == 300


def test_pages_load_no_torch_and_import_nothing_after_the_start_of_the_server(made: Made) -> None:
    code = (
        "import app as server\nserver._warm()\nimport gc, sys\nfrom streamlit.testing.v1 import AppTest\n"
        "from pages.ui.frame import PAGES\n"
        "assert gc.get_freeze_count() > 100_000\nwarm = set(sys.modules)\n"
        f"app = AppTest.from_file('home.py', default_timeout=300).run().switch_page({PAGE!r}).run()\n"
        "ours = ('core', 'pages', 'plotly', '_plotly_utils', 'PIL', 'narwhals', 'pandas', 'pyarrow')\n"
        "late = [name for name in set(sys.modules) - warm if name.startswith(ours)]\n"
        "assert not late, late\n"
        "states = [(file, '', '') for part in PAGES.values() for file, *_ in part if file != 'home.py']\n"
        "states += [('pages/4_Explore.py', 'explore.tab', tab) for tab in ('Compare', 'Side by side', 'Health of the selection')]\n"
        "states += [('pages/5_Training.py', 'training.kind', kind) for kind in ('pretrain', 'experiment')]\n"
        "for page, key, value in states:\n"
        "    if key:\n        app.session_state[key] = value\n"
        "    app.switch_page(page).run()\n    assert not app.exception and not app.error, page\n"
        "app.switch_page('home.py').run()\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'umap'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
