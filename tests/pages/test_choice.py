"""A choice that was made is kept: the budget that was set, on every page, in the address and on the command line."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.cli.main import run_main
from core.config import Budget
from core.corpora.hygiene import FLAGS
from core.corpora.library import Library
from core.errors import ConfigError
from core.importing import view as facade_corpora
from core.projects import home_steps, runs
from core.selection import choices
from core.selection import view as selections
from tests import finished
from tests.conftest import Seal, sentence
from tests.homes import project_in
from tests.pages.drawing import codes, opened, press, texts
from tests.pages.drawing import select as selected

PAGE = "pages/3_Selection.py"
WORDS = ["court", "contract", "goal", "league", "buyer", "seller", "clause", "match"]
COMMAND = "selection.command"
LONG = "threshold:0.4836821188889929"


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """A home with T_C and D_C in their parts and a finished selection of a fifth: (home, {part: fingerprint}, run)."""
    home = project_in(tmp_path_factory.mktemp("chosen"))
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
        return home, parts, selected()


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


def shown_command(app: AppTest) -> list[str]:
    return shlex.split(codes(app)[-1])


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
    app = opened(PAGE, {"selection.format": kind, COMMAND: True})
    assert not app.error
    written = typed(shown_command(app), tmp_path, monkeypatch)
    name, sent = downloads[-1]
    assert name == written.name
    assert budget.replace("%", "pct").replace(":", "-") in name
    assert written.read_bytes() == sent


@pytest.mark.parametrize(
    ("budget", "kind"),
    [
        ("20%", "txt"),
        ("20.2%", "jsonl"),
        ("61", "parquet"),
        ("301tokens", "txt"),
        (LONG, "jsonl"),
        pytest.param("0.7%", "parquet", marks=pytest.mark.full),
        pytest.param("threshold:0.01", "txt", marks=pytest.mark.full),
    ],
)
def test_the_shown_command_writes_what_the_page_gives(
    budget: str, kind: str, select: str, downloads: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selections.keep_budget(select, budget)
    as_downloaded(budget, kind, downloads, tmp_path, monkeypatch)


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
        run_id = selected(budget="20.2%")
    selections.edit(run_id, "remove", selections.chosen(run_id).rows[:3])
    as_downloaded("20.2%", "txt", downloads, tmp_path, monkeypatch)


def test_the_shown_command_keeps_the_order_that_diversity_made_and_writes_the_same_folder(
    corpora: dict[str, str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selections.keep_budget(selected(budget="5%", diversity="quota", encoder="tiny"), "12.5%")
    app = opened(PAGE, {"selection.format": "folder", COMMAND: True})
    press(app, "selection.export")
    written = typed(shown_command(app), tmp_path, monkeypatch)
    [kept] = (home / "exports").iterdir()
    assert written.name == kept.name
    assert (written / "selected.parquet").read_bytes() == (kept / "selected.parquet").read_bytes()


def test_a_moved_slider_is_kept_on_every_page_until_it_is_moved_back(
    select: str, downloads: list[tuple[str, bytes]]
) -> None:
    app = opened(PAGE, {COMMAND: True})
    app.slider[0].set_value(30.2).run()
    app.switch_page("pages/1_Corpora.py").run()
    app.switch_page(PAGE).run()
    assert app.metric[0].value == "61"
    assert app.slider[0].value == pytest.approx(30.2)
    assert app.query_params["choice"] == select
    assert downloads[-1][0] == f"choice-{select[-4:]}-30.2pct.txt"
    assert home_steps.steps()[1].known.startswith("61 of 203 sentences")
    corpus = selections.seal(select)
    texts_of = [sentence.text for batch in corpus.batches() for sentence in batch]
    rows = selections.choose(select, "30.2%").rows
    assert texts_of == [row["text"] for row in selections.scored(select).table(rows)]
    app.slider[0].set_value(20.0).run()
    assert "budget" not in app.query_params
    assert not list(runs.get(select).path.glob("budget.json"))
    assert selections.seal(select).fingerprint == runs.get(select).result()["corpus"]


def test_an_address_with_a_budget_shows_that_budget_if_it_is_one(select: str, corpora: dict[str, str]) -> None:
    other = selected("length-matched-random")
    app = opened(PAGE, run=select, budget="50%")
    assert app.metric[0].value == "102"
    assert selections.kept_budget(select) == "50%"
    app.selectbox(key=f"selection.which.{select}").set_value(other).run()
    assert selections.kept_budget(other) == "20%"
    assert app.metric[0].value == "41"
    assert "budget" not in app.query_params
    app = opened(PAGE, run=other, budget="lots")
    assert len(app.error) == 1
    assert app.metric[0].value == "41"
    assert "budget" not in app.query_params


def test_another_unit_keeps_the_selection_and_a_budget_of_nothing_is_refused(select: str) -> None:
    selections.keep_budget(select, "30.2%")
    rows = selections.chosen(select).rows.tolist()
    for unit in ("sentences", "threshold", "fraction"):
        selections.keep_budget(select, selections.budget_in(select, unit))
        now = selections.chosen(select).rows.tolist()
        assert now[: len(rows)] == rows
        assert len(now) - len(rows) <= 1  # a score is rounded so that the last one stays in
    app = opened(PAGE)
    app.segmented_control(key=f"selection.unit.{select}").set_value("tokens").run()
    assert not app.error
    before = selections.kept_budget(select)
    assert Budget.parse(before).unit == "tokens"
    assert selections.chosen(select).rows.tolist()[: len(rows)] == rows
    app.number_input(key=f"selection.amount.{select}.tokens").set_value(1).run()
    assert len(app.error) == 1
    assert len(app.get("vega_lite_chart")) == 2
    assert selections.kept_budget(select) == before
    selections.keep_budget(select, LONG)
    app = opened(PAGE)
    assert app.slider[0].value == float(LONG.removeprefix("threshold:"))
    app.slider[0].set_value(0.6000000000000001).run()  # what a browser's arithmetic gives
    assert selections.kept_budget(select) == "threshold:0.6"


def test_a_share_becomes_a_score_that_takes_the_same_where_few_score_far_off(
    seal: Seal, corpora: dict[str, str]
) -> None:
    odd = " ".join(f"x{i}" for i in range(40))
    likely = [f"The {a} signs the {b} {c} ." for a in WORDS for b in WORDS for c in ("today", "now", "here")]
    domain = seal([*likely, odd], "with one far off").fingerprint
    select = selected("ngram-perplexity", "10%", domain=domain, keep=FLAGS)
    score = selections.budget_in(select, "threshold")
    assert len(score) <= len("threshold:-1.234567")
    assert 0 <= len(selections.choose(select, score, FLAGS).rows) - len(selections.chosen(select).rows) <= 2


def test_a_spoilt_file_counts_as_no_choice(select: str) -> None:
    selections.keep_budget(select, "30.2%")
    [file] = runs.get(select).path.glob("budget.json")
    for spoilt in (b"{", b"\xff", json.dumps("lots").encode(), b"[1]"):
        file.write_bytes(spoilt)
        assert selections.kept_budget(select) == "20%"


def test_a_selection_is_saved_under_a_name_renamed_and_removed(select: str) -> None:
    selections.keep_budget(select, "30.2%")
    app = opened(PAGE, {"selection.choice.aside": True})
    [name] = [field for field in app.text_input if (field.key or "").startswith("selection.choice.name.")]
    assert name.value == "30.2% by random"
    name.set_value("Leases")
    press(app, "selection.choice.keep")
    [kept] = [each for each in choices.listed() if not each.first]
    assert (kept.name, kept.budget) == ("Leases", "30.2%")
    app.slider[0].set_value(50.0).run()
    assert (selections.kept_budget(select), selections.kept_budget(kept.id)) == ("50%", "30.2%")
    assert app.query_params["choice"] == select
    with pytest.raises(ConfigError, match="is called"):
        choices.keep(select, "leases")
    app = opened(PAGE, {"selection.choice.more": True})
    assert "selection.choice.remove" not in [button.key for button in app.button]  # the run's own selection
    [name] = [field for field in app.text_input if (field.key or "").startswith("selection.choice.called.")]
    name.set_value("First")
    press(app, "selection.choice.rename")
    assert selections.at(select).name == "First"
    choices.take_up(kept.id)
    app = opened(PAGE, {"selection.choice.more": True})
    press(app, "selection.choice.remove")
    assert [each.id for each in choices.listed()] == [select]
    assert app.query_params["choice"] == select


def test_the_selection_that_is_taken_up_is_what_all_pages_command_and_export_speak_of(
    select: str, downloads: list[tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = choices.keep(select, "Leases")
    selections.keep_budget(kept.id, "30.2%")
    selections.edit(kept.id, "remove", selections.chosen(kept.id).rows[:3])
    app = opened(PAGE, {COMMAND: True})
    assert app.metric[0].value == "41"
    app.selectbox(key=f"selection.which.{select}").set_value(kept.id).run()
    assert app.metric[0].value == "58"
    assert app.query_params["choice"] == kept.id
    written = typed(shown_command(app), tmp_path, monkeypatch)
    assert shown_command(app)[3:5] == ["export", kept.id]
    assert (written.name, written.read_bytes()) == downloads[-1]
    assert written.name == f"choice-{select[-4:]}-{kept.id[-4:]}-30.2pct.txt"
    assert len(written.read_bytes().splitlines()) == 58
    app.switch_page("pages/4_Explore.py").run()
    assert app.session_state["explore.shown"] == kept.id
    assert "Leases: 58 of 203" in home_steps.steps()[1].known  # it is the project's current one


def test_an_address_names_the_selection_to_train_on_or_says_that_it_is_gone(select: str) -> None:
    kept = choices.keep(select, "Leases")
    app = opened("pages/5_Training.py", choice=kept.id)
    assert app.selectbox(key="training.selection").value == kept.id
    app.selectbox(key="training.selection").set_value(select).run()  # what is picked then stays
    assert app.selectbox(key="training.selection").value == select
    app.query_params["choice"] = f"{select}.0000"
    assert len(app.run().warning) == 1
    app = opened(PAGE, choice=f"{select}.0000")
    assert not app.metric
    press(app, "selection.run.latest")
    assert app.metric[0].value == "41"


def test_a_selection_says_that_a_training_used_it_before_it_was_changed(select: str, home: Path) -> None:
    options = {"corpora": (selections.seal(select).fingerprint,), "init": "tiny"}
    finished.finish(home, "pretrain", options, finished.constant(finished.pretrained()))
    selections.keep_budget(select, "30%")
    assert "an earlier version of this selection (41 sentences)" in texts(opened(PAGE))
