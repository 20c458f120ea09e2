"""Steps of an experiment, in sequence, in two processes or on two Ray nodes: the leaderboard is the same."""

import csv
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from core import cards
from core.encoders import embed
from core.errors import Cancelled, ConfigError, ResourceError, RunError
from core.experiment import cost, reference
from core.experiment import kind as experiment
from core.experiment.cost import wall
from core.experiment.kind import make_steps
from core.experiment.steps import CHECK, Step
from core.projects import machine, runs
from core.runs import in_processes, launch
from core.runs.context import RunContext
from core.runs.in_processes import RunsInProcesses
from core.runs.on_ray import RunsOnRay
from core.runs.store import Run, RunStore
from core.runs.where import ON
from core.runs.worker import execute
from core.selection import score
from core.tagging import calibrate, predict
from tests.clusters import token, two_nodes
from tests.conftest import elsewhere
from tests.experiment.test_experiment import OPTIONS, fill
from tests.fake_cards import H100, T4, Driver
from tests.waiting import until

TRAINED = ("pretrain", "finetune")
TWO = {**OPTIONS, "arms": ("none", "tapt", "dictionary"), "budgets": (), "domain": ""}
REPLICATE: Any = SimpleNamespace(in_words=lambda: "")
on_ray = [
    pytest.mark.alone,  # Ray's processes need both cores as they start
    pytest.mark.full,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install -r requirements-cluster.txt"),
]


def ray(function: Any) -> Any:
    """Mark a test that starts Ray."""
    for mark in on_ray:
        function = mark(function)
    return function


def step(kind: str, *needs: Step, name: str = "") -> Step:
    return Step(kind=kind, cell="none", replicate=REPLICATE, needs=needs, options=lambda runs: {"name": name or kind})  # type: ignore[arg-type]


class Fake:
    """A job whose child runs are only names."""

    context = SimpleNamespace()

    def child(self, kind: str, name: str) -> str:
        return f"run of {name}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "LOOK", 0.1)
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)


