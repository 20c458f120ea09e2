"""The button beside the sentence on the cheapest way: the form that decides, the tagger to use, or the page Label."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.corpora.library import Library
from core.experiment import find_out, next_step, results
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.result import Cheapest, ExperimentResult, PlannedTest
from core.importing import view as corpora
from core.labelling import view as labelling
from core.projects import preferences, runs
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import sentence
from tests.experiment.test_experiment import fill
from tests.homes import EXPERIMENT
from tests.pages.drawing import TRAINING, keys, opened, press, seen

RESULTS = "pages/6_Results.py"
Started = list[tuple[str, Mapping[str, Any]]]
OPEN = Cheapest(line="", words="Which way is the cheapest is not known.", times=2)


@pytest.fixture
def made(home: Path, untrained: None) -> dict[str, str]:
    """Fill every role; return {role: fingerprint}, with a list of names and another labelled corpus."""
    marks = {role: corpus.fingerprint for role, corpus in fill(home).items()}
    for role, mark in marks.items():
        corpora.set_role(role, mark)
    away = [f"Acme Ltd pays {i} ." for i in range(9)]
    for name, texts in (("names", ["Acme Ltd", "Brown Inc"]), ("away", away), ("Smith, Jones", [*away, "Acme Ltd"])):
        rows = [sentence(text, [(0, 2, "PARTY")]) for text in texts]
        marks[name] = Library(home).seal(rows, name=name, origin={}, labelled=True).fingerprint
    return marks


def answered(run_id: str, way: Cheapest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the experiment have this sentence."""
    board = replace(results.board(run_id), cheapest=way)
    monkeypatch.setattr(results, "board", lambda run: board)


def parsed(options: Mapping[str, Any]) -> dict[str, Any]:
    return ExperimentConfig.parse(dict(options)).settled().model_dump()


ASKED: dict[str, dict[str, Any]] = {
    "reference variants": {"arms": ("none", "dictionary", "none+dictionary"), "dictionary": ("names",)},
    "a selection": {
        "arms": ("none", "random", "classifier"),
        "budgets": ("20%", "10"),
        "seeds": (1, 2),
        "looks": (),
        "claim": "classifier",
        "effect": 0.05,
        "taggers": 2,
        "repeat": "pipeline",
        "finetune": {"epochs": 2, "patience": 3},
        "pretrain": {"epochs": 1, "batch_size": 8192},
        "select": {"keep": ["near_duplicate", "too_short"]},
    },
    "rare options": {
        "arms": ("none", "transfer:away", "random2low:30%", "skl:3", "transfer:Smith, Jones", "lpft"),
        "claim": "random2low:30%",
        "transfer": ("away", "Smith, Jones"),
        "transfer_epochs": 1,
        "assisting": "away",
        "type_map": ("PER=PARTY",),
        "axis": ("encoder:tiny",),
        "train_sizes": (5, 10),
        "draws": 1,
        "fixed": "steps",
        "draw_seed": 4,
        "also_test": ("names",),
    },
    "swapped halves": {
        "arms": ("none", "dictionary", "lpft"),
        "cross": True,
        "cross_train": 9,
        "cross_dev": 4,
        "task": "",
        "repeat": "pipeline",
    },
}


@pytest.mark.parametrize("what", ASKED)
def test_the_form_that_decides_has_all_options_of_the_experiment_and_more_replicates(
    what: str, made: dict[str, str], started_runs: Started, home: Path
) -> None:
    # The undrawn page does not know encoders that a user typed, such as tiny.
    base = {name: value for name, value in EXPERIMENT.items() if name not in ("arms", "budgets", "encoder")}
    asked = {**base, **{name: made[name] for name in ("task", "domain", "train", "dev", "test")}, **ASKED[what]}
    result = ExperimentResult(leaderboard=[finished.ARM_ROW], curve=(), hours={}, cheapest=OPEN)
    run = finished.finish(home, "experiment", asked, finished.constant(result))
    wanted = next_step.deciding_options(run.id)
    seeds = ExperimentConfig.parse(wanted).seeds
    assert len(seeds) == 2 * len(ExperimentConfig.parse(asked).seeds)
    stale = {
        "training.experiment.arms.labels": ["self-train"],
        "training.experiment.map": "A=B",
        "training.experiment.seeds": "9",
    }
    app = opened(TRAINING, stale, again=run.id)
    assert app.session_state["training.form"]
    press(app, "training.start")
    [(kind, options)] = started_runs
    assert kind == "experiment"
    assert parsed(options) == parsed(wanted)
    assert preferences.expert() == (what == "rare options")


def test_replicates_that_decide_are_counted_from_an_early_end(made: dict[str, str], home: Path) -> None:
    base = {**EXPERIMENT, **{name: made[name] for name in ("task", "domain", "train", "dev", "test")}}
    asked = {**base, "seeds": (1, 2, 3, 4, 5, 6), "looks": (2, 4, 6), "repeat": "pipeline"}
    early = PlannedTest(
        arm="classifier",
        budget="30",
        against="random 30",
        looks=(2, 4, 6),
        replicates=2,
        ended="shown",
        p=0.0,
        bound=0.01,
        effect=1.0,
        chance=1.0,
        why="Why.",
    )
    result = ExperimentResult(leaderboard=[finished.ARM_ROW], curve=(), hours={}, cheapest=OPEN, planned=early)
    run = finished.finish(home, "experiment", asked, finished.constant(result))
    assert next_step.deciding_options(run.id)["seeds"] == (1, 2, 3, 4)


