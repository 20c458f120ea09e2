"""An experiment's steps on a cluster: the other nodes that see the home help as a `--share` does, and it is the same."""

import csv
import os
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from core.errors import Cancelled
from core.facade import runs as facade_runs
from core.recipes import calibrate
from core.recipes.experiment import fan
from core.recipes.experiment.steps import Step
from core.runs.context import RunContext
from core.runs.executors import hello
from core.runs.executors.companions import Companions, companions
from core.runs.store import Run, RunStore
from core.runs.where import ON, Where
from core.runs.worker import execute
from tests.clusters import token, two_nodes
from tests.conftest import elsewhere
from tests.patience import until
from tests.recipes.test_experiment import fill
from tests.recipes.test_fan import TRAINED, TWO

# Alone: one engine at a time, whose processes take both cores as they begin.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.full,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install -r requirements-cluster.txt"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Two nodes of a processor each."""
    with token(), two_nodes() as (cluster, _):
        yield cluster


def helping(run: Run) -> list[psutil.Process]:
    """The processes that help with a run, wherever they are."""
    words = ["core.recipes", "help", run.id]
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if (process.info["cmdline"] or [])[2:5] == words]


def idle(home: Path, name: str) -> Run:
    """A run of a kind with which nobody can help: whoever has come waits for its end, whatever is wished."""
    return RunStore(home).create("halves", {}, {}, seed=None, versions={}, key=name)


def trainers() -> set[int]:
    """The processes that are at a training, behind the locks that they only take for a moment."""
    states = [facade_runs.state(run.id) for run in facade_runs.listed(*TRAINED, state="running")]
    return {state.worker[0] for state in states if state.worker and state.device and state.state == "running"}


def board(run: Run) -> list[list[str]]:
    """A run's leaderboard.csv as it is, but for the hours that its trainings took, which no two runs have alike."""
    rows = list(csv.reader((run.artifacts / "leaderboard.csv").read_text().splitlines()))
    kept = [i for i, name in enumerate(rows[0]) if "_hour" not in name]
    return [[row[i] for i in kept] for row in rows]


