"""Steps of an experiment in several processes that share a device: the leaderboard is that of one process."""

import os
from pathlib import Path

import pytest

from core.errors import RunError
from core.projects import runs
from core.tagging import calibrate
from tests.conftest import elsewhere
from tests.experiment.test_experiment import fill
from tests.experiment.test_experiment_steps import TRAINED, TWO, board
from tests.lab.benchmarks import at_once

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    monkeypatch.setattr(at_once, "PLACES", tmp_path / "places")


def test_steps_in_two_processes_give_the_leaderboard_of_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    alone = board(runs.execute("experiment", TWO))
    with elsewhere(tmp_path / "two") as other:
        fill(other)
        at_once.share(2, monkeypatch.setattr)
        assert board(runs.execute("experiment", TWO)) == alone
        workers = {runs.state(each.id).worker for each in runs.listed(*TRAINED)}
    pids = {worker[0] for worker in workers if worker}
    assert len(pids) >= 2
    assert os.getpid() not in pids


def test_a_failed_step_fails_the_experiment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    at_once.share(2, monkeypatch.setattr)
    with pytest.raises(RunError, match="has 2 layers and no layer 99"):
        runs.execute("experiment", {**TWO, "finetune": {"epochs": 1, "layers": "99"}})
    assert not [run for run in runs.listed(*TRAINED) if run.lock.held()]
