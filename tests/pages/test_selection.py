"""The page Selection: its form, the budget and the saved selections, their command and their export."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from core.experiment import deliver
from core.importing import view as corpora
from core.kind import as_json, plan, register
from core.kinds import KINDS
from core.projects import home_steps, runs
from core.projects.home import store
from core.runs.events import EventLog
from core.runs.result import read
from core.selection import STRATEGIES, choices, insights, which_view
from core.selection import view as selections
from core.selection.prevalence import PrevalenceResult
from core.selection.result import NotServed
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import Seal, sentence
from tests.homes import Names, project_in
from tests.pages.drawing import (
    CORPORA,
    EXPLORE,
    NASTY,
    SELECTION,
    TRAINING,
    codes,
    keys,
    opened,
    opened_on,
    press,
    select,
    texts,
)

WORDS = ["court", "contract", "goal", "league", "buyer", "seller", "clause", "match"]
COMMAND = "selection.command"
LONG = "threshold:0.4836821188889929"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """Prepare a home with a task and a domain corpus and a selection of a fifth; return (home, roles, run)."""
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
            corpora.set_role(role, corpus.fingerprint)
        return home, corpora.roles(), select()


@pytest.fixture
def parts(prepared: tuple[Path, dict[str, str], str], home: Path) -> dict[str, str]:
    """Copy the prepared home; return {role: fingerprint}."""
    shutil.copytree(prepared[0], home, dirs_exist_ok=True)
    return prepared[1]


@pytest.fixture
def run_id(prepared: tuple[Path, dict[str, str], str], parts: dict[str, str]) -> str:
    """Copy the prepared home; return the selection's run."""
    return prepared[2]


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Return the list of files that the drawn download buttons offer, as (name, bytes)."""
    sent: list[tuple[str, bytes]] = []

    def button(label: str, data: Callable[[], bytes], name: str = "", **_: Any) -> bool:
        if name:  # the button of Home has no name
            sent.append((name, data()))
        return False

    monkeypatch.setattr(st, "download_button", button)
    return sent


def shown_command(app: AppTest) -> list[str]:
    return shlex.split(codes(app)[-1])


def typed(words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run a command in `folder`; return the file that it wrote."""
    assert words[:3] == ["python", "-m", "core"]
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", words[2:])
    assert run_main() == 0
    return folder / words[words.index("--output") + 1]