def test_a_node_that_is_killed_at_a_step_is_named_and_the_leaderboard_is_that_of_one_process(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    with elsewhere(tmp_path / "alone") as alone:
        fill(alone)
        expected = board(facade_runs.execute("experiment", TWO))
    fill(home)
    take, broken, pids = fan._take, list[str](), list[int]()
    with token(), two_nodes() as (cluster, second):
        monkeypatch.setenv(ON, cluster)

        def after_the_other(step: Step, runs: Any, job: Any, begins: Any) -> bool:
            """The first training is left to the other node, which dies of its second."""
            if step.kind in TRAINED and not broken:
                begins(step)
                until(lambda: facade_runs.listed(*TRAINED, state="succeeded"), "the other node has made the first")
                pids.append(until(trainers, "it is at another").pop())
                process = psutil.Process(pids[0])
                process.suspend()  # a tiny training may end while a node dies
                second.kill()
                process.kill()  # as a machine that dies takes with it
                (left,) = until(lambda: facade_runs.listed(*TRAINED, state="interrupted"), "it has let go of the step")
                broken.append(left.id)
                until(lambda: any("is gone" in note for note in job.context.run.state().notes), "it is named")
            return take(step, runs, job, begins)

        monkeypatch.setattr(fan, "_take", after_the_other)
        run = facade_runs.execute("experiment", TWO)
        assert os.environ[ON] == cluster
    assert board(run) == expected
    made_by = {each.id: facade_runs.state(each.id).worker for each in facade_runs.listed(*TRAINED, state="succeeded")}
    assert {worker[0] for worker in made_by.values() if worker} == {os.getpid(), *pids}
    worker = made_by[broken[0]]
    assert worker
    assert worker[0] == os.getpid()
    notes = run.state().notes
    assert any(note.startswith("What helped on ") and note.endswith("its steps are made elsewhere.") for note in notes)
    assert sorted((node.gone, node.workers, node.lost) for node in Where.read(run.path).nodes) == [
        (False, 0, 0),
        (True, 0, 1),
    ]


@pytest.mark.parametrize("why", ["another machine", "another home"])
def test_a_node_that_cannot_help_is_named_and_left_idle(
    home: Path, cluster: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "another machine":
        run, words = idle(home, why), "this machine on Abacus; use nodes of one kind"
        monkeypatch.setattr(f"{hello.__name__}.cards.machine", lambda: "Abacus")
    else:  # a path that no other process finds
        folder = os.open(tmp_path, os.O_RDONLY)
        run, words = idle(Path(f"/proc/self/fd/{folder}/home"), why), "does not see the home: its steps are made else"

    def named(context: RunContext) -> dict[str, object]:
        with companions(context, cluster) as others:
            until(lambda: any(words in note for note in run.state().notes), "it is named")
            assert others.n == 0
            assert not helping(run)
        return {}

    execute(run, named)
    notes = [note for note in run.state().notes if words in note]
    if why == "another home":
        assert len(notes) == 1
        assert [(node.workers, node.lost, node.gone) for node in Where.read(run.path).nodes] == [(0, 0, False)] * 2
    else:
        assert all("It is left idle" in note for note in notes)


def test_a_node_helps_once_a_card_and_this_machine_s_own_not_at_all(
    home: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that is a stand-in: a node of two cards beside this one's. `cluster` for its token, which is this
    process's."""
    hired = list[dict[str, Any]]()

    def hire(**options: Any) -> Any:
        hired.append(options)
        greet = SimpleNamespace(remote=lambda lock: object())
        return SimpleNamespace(remote=lambda environment: SimpleNamespace(greet=greet))

    here, there = "a" * 56, "b" * 56
    names = {here: {"CPU": 8.0, "GPU": 4.0}, there: {"CPU": 8.0, "GPU": 2.0}}
    nodes = [{"NodeID": n, "NodeManagerHostname": n, "Alive": True, "Resources": has} for n, has in names.items()]
    ray = SimpleNamespace(
        nodes=lambda: nodes,
        get_runtime_context=lambda: SimpleNamespace(get_node_id=lambda: here),
        remote=lambda kind: SimpleNamespace(options=hire),
        wait=lambda references, **how: ([], references),
        kill=lambda actor: None,
    )

    def begun(context: RunContext) -> dict[str, object]:
        others = Companions(ray, "ray:head:6379", context)
        until(lambda: hired and others._counted > 0, "it has looked")
        others.close()
        return {}

    for device, expected in (("auto", [1, 1]), ("cpu", [0])):
        hired.clear()
        monkeypatch.setenv("WINNOW_DEVICE", device)
        execute(idle(home, device), begun)
        assert [each["num_gpus"] for each in hired] == expected
        assert {each["scheduling_strategy"].node_id for each in hired} == {there}


def test_a_cancelled_run_leaves_nobody_who_helps_two_seconds_later(home: Path, cluster: str) -> None:
    run = idle(home, "cancelled")
    took = list[float]()

    def stopped(context: RunContext) -> dict[str, object]:
        with companions(context, cluster) as others:
            (process,) = until(lambda: helping(run), "it has begun")
            assert others.n == 1
            assert os.environ[ON] == "local"  # or workers would wait for what it has
            run.cancel()
            began = time.monotonic()
            until(lambda: not process.is_running(), "it is gone, while this process is at something else")
            took.append(time.monotonic() - began)
        assert not threading.active_count() > before
        context.check()
        raise AssertionError

    before = threading.active_count()
    with pytest.raises(Cancelled):
        execute(run, stopped)
    assert took[0] < 2.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert run.state().state == "cancelled"
    assert sorted(node.workers for node in Where.read(run.path).nodes) == [0, 0]
