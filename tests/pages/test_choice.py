"""A choice that was made is kept: the budget that was set, on every page, in the address and on the command line."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.cli.main import run_main
from core.corpora.library import Library
from core.facade import choices, runs, selections
from core.facade import corpora as facade_corpora
from core.facade.selections import Budget
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import Seal, sentence
from tests.pages.test_pages import ROOT, commands_on, opened, texts

PAGE = "pages/3_Selection.py"
WORDS = ["court", "contract", "goal", "league", "buyer", "seller", "clause", "match"]
LONG = "threshold:0.4836821188889929"


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """A home with T_C and D_C in their parts and a finished selection of a fifth: (home, {part: fingerprint}, run)."""
    home = tmp_path_factory.mktemp("chosen")
    rng = np.random.default_rng(0)
    texts_of = {
        "task": [f"The {a} signs the {b} today ." for a in WORDS[:3] for b in WORDS[:4]],
        "domain": [f"In {i} the {' '.join(rng.choice(WORDS, 2 + i % 5))} ended ." for i in range(203)],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        for role, lines in texts_of.items():
            corpus = Library(home).seal(map(sentence, lines), name=f"my-{role}", origin={}, labelled=False)
            facade_corpora.set_role(role, corpus.fingerprint)
        parts = facade_corpora.roles()
        select = runs.execute("select", {**parts, "strategy": "random", "budget": "20%"}).id
    return home, parts, select


@pytest.fixture
def corpora(laid: tuple[Path, dict[str, str], str], home: Path) -> dict[str, str]:
    """A copy of that home for each test; T_C and D_C by fingerprint."""
    shutil.copytree(laid[0], home, dirs_exist_ok=True)
    return laid[1]


@pytest.fixture
def select(laid: tuple[Path, dict[str, str], str], corpora: dict[str, str]) -> str:
    """The finished selection."""
    return laid[2]


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What each `Download` that is drawn would send: (name, bytes)."""
    sent: list[tuple[str, bytes]] = []

    def button(label: str, data: Callable[[], bytes], name: str = "", **_: Any) -> bool:
        if name:  # of the page Selection, not of Home
            sent.append((name, data()))
        return False

    monkeypatch.setattr(st, "download_button", button)
    return sent


