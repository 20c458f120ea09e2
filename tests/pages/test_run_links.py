"""Which run a page is about: no run stands in for another in silence."""

from pathlib import Path

import pytest

from core.corpora.corpus import Corpus
from core.facade import corpora as facade_corpora
from core.facade import runs
from core.facade.titles import run_titles
from tests.finished import LINES, corpora, experiment, fine_tuned, finish
from tests.finished_bias import contracts, measured
from tests.pages.test_pages import opened, opened_on, texts, trio  # noqa: F401

GONE = "20200101-000000-select-dead"
ABOUT_RUNS = (
    "2_Similarity",
    "3_Selection",
    "4_Explore",
    "5_Training",
    "6_Results",
    "7_Bias",
    "8_Assisting",
    "1_Corpora",
)


def select(made: dict[str, Corpus]) -> str:
    marks = {role: made[role].fingerprint for role in ("task", "domain")}
    return runs.execute("select", {**marks, "strategy": "random", "budget": "20%"}).id


@pytest.mark.parametrize("page", ABOUT_RUNS)
def test_an_address_of_no_run_shows_none_and_says_so(home: Path, page: str) -> None:
    made = corpora(home)
    select(made)
    experiment(home, made, LINES[:2])
    measured(home, contracts(home))
    app = opened_on(f"pages/{page}.py", GONE)
    assert not app.exception
    assert not app.error
    assert "This result is not in this project: it was removed, or the address is wrong." in texts(app)
    assert str(home) not in texts(app)
    assert all("Finished" not in element.value for element in app.markdown)  # no run's panel


def test_the_latest_is_one_click_from_a_dead_address(home: Path) -> None:
    run_id = select(corpora(home))
    app = opened_on("pages/3_Selection.py", GONE)
    app.button(key="selection.run.latest").click().run()
    assert not app.exception
    assert run_id in app.query_params["choice"]
    assert "Withheld" in [metric.label for metric in app.metric]
    assert "This result is not in this project" not in texts(app)


def test_a_run_of_another_page_is_linked_to(home: Path) -> None:
    run_id = select(corpora(home))
    app = opened_on("pages/5_Training.py", run_id)
    assert not app.exception
    assert "belongs on another page" in texts(app)
    [link] = [found.proto for found in app.main.get("page_link") if found.proto.label == "Open it"]
    assert (link.page, link.query_string) == ("Selection", f"run={run_id}")


def test_a_single_training_is_not_answered_with_an_experiment(home: Path) -> None:
    made = corpora(home)
    experiment(home, made, LINES[:2])
    options = {"init": "tiny", "seeds": (1, 2), **{name: made[name].fingerprint for name in ("train", "dev")}}
    single = finish(home, "finetune", options, lambda context: fine_tuned())
    app = opened_on("pages/6_Results.py", single.id)
    assert not app.exception
    assert "Leaderboard" not in [tab.label for tab in app.tabs]
    assert "Fine&#45;tune tiny on my train" in texts(app)


@pytest.mark.parametrize("page", ["pages/3_Selection.py", "pages/4_Explore.py"])
def test_after_another_sample_was_opened_no_run_of_the_first_is_shown(home: Path, page: str) -> None:
    facade_corpora.open_sample("medical")
    run_id = select({role: facade_corpora.find(mark) for role, mark in facade_corpora.roles().items()})
    app = opened(page)
    assert "Withheld" in [metric.label for metric in app.metric] or app.tabs
    facade_corpora.open_sample("legal")
    app.run()
    assert not app.exception
    assert not app.metric
    assert not app.tabs
    assert "Nothing here is of the corpora in use. The latest of others: Select 20&#37; of medical" in texts(app)
    app.button(key="selection.run.latest").click().run()
    assert run_id in app.query_params["choice"]
    assert app.metric or app.tabs


def test_what_this_visit_was_about_stays_while_the_same_corpora_are_in_use(home: Path) -> None:
    made = corpora(home)
    older, newer = (
        select(made),
        runs.execute(
            "select",
            {role: made[role].fingerprint for role in ("task", "domain")} | {"strategy": "random", "budget": "5"},
        ).id,
    )
    app = opened_on("pages/4_Explore.py", older)
    del app.query_params["choice"]
    assert app.run().selectbox(key=f"explore.which.{older}").value == older
    another = opened_on("pages/4_Explore.py", newer)  # in another window, which takes the newer one up
    assert another.selectbox(key=f"explore.which.{newer}").value == newer
    assert app.run().selectbox(key=f"explore.which.{older}").value == older
    assert opened("pages/4_Explore.py").selectbox(key=f"explore.which.{newer}").value == newer


def test_another_run_is_picked_by_when_it_was_begun(home: Path) -> None:
    made = corpora(home)
    marks = {name: made[name].fingerprint for name in ("train", "dev")}
    older, newer = (
        finish(home, "finetune", {"init": "tiny", "seeds": (seed,), **marks}, lambda _: fine_tuned()) for seed in (1, 2)
    )
    app = opened_on("pages/5_Training.py", newer.id)
    choice = app.selectbox(key=f"training.which.{newer.id}")
    labels = run_titles([newer, older])
    assert choice.options == list(labels.values())
    assert len(set(labels.values())) == 2
    assert not [run.id for run in (older, newer) if run.id[-4:] in " ".join(choice.options)]
    choice.set_value(older.id).run()
    assert not app.exception
    assert older.id in app.query_params["run"]
    assert app.selectbox(key=f"training.which.{older.id}").value == older.id
