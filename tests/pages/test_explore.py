"""The page Explore in its states, without a browser."""

import base64
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.cli.main import run_main
from core.corpora.library import Library
from core.errors import ConfigError
from core.facade import atlas, choices, corpora, insights, maps, regions, removals, runs, selections, terms
from core.facade.regions import Region
from core.plots.theme import plain as plots_plain
from core.results import IntArray
from pages.ui.explore import map as map_view
from pages.ui.explore import panel, state
from pages.ui.widgets import plain
from tests.conftest import sentence
from tests.pages.test_choice import typed
from tests.pages.test_pages import ROOT, commands_on, opened, opened_on, texts
from tests.planted import contracts, kitchen

PAGE = "pages/4_Explore.py"
NASTY = "The <img src=x onerror=alert(1)> clause of [the contract](http://evil.example) is :red[void] here ."


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, str]:
    """A home with two selections of one D_C and a map of the first: `(home, select, other select, map)`."""
    home = tmp_path_factory.mktemp("explored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        for name, lines in (
            ("task", contracts(40, seed=1)),
            ("domain", [*contracts(110, seed=2), *kitchen(110), NASTY]),
        ):
            rows = (replace(sentence(line), file=f"{name}.pdf", page=7) for line in lines)
            made = Library(home).seal(rows, name=name, origin={}, labelled=False)
            corpora.set_role(name, made.fingerprint)
        options = {**corpora.roles(), "encoder": "tiny", "budget": "40"}
        other = runs.execute("select", {**options, "strategy": "random"}).id
        select = runs.execute("select", {**options, "strategy": "knn"}).id
        map_run = runs.execute("map", maps.options(select, sample=150, clusters=4)).id
    return home, select, other, map_run


@pytest.fixture
def made(prepared: tuple[Path, str, str, str], home: Path) -> tuple[str, str, str]:
    """A copy of it for each test."""
    shutil.copytree(prepared[0], home, dirs_exist_ok=True)
    return prepared[1:]


def shown(app: AppTest, kind: str, value: object, map_run: str) -> AppTest:
    """The page after something was picked on the map, which only a browser can do."""
    app.session_state[state.PICKED] = {"map": map_run, "kind": kind, "value": value}
    return app.run()


def test_the_charts_script_runs_while_the_map_is_worked_out(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    [ahead] = [part for part in app.sidebar.get("bidi_component") if part.key == "ahead"]  # sent before the map is
    script = json.loads(ahead.proto.json)["script"]
    assert script.startswith("/static/js/PlotlyChart.")
    assert (Path(st.__file__).parent / "static" / script.lstrip("/")).is_file()
    assert app.main.get("plotly_chart")


def counted(app: AppTest) -> dict[str, tuple[int, int]]:
    """{class: (picked, on the map)} as the page says it."""
    table = next(m.value for m in app.markdown if m.value.startswith("| Class |"))
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {name: (int(inside.replace(",", "")), int(of.replace(",", ""))) for name, inside, of in rows}


def kinds_of(select: str, map_run: str) -> IntArray:
    return maps.classes(map_run)


def figure_of(app: AppTest) -> dict[str, Any]:
    figure: dict[str, Any] = json.loads(app.get("plotly_chart")[0].proto.spec)
    return figure


def numbers(packed: Any) -> list[float]:
    """An array of a figure, as plotly packs it."""
    if isinstance(packed, dict):
        return [float(number) for number in np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])]
    return list(packed)


def histogram_of(app: AppTest) -> dict[str, list[float]]:
    """Bars beside the map, by name."""
    figure = json.loads(app.get("plotly_chart")[1].proto.spec)
    return {trace["name"]: numbers(trace["y"]) for trace in figure["data"]}


def tooltips_of(app: AppTest) -> dict[str, Any]:
    """What is sent after the map: the points' numbers and lines."""
    [packed] = [part.proto.bytes for part in app.get("bidi_component") if part.proto.bytes]
    told: dict[str, Any] = json.loads(packed)
    return told


def test_without_a_selection_the_page_says_where_to_make_one(home: Path) -> None:
    Library(home).seal([sentence("A clause .")], name="task", origin={}, labelled=False)
    app = opened(PAGE)
    assert not app.exception
    assert "no finished selection" in texts(app)
    assert app.main.get("page_link")[0].proto.page == "Selection"


