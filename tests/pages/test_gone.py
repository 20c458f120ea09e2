"""Finished runs whose corpora were removed: every page opens them with what they kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.library import Library
from core.facade import corpora as facade_corpora
from core.facade import maps
from core.facade import runs as facade_runs
from core.runs.context import RunContext
from tests.conftest import sentence
from tests.finished import LINES, corpora, experiment, finish
from tests.finished_bias import contracts, measured
from tests.pages.test_pages import opened, opened_on, texts

GONE = "No longer on this machine"


def drawn(context: RunContext) -> dict[str, Any]:
    """A map of three points."""
    table = pa.table(
        {
            "x": pa.array([0.0, 1.0, 2.0], pa.float32()),
            "y": pa.array([0.0, 1.0, 2.0], pa.float32()),
            "class": ["T_C", "selected", "filtered"],
        }
    )
    pq.write_table(table, context.run.artifacts / "map.parquet")
    return {}


def runs_of(home: Path) -> dict[str, str]:
    """{page: run that it is to show}, all finished."""
    made = corpora(home)
    texts = [f"Row {i} of pile {i * 7} is signed by clerk number {i % 17} today ." for i in range(200)]
    pile = (replace(sentence(text), file="pile.pdf", page=7) for text in texts)
    made["domain"] = Library(home).seal(pile, name="my pile", origin={})
    facade_corpora.set_role("domain", made["domain"].fingerprint)
    marks = {role: corpus.fingerprint for role, corpus in made.items()}
    parts = {role: marks[role] for role in ("task", "domain")}
    select = facade_runs.execute("select", {**parts, "strategy": "random", "budget": "20%"}).id
    finish(home, "map", maps.options(select), drawn)
    similarity = {
        "target": (marks["task"],),
        "source": (marks["domain"],),
        "measure": ("tvc",),
        "draws": 1,
        "sizes": 1,
        "min_source_tokens": 1_000,
    }
    return {
        "2_Similarity": facade_runs.execute("similarity", similarity).id,
        "3_Selection": select,
        "4_Explore": select,
        "5_Training": experiment(home, made, LINES[:2]).id,
        "6_Results": facade_runs.listed("experiment")[0].id,
        "7_Bias": measured(home, contracts(home)).id,
        "8_Assisting": facade_runs.execute("skl", {"primary": marks["train"], "assisting": marks["test"]}).id,
    }


def remove(*fingerprints: str) -> None:
    for corpus in facade_corpora.listed():
        if not fingerprints or corpus.fingerprint in fingerprints:
            facade_corpora.remove(corpus.fingerprint)


KEPT = {
    "2_Similarity": "my pile",
    "3_Selection": "the closest to the task text, to",
    "4_Explore": "the closest to the task text, to",
    "5_Training": "classifier 10",
    "6_Results": "classifier 10",
    "7_Bias": "Names and contexts tell about as much",
    "8_Assisting": "Kept of all",
}


@pytest.fixture(scope="module")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home without corpora, and its runs."""
    home = tmp_path_factory.mktemp("gone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        runs = runs_of(home)
        for corpus in facade_corpora.listed():
            facade_corpora.remove(corpus.fingerprint)
    return home, runs


@pytest.fixture
def runs(emptied: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("WINNOW_HOME", str(emptied[0]))
    return emptied[1]


def everything(app: AppTest) -> str:
    assert not app.exception
    assert [error.value for error in app.error] == []
    return texts(app) + " ".join(metric.label for metric in app.metric)


@pytest.mark.parametrize("page", list(KEPT))
@pytest.mark.parametrize("named", [True, False])
def test_a_page_opens_a_run_whose_corpora_are_all_gone(runs: dict[str, str], page: str, named: bool) -> None:
    app = opened_on(f"pages/{page}.py", runs[page]) if named else opened(f"pages/{page}.py")
    said = everything(app)
    assert GONE in said
    assert KEPT[page] in said
    assert "Resume" not in [button.label for button in app.button]


def test_home_and_corpora_list_them_and_home_links_to_each(runs: dict[str, str]) -> None:
    everything(opened("pages/1_Corpora.py"))
    app = opened("home.py")
    everything(app)
    links = {(link.proto.page, link.proto.query_string) for link in app.get("page_link") if link.proto.label == "Open"}
    pages = {page[2:]: f"run={run_id}" for page, run_id in runs.items() if page not in ("3_Selection", "6_Results")}
    assert set(pages.items()) <= links


@pytest.mark.parametrize("tab", ["Leaderboard", "Curves", "By type", "Sentences", "All trainings", "Take away"])
def test_each_tab_of_results_says_what_it_cannot_show(runs: dict[str, str], tab: str) -> None:
    app = opened_on("pages/6_Results.py", runs["6_Results"])
    app.session_state["results.tab"] = tab
    said = everything(app.run())
    assert ("is no longer here" in said or "no corpus of this name" in said) == (tab in ("By type", "Sentences"))


def test_the_map_and_s_c_are_shown_when_only_d_c_is_gone(home: Path) -> None:
    run_id = runs_of(home)["4_Explore"]
    facade_corpora.remove("my pile")
    app = opened_on("pages/4_Explore.py", run_id)
    said = everything(app)
    assert "No longer on this machine: the big corpus." in said
    assert "The choice itself is still here" in said
    assert "pile.pdf, page 7" in said
    assert sum(f"clerk number {i} " in said for i in range(17)) > 3
    assert len(app.get("vega_lite_chart")) == 1  # the scores
    assert len(app.get("plotly_chart")) == 1  # the map
    said = everything(opened_on("pages/3_Selection.py", run_id))
    assert "The choice itself is still here" in said


def test_a_selection_whose_d_c_is_gone_leaves_explore_to_the_others(home: Path) -> None:
    made = corpora(home)
    lines = [f"Line {i} of it ." for i in range(90)]
    other = Library(home).seal(map(sentence, lines), name="other pile", origin={})
    options = {"task": made["task"].fingerprint, "strategy": "random", "budget": "20%"}
    kept, gone = (
        facade_runs.execute("select", {**options, "domain": domain.fingerprint}).id
        for domain in (made["domain"], other)
    )
    facade_corpora.remove("other pile")
    app = opened_on("pages/4_Explore.py", kept)
    assert GONE not in everything(app)
    [picker] = [box for box in app.selectbox if box.label == "The choice"]
    assert len(picker.options) == 2
    assert "No longer on this machine: the big corpus." in everything(opened_on("pages/4_Explore.py", gone))


def test_a_selection_without_its_t_c_still_moves_its_budget(home: Path) -> None:
    run_id = runs_of(home)["3_Selection"]
    facade_corpora.remove("my task")
    app = opened_on("pages/3_Selection.py", run_id)
    assert "No longer on this machine: the task text." in everything(app)
    app.slider[0].set_value(50.0).run()
    everything(app)
    assert ("Selected", "100") in [(metric.label, metric.value) for metric in app.metric]
