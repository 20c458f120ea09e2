"""Steps of an experiment by several processes: each takes what is ready and nobody is at; the plan tells the time."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import ConfigError, RunBusy
from core.facade import runs as facade_runs
from core.recipes import calibrate
from core.recipes.experiment import fan
from core.recipes.experiment.fan import run_steps, wall
from core.recipes.experiment.steps import CHECK, Step
from core.runs import Run, launch
from tests.conftest import elsewhere
from tests.fake_cards import H100, T4, Driver
from tests.patience import until
from tests.recipes.test_experiment import OPTIONS, fill

TRAINED = ("pretrain", "finetune")
TWO = {**OPTIONS, "arms": ("none", "tapt"), "budgets": (), "domain": ""}
REPLICATE: Any = SimpleNamespace(in_words=lambda: "")


def step(kind: str, *needs: Step, name: str = "") -> Step:
    return Step(kind=kind, cell="none", replicate=REPLICATE, needs=needs, options=lambda runs: {"name": name or kind})  # type: ignore[arg-type]


class Fake:
    """A job whose steps with these names another process is at, and has done by its next look."""

    def __init__(self, *busy: str, race: str = "") -> None:
        self.busy, self.race, self.begun, self.waited = {*busy}, race, list[str](), list[str | None]()
        self.context = SimpleNamespace(check=self.busy.clear, waiting=self.waited.append)

    def at_work(self, kind: str, name: str) -> Any:
        return SimpleNamespace(id=f"run of {name}") if name in self.busy else None

    def child_if_free(self, kind: str, name: str) -> str:
        if name == self.race:
            self.race = ""
            self.busy.add(name)
            raise RunBusy("somebody was sooner")
        return f"run of {name}"

    def run(self, steps: list[Step]) -> dict[Step, Any]:
        runs: dict[Step, Any] = {}
        given: Any = self
        run_steps(steps, runs, given, lambda step: self.begun.append(str(step.options({})["name"])))
        return runs


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan, "LOOK", 0.0)
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)


def test_one_process_makes_the_steps_in_their_order() -> None:
    first = step("select", name="a")
    steps = [first, step("select", name="b"), step("pretrain", first, name="c"), step("finetune", name="d")]
    job = Fake()
    assert list(job.run(steps)) == steps
    assert job.begun == ["a", "b", "c", "d"]
    assert not job.waited

    def refuse(runs: object) -> Any:
        raise ConfigError("music shares no type with legal.")

    check = Step(kind=CHECK, cell="all", replicate=REPLICATE, options=refuse)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        Fake().run([check])


def test_a_step_of_another_process_is_skipped_and_its_dependants_wait() -> None:
    first = step("select", name="a")
    steps = [first, step("pretrain", first, name="b"), step("select", name="c"), step("finetune", name="d")]
    job = Fake("a")
    assert set(job.run(steps)) == set(steps)
    assert job.begun == ["c", "d", "a", "b"]  # `a` is finished by then and is only looked up
    assert job.waited == ["run of a", None]
    steps = [step("finetune", name="a"), step("finetune", name="b")]
    assert Fake(race="a").run(steps).keys() == {*steps}  # a process that comes second takes another step


def test_a_plan_divides_the_time_by_the_cards(driver: Driver) -> None:
    read = step("select")
    trained = [step("pretrain", read) for _ in range(4)]
    tuned = [step("finetune", each) for each in trained]
    steps = [read, *trained, *tuned]
    seconds = {read: 10.0, **dict.fromkeys(trained, 100.0), **dict.fromkeys(tuned, 20.0)}
    assert [wall(steps, seconds, n) for n in (1, 3, 4, 60)] == [sum(seconds.values()), 230, 130, 130]
    assert wall([], {}, 2) == 0
    assert fan.at_once() == 1
    driver.shows(H100, T4)
    assert fan.at_once() == 2


def test_the_nodes_of_a_cluster_help_from_the_first_step_after_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, job = list[str](), SimpleNamespace(context=SimpleNamespace(run="run", root="run", terminated=True))

    @contextmanager
    def begin(context: object, on: str) -> Iterator[Any]:
        begun.append(on)
        yield SimpleNamespace(n=3)
        begun.append("over")

    monkeypatch.setattr("core.runs.executors.companions.companions", begin)
    for on, n in (("local", 1), ("ray", 1), ("ray:head:6379", 4)):
        monkeypatch.setenv("WINNOW_ON", on)
        with fan.helpers(job) as others:  # type: ignore[arg-type]
            for kind, helpers in (("halves", 1), ("select", 1), ("difficulty", n), ("finetune", n)):
                others.before(step(kind))
                assert others.n == helpers
    assert begun == ["ray:head:6379", "over"]
    monkeypatch.setenv("WINNOW_SHARE", "2/16")
    with fan.helpers(job) as others:  # type: ignore[arg-type]
        assert others.n == 16


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The leaderboard of one process."""
    with elsewhere(tmp_path_factory.mktemp("alone") / "home") as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "SECONDS", 0.0)
        fill(home)
        rows: list[dict[str, Any]] = facade_runs.execute("experiment", TWO).result()["leaderboard"]
    return rows