def metrics(app: AppTest) -> Mapping[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def arrived(run_id: str, budget: str) -> AppTest:
    """The page by an address that names a budget."""
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page(PAGE)
    app.query_params["run"], app.query_params["budget"] = run_id, budget
    return app.run()


def shown_command(app: AppTest) -> list[str]:
    return shlex.split(commands_on(app)[-1])


def typed(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the command wrote, started in `folder`."""
    assert words[:3] == ["python", "-m", "core"]
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", words[2:])
    assert run_main() == 0
    return folder / words[words.index("--output") + 1]


def as_downloaded(
    budget: str, kind: str, downloads: list[tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's download and the file of the command that it shows are the same, to the byte and in name."""
    app = opened(PAGE)
    app.segmented_control(key="selection.format").set_value(kind).run()
    assert not app.exception
    assert not app.error
    written = typed(shown_command(app), tmp_path, monkeypatch)
    name, sent = downloads[-1]
    assert name == written.name
    assert budget.replace("%", "pct").replace(":", "-") in name
    assert written.read_bytes() == sent


@pytest.mark.parametrize("kind", ["txt", "jsonl", "parquet"])
@pytest.mark.parametrize("budget", ["20%", "20.2%", "0.7%", "61", "301tokens", LONG, "threshold:1e-02"])
def test_the_shown_command_writes_what_the_page_gives(
    budget: str, kind: str, select: str, downloads: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if budget == "threshold:1e-02":  # random's scores are better when higher: all but a few
        budget = "threshold:0.01"
    selections.keep_budget(select, budget)
    as_downloaded(budget, kind, downloads, tmp_path, monkeypatch)


def test_the_shown_command_writes_the_folder_that_the_page_writes(
    select: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selections.keep_budget(select, "20.2%")
    app = opened(PAGE)
    app.segmented_control(key="selection.format").set_value("folder").run()
    app.button(key="selection.export").click().run()
    written = typed(shown_command(app), tmp_path, monkeypatch)
    [kept] = (home / "exports").iterdir()
    assert written.name == kept.name
    assert (written / "selected.parquet").read_bytes() == (kept / "selected.parquet").read_bytes()


@pytest.mark.parametrize("edited", ["this run", "the run that the command would take"])
def test_the_shown_command_counts_hand_edits_as_the_page_does(
    edited: str,
    select: str,
    corpora: dict[str, str],
    downloads: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selections.keep_budget(select, "20.2%")
    run_id = select
    if edited != "this run":
        run_id = runs.execute("select", {**corpora, "strategy": "random", "budget": "20.2%"}).id
    selections.edit(run_id, "remove", selections.chosen(run_id).rows[:3])
    as_downloaded("20.2%", "txt", downloads, tmp_path, monkeypatch)


def test_the_shown_command_keeps_the_order_that_diversity_made(
    corpora: dict[str, str], downloads: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**corpora, "strategy": "random", "budget": "5%", "diversity": "quota", "encoder": "tiny"}
    selections.keep_budget(runs.execute("select", options).id, "12.5%")
    as_downloaded("12.5%", "txt", downloads, tmp_path, monkeypatch)


@pytest.mark.parametrize("then", ["stays", "reloads", "leaves and comes back"])
def test_a_moved_slider_is_kept(then: str, select: str, downloads: list[tuple[str, bytes]]) -> None:
    app = opened(PAGE)
    app.slider[0].set_value(30.2).run()
    if then == "reloads":
        app = opened(PAGE)
    elif then != "stays":
        app.switch_page("pages/1_Corpora.py").run()
        app.switch_page(PAGE).run()
    assert not app.exception
    assert metrics(app)["Selected"] == "61"
    assert app.slider[0].value == pytest.approx(30.2)
    assert plain("Select 30.2% of my-domain by random") in texts(app)
    assert app.query_params["choice"] == select
    assert "--budget 30.2%" in commands_on(app)[-1]
    assert downloads[-1][0] == f"choice-{select[-4:]}-30.2pct.txt"
    assert plain("Select 30.2% of my-domain by random") in texts(opened("home.py"))


def test_back_to_the_budget_of_the_run_leaves_no_trace(select: str) -> None:
    app = opened(PAGE)
    app.slider[0].set_value(30.2).run()
    app.slider[0].set_value(20.0).run()
    assert "budget" not in app.query_params
    assert not list(runs.get(select).path.glob("budget.json"))
    assert metrics(opened(PAGE))["Selected"] == "41"


def test_an_address_with_a_budget_shows_that_budget(select: str, corpora: dict[str, str]) -> None:
    other = runs.execute("select", {**corpora, "strategy": "length-matched-random", "budget": "20%"}).id
    app = arrived(select, "50%")
    assert metrics(app)["Selected"] == "102"
    assert selections.kept_budget(select) == "50%"
    app.selectbox(key=f"selection.which.{select}").set_value(other).run()
    assert selections.kept_budget(other) == "20%"
    assert metrics(app)["Selected"] == "41"
    assert "budget" not in app.query_params


def test_a_budget_of_the_address_that_is_none_is_told_and_left(select: str) -> None:
    app = arrived(select, "lots")
    assert "is not understood" in app.error[0].value
    assert metrics(app)["Selected"] == "41"
    assert "budget" not in app.query_params


def test_a_budget_that_chooses_nothing_is_refused_in_words(select: str) -> None:
    selections.keep_budget(select, "301tokens")
    app = opened(PAGE)
    app.number_input(key=f"selection.amount.{select}.tokens").set_value(1).run()
    assert "chooses no sentence" in app.error[0].value
    assert len(app.get("vega_lite_chart")) == 2
    assert selections.kept_budget(select) == "301tokens"
    assert app.number_input(key=f"selection.amount.{select}.tokens").value == 301


def test_another_unit_keeps_the_choice(select: str) -> None:
    app = opened(PAGE)
    app.slider[0].set_value(30.2).run()
    rows = selections.chosen(select).rows.tolist()
    for unit in ("sentences", "tokens", "threshold", "fraction"):
        app.segmented_control(key=f"selection.unit.{select}").set_value(unit).run()
        assert not app.exception
        assert not app.error
        assert Budget.parse(selections.kept_budget(select)).unit == unit
        now = selections.chosen(select).rows.tolist()
        assert now[: len(rows)] == rows
        assert len(now) - len(rows) <= 1  # a score is rounded so that the last one stays in
    assert opened(PAGE).slider[0].value == pytest.approx(30.2, abs=0.3)


def test_a_share_becomes_a_score_that_takes_the_same_where_few_score_far_off(
    seal: Seal, corpora: dict[str, str]
) -> None:
    odd = " ".join(f"x{i}" for i in range(40))
    likely = [f"The {a} signs the {b} {c} ." for a in WORDS for b in WORDS for c in ("today", "now", "here")]
    domain = seal([*likely, odd], "with one far off").fingerprint
    select = runs.execute(
        "select",
        {**corpora, "domain": domain, "strategy": "ngram-perplexity", "keep": facade_corpora.FLAGS, "budget": "10%"},
    ).id
    score = selections.budget_in(select, "threshold")
    assert len(score) <= len("threshold:-1.234567")
    assert (
        0 <= len(selections.choose(select, score, facade_corpora.FLAGS).rows) - len(selections.chosen(select).rows) <= 2
    )


def test_a_score_is_set_in_steps_that_can_be_written_down(select: str) -> None:
    selections.keep_budget(select, LONG)
    assert plain("Select all that score 0.4837 or better of my-domain by random") in texts(opened(PAGE))
    app = opened(PAGE)
    slider = app.slider[0]
    assert slider.value == float(LONG.removeprefix("threshold:"))
    slider.set_value(0.6000000000000001).run()  # what a browser's arithmetic gives
    assert selections.kept_budget(select) == "threshold:0.6"
    assert "--budget threshold:0.6 " in commands_on(app)[-1]


def test_no_score_is_a_headline_and_its_meaning_is_said(select: str) -> None:
    app = opened(PAGE)
    assert not [label for label in metrics(app) if "score" in label.lower()]
    assert "the closest to the task text" in " ".join(caption.value for caption in app.caption)


def test_training_and_explore_take_the_kept_budget(select: str) -> None:
    selections.keep_budget(select, "30.2%")
    app = opened("pages/5_Training.py")
    app.segmented_control(key="training.kind").set_value("pretrain").run()
    assert any(option.startswith("30.2% by random") for option in app.selectbox(key="training.selection").options)
    corpus = selections.seal(select)
    texts_of = [sentence.text for batch in corpus.batches() for sentence in batch]
    rows = selections.choose(select, "30.2%").rows
    assert texts_of == [row["text"] for row in selections.scored(select).table(rows)]
    assert corpus.fingerprint != runs.get(select).result()["corpus"]
    assert np.array_equal(selections.chosen(select).rows, rows)
    selections.keep_budget(select, "20%")
    assert selections.seal(select).fingerprint == runs.get(select).result()["corpus"]


def test_a_spoilt_file_counts_as_no_choice(select: str) -> None:
    selections.keep_budget(select, "30.2%")
    [file] = runs.get(select).path.glob("budget.json")
    for spoilt in (b"{", b"\xff", json.dumps("lots").encode(), b"[1]"):
        file.write_bytes(spoilt)
        assert selections.kept_budget(select) == "20%"


def widgets(app: AppTest, part: str) -> AppTest:
    """The page with a popover of the choice open: aside or more."""
    app.session_state[f"selection.choice.{part}"] = True
    return app.run()


def test_keeping_makes_another_and_the_page_goes_on_with_its_own(select: str) -> None:
    selections.keep_budget(select, "30.2%")
    app = widgets(opened(PAGE), "aside")
    [name] = [field for field in app.text_input if field.label == "Its name"]
    assert name.value == "30.2% by random"
    name.set_value("Leases").run()
    app.button(key="selection.choice.keep").click().run()
    assert not app.exception
    assert plain("Kept as Leases.") in app.success[0].value
    [kept] = [each for each in choices.listed() if not each.first]
    assert (kept.name, kept.budget) == ("Leases", "30.2%")
    app.slider[0].set_value(50.0).run()
    assert (selections.kept_budget(select), selections.kept_budget(kept.id)) == ("50%", "30.2%")
    assert app.query_params["choice"] == select
    again = widgets(app, "aside")
    next(field for field in again.text_input if field.label == "Its name").set_value("leases").run()
    again.button(key="selection.choice.keep").click().run()
    assert "another choice is called" in again.error[0].value


def test_the_choice_that_is_taken_up_is_what_all_pages_command_and_export_speak_of(
    select: str, downloads: list[tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = choices.keep(select, "Leases")
    selections.keep_budget(kept.id, "30.2%")
    selections.edit(kept.id, "remove", selections.chosen(kept.id).rows[:3])
    app = opened(PAGE)
    assert metrics(app)["Selected"] == "41"
    app.selectbox(key=f"selection.which.{select}").set_value(kept.id).run()
    assert not app.exception
    assert metrics(app)["Selected"] == "58"
    assert plain("Leases: Select 30.2% of my-domain by random") in texts(app)
    assert app.query_params["choice"] == kept.id
    written = typed(shown_command(app), tmp_path, monkeypatch)
    assert shown_command(app)[3:5] == ["export", kept.id]
    assert (written.name, written.read_bytes()) == downloads[-1]
    assert written.name == f"choice-{select[-4:]}-{kept.id[-4:]}-30.2pct.txt"
    assert len(written.read_bytes().splitlines()) == 58
    app.switch_page("pages/4_Explore.py").run()
    assert app.session_state["explore.shown"] == kept.id
    assert "0 added, 3 removed" in texts(app)
    assert plain("Leases: 58 of 203") in texts(opened("home.py"))
    assert metrics(opened(PAGE))["Selected"] == "58"  # another window: it is the project's current one


def test_training_is_led_to_the_choice_of_its_address(select: str) -> None:
    kept = choices.keep(select, "Leases")
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page("pages/5_Training.py")
    app.query_params["choice"] = kept.id
    app.run()
    assert not app.exception
    assert app.selectbox(key="training.selection").value == kept.id
    app.selectbox(key="training.selection").set_value(select).run()  # what is picked then stays
    assert app.selectbox(key="training.selection").value == select
    app.query_params["choice"] = f"{select}.0000"
    assert "is not here" in app.run().warning[0].value


def test_a_choice_is_called_otherwise_and_removed_and_the_first_one_is_not(select: str) -> None:
    app = widgets(opened(PAGE), "more")
    assert "selection.choice.remove" not in [button.key for button in app.button]
    assert "remove its run on the page Runs" in texts(app)
    [name] = [field for field in app.text_input if field.label == "This choice's name"]
    name.set_value("First").run()
    app.button(key="selection.choice.rename").click().run()
    assert choices.at(select).name == "First"
    assert plain("First: Select 20% of my-domain by random") in texts(app)
    kept = choices.keep(select, "Leases")
    choices.take_up(kept.id)
    app = widgets(opened(PAGE), "more")
    app.button(key="selection.choice.remove").click().run()
    assert not app.exception
    assert [each.id for each in choices.listed()] == [select]
    assert app.query_params["choice"] == select


def test_that_a_training_read_it_when_it_was_another_is_said(select: str, home: Path) -> None:
    options = {"corpora": (selections.seal(select).fingerprint,), "init": "tiny"}
    finished.finish(home, "pretrain", options, finished.constant(finished.pretrained()))
    assert "read this choice when it was another" not in texts(opened(PAGE))
    selections.keep_budget(select, "30%")
    assert "read this choice when it was another, of 41 sentences, and keeps those" in texts(opened(PAGE))


def test_an_address_of_a_choice_that_is_gone_shows_none_and_says_so(select: str) -> None:
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page(PAGE)
    app.query_params["choice"] = f"{select}.0000"
    app.run()
    assert not app.exception
    assert not app.metric
    assert "is not here" in app.warning[0].value
    app.button(key="selection.run.latest").click().run()
    assert metrics(app)["Selected"] == "41"
