"""The page Explore in its states, without a browser."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Library
from core.facade import corpora, insights, maps, regions, removals, runs, selections
from core.facade.regions import Region
from core.plots.theme import plain as plots_plain
from core.results import IntArray
from pages.ui.explore import map as map_view
from pages.ui.explore import state
from pages.ui.widgets import plain
from tests.conftest import sentence
from tests.pages.test_choice import typed
from tests.pages.test_pages import ROOT, opened, opened_on, texts
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
            made = Library(home).seal(map(sentence, lines), name=name, origin={}, labelled=False)
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
    assert "All of these are of T_C, so there is nothing to add to S_C or to remove from it." in texts(app)


def test_a_selection_without_a_map_offers_one(made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    removals.remove_run(made[2])
    app = opened_on(PAGE, made[1])
    assert "This selection has no map yet" in texts(app)
    assert any("core map --selection" in code.value for code in app.code)
    monkeypatch.setattr(runs, "start", lambda kind, options: started.append((kind, options["selection"])))
    app.button(key="explore.make").click().run()
    assert not app.exception
    assert started == [("map", made[1])]


def test_a_second_selection_of_the_same_corpora_is_drawn_at_once(made: tuple[str, str, str]) -> None:
    app = opened_on(PAGE, made[1])
    assert not app.exception
    assert "This selection has no map yet" not in texts(app)
    assert [trace["name"] for trace in figure_of(app)["data"]] == ["filtered (181)", "T_C (40)", "selected (40)"]
    assert len(runs.listed("map")) == 1
    app.session_state["explore.command"] = True
    command = next(code.value for code in app.run().code if "core map" in code.value)
    assert f"--selection {made[1]}" in command


def test_without_an_address_the_newest_selection_with_a_map_opens(made: tuple[str, str, str]) -> None:
    options = {**corpora.roles(), "encoder": "tiny", "budget": "40", "strategy": "random", "max_length": 64}
    newest = runs.execute("select", options).id
    assert maps.of(newest) is None
    app = opened(PAGE)
    assert app.session_state["explore.shown"] == made[0]
    removals.remove_run(made[2])
    assert opened(PAGE).session_state["explore.shown"] == newest


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
    assert len(app.get("plotly_chart")) == 1
    chart = app.get("plotly_chart")[0].proto
    assert "40 T_C, 40 selected, 181 filtered" in chart.alt
    assert "261 shown of 261" in texts(app)
    traces = figure_of(app)["data"]
    assert [trace["name"] for trace in traces] == ["filtered (181)", "T_C (40)", "selected (40)"]
    assert len({trace["marker"]["symbol"] for trace in traces}) == 3
    assert {trace["type"] for trace in traces} == {"scattergl"}
    assert counted(app) == {"T_C": (40, 40), "selected": (40, 40), "filtered": (181, 181)}
    assert len(app.dataframe[0].value) == 10


def test_topics_are_named_on_the_map_unless_switched_off(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    names = {plots_plain(cluster.name) for cluster in maps.get(made[2]).clusters}
    assert {note["text"] for note in figure_of(app)["layout"]["annotations"]} == names
    app.session_state["explore.by"] = "cluster"
    app.run()
    assert {note["text"].partition("</span> ")[2] for note in figure_of(app)["layout"]["annotations"]} == names
    app.toggle(key="explore.named").set_value(False).run()
    assert "annotations" not in figure_of(app)["layout"]


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


def middle(map_run: str, low: float = 0.203, high: float = 0.707) -> Region:
    """A lasso around the middle of a map, between points."""
    (x0, x1), (y0, y1) = (np.quantile(axis, [low, high]).tolist() for axis in maps.get(map_run).xy[:2])
    return {"kind": "lasso", "value": [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)]]}


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
    assert (app.query_params["region"], app.query_params["budget"]) == (token, "30.2%")
    assert any(option.startswith("30.2% of domain by knn") for box in app.selectbox for option in box.options)
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
    assert "Flagged sentences are in S_C by hand" in app.warning[0].value  # for as long as they are
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
    assert f"**{n['domain']:,}** in D_C and **{n['task']:,}** in T_C" in texts(app)
    assert any(str(trace.get("name", "")).startswith("found (") for trace in figure_of(app)["data"])
    assert sum(inside for inside, _ in counted(app).values()) == sum(n.values())  # picked without another click
    with pytest.raises(KeyError):
        app.button(key="explore.hits")
    shown(app, "class", "T_C", made[2])
    assert counted(app)["selected"][0] == 0  # what is picked after a search stays
    app.button(key="explore.hits").click().run()
    assert sum(inside for inside, _ in counted(app).values()) == sum(n.values())
    app.text_input(key="explore.query").set_value("").run()
    assert counted(app) == {"T_C": (40, 40), "selected": (40, 40), "filtered": (181, 181)}


def test_a_search_for_nothing_says_so_and_offers_nothing(made: tuple[str, str, str]) -> None:
    app = opened(PAGE)
    app.text_input(key="explore.query").set_value("zzzqq").run()
    assert not app.exception
    assert "No sentence of D_C or T_C holds zzzqq." in texts(app)
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
    assert plain("Taken out of S_C by hand.") in texts(app)


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
        ("Only this selection (A)", len(ours - theirs)),
        ("Only the other (B)", len(theirs - ours)),
        ("Neither", 221 - len(ours | theirs)),
    ):
        assert f"| {name} | {n:,} |" in said
    assert len(app.get("plotly_chart")) == 2


def test_selected_and_filtered_side_by_side(made: tuple[str, str, str]) -> None:
    app = opened_at("Side by side")
    assert not app.exception
    assert texts(app).count("<tr>") == 16  # 15 pairs and the head


def test_health_in_words_and_diversity_on_top(made: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened_at("Health of S_C")
    assert not app.exception
    assert "40 sentences" in texts(app)
    assert "Coverage of T_C" in texts(app)
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)
    app.button(key="explore.choose").click().run()
    assert not app.exception
    new = runs.listed("select")[0]
    assert (new.manifest.config["diversity"], new.manifest.config["strategy"]) == ("quota", "knn")
    assert app.session_state["explore.run"][0] == new.id
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
    tabs = ("Map", "Compare", "Side by side", "Health of S_C")
    code = (
        "import app as server\nserver._warm()\nimport gc, sys\nfrom streamlit.testing.v1 import AppTest\n"
        "assert gc.get_freeze_count() > 100_000\nwarm = set(sys.modules)\n"
        f"app = AppTest.from_file('home.py', default_timeout=300).run().switch_page({PAGE!r}).run()\n"
        "late = [name for name in set(sys.modules) - warm if name.partition('.')[0] in ('core', 'pages')]\n"
        "assert not late, late\n"
        f"for tab in {tabs}:\n"
        "    app.session_state['explore.tab'] = tab\n    app.run()\n    assert not app.exception and not app.error\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'umap'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