@pytest.mark.parametrize("on", ["local", "ray"])
def test_one_process_runs_the_steps_in_order(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray on a machine without GPUs runs them in the same order, because trainings take turns there."""
    monkeypatch.setenv(ON, on)
    first = step("select", name="a")
    steps = [first, step("select", name="b"), step("pretrain", first, name="c"), step("finetune", name="d")]
    made, started, job = dict[Step, Any](), list[object](), Fake()
    make_steps(steps, made, job, lambda step, at_once: started.append(step.options({})["name"]))  # type: ignore[arg-type]
    assert list(made) == steps
    assert started == ["a", "b", "c", "d"]

    def refuse(runs: object) -> Any:
        raise ConfigError("music shares no type with legal.")

    check = Step(kind=CHECK, cell="all", replicate=REPLICATE, options=refuse)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        make_steps([check], {}, job, lambda step, at_once: None)  # type: ignore[arg-type]


def test_reference_lines_run_in_this_process_even_with_several_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine may have neither the folder of a ready model nor the server of a language model."""
    monkeypatch.setenv(ON, "ray")
    monkeypatch.setattr(experiment, "at_once", lambda: 2)
    steps, made = [step(kind) for kind in reference.KINDS], dict[Step, Any]()
    make_steps(steps, made, Fake(), lambda step, at_once: None)  # type: ignore[arg-type]
    assert list(made) == steps


def test_a_plan_divides_the_time_by_the_cards(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    read = step("select")
    trained = [step("pretrain", read) for _ in range(4)]
    tuned = [step("finetune", each) for each in trained]
    steps = [read, *trained, *tuned]
    seconds = {read: 10.0, **dict.fromkeys(trained, 100.0), **dict.fromkeys(tuned, 20.0)}
    assert [wall(steps, seconds, n) for n in (1, 3, 4, 60)] == [sum(seconds.values()), 230, 130, 130]
    assert wall([], {}, 2) == 0
    assert cost.at_once() == 1
    assert not experiment.idle_gpu()
    driver.shows(H100, T4)
    assert cost.at_once() == 1
    assert "a part of one of its GPUs; --on processes:" in experiment.idle_gpu()
    monkeypatch.setenv(ON, "ray")
    assert not experiment.idle_gpu()
    assert cost.at_once() == 2
    for name in (cards.VISIBLE, cards.DEVICE):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # restored after the test
    monkeypatch.delenv(cards.VISIBLE)
    cards.keep_to(cards.usable()[1])  # the process timed a training on one of them
    assert [card.name for card in cards.usable()] == [T4[1]]
    assert cost.at_once() == 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Start two nodes of one core each."""
    with token(), two_nodes() as (cluster, _):
        yield cluster


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of an experiment that ran in one process."""
    with elsewhere(tmp_path_factory.mktemp("alone") / "home") as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "SECONDS", 0.0)
        fill(home)
        runs.execute("experiment", TWO)
    return home


@pytest.fixture(scope="module")
def expected(alone: Path) -> list[list[str]]:
    """Return the leaderboard of the experiment that ran in one process."""
    return board(next(run for run in RunStore(alone).list("experiment")))


def board(run: Run) -> list[list[str]]:
    """Return a run's leaderboard.csv without the hours of its trainings, which differ from run to run."""
    rows = list(csv.reader((run.artifacts / "leaderboard.csv").read_text().splitlines()))
    kept = [i for i, name in enumerate(rows[0]) if "_hour" not in name and name != "machine_minutes"]
    return [[row[i] for i in kept] for row in rows]


def training() -> list[tuple[str, int]]:
    """Return (run, process id) of running trainings that have their device."""
    states = [(run.id, runs.state(run.id)) for run in runs.listed(*TRAINED, state="running")]
    return [(run_id, state.worker[0]) for run_id, state in states if state.worker and state.device]


def numbers(home: Path) -> dict[str, bytes]:
    """Return the arrays of a home's runs by kind, without the encoder's folder in their names."""
    files = (path for run in RunStore(home).list("embed", "score", "tag") for path in run.artifacts.rglob("*.npy"))
    return {f"{path.parts[-3].split('-')[2]} {path.name} {len(path.read_bytes())}": path.read_bytes() for path in files}


@contextmanager
def a_kill() -> Iterator[list[str]]:
    """Kill the first training that starts in this block. Yield a list that then contains its run."""
    killed = list[str]()

    def kill() -> None:
        run_id, pid = until(training, "a training has started")[0]
        os.kill(pid, signal.SIGKILL)
        killed.append(run_id)

    killer = threading.Thread(target=kill)
    killer.start()
    yield killed
    killer.join()


@contextmanager
def a_cancellation() -> Iterator[list[int]]:
    """Cancel the experiment while a training does not react. Yield a list that then contains the training's process."""
    pids = list[int]()

    def stop() -> None:
        pids.append(until(training, "a training has started")[0][1])
        os.kill(pids[0], signal.SIGSTOP)
        runs.listed("experiment")[0].cancel()

    stopper = threading.Thread(target=stop)
    stopper.start()
    yield pids
    stopper.join()


def experiment_on(on: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    fill(home)
    monkeypatch.setenv(ON, on)
    return runs.execute("experiment", TWO)


def test_processes_share_devices_and_cores_and_are_started_again_three_times(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[Mapping[str, str]]()

    def dies(run: Run, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        given.append(environment)
        return subprocess.Popen(["sh", "-c", "kill -9 $$"], stdin=subprocess.PIPE)

    monkeypatch.setattr(launch, "tied", dies)
    monkeypatch.setattr(in_processes, "cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def work(context: RunContext) -> dict[str, object]:
        with RunsInProcesses(context, 2) as processes:
            steps = [child(home, name) for name in "abc"]
            assert [processes.begin(step) for step in (*steps[:1], *steps)] == [True, False, True, False]
            assert not processes.free
            while True:
                processes.wait(5.0)
                for step in steps[:2]:
                    processes.begin(step)

    def work_on_one(context: RunContext) -> dict[str, object]:
        with RunsInProcesses(context, 2) as processes:
            assert processes.begin(child(home, "d"))
        return {}

    with pytest.raises(ResourceError, match=r"4 processes of run .* ended without a result, the last on this machine"):
        execute(child(home, "parent"), work)
    shown = {(each[ON], each[cards.SHARED], each.get("OMP_NUM_THREADS")) for each in given}
    assert shown == {("local", "2", "3")}
    driver.shows(H100, T4)
    monkeypatch.setenv(cards.SHARED, "2")
    assert [cards.places(card.lock)[0] for card in cards.usable()] == [card.lock for card in cards.usable()]
    assert len({place for card in cards.usable() for place in cards.places(card.lock)}) == 4
    for name in (cards.VISIBLE, cards.DEVICE):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # restored after the test
    monkeypatch.delenv(cards.VISIBLE)
    cards.keep_to(cards.usable()[1])  # this process timed a training on one of them
    execute(child(home, "after"), work_on_one)
    assert given[-1][cards.VISIBLE] == f"{H100[0]},{T4[0]}"


@pytest.mark.full
def test_two_processes_give_the_leaderboard_of_one_despite_a_kill(
    home: Path, expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "memory", lambda: (0.0, 0.0))
    with a_kill() as killed:
        run = experiment_on("processes:2", home, monkeypatch)
    assert board(run) == expected
    assert "Only 0.0 GB of memory are free, too little for one step." in run.state().notes
    assert any(f"The process of {killed[0]} on this machine is lost" in note for note in run.state().notes)
    assert runs.state(killed[0]).attempts == 2
    states = [runs.state(each.id) for each in runs.listed(*TRAINED)]
    assert os.getpid() not in {state.worker[0] for state in states if state.worker}
    times = sorted((state.started, state.ended) for state in states if state.started and state.ended)
    assert any(later[0] < earlier[1] for earlier, later in pairwise(times))  # two ran at the same time


@pytest.mark.full
def test_a_failed_step_in_a_process_fails_the_experiment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TWO, "finetune", {"epochs": 1, "layers": "99"})
    with pytest.raises(RunError, match="has 2 layers and no layer 99"):
        experiment_on("processes:2", home, monkeypatch)
    assert not [run for run in runs.listed(*TRAINED) if run.lock.held()]


@pytest.mark.full
def test_a_cancelled_experiment_leaves_no_process_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CHECKPOINT", 0.5)
    with a_cancellation() as pids, pytest.raises(Cancelled):
        experiment_on("processes:2", home, monkeypatch)
    assert not psutil.pid_exists(pids[0])
    assert runs.listed("experiment")[0].state().state == "cancelled"


@ray
def test_two_nodes_write_the_same_selection_and_tags_as_one_process(
    home: Path, cluster: str, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare vectors, scores and entities, in chunks of a few sentences."""
    for module in (embed, score, predict):
        monkeypatch.setattr(module, "CHUNK", 30)
    model = next(run.artifacts / "model" for run in RunStore(alone).list("finetune"))
    made = list[dict[str, bytes]]()
    for on, place in (("local", tmp_path / "local"), (cluster, home)):
        monkeypatch.setenv(ON, on)
        with elsewhere(place) as project:
            corpora = fill(project)
            options = {"task": corpora["task"].fingerprint, "domain": corpora["domain"].fingerprint}
            runs.execute("select", {**options, "strategy": "knn", "budget": "20", "encoder": "tiny"})
            runs.execute("tag", {"corpus": corpora["domain"].fingerprint, "model": str(model)})
            made.append(numbers(project))
            states = [run.state() for run in runs.listed("embed", "score", "tag")]
            assert {(state.device or "").startswith("workers on Ray") for state in states} == {on == cluster}
    assert len(made[0]) >= 4
    assert made[0] == made[1]


@ray
def test_two_nodes_give_the_leaderboard_of_one_process_despite_a_kill(
    home: Path, cluster: str, expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_kill() as killed:
        run = experiment_on(cluster, home, monkeypatch)
    assert board(run) == expected
    assert any(f"The process of {killed[0]} on " in note for note in run.state().notes)
    assert runs.state(killed[0]).attempts == 2
    workers = {runs.state(each.id).worker for each in runs.listed(*TRAINED)}
    assert os.getpid() not in {worker[0] for worker in workers if worker}
    assert os.environ[ON] == cluster


@ray
def test_an_experiment_continues_without_a_killed_node(
    home: Path, expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    with token(), two_nodes() as (cluster, second):
        monkeypatch.setenv(ON, cluster)

        def kill() -> None:
            until(training, "a training has started")
            second.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        run = runs.execute("experiment", TWO)
        killer.join()
    assert board(run) == expected
    assert any(note.endswith(" is gone.") for note in run.state().notes)


def child(home: Path, name: str) -> Run:
    """Return a new run whose process ends at once, because its kind needs options."""
    return RunStore(home).create("halves", {}, {}, seed=None, versions={}, key=name)


@ray
@pytest.mark.parametrize("why", ["another machine", "another home"])
def test_a_node_that_cannot_take_steps_is_named(
    home: Path, cluster: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "another machine":
        words = "this machine trains on Abacus; use nodes of one kind"
        monkeypatch.setattr("core.runs.on_ray.cards.machine", lambda: "Abacus")
        run = child(home, why)
    else:  # a path that no other process finds
        words = "cannot read Winnow's home folder, so it runs no steps of the experiment."
        folder = os.open(tmp_path, os.O_RDONLY)
        run = child(Path(f"/proc/self/fd/{folder}/home"), why)

    def named(context: RunContext) -> dict[str, object]:
        with RunsOnRay(context, cluster) as elsewhere:
            elsewhere.begin(child(home, "child"))
        return {}

    if why == "another machine":
        with pytest.raises(Exception, match=words):
            execute(run, named)
        return
    stopper = threading.Thread(
        target=lambda: (until(lambda: any(words in note for note in run.state().notes), "it is named"), run.cancel())
    )
    stopper.start()
    with pytest.raises(Cancelled):
        execute(run, named)
    stopper.join()


@ray
def test_a_failed_step_fails_the_run_with_its_error(home: Path, cluster: str) -> None:
    """This includes a step whose process ends before it can record an error."""
    failed = RunStore(home).create("audit", {"corpus": "none"}, {}, seed=None, versions={}, key="failed")

    def failing(broken: Run, context: RunContext) -> dict[str, object]:
        with RunsOnRay(context, cluster) as elsewhere:
            while True:
                elsewhere.begin(broken)
                assert not elsewhere.begin(broken)  # not started again while it runs
                elsewhere.wait(5.0)

    for broken, error in ((failed, RunError), (child(home, "child"), ResourceError)):
        with pytest.raises(error, match=r"none|ended without a result"):
            execute(child(home, broken.id), partial(failing, broken))


@ray
def test_a_cancelled_experiment_leaves_no_process(home: Path, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_cancellation() as pids, pytest.raises(Cancelled):
        experiment_on(cluster, home, monkeypatch)
    until(lambda: not psutil.pid_exists(pids[0]) or psutil.Process(pids[0]).status() == psutil.STATUS_ZOMBIE, "gone")
    assert runs.listed("experiment")[0].state().state == "cancelled"