def test_an_empty_home_offers_samples_and_an_import(home: Path) -> None:
    for page in (PAGE, "pages/6_Results.py"):
        app = opened(page)
        assert not app.exception
        assert [link.proto.label for link in app.main.get("page_link")] == ["Import your own corpora"]
        assert any(button.label.startswith("Open the ") for button in app.button)


def test_where_nothing_can_be_added_or_removed_no_button_says_so_in_noughts(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    next(box for box in app.selectbox if box.label == "Pick a topic or a class").set_value(("class", "T_C")).run()
    assert not {"explore.add", "explore.remove"} & {each.key for each in app.button}
    assert "All of these are of the task text, so there is nothing to add to the choice or to remove from it." in texts(
        app
    )


def test_a_selection_without_a_map_offers_one(made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    removals.remove_run(made[2])
    app = opened_on(PAGE, made[1])
    assert "This selection has no map yet" in texts(app)
    assert any("core map --selection" in command for command in commands_on(app))
    monkeypatch.setattr(runs, "start", lambda kind, options: started.append((kind, options["selection"])))
    app.button(key="explore.make").click().run()
    assert not app.exception
    assert started == [("map", made[1])]


def test_a_second_selection_of_the_same_corpora_is_drawn_at_once(made: tuple[str, str, str]) -> None:
    app = opened_on(PAGE, made[1])
    assert not app.exception
    assert "This selection has no map yet" not in texts(app)
    assert [trace["name"] for trace in figure_of(app)["data"]] == ["filtered (181)", "task text (40)", "selected (40)"]
    assert len(runs.listed("map")) == 1
    app.session_state["explore.command"] = True
    command = next(code.value for code in app.run().code if "core map" in code.value)
    assert f"--selection {made[1]}" in command


def test_without_an_address_the_current_choice_opens(made: tuple[str, str, str]) -> None:
    options = {**corpora.roles(), "encoder": "tiny", "budget": "40", "strategy": "random", "max_length": 64}
    newest = runs.execute("select", options).id
    assert opened(PAGE).session_state["explore.shown"] == newest
    kept = choices.keep(made[0])
    choices.take_up(kept.id)
    app = opened(PAGE)
    assert not app.exception
    assert app.session_state["explore.shown"] == kept.id
    assert opened("pages/3_Selection.py").query_params["choice"] == kept.id


def test_from_a_selection_one_press_leads_to_its_map_and_makes_it(
    made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, str]] = []
    monkeypatch.setattr(runs, "start", lambda kind, options: started.append((kind, options["selection"])))
    app = opened_on("pages/3_Selection.py", made[0])
    app.button(key="selection.map").click().run()
    assert not app.exception
    assert app.title[0].value == "Explore"
    assert not started  # it has one
    removals.remove_run(made[2])
    app = opened_on("pages/3_Selection.py", made[0])
    app.button(key="selection.map").click().run()
    assert started == [("map", made[0])]
    assert app.session_state["explore.shown"] == made[0]


def test_the_map_is_drawn_and_told(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert len(app.get("plotly_chart")) == 2  # the map, and the scores beside it
    chart = app.get("plotly_chart")[0].proto
    assert "40 task text, 40 selected, 181 filtered" in chart.alt
    assert "261 shown of 261" in texts(app)
    traces = figure_of(app)["data"]
    assert [trace["name"] for trace in traces] == ["filtered (181)", "task text (40)", "selected (40)"]
    assert len({trace["marker"]["symbol"] for trace in traces}) == 3
    assert {trace["type"] for trace in traces} == {"scattergl"}
    assert counted(app) == {"task text": (40, 40), "selected": (40, 40), "filtered": (181, 181)}
    assert len(app.dataframe[0].value) == 10


def test_topics_are_named_on_the_map_unless_switched_off(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    names = {plots_plain(cluster.name) for cluster in maps.get(made[2]).clusters}
    assert {note["text"] for note in figure_of(app)["layout"]["annotations"]} == names
    app.session_state["explore.by"] = "cluster"
    app.run()
    assert {note["text"].partition("</span> ")[2] for note in figure_of(app)["layout"]["annotations"]} == names
    app.button_group(key="explore.layers").set_value([]).run()
    assert "annotations" not in figure_of(app)["layout"]


def test_density_lines_are_drawn_where_they_are_asked_for(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    assert not [trace for trace in figure_of(app)["data"] if trace["type"] == "contour"]
    app.button_group(key="explore.layers").set_value(["density"]).run()
    assert not app.exception
    lines = [trace for trace in figure_of(app)["data"] if trace["type"] == "contour"]
    assert [trace["name"] for trace in lines] == ["task text", "selected", "filtered"]
    assert "annotations" not in figure_of(app)["layout"]


def test_the_camera_saves_the_form_that_is_asked_for(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)

    def form() -> str:
        chart = app.get("plotly_chart")[0]
        return str(json.loads(chart.proto.config)["toImageButtonOptions"]["format"])

    assert form() == "png"
    app.button_group(key="explore.picture").set_value("svg").run()
    assert form() == "svg"


def test_a_lasso_counts_all_rows_by_their_polygon(made: tuple[str, str, str]) -> None:
    _, _, map_run = made
    kinds, (x, y) = maps.classes(map_run), maps.get(map_run).xy.astype(np.float64)
    (x0, x1), (y0, y1) = (np.quantile(axis, [0.203, 0.707]).tolist() for axis in (x, y))  # between two points
    inside = (x > x0) & (x < x1) & (y > y0) & (y < y1)
    app = shown(opened(PAGE), "lasso", [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)]], map_run)
    told = [(int((inside & (kinds == kind)).sum()), int((kinds == kind).sum())) for kind in range(3)]
    assert list(counted(app).values()) == told
    assert f"**{inside.sum():,} sentences**" in texts(app)


def test_what_is_picked_is_kept_until_it_is_cleared(made: tuple[str, str, str]) -> None:
    select, _, map_run = made
    x, y = maps.get(map_run).xy.astype(np.float64)
    (x0, x1), (y0, y1) = (np.quantile(axis, [0.203, 0.707]).tolist() for axis in (x, y))
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    region: Region = {"kind": "lasso", "value": [corners]}
    app = opened(PAGE)
    whole = counted(app)
    regions.keep_region(map_run, region)  # what a lasso does, which only a browser can draw
    app = opened(PAGE)
    inside = maps.class_counts(maps.get(map_run).lasso(corners), kinds_of(select, map_run))
    assert counted(app) == inside != whole
    assert len(figure_of(app)["layout"]["selections"]) == 1
    group = next(box for box in app.selectbox if box.label == "Pick a topic or a class")
    group.set_value(("topic", 0)).run()
    assert "Topic" in texts(opened(PAGE))
    app.button(key="explore.clear").click().run()
    assert counted(app) == whole
    assert counted(opened(PAGE)) == whole
    assert regions.kept_region(map_run) is None
    (runs.get(map_run).path / "region.json").write_text("[1]")
    assert counted(opened(PAGE)) == whole
    (runs.get(map_run).path / "region.json").write_text('{"kind": "lasso", "value": [[["", 1], [2, 3]]]}')
    assert counted(opened(PAGE)) == whole


@pytest.mark.parametrize(
    ("sound", "spoilt"),
    [
        (
            {"kind": "lasso", "value": [[[0, 1.5], [2, 3], [4, 1]]]},
            [[], [[["", 1]]], [[[1]]], [[[float("nan"), 1]]], 3],
        ),
        ({"kind": "box", "value": [[0, 1, 2, 3.5]]}, [[], [[0, 1, 2]], [[0, 1, 2, "x"]], None]),
        ({"kind": "score", "value": [0.5, 1]}, [[0.5], ["a", "b"], {}]),
        ({"kind": "topic", "value": 1}, [99, -1, "1", 10**30]),
        ({"kind": "point", "value": 1}, [10**6, -1, 0.5, [1]]),
        ({"kind": "class", "value": "T_C"}, ["other", 1, None]),
        ({"kind": "hits", "value": ["x", "words"]}, [["x"], ["x", "other"], "x"]),
    ],
)
def test_a_region_that_is_spoilt_was_never_picked(
    sound: Region, spoilt: list[object], made: tuple[str, str, str]
) -> None:
    file = runs.get(made[2]).path / "region.json"
    file.write_text(json.dumps(sound))
    assert regions.kept_region(made[2]) == sound
    regions.region_points(made[2], sound, maps.classes(made[2]))
    for value in [*spoilt, {"a": 1}]:
        file.write_text(json.dumps({**sound, "value": value}))
        assert regions.kept_region(made[2]) is None, value
    file.write_text(json.dumps({**sound, "kind": ["topic"]}))
    assert regions.kept_region(made[2]) is None


def middle(map_run: str, low: float = 0.203, high: float = 0.707) -> Region:
    """A lasso around the middle of a map, between points."""
    (x0, x1), (y0, y1) = (np.quantile(axis, [low, high]).tolist() for axis in maps.get(map_run).xy[:2])
    return {"kind": "lasso", "value": [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)]]}