def at_it(pid: int) -> bool:
    """Whether a process is at a training, behind the locks that it only takes for a moment: it has the device."""
    states = [facade_runs.state(run.id) for run in facade_runs.listed(*TRAINED)]
    return any(state.worker and state.worker[0] == pid and (state.device or pid == os.getpid()) for state in states)


@pytest.fixture
def helping(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Processes that help, as if this machine had two cards."""
    fill(home)
    monkeypatch.setattr(fan, "at_once", lambda: 2)
    begun, begin = list[Any](), launch.helper

    def helper(run: Run) -> Any:
        begun.append(begin(run))
        return begun[-1]

    monkeypatch.setattr(launch, "helper", helper)
    return begun


def same(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    assert [row["arm"] for row in rows] == ["none", "tapt"]
    for name in ("arm", "micro_f1", "dev_f1", "delta", "interval", "verdict"):
        assert [row[name] for row in rows] == [row[name] for row in others], name


@pytest.mark.alone
def test_two_processes_make_what_one_does(
    helping: list[Any], alone: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are two cards; here they take turns at the processor, for which each waits."""

    def thaw() -> None:
        until(lambda: at_it(os.getpid()), "this process has begun a training")
        helping[0].send_signal(signal.SIGCONT)

    take, thawing = fan._take, threading.Thread(target=thaw)

    def second(step: Step, *more: Any) -> bool:
        """The first training is left to who helps, which takes longer to begin than a tiny one to end."""
        if step.kind in TRAINED and helping and not thawing.ident:
            until(lambda: at_it(helping[0].pid), "the other process has begun a training")
            helping[0].send_signal(signal.SIGSTOP)
            thawing.start()
        return take(step, *more)

    monkeypatch.setattr(fan, "_take", second)
    run = facade_runs.execute("experiment", TWO)
    workers = {facade_runs.state(each.id).worker for each in facade_runs.listed(*TRAINED)}
    pids = {worker[0] for worker in workers if worker}
    assert len(helping) == 1
    assert helping[0].poll() is not None
    assert helping[0].pid in pids
    assert len(pids) == 2
    assert "Traceback" not in run.log_file.read_text()
    same(run.result()["leaderboard"], alone)


@pytest.mark.alone
def test_who_is_killed_at_a_training_is_done_without(
    helping: list[Any], alone: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    take, broken = fan._take, list[str]()

    def second(step: Step, *more: Any) -> bool:
        if step.kind in TRAINED and helping and not broken:
            until(lambda: at_it(helping[0].pid), "the other process has begun a training")
            helping[0].kill()
            helping[0].wait()
            broken.extend(run.id for run in facade_runs.listed(*TRAINED, state="interrupted"))
        return take(step, *more)

    monkeypatch.setattr(fan, "_take", second)
    run = facade_runs.execute("experiment", TWO)
    assert helping[0].returncode == -signal.SIGKILL
    assert len(broken) == 1
    state = facade_runs.state(broken[0])
    assert (state.state, state.worker and state.worker[0]) == ("succeeded", os.getpid())
    same(run.result()["leaderboard"], alone)