@pytest.mark.parametrize("of_selection", [{}, {"min_tokens": 3}], ids=["plain", "own"])
def test_settings_of_the_latest_experiment_on_these_corpora_can_be_filled_in(
    of_selection: Mapping[str, int],
    made: dict[str, str],
    started_runs: Started,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: dict[str, object] = {"arms": ("none", "random", "classifier"), "budgets": ("9",)}
    chosen |= {"select": of_selection} if of_selection else {}
    monkeypatch.setattr(find_out, "choice_options", lambda: chosen)
    base = {name: value for name, value in EXPERIMENT.items() if name not in ("arms", "budgets", "encoder")}
    asked = {
        **base,
        **{name: made[name] for name in ("task", "domain", "train", "dev", "test")},
        **ASKED["a selection"],
    }
    result = ExperimentResult(leaderboard=[finished.ARM_ROW], curve=(), hours={})
    assert "training.experiment.latest" not in keys(opened(TRAINING, {"training.kind": "experiment"}))
    finished.finish(home, "experiment", asked, finished.constant(result))
    elsewhere = {**asked, "dev": made["away"], "seeds": (7, 8)}  # newer, but on another dev set
    finished.finish(home, "experiment", elsewhere, finished.constant(result))
    app = opened(TRAINING, {"training.kind": "experiment"})
    press(app, "training.experiment.latest")
    press(app, "training.start")
    [(kind, options)] = started_runs
    assert (kind, parsed(options)) == ("experiment", parsed(asked))
    if of_selection:
        app.checkbox(key="training.experiment.same").check().run()
        press(app, "training.start")
        assert parsed(started_runs[-1][1]) == parsed({**asked, "select": {**asked["select"], **of_selection}})


def test_the_button_tells_the_planned_time_and_opens_the_form(
    made: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**EXPERIMENT, **{name: made[name] for name in ("task", "domain", "train", "dev", "test")}}
    run = runs.execute("experiment", {**options, "arms": ("none", "dictionary"), "seeds": (1, 2)})
    answered(run.id, OPEN, monkeypatch)
    [step] = next_step.next_steps(run.id)
    seconds = experiments.cost(next_step.deciding_options(run.id)).wall
    assert seconds > 0
    app = opened(RESULTS, run=run.id)
    assert OPEN.words in seen(app)
    assert app.button(key="results.next.0").label == plain(step.words)
    assert step.words.startswith("Decide it with 4 replicates (")
    assert [f"--seed {seed}" in step.command for seed in (1, 2, 3, 4, 5)] == [True] * 4 + [False]
    press(app, "results.next.0")
    assert app.text_input(key="training.experiment.seeds").value == "1, 2, 3, 4"
    assert list(app.multiselect(key="training.experiment.arms").value) == ["none"]
    assert list(app.multiselect(key="training.experiment.arms.ready").value) == ["dictionary"]
    corpora.remove(made["dev"])
    assert next_step.next_steps(run.id) == ()
    assert "cannot be repeated" in opened(TRAINING, again=run.id).warning[0].value


def test_a_named_line_leads_to_its_tagger_to_label_or_to_both(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    board = results.board(run.id)
    none, line = sorted(board.leaderboard, key=lambda row: row.verdict != "baseline")
    named = Cheapest(line="classifier 10", words="The cheapest way is classifier 10.")
    answered(run.id, named, monkeypatch)
    app = opened(RESULTS, run=run.id)
    assert app.button(key="results.next.0").label == plain("Use the tagger of classifier 10")
    press(app, "results.next.0")
    assert app.query_params["run"] == line.finetune_run
    [step] = next_step.next_steps(run.id)
    assert step.command == f"python -m core predict new.txt --model {line.finetune_run}"

    rows = [
        none,
        replace(line, person_seconds=3000.0),
        replace(line, arm="dictionary", budget="", reference="dictionary"),
    ]
    both = Cheapest(line="", words="It depends.", by_machine="classifier 10", by_person="dictionary")
    split = replace(board, leaderboard=rows, cheapest=both)
    monkeypatch.setattr(results, "board", lambda run: split)
    app = opened(RESULTS, run=run.id)
    labels = [app.button(key=f"results.next.{number}").label for number in range(2)]
    assert labels == ["Label more sentences", plain("Label with what dictionary finds")]
    assert "label next" in next_step.next_steps(run.id)[0].command
    press(app, "results.next.1")
    assert app.title[0].value == "Label"

    answered(run.id, Cheapest(line="", words="Nothing is known."), monkeypatch)
    assert "results.next.0" not in keys(opened(RESULTS, run=run.id))


def test_a_named_reference_line_suggests_on_label(made: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    splits = {role: made[role] for role in ("task", "domain", "train", "dev", "test")}
    run = runs.execute("experiment", {**splits, "arms": ("none", "dictionary"), "dictionary": (made["names"],)})
    answered(run.id, Cheapest(line="dictionary", words="The cheapest way is dictionary."), monkeypatch)
    line = next(row for row in results.board(run.id).leaderboard if row.reference)
    app = opened(RESULTS, run=run.id)
    press(app, "results.next.0")
    assert app.title[0].value == "Label"
    assert app.session_state["label.suggest"] == labelling.suggester_of(line.finetune_run) != ""
    [step] = next_step.next_steps(run.id)
    assert f"--suggest {line.finetune_run}" in step.command