def test_a_range_of_scores_is_picked_for_map_list_and_histogram_alike(made: tuple[str, str, str]) -> None:
    _, _, map_run = made
    app = opened(PAGE)
    [slider] = [each for each in app.slider if each.label == "Pick a range of scores"]
    low, high = slider.value
    middle = low + (high - low) * 0.7
    slider.set_value((middle, high)).run()
    assert not app.exception
    values = maps.colour_numbers(map_run, np.arange(len(maps.get(map_run))), "score")
    bound = next(each.value for each in app.slider if each.label == "Pick a range of scores")[0]
    inside = np.flatnonzero(values >= bound - 1e-5 * np.nanmax(np.abs(values)))
    assert 0 < len(inside) < len(values)
    assert f"**{len(inside):,} sentences**" in texts(app)  # the list
    shown_by = {
        int(point): float(o)
        for trace in figure_of(app)["data"]
        if "customdata" in trace
        for point, o in zip(numbers(trace["customdata"]), numbers(trace["marker"]["opacity"]), strict=True)
    }
    assert {point for point, opacity in shown_by.items() if opacity > 0.5} == set(inside.tolist())  # the map
    bars = histogram_of(app)
    assert sum(bars["picked"]) == len(inside) < sum(bars["on the map"])
    assert "Scores from" in texts(opened(PAGE))  # kept
    [folded] = [each for each in app.expander if each.label == "Scores"]
    assert folded.proto.expanded  # what was just used stays open
    token = regions.region_token(regions.kept_region(map_run))
    again = regions.region_points(map_run, regions.region_of(map_run, token), maps.classes(map_run))
    assert again.tolist() == inside.tolist()