def assert_same_as_download(
    budget: str, kind: str, downloads: list[tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assert that the page's download and the file of the shown command have the same name and the same bytes."""
    app = opened(SELECTION, {"selection.format": kind, COMMAND: True})
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
def test_shown_command_writes_the_same_file_as_the_download(
    budget: str, kind: str, run_id: str, downloads: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selections.keep_budget(run_id, budget)
    assert_same_as_download(budget, kind, downloads, tmp_path, monkeypatch)


@pytest.mark.parametrize("edited", ["this run", "the run that the command would take"])
def test_shown_command_includes_hand_edits(
    edited: str,
    run_id: str,
    parts: dict[str, str],
    downloads: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selections.keep_budget(run_id, "20.2%")
    edited_run = run_id if edited == "this run" else select(budget="20.2%")
    selections.edit(edited_run, "remove", selections.chosen(edited_run).rows[:3])
    assert_same_as_download("20.2%", "txt", downloads, tmp_path, monkeypatch)


def test_shown_command_exports_the_same_folder_of_a_diverse_selection(
    parts: dict[str, str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selections.keep_budget(select(budget="5%", diversity="quota", encoder="tiny"), "12.5%")
    app = opened(SELECTION, {"selection.format": "folder", COMMAND: True})
    press(app, "selection.export")
    written = typed(shown_command(app), tmp_path, monkeypatch)
    [kept] = (home / "exports").iterdir()
    assert written.name == kept.name
    assert (written / "selected.parquet").read_bytes() == (kept / "selected.parquet").read_bytes()


def test_budget_is_kept_on_every_page_until_it_is_reset(run_id: str, downloads: list[tuple[str, bytes]]) -> None:
    app = opened(SELECTION, {COMMAND: True})
    app.slider[0].set_value(30.2).run()
    app.switch_page(CORPORA).run()
    app.switch_page(SELECTION).run()
    assert app.metric[0].value == "61"
    assert app.slider[0].value == pytest.approx(30.2)
    assert app.query_params["choice"] == run_id
    assert downloads[-1][0] == f"my_domain-random-{run_id[-4:]}-30.2pct.txt"
    assert home_steps.steps()[1].known.startswith("61 of 203 sentences")
    corpus = selections.seal(run_id)
    texts_of = [sentence.text for batch in corpus.batches() for sentence in batch]
    rows = selections.choose(run_id, "30.2%").rows
    assert texts_of == [row["text"] for row in selections.scored(run_id).table(rows)]
    app.slider[0].set_value(20.0).run()
    assert "budget" not in app.query_params
    assert not list(runs.get(run_id).path.glob("budget.json"))
    assert selections.seal(run_id).fingerprint == runs.get(run_id).result()["corpus"]


def test_address_sets_a_valid_budget_and_refuses_another(run_id: str, parts: dict[str, str]) -> None:
    other = select("length-matched-random")
    app = opened(SELECTION, run=run_id, budget="50%")
    assert app.metric[0].value == "102"
    assert selections.kept_budget(run_id) == "50%"
    app.selectbox(key=f"selection.which.{run_id}").set_value(other).run()
    assert selections.kept_budget(other) == "20%"
    assert app.metric[0].value == "41"
    assert "budget" not in app.query_params
    app = opened(SELECTION, run=other, budget="lots")
    assert len(app.error) == 1
    assert app.metric[0].value == "41"
    assert "budget" not in app.query_params


def test_another_unit_keeps_the_selection_and_an_empty_budget_is_refused(run_id: str) -> None:
    selections.keep_budget(run_id, "30.2%")
    rows = selections.chosen(run_id).rows.tolist()
    for unit in ("sentences", "threshold", "fraction"):
        selections.keep_budget(run_id, selections.budget_in(run_id, unit))
        now = selections.chosen(run_id).rows.tolist()
        assert now[: len(rows)] == rows
        assert len(now) - len(rows) <= 1  # the threshold is rounded down, so that the last sentence stays in
    app = opened(SELECTION)
    app.segmented_control(key=f"selection.unit.{run_id}").set_value("tokens").run()
    assert not app.error
    before = selections.kept_budget(run_id)
    assert Budget.parse(before).unit == "tokens"
    assert selections.chosen(run_id).rows.tolist()[: len(rows)] == rows
    app.number_input(key=f"selection.amount.{run_id}.tokens").set_value(1).run()
    assert len(app.error) == 1
    assert len(app.get("vega_lite_chart")) == 2
    assert selections.kept_budget(run_id) == before
    selections.keep_budget(run_id, LONG)
    app = opened(SELECTION)
    assert app.slider[0].value == float(LONG.removeprefix("threshold:"))
    app.slider[0].set_value(0.6000000000000001).run()  # the slider in a browser returns such numbers
    assert selections.kept_budget(run_id) == "threshold:0.6"


def test_a_budget_that_a_cascade_does_not_serve_is_selected_again_on_request(
    run_id: str, started_runs: list[tuple[str, Mapping[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_less(choice_id: str, budget: str) -> None:
        if Budget.parse(budget).value > 0.3:
            raise NotServed("budget: the scores of the cascade end at 30%.")

    monkeypatch.setattr(selections, "keep_budget", only_less)
    app = opened(SELECTION)
    assert "selection.again" not in keys(app)
    app.slider[0].set_value(50.0).run()
    assert [error.value for error in app.error] == [plain("budget: the scores of the cascade end at 30%.")]
    assert len(app.run().error) == 1  # it stays until another budget is set
    app.slider[0].set_value(25.0).run()
    assert not app.error
    app.slider[0].set_value(50.0).run()
    press(app, "selection.again")
    assert started_runs == [("select", {**runs.get(run_id).manifest.config, "budget": "50%"})]


def test_share_becomes_a_threshold_for_the_same_sentences(seal: Seal, parts: dict[str, str]) -> None:
    odd = " ".join(f"x{i}" for i in range(40))
    likely = [f"The {a} signs the {b} {c} ." for a in WORDS for b in WORDS for c in ("today", "now", "here")]
    domain = seal([*likely, odd], "with one far off").fingerprint
    run_id = select("ngram-perplexity", "10%", domain=domain, keep=FLAGS)
    score = selections.budget_in(run_id, "threshold")
    assert len(score) <= len("threshold:-1.234567")
    assert 0 <= len(selections.choose(run_id, score, FLAGS).rows) - len(selections.chosen(run_id).rows) <= 2


def test_damaged_budget_file_counts_as_no_choice(run_id: str) -> None:
    selections.keep_budget(run_id, "30.2%")
    [file] = runs.get(run_id).path.glob("budget.json")
    for spoilt in (b"{", b"\xff", json.dumps("lots").encode(), b"[1]"):
        file.write_bytes(spoilt)
        assert selections.kept_budget(run_id) == "20%"


def test_selection_is_saved_under_a_name_renamed_and_removed(run_id: str) -> None:
    selections.keep_budget(run_id, "30.2%")
    app = opened(SELECTION, {"selection.choice.aside": True})
    [name] = [field for field in app.text_input if (field.key or "").startswith("selection.choice.name.")]
    assert name.value == "30.2% by random"
    name.set_value("Leases")
    press(app, "selection.choice.keep")
    [kept] = [each for each in choices.listed() if not each.first]
    assert (kept.name, kept.budget) == ("Leases", "30.2%")
    app.slider[0].set_value(50.0).run()
    assert (selections.kept_budget(run_id), selections.kept_budget(kept.id)) == ("50%", "30.2%")
    assert app.query_params["choice"] == run_id
    with pytest.raises(ConfigError, match="is called"):
        choices.keep(run_id, "leases")
    app = opened(SELECTION, {"selection.choice.more": True})
    assert "selection.choice.remove" not in [
        button.key for button in app.button
    ]  # the first selection of a run cannot be removed
    [name] = [field for field in app.text_input if (field.key or "").startswith("selection.choice.called.")]
    name.set_value("First")
    press(app, "selection.choice.rename")
    assert selections.at(run_id).name == "First"
    choices.take_up(kept.id)
    app = opened(SELECTION, {"selection.choice.more": True})
    press(app, "selection.choice.remove")
    assert [each.id for each in choices.listed()] == [run_id]
    assert app.query_params["choice"] == run_id


def test_all_pages_the_command_and_the_export_use_the_current_selection(
    run_id: str, downloads: list[tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = choices.keep(run_id, "Leases")
    selections.keep_budget(kept.id, "30.2%")
    selections.edit(kept.id, "remove", selections.chosen(kept.id).rows[:3])
    app = opened(SELECTION, {COMMAND: True})
    assert app.metric[0].value == "41"
    app.selectbox(key=f"selection.which.{run_id}").set_value(kept.id).run()
    assert app.metric[0].value == "58"
    assert app.query_params["choice"] == kept.id
    written = typed(shown_command(app), tmp_path, monkeypatch)
    assert shown_command(app)[3:5] == ["export", kept.id]
    assert (written.name, written.read_bytes()) == downloads[-1]
    assert written.name == f"Leases-{run_id[-4:]}-{kept.id[-4:]}-30.2pct.txt"
    assert len(written.read_bytes().splitlines()) == 58
    app.switch_page(EXPLORE).run()
    assert app.session_state["explore.shown"] == kept.id
    assert "Leases: 58 of 203" in home_steps.steps()[1].known  # Home shows the same selection


def test_address_selects_the_training_text_and_warns_if_it_is_missing(run_id: str) -> None:
    kept = choices.keep(run_id, "Leases")
    app = opened(TRAINING, choice=kept.id)
    assert app.selectbox(key="training.selection").value == kept.id
    app.selectbox(key="training.selection").set_value(run_id).run()  # a choice made on the page stays
    assert app.selectbox(key="training.selection").value == run_id
    for page in (SELECTION, TRAINING):  # the link on Selection leads to the same address again
        app.switch_page(page)
        app.query_params["choice"] = kept.id
        app.run()
    assert app.selectbox(key="training.selection").value == kept.id
    app.query_params["choice"] = f"{run_id}.0000"
    assert len(app.run().warning) == 1
    app = opened(SELECTION, choice=f"{run_id}.0000")
    assert not app.metric
    press(app, "selection.run.latest")
    assert app.metric[0].value == "41"


def test_selection_says_that_a_training_used_an_earlier_version(run_id: str, home: Path) -> None:
    options = {"corpora": (selections.seal(run_id).fingerprint,), "init": "tiny"}
    finished.finish(home, "pretrain", options, finished.constant(finished.pretrained()))
    selections.keep_budget(run_id, "30%")
    assert "an earlier version of this selection (41 sentences)" in texts(opened(SELECTION))


def test_selection_is_shown_moved_compared_and_exported_without_a_new_run(run_id: str, home: Path) -> None:
    other = select("length-matched-random")
    selections.edit(other, "add", selections.chosen(run_id).rows[:2])
    found = insights.overlap(run_id, other)
    ours, theirs = ({int(row) for row in selections.chosen(run).rows} for run in (run_id, other))
    assert (found.both, found.only_a, found.only_b) == tuple(map(len, (ours & theirs, ours - theirs, theirs - ours)))
    assert {row["row"] for row in found.only_in_a} <= ours - theirs
    assert {row["row"] for row in found.only_in_b} <= theirs - ours
    before = [run.id for run in runs.listed()]
    app = opened_on(SELECTION, run_id, {"selection.command": True})
    assert app.metric[0].value == "41"
    assert "--strategy random" in codes(app)[-1]
    app.selectbox(key="selection.other").select(other).run()
    assert f"{found.both:,} of {len(ours):,}" in texts(app)
    app.slider[0].set_value(33.3)
    app.segmented_control(key="selection.format").set_value("folder").run()
    assert app.metric[0].value == "68"
    written = deliver.exports() / f"my_domain-random-{run_id[-4:]}-33.3pct"
    written.write_text("a file in the place of the folder")
    press(app, "selection.export")
    assert "cannot be written" in app.error[0].value
    assert len(app.get("vega_lite_chart")) == 2  # the rest of the page is still drawn
    written.unlink()
    press(app, "selection.export")
    assert not app.error
    assert (written / "selected.parquet").exists()
    assert (written / "README.md").exists()
    assert str(written) in [code.value for code in app.code]
    assert [run.id for run in runs.listed()] == before


def test_every_option_of_every_strategy_has_a_field() -> None:
    def forms() -> None:
        from core.selection import STRATEGIES  # imported here, because this function runs as a separate script
        from pages.ui.widgets import config_form

        for name, strategy in STRATEGIES.items():
            config_form(strategy.Options, list(strategy.Options.model_fields), f"selection.{name}")

    app = AppTest.from_function(forms, default_timeout=300).run()
    for name, strategy in STRATEGIES.items():
        assert all(app.get_by_key(f"selection.{name}.{option}") for option in strategy.Options.model_fields), name


@pytest.mark.usefixtures("expert", "parts")
@pytest.mark.parametrize(
    ("strategy", "encodes", "warns"),
    [
        ("dsir", False, ""),
        ("fuse", True, ""),
        ("loss-drop", True, "then both models read the best sentences of the default"),
    ],
)
def test_form_asks_for_the_encoder_and_warns_of_training(strategy: str, encodes: bool, warns: str) -> None:
    app = opened(SELECTION, {"selection.strategy": strategy})
    assert ("selection.pooling" in [box.key for box in app.selectbox]) == encodes
    assert [warns in warning.value for warning in app.warning if "takes longer" in warning.value] == [True] * bool(
        warns
    )


@pytest.mark.usefixtures("expert")
def test_expert_chooses_a_strategy_with_its_options_on_the_sample(home: Path) -> None:
    app = opened("home.py")
    press(app, "home.sample.legal")
    roles = corpora.roles()
    assert set(roles) == {"task", "domain", "train", "dev", "test"}
    app = opened(SELECTION, {"selection.strategy": "ngram-perplexity"})
    assert all(app.selectbox(key=f"selection.{role}.{roles[role]}").value == roles[role] for role in roles)
    assert app.get_by_key("selection.ngram-perplexity.order")
    app.text_input(key="selection.budget").set_value("lots")
    press(app, "selection.start")
    assert "budget" in app.error[0].value
    assert not runs.listed("select")


def test_failed_selection_shows_its_error_escaped_and_can_be_resumed(parts: dict[str, str]) -> None:
    recipe = KINDS["select"]
    config = {"task": parts["task"], "domain": parts["domain"], "strategy": "random"}
    run = register(recipe, recipe.config.parse(config), store())
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
    app = opened_on(SELECTION, run.id)
    assert "ended without an error message" in texts(app)
    with EventLog(run.events_file) as log:
        log.append("failed", {"error": NASTY})
    app.run()
    assert "selection.run.resume" in keys(app)
    assert "<img" not in texts(app)
    assert plain(NASTY) in app.error[0].value


def test_prevalence_is_estimated_on_request_and_used_as_the_budget(
    selected: Names, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    select = selected["select"]
    opened("pages/3_Selection.py", run=select).button(key="selection.count").click().run()
    [(kind, options)] = started_runs
    assert (kind, options["encoder"]) == ("prevalence", "tiny")
    count = read(runs.execute(kind, options), PrevalenceResult)
    app = opened("pages/3_Selection.py", run=select)
    assert any(f"{count.about:,} of the " in part.value for part in app.markdown)
    press(app, "selection.counted")
    assert selections.kept_budget(select) == str(count.about)
    assert "selection.counted" not in keys(app)
    budgeted = selections.chosen(select).rows
    selections.edit(select, "remove", budgeted[:3])  # hand edits do not change what the budget selects
    app = opened("pages/3_Selection.py", run=select)
    assert any(f"your budget selects {len(budgeted):,}" in part.value for part in app.markdown)


def test_strategies_are_compared_on_request_and_the_best_one_is_used(
    parts: dict[str, str], started_runs: list[tuple[str, Mapping[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows the newest comparison of its corpora; a button sets the form's strategy to the best one."""
    app = opened(SELECTION)
    assert "The task corpus has fewer than 50 sentences" in texts(app)
    assert "selection.which.start" not in keys(app)
    monkeypatch.setattr(which_view, "LEAST", 12)
    app = press(opened(SELECTION), "selection.which.start")
    [(kind, options)] = started_runs
    assert kind == "which-strategy"
    assert {**options, "holdout": ()} == {**options, "task": parts["task"], "domain": parts["domain"], "budget": "10%"}
    recipe = KINDS[kind]
    run = register(recipe, recipe.config.parse(dict(options)), store())
    with finished.as_running(run):
        app = opened(SELECTION)
        assert plain("Compare strategies for my-task in my-domain") in texts(app)
        assert "selection.which.start" not in keys(app)
    found = finished.COMPARED
    finished.finish(store().home, kind, options, finished.constant(found))
    app = opened(SELECTION)
    shown = texts(app)
    for text in (which_view.in_words(found), which_view.basis(found), which_view.LIMIT, "71.0% (60.0% to 80.0%)"):
        assert text in shown
    # An earlier version, which knew no edition, let gazetteer use the names of hidden sentences.
    with_labels = recipe.config.parse({**options, "train": parts["task"], "strategies": ("gazetteer",)})
    newer = plan(recipe, with_labels, store().home).manifest()
    newer["config"] = {name: value for name, value in newer["config"].items() if name != "edition"}
    old = store().create(**newer)
    with EventLog(old.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
    finished.returned(old, as_json(replace(found, hidden=4321)))
    assert which_view.in_words(found) in texts(opened(SELECTION))
    assert "4,321 sentences" not in texts(opened(SELECTION))
    again = register(recipe, recipe.config.parse({**options, "budget": "20%"}), store())
    with EventLog(again.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
    app = opened(SELECTION)
    assert "ended without an error message" in texts(app)
    assert which_view.in_words(found) in texts(app)  # a failed comparison does not hide an earlier one
    press(app, "selection.which.use")
    assert app.selectbox(key="selection.strategy").value == "knn"
    assert "selection.which.use" not in keys(app)
