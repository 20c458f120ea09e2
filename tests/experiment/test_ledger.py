"""Earlier analyses of a test set, and the chance that a plan had before it started."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.experiment.foresight import kept_forecast
from core.experiment.ledger import earlier_analyses
from core.experiment.result import EarlierAnalysis, ExperimentResult, PlannedTest
from core.runs.run import Run
from core.runs.store import RunStore
from tests import finished

PLANNED = PlannedTest(
    arm="knn", budget="10%", against="none", looks=(3,), replicates=3, ended="complete", p=0.2, bound=0.05, effect=1.0,
    chance=0.1, why="",
)  # fmt: skip


def analysis(home: Path, corpora: dict[str, str], *seeds: int, planned: PlannedTest | None = PLANNED) -> Run:
    """Finish an experiment with `seeds`."""
    result = ExperimentResult(leaderboard=[], curve=[], hours={}, planned=planned)
    options = {**corpora, "arms": ("none", "knn"), "encoder": "tiny", "seeds": seeds}
    return finished.finish(home, "experiment", options, finished.constant(result))


def test_ledger_lists_earlier_analyses_of_the_same_test_set(home: Path) -> None:
    corpora = {role: corpus.fingerprint for role, corpus in finished.corpora(home).items()}
    store = RunStore(home)
    first = analysis(home, corpora, 1, 2, 3)
    other = analysis(home, {**corpora, "test": corpora["dev"]}, 1, 2, 3)
    analysis(home, corpora, 7, planned=None)  # a single seed tests nothing
    second = analysis(home, corpora, 4, 5, 6, planned=replace(PLANNED, arm="classifier"))
    third = analysis(home, corpora, 1, 2)
    assert earlier_analyses(first, store) == []
    assert earlier_analyses(other, store) == []
    before_third = [
        EarlierAnalysis(run=first.id, claim="knn 10%", replicates=3),
        EarlierAnalysis(run=second.id, claim="classifier 10%", replicates=3),
    ]
    assert earlier_analyses(second, store) == before_third[:1]
    assert earlier_analyses(third, store) == before_third
    first.result_file.unlink()  # a damaged result is left out
    assert earlier_analyses(third, store) == before_third[1:]


def test_study_counts_once_and_its_experiments_do_not(home: Path) -> None:
    study = finished.study(home, (0.2, 2.0))
    config = study.manifest.config
    store, options = RunStore(home), {"arms": ("none",), "encoder": "tiny", "seeds": (1, 2)}
    inputs = {"test": config["test"][0]}
    child = store.create("experiment", options, inputs, versions={}, key="child", parent=study.id)
    assert earlier_analyses(child, store) == []
    later = store.create("experiment", options, inputs, versions={}, key="later")
    assert [each.run for each in earlier_analyses(later, store)] == [study.id]


def test_forecast_of_a_run_stays_as_it_was_at_its_first_start(home: Path) -> None:
    corpora = {role: corpus.fingerprint for role, corpus in finished.corpora(home).items()}
    run = analysis(home, corpora, 1, 2)
    assert kept_forecast(run, 1.0, lambda: 0.25).chance == 0.25
    assert kept_forecast(run, 1.0, lambda: pytest.fail("was computed again")).chance == 0.25
    for damaged in ("", "[]", json.dumps({"chance": 7.0}), json.dumps({"chance": "much"})):
        (run.artifacts / "foretold.json").write_text(damaged, encoding="utf-8")
        assert kept_forecast(run, 1.0, lambda: 0.5).chance == 0.5