def test_a_map_becomes_a_folder_for_embedding_atlas(made: tuple[str, str, str], tmp_path: Path) -> None:
    select, _, map_run = made
    regions.name_region(map_run, middle(map_run), "the middle")
    corner: Region = {"kind": "lasso", "value": [[(1e6, 1e6), (2e6, 1e6), (2e6, 2e6)]]}  # no point's; of the same name
    regions.name_region(map_run, corner, "the middle")
    app = opened(PAGE)
    app.button(key="explore.atlas").click().run()
    assert not app.exception
    [folder] = (runs.get(map_run).home / "exports").glob("atlas-*")
    assert any(f"embedding-atlas {folder}/map.parquet --x x --y y --text text" in code.value for code in app.code)
    table = pq.read_table(folder / "map.parquet")
    mapped, kinds = maps.get(map_run), maps.classes(map_run)
    assert table["x"].to_numpy() == pytest.approx(mapped.xy[0])
    assert table["text"].to_pylist() == mapped.texts(np.arange(len(mapped)))
    assert table["class"].to_pylist() == [terms.plainly(maps.CLASSES[kind]) for kind in kinds.tolist()]
    assert table["corpus"].to_pylist() == ["task text"] * mapped.n_task + ["big corpus"] * (len(mapped) - mapped.n_task)
    inside = regions.region_points(map_run, middle(map_run), kinds)
    held = [point for point, names in enumerate(table["lassos"].to_pylist()) if names == ["the middle"]]
    assert held == inside.tolist()
    assert {flag for flags in table["flags"].to_pylist() for flag in flags or ()} >= {"near duplicate"}
    columns = {name for name in table.column_names if table[name].null_count < len(table)}
    assert columns == set(table.column_names)  # one that says nothing is not there
    for region in (middle(map_run), corner):
        regions.name_region(map_run, region, "")
    for target, code in ((tmp_path / "atlas", 0), (tmp_path, 2)):
        sys.argv = ["core", "atlas", select, "--output", str(target)]
        assert run_main() == code
    unnamed = pq.read_table(tmp_path / "atlas" / "map.parquet")
    assert unnamed.num_rows == len(mapped)
    assert "lassos" not in unnamed.column_names


