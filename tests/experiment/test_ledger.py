"""Earlier analyses of a test set, and the chance that a plan had before it started."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.experiment.foresight import kept_forecast
from core.experiment.ledger import earlier_analyses
from core.experiment.result import ArmRow, EarlierAnalysis, ExperimentResult
from core.runs.run import Run
from core.runs.store import RunStore
from tests import finished

ROW = replace(finished.ARM_ROW, arm="knn", budget="10%", verdict="no evidence", micro_f1=[60.0, 61.0, 62.0])


def analysis(home: Path, corpora: dict[str, str], *seeds: int, row: ArmRow = ROW) -> Run:
    """Finish an experiment with `seeds`."""
    result = ExperimentResult(leaderboard=[row], curve=[], hours={})
    options = {**corpora, "arms": ("none", "knn"), "encoder": "tiny", "seeds": seeds}
    if "task" not in corpora:
        options |= {"arms": ("none", "lpft")}
    return finished.finish(home, "experiment", options, finished.constant(result))


def unfinished(store: RunStore, test: str, kind: str = "experiment", parent: str | None = None) -> Run:
    """Create an unfinished run, as an experiment is when its ledger is computed."""
    key = f"{kind} {test} {parent} {len(store.list())}"
    return store.create(kind, {}, {"test": test}, versions={}, key=key, parent=parent)


def test_ledger_lists_finished_analyses_of_the_same_test_set(home: Path) -> None:
    corpora = {role: corpus.fingerprint for role, corpus in finished.corpora(home).items()}
    store, test = RunStore(home), corpora["test"]
    started_first = unfinished(store, test)
    assert earlier_analyses(started_first, store) == []
    first = analysis(home, corpora, 1, 2, 3)
    analysis(home, {**corpora, "test": corpora["dev"]}, 1, 2, 3)
    analysis(home, corpora, 7, row=replace(ROW, micro_f1=[60.0]))  # a single seed allows no test
    second = analysis(home, corpora, 4, 5, 6, row=replace(ROW, arm="classifier"))
    listed = [
        EarlierAnalysis(run=first.id, claim="knn 10%", replicates=3),
        EarlierAnalysis(run=second.id, claim="classifier 10%", replicates=3),
    ]
    assert earlier_analyses(unfinished(store, test), store) == listed
    assert earlier_analyses(started_first, store) == listed  # a run that was resumed after both
    assert [each.claim for each in earlier_analyses(unfinished(store, corpora["dev"]), store)] == ["knn 10%"]
    first.result_file.unlink()  # a damaged result is left out
    assert earlier_analyses(started_first, store) == listed[1:]


def test_study_counts_once_and_its_experiments_only_without_it(home: Path) -> None:
    study = finished.study(home, (0.2, 2.0))
    store, [test, *_] = RunStore(home), study.manifest.config["test"]
    corpora = {role: study.manifest.config[role][0] for role in ("train", "dev", "test")}
    assert earlier_analyses(unfinished(store, test, parent=study.id), store) == []
    child = analysis(home, corpora, 1, 2, 3)
    for parent, counted in ((study.id, [study.id]), ("20260101-000000-study-0000", [study.id, child.id])):
        manifest = json.loads((child.path / "manifest.json").read_text(encoding="utf-8"))
        (child.path / "manifest.json").write_text(json.dumps({**manifest, "parent": parent}), encoding="utf-8")
        fresh = RunStore(home)
        assert [each.run for each in earlier_analyses(unfinished(fresh, test), fresh)] == counted


def test_forecast_of_a_run_stays_as_it_was_at_its_first_start(home: Path) -> None:
    corpora = {role: corpus.fingerprint for role, corpus in finished.corpora(home).items()}
    run = analysis(home, corpora, 1, 2)
    assert kept_forecast(run, 1.0, lambda: 0.25).chance == 0.25
    assert kept_forecast(run, 1.0, lambda: pytest.fail("was computed again")).chance == 0.25
    for damaged in ("", "[]", json.dumps({"chance": 7.0}), json.dumps({"chance": "much"})):
        (run.artifacts / "foretold.json").write_text(damaged, encoding="utf-8")
        assert kept_forecast(run, 1.0, lambda: 0.5).chance == 0.5