def test_a_file_that_cannot_be_written_is_said_and_the_page_stays_whole(
    made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> Path:
        raise ConfigError("exports: there is no room; free some.")

    _, _, map_run = made
    monkeypatch.setattr(atlas, "export", full)
    monkeypatch.setattr(maps, "export", full)
    monkeypatch.setattr(panel, "LARGEST_DOWNLOAD", 0)
    app = opened(PAGE)
    for button in ("explore.atlas", "explore.export.txt"):
        charts, folded = len(app.get("plotly_chart")), [part.label for part in app.expander]
        app.button(key=button).click().run()
        assert not app.exception
        assert [error.value for error in app.error] == [plain("exports: there is no room; free some.")]
        assert len(app.get("plotly_chart")) == charts
        assert [part.label for part in app.expander] == folded  # the last of them at the page's end
        app = shown(opened(PAGE), "lasso", middle(map_run)["value"], map_run)


def test_a_lasso_that_was_given_a_name_is_picked_by_it_again(made: tuple[str, str, str]) -> None:
    _, _, map_run = made
    region = middle(map_run)
    app = shown(opened(PAGE), "lasso", region["value"], map_run)
    inside = counted(app)
    token = regions.region_token(region)
    app.text_input(key=f"explore.named.{token}").set_value("<b>boiler</b> plate")
    app.button(key="explore.name").click().run()
    assert not app.exception
    assert plain("<b>boiler</b> plate") in texts(app)
    assert "<b>boiler" not in texts(app)
    app.button(key="explore.clear").click().run()
    assert counted(app) != inside
    group = next(box for box in app.selectbox if box.label == "Pick a topic, a class or a named lasso")
    group.set_value(("named", token)).run()
    assert counted(app) == inside
    assert len(figure_of(app)["layout"]["selections"]) == 1
    by_name = regions.region_of(map_run, "<b>boiler</b> plate")  # for the command line
    assert regions.region_token(by_name) == token
    regions.name_region(map_run, region, "")
    assert regions.named_regions(map_run) == {}
    for forged in ("-inf~1", "1~inf", "nan~nan", "2~1"):
        with pytest.raises(ConfigError, match="is not on this map"):
            regions.region_of(map_run, f"score:{forged}")
    spoilt = '{"lasso:zz": "gone", "topic:0": 3, "lasso": "no token", "box": "none", "topic:1": "no lasso"}'
    (runs.get(map_run).path / "region-names.json").write_text(spoilt)
    assert regions.named_regions(map_run) == {}


def arrived(select: str, **query: str) -> AppTest:
    """The page by an address."""
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page(PAGE)
    for name, value in {"run": select, **query}.items():
        app.query_params[name] = value
    return app.run()


@pytest.mark.parametrize("kind", ["txt", "jsonl", "parquet"])
@pytest.mark.parametrize("picked", ["lasso", "topic", "class"])
def test_what_is_picked_stands_in_heading_address_and_name_and_its_command_writes_the_same(
    picked: str, kind: str, made: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    select, _, map_run = made
    pieces: dict[str, Region] = {
        "lasso": middle(map_run),
        "topic": {"kind": "topic", "value": 1},
        "class": {"kind": "class", "value": "selected"},
    }
    region = pieces[picked]
    selections.keep_budget(select, "30.2%")
    regions.keep_region(map_run, region)
    sent: dict[str, bytes] = {}

    def button(label: str, data: Callable[[], bytes], name: str, **_: object) -> None:
        sent[name] = data()

    monkeypatch.setattr(st, "download_button", button)
    app = opened(PAGE)
    app.session_state["explore.command"] = True
    app.run()
    assert not app.exception
    token = regions.region_token(region)
    assert (app.query_params["region"], app.query_params["choice"]) == (token, select)
    assert any(option.startswith("30.2% by knn") for box in app.selectbox for option in box.options)
    assert "Selected: 30.2%." in texts(app)
    assert picked != "lasso" or f"Your lasso {token.partition(':')[2]}" in texts(app)
    name = f"picked-{select[-4:]}-30.2pct-{token.replace(':', '-')}"
    words = shlex.split(next(code.value for code in app.code if "--region" in code.value))
    assert (words[5:7], words[-1]) == (["--region", token], f"{name}.txt")
    assert typed([*words[:-1], f"{name}.{kind}"], tmp_path, monkeypatch).read_bytes() == sent[f"{name}.{kind}"] != b""


def test_an_address_brings_back_an_earlier_lasso(made: tuple[str, str, str]) -> None:
    select, other, map_run = made
    first = middle(map_run)
    for region in (first, middle(map_run, 0.4, 0.9)):
        regions.keep_region(map_run, region)
    inside = maps.class_counts(
        regions.region_points(map_run, first, kinds_of(select, map_run)), kinds_of(select, map_run)
    )
    app = arrived(select, region=regions.region_token(first))
    assert counted(app) == inside
    assert counted(opened(PAGE)) == inside  # kept from now on
    app.button(key="explore.clear").click().run()
    assert "region" not in app.query_params
    assert counted(arrived(other, region=regions.region_token(first))) != inside  # the same borders, another choice
    for token in ("lasso:00000000", "lasso:../../x", "point:999999", "topic:-1", "topic:" + "9" * 5000, "nonsense"):
        app = arrived(select, region=token)
        assert not app.exception
        assert [warning.value for warning in app.warning if "is not on this map" in warning.value]
        assert app.query_params.get("region") != [token]


def test_what_is_searched_for_stays_out_of_the_address(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    app.text_input(key="explore.query").set_value("clause").run()
    assert "Sentences with clause" in texts(app)
    assert "clause" not in str(app.query_params)
    assert "region" not in app.query_params


def test_what_is_added_removed_and_undone_is_kept(made: tuple[str, str, str]) -> None:
    select, _, map_run = made
    found, before = maps.get(map_run), maps.classes(map_run)
    topic = int(np.bincount(found.cluster[before == 1]).argmax())
    here = found.cluster == topic
    app = opened(PAGE)
    group = next(box for box in app.selectbox if box.label == "Pick a topic or a class")
    group.set_value(("topic", topic)).run()
    filtered = found.rows[here & (before == 2)]
    flagged = filtered[selections.scored(select).audit.mask[filtered] != 0]
    clean = np.setdiff1d(filtered, flagged)
    assert len(flagged)
    assert len(clean)
    assert app.button(key="explore.add").label == f"Add {len(clean):,} clean sentences"
    assert app.button(key="explore.add").proto.shortcut == "alt+a"
    assert app.button(key="explore.add-flagged").label == f"Add also the {len(flagged):,} flagged"
    app.button(key="explore.add").click().run()
    assert not app.exception
    assert sorted(selections.edits(select).added) == sorted(clean)
    assert counted(app)["filtered"][0] == len(flagged)
    assert not app.warning
    app.button(key="explore.add-flagged").click().run()
    assert sorted(selections.edits(select).added) == sorted(filtered)
    assert counted(app)["filtered"][0] == 0
    assert "explore.add" not in [each.key for each in app.button]  # adding none is no choice
    assert "Flagged sentences are in the choice by hand" in app.warning[0].value  # for as long as they are
    app.button(key="explore.remove").click().run()
    rows = found.rows[here & (before != 0)]
    assert sorted(selections.edits(select).removed) == sorted(rows)
    fresh = opened(PAGE)  # another session, as after a reload
    assert f"{len(rows):,} removed" in texts(fresh)
    for _ in range(3):
        fresh.button(key="explore.undo").click().run()
    assert not selections.edits(select)
    assert (maps.classes(map_run) == before).all()
    assert "By hand" not in texts(fresh)


def test_what_another_window_edited_is_not_taken_back_unseen(made: tuple[str, str, str]) -> None:
    select, *_ = made
    before = len(selections.edits(select).history)
    selections.edit(select, "add", np.array([0]))
    app = opened(PAGE)
    selections.edit(select, "add", np.array([1, 2]))  # in another window
    app.button(key="explore.undo").click().run()
    assert not app.exception
    assert "was changed by another window of yours" in "".join(each.value for each in app.warning)
    assert len(selections.edits(select).history) == before + 2
    for left in (1, 0):
        app.button(key="explore.undo").click().run()
        assert len(selections.edits(select).history) == before + left


def test_an_edited_selection_becomes_a_corpus_that_says_so(made: tuple[str, str, str]) -> None:
    select, _, _ = made
    selections.edit(select, "remove", selections.chosen(select).rows[:3])
    app = opened(PAGE)
    app.button(key="explore.seal").click().run()
    assert not app.exception
    sealed = next(corpus for corpus in corpora.listed() if "hand_edits" in corpus.origin)
    assert len(sealed) == 37
    assert sealed.origin["hand_edits"] == {"added": 0, "removed": 3}


@pytest.mark.parametrize(("mode", "query"), [("substring", "cLaUs"), ("words", "clause the")])
def test_a_search_counts_all_rows(made: tuple[str, str, str], mode: str, query: str) -> None:
    app = opened(PAGE)
    app.text_input(key="explore.query").set_value(query)
    app.get("button_group")  # the mode is set by its state, whatever the widget's tree looks like
    app.session_state["explore.mode"] = mode
    app.run()

    def hit(text: str) -> bool:
        folded = text.lower()
        return query.lower() in folded if mode == "substring" else set(query.split()) <= set(folded.split())

    roles = corpora.roles()
    n = {role: sum(hit(s.text) for b in corpora.find(roles[role]).batches() for s in b) for role in roles}
    assert n["domain"] > 0
    assert f"**{n['domain']:,}** in the big corpus and **{n['task']:,}** in the task text" in texts(app)
    assert any(str(trace.get("name", "")).startswith("found (") for trace in figure_of(app)["data"])
    assert sum(inside for inside, _ in counted(app).values()) == sum(n.values())  # picked without another click
    with pytest.raises(KeyError):
        app.button(key="explore.hits")
    shown(app, "class", "T_C", made[2])
    assert counted(app)["selected"][0] == 0  # what is picked after a search stays
    app.button(key="explore.hits").click().run()
    assert sum(inside for inside, _ in counted(app).values()) == sum(n.values())
    app.text_input(key="explore.query").set_value("").run()
    assert counted(app) == {"task text": (40, 40), "selected": (40, 40), "filtered": (181, 181)}


def test_a_search_for_nothing_says_so_and_offers_nothing(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    app.text_input(key="explore.query").set_value("zzzqq").run()
    assert not app.exception
    assert "No sentence of the big corpus or the task text holds zzzqq." in texts(app)
    with pytest.raises(KeyError):
        app.button(key="explore.hits")


def test_the_table_says_which_way_it_is_sorted(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    assert app.get("button_group")
    scores = app.dataframe[0].value["score"]
    assert (np.diff(scores) <= 0).all()  # closest to T_C first
    app.session_state["explore.order.score"] = False
    app.run()
    assert (np.diff(app.dataframe[0].value["score"]) >= 0).all()
    labels = [option.content for group in app.get("button_group") for option in group.proto.options]
    assert {"lowest first", "highest first"} <= set(labels)


def test_why_this_sentence(made: tuple[str, str, str]) -> None:
    select, _, map_run = made
    found = maps.get(map_run)
    row = int(selections.chosen(select).rows[0])
    app = shown(
        opened(PAGE), "point", int(found.n_task + np.flatnonzero(found.rows[found.n_task :] == row)[0]), map_run
    )
    assert not app.exception
    why = insights.why(select, row)
    said = texts(app)
    assert why.verdict == "Selected: number 1 of 40."
    assert plain(why.verdict) in said
    assert ("Rank", f"1 of {why.of:,}") in [(metric.label, metric.value) for metric in app.metric]
    assert all(f"{row['cosine']:.4g}" in said for row in why.neighbours)
    app.button(key="explore.one").click().run()
    assert selections.edits(select).removed.tolist() == [row]
    assert plain("Taken out of the choice by hand.") in texts(app)


def test_no_text_of_a_corpus_is_markup(made: tuple[str, str, str]) -> None:
    _, _, map_run = made
    found = maps.get(map_run)
    row = next(i for i, s in enumerate(s for b in found.domain.batches() for s in b) if s.text == NASTY)
    point = int(found.n_task + np.flatnonzero(found.rows[found.n_task :] == row)[0])
    app = shown(opened(PAGE), "point", point, map_run)
    html = " ".join(element.proto.body for element in app.get("html"))
    assert "&lt;img src=x" in html
    assert "<img" not in html
    assert "<img" not in app.get("plotly_chart")[0].proto.spec
    told = tooltips_of(app)  # as it is: the browser shows it as text alone
    assert " · domain.pdf, page 7\n" in told["lines"][told["points"].index(point)]
    assert told["lines"][told["points"].index(point)].endswith(f"\n{NASTY}")
    assert not any("<img" in m.value or "](http" in m.value for m in app.markdown)


def opened_at(tab: str) -> AppTest:
    app = opened(PAGE)
    app.session_state["explore.tab"] = tab
    return app.run()


def test_two_selections_are_compared(made: tuple[str, str, str]) -> None:
    select, other, _ = made
    app = opened_at("Compare")
    assert not app.exception
    ours, theirs = (set(selections.chosen(name).rows.tolist()) for name in (select, other))
    said = texts(app)
    for name, n in (
        ("Both", len(ours & theirs)),
        ("Only this choice (A)", len(ours - theirs)),
        ("Only the other (B)", len(theirs - ours)),
        ("Neither", 221 - len(ours | theirs)),
    ):
        assert f"| {name} | {n:,} |" in said
    assert "domain.pdf, page 7<" in said
    ids = re.findall(r'<td class="w-whole">([0-9a-f]{16})</td>', said)  # none is broken into lines
    assert len(ids) == min(len(ours & theirs), 8)
    assert len(app.get("plotly_chart")) == 2


def test_selected_and_filtered_side_by_side(made: tuple[str, str, str]) -> None:
    app = opened_at("Side by side")
    assert not app.exception
    assert texts(app).count("<tr>") == 16  # 15 pairs and the head
    assert texts(app).count("domain.pdf, page 7 / domain.pdf, page 7") == 15


def test_health_in_words_and_diversity_on_top(made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened_at("Health of the choice")
    assert not app.exception
    assert "40 sentences" in texts(app)
    assert "Coverage of the task text" in texts(app)
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)
    app.button(key="explore.choose").click().run()
    assert not app.exception
    new = runs.listed("select")[0]
    assert (new.manifest.config["diversity"], new.manifest.config["strategy"]) == ("quota", "knn")
    assert app.session_state["selection.run"][0] == new.id
    assert "By score alone" in texts(app)
    assert texts(app).count("40 sentences, ") == 2


def test_more_points_than_a_browser_bears_are_sampled_and_that_is_said(
    made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_view, "MOST_DRAWN", 100)
    app = opened(PAGE)
    said = texts(app)
    assert "100 shown of 261, stratified by class, seed 0" in said
    assert "261 were asked for" in said
    assert len(tooltips_of(app)["lines"]) == 100
    monkeypatch.setattr(map_view, "MOST_HOVERED", 99)
    st.cache_resource.clear()
    app.run()
    assert "tooltip" in texts(app)
    kinds = kinds_of(made[0], made[2])
    assert 0 < len(tooltips_of(app)["points"]) < 100
    assert set(kinds[tooltips_of(app)["points"]].tolist()) == {0, 1}


def test_looking_never_loads_torch_and_a_server_has_imported_what_it_takes_at_its_start(
    made: tuple[str, str, str],
) -> None:
    tabs = ("Map", "Compare", "Side by side", "Health of the choice")
    code = (
        "import app as server\nserver._warm()\nimport gc, sys\nfrom streamlit.testing.v1 import AppTest\n"
        "assert gc.get_freeze_count() > 100_000\nwarm = set(sys.modules)\n"
        f"app = AppTest.from_file('home.py', default_timeout=300).run().switch_page({PAGE!r}).run()\n"
        "ours = ('core', 'pages', 'plotly', '_plotly_utils', 'PIL', 'narwhals', 'pandas', 'pyarrow')\n"
        "late = [name for name in set(sys.modules) - warm if name.startswith(ours)]\n"
        "assert not late, late\n"
        f"for tab in {tabs}:\n"
        "    app.session_state['explore.tab'] = tab\n    app.run()\n    assert not app.exception and not app.error\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'umap'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
