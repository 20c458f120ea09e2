"""Workers of a fake Ray: which nodes are refused, when a run continues, and what `--mixed` allows."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from core import cards
from core.cards import Card, lock_name
from core.errors import ConfigError, ModelError, ResourceError
from core.project_list import shared_home
from core.reporter import Reporter
from core.runs import on_ray, ray_engine
from core.runs.chunks import Array
from core.runs.lock import Lock
from core.runs.ray_engine import Greeting, environment, greet
from core.runs.store import Run
from core.runs.versions import versions
from tests.fake_cards import H100, T4, Driver, Row
from tests.runs.works import Squares, made, new_run

CLUSTER = "ray:head:6379"
N, SIZE = 40, 4


class Lost(Exception):
    """Replace Ray's error for a worker that died."""


class Engine:
    """Replace Ray: nodes of one core each, and workers in this process.

    fates: {(number of the worker, method): function called instead}; for the method "hello", the number of the node.
    """

    exceptions = SimpleNamespace(RayError=Lost)

    def __init__(self, room: int, fates: Mapping[tuple[int, str], Callable[[Any], Any]], n_cards: int = 0) -> None:
        self.room, self.fates, self.n_cards = room, fates, n_cards
        self.hired, self.asked = 0, dict[object, Callable[[], Any]]()
        self.computed = defaultdict[int, int](int)

    def put(self, value: Any) -> Any:
        return value

    def kill(self, actor: Any) -> None: ...

    def nodes(self) -> list[dict[str, Any]]:
        has = {"CPU": 1.0, "GPU": float(self.n_cards)}
        return [
            {"NodeID": f"n{i}", "NodeManagerHostname": f"ward{i}", "Alive": i <= self.room, "Resources": has}
            for i in range(1, 10)
        ]

    def bound(self, function: Any, node: str, **resources: float) -> Any:
        if isinstance(function, type):
            return SimpleNamespace(remote=self._hire)
        return SimpleNamespace(remote=self._method(int(node[1:]), "hello"))

    def _hire(self, environment: object) -> Any:
        self.hired += 1
        return SimpleNamespace(
            **{name: SimpleNamespace(remote=self._method(self.hired, name)) for name in ("open", "make")}
        )

    def _method(self, number: int, name: str) -> Callable[..., object]:
        def asked(*given: Any, **options: Any) -> object:
            reference = object()
            self.asked[reference] = lambda: self._answer(number, name, *given)
            return reference

        return asked

    def _answer(self, number: int, name: str, *given: Any) -> Any:
        if fate := self.fates.get((number, name)):
            return fate(self)
        if name == "hello":
            return hello(number)
        if name == "open":
            return {"model": "none"}, ("abacus", "abacus")
        self.computed[number] += 1
        return np.array([row * row for row in given[0]])

    def wait(self, references: Sequence[object], timeout: float, num_returns: int = 1) -> tuple[list[object], object]:
        return list(references[:num_returns]), []

    def get(self, reference: object) -> Any:
        return self.asked.pop(reference)()


def hello(number: int, **others: str) -> Greeting:
    return Greeting(
        versions={**versions(), **others}, node=f"ward{number}", computer="abacus", guarded=True, holder=None
    )


def older(number: int) -> Callable[[Engine], Greeting]:
    return lambda engine: hello(number, numpy="0.1")


def dies(engine: Engine) -> None:
    raise Lost("No module named 'core'")


def odd(engine: Engine) -> Any:
    return np.array([0.5])


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runs.where.find_spec", lambda name: name)
    monkeypatch.setattr(on_ray, "_COUNT", -1.0)
    for module in (on_ray, ray_engine):
        monkeypatch.setattr(module, "on_node", lambda ray, function, node, **has: ray.bound(function, node, **has))


def on(engine: Engine, run: Run) -> list[bytes]:
    """Compute the chunks of a run on the fake engine."""

    @contextmanager
    def connected(address: str, own: object) -> Iterator[Engine]:
        yield engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_ray, "engine", connected)
        return made(run, CLUSTER, Squares(run.path), N, SIZE)


@pytest.mark.parametrize("fates", [{(2, "hello"): older(2)}, {(2, "make"): odd}])
def test_a_node_that_differs_is_left_idle_and_named(
    home: Path, fates: Mapping[tuple[int, str], Callable[[Any], Any]]
) -> None:
    expected = made(new_run(home, "local"), "local", Squares(home), N, SIZE)
    run, engine = new_run(home, "run"), Engine(3, fates)
    assert on(engine, run) == expected
    assert engine.computed[2] == 0 or (2, "hello") in fates
    assert sum("is left idle" in note and " ward2: " in note for note in run.state().notes) == 1


def test_a_run_fails_if_most_nodes_differ_or_none_is_left(home: Path) -> None:
    def node_dies(engine: Engine) -> None:
        engine.room = 1
        raise Lost

    most = Engine(3, {(1, "hello"): older(1), (2, "hello"): older(2)})
    with pytest.raises(ResourceError, match=r"^node ward\d: has numpy 0\.1, here .*, or give --mixed\.$"):
        on(most, new_run(home, "most"))
    last = Engine(2, {(1, "hello"): older(1), (1, "make"): node_dies})
    with pytest.raises(ResourceError, match=r"^node ward1: has numpy 0\.1"):
        on(last, new_run(home, "last"))


def test_a_cluster_without_a_token_is_refused(home: Path) -> None:
    def unguarded(engine: Engine) -> Greeting:
        return Greeting(versions=versions(), node="ward1", computer="abacus", guarded=False, holder=None)

    with pytest.raises(ResourceError, match="runs code from anyone who can reach its ports"):
        on(Engine(1, {(1, "hello"): unguarded}), new_run(home, "open"))


def test_a_node_that_cannot_run_winnow_is_named_and_in_the_log(home: Path) -> None:
    run = new_run(home, "run")
    with pytest.raises(ResourceError, match=r"^node ward1: cannot run Winnow \(Lost\); see worker\.log"):
        on(Engine(1, {(1, "hello"): dies}), run)
    assert "No module named 'core'" in run.log_file.read_text()


def test_many_lost_workers_do_not_end_a_run_that_progresses(home: Path) -> None:
    def makes_one(number: int) -> Callable[[Engine], Any]:
        def fate(engine: Engine) -> Any:
            engine.computed[number] += 1
            if engine.computed[number] > 2:  # after the probe and one chunk
                raise Lost
            return np.arange(4) ** 2

        return fate

    fates = {(number, "open"): dies for number in (1, 2, 3, 5, 6, 7)} | {(4, "make"): makes_one(4)}
    engine = Engine(1, fates)
    assert on(engine, new_run(home, "run"))
    assert engine.hired == 8


def test_workers_that_die_before_they_start_end_the_run(home: Path) -> None:
    with pytest.raises(
        ResourceError, match=r"4 workers died before .* on ward\d \(Lost, see worker\.log\); check that"
    ):
        on(Engine(2, {(number, "open"): dies for number in range(1, 9)}), new_run(home, "run"))


@pytest.mark.parametrize(
    ("device", "expected", "passed"), [("auto", [H100, T4], "auto"), ("cuda:1", [H100], "cuda"), ("cpu", [], "cpu")]
)
def test_local_workers_lock_exactly_the_cards_that_device_allows(
    home: Path,
    device: str,
    expected: list[Row],
    passed: str,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver.shows(T4, H100)
    monkeypatch.setenv("WINNOW_DEVICE", device)
    locks = {row: Lock(shared_home(home) / "locks" / f"{lock_name(row[0])}.lock") for row in (H100, T4)}

    @contextmanager
    def begins(address: str, own: Sequence[Card] | None) -> Iterator[Engine]:
        assert own is not None
        assert [card.uuid for card in own] == [uuid for uuid, *_ in expected]
        assert [row for row in locks if locks[row].held()] == expected
        assert environment()["WINNOW_DEVICE"] == passed
        yield Engine(2, {}, len(own))

    monkeypatch.setattr(on_ray, "engine", begins)
    run = new_run(home, "cards")
    assert len(made(run, "ray", Squares(run.path, card=True), N, SIZE)) == N // SIZE
    assert not any(lock.held() for lock in locks.values())
    monkeypatch.setattr(on_ray, "engine", without_a_card(locks))
    run = new_run(home, "counted")
    assert len(made(run, "ray", Squares(run.path), N, SIZE)) == N // SIZE


def without_a_card(locks: Mapping[Row, Lock]) -> Any:
    """Return an engine that asserts that the run locks no GPU."""

    @contextmanager
    def begins(address: str, own: Sequence[Card] | None) -> Iterator[Engine]:
        assert own == []
        assert not any(lock.held() for lock in locks.values())
        yield Engine(2, {})

    return begins


def test_a_cluster_is_joined_only_with_its_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="needs the cluster's token"), ray_engine.engine("head:6379"):
        pass


def test_folders_of_killed_engines_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ray_engine, "_LONGEST", 999)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    left, living = (tmp_path / f"winnow-{os.geteuid()}-{pid}-abc" for pid in (2**30, os.getpid()))
    going = tmp_path / f"winnow-{os.geteuid()}-{2**30 + 1}-abc"
    for each in (left, living, going):
        each.mkdir()

    def exists(pid: int) -> bool:
        """Simulate another engine that removes a folder first."""
        if pid > 2**30:
            going.rmdir()
        return pid == os.getpid()

    monkeypatch.setattr(psutil, "pid_exists", exists)
    folder = ray_engine._folder()
    assert sorted(tmp_path.iterdir()) == sorted([living, folder])
    assert folder.stat().st_mode & 0o777 == 0o700


def half_made(home: Path) -> Run:
    """Return a run that failed at its third chunk."""
    run = new_run(home, "half")
    with pytest.raises(ModelError):
        made(run, "local", Squares(run.path, "refused"), 40, 4)
    assert len(list(run.chunks.glob("chunk-*.npy"))) == 2
    return run


def test_the_same_processor_finishes_a_run_and_chunks_without_a_probe_are_kept(home: Path) -> None:
    whole, run, older, emptied = new_run(home, "whole"), *(half_made(home) for _ in range(3))
    expected = made(whole, "local", Squares(whole.path), 40, 4)
    assert made(run, "local", Squares(run.path), 40, 4) == expected
    assert not list(run.chunks.glob("*.probe"))
    (older.chunks / "chunk.probe").unlink()
    assert made(older, "local", Squares(older.path, off=1), 40, 4)[:2] == expected[:2]
    for path in emptied.chunks.glob("*.npy"):
        path.unlink()
    assert made(emptied, "local", Squares(emptied.path, off=1), 40, 4) != expected


def test_another_kind_of_processor_finishes_a_run_only_with_mixed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = half_made(home)
    probe = (run.chunks / "chunk.probe").read_bytes()
    says = r"its results for the same .* resume the run where it started, or remove it .* or give --mixed\."
    with pytest.raises(ResourceError, match=says):
        made(run, "local", Squares(run.path, off=1), 40, 4)
    assert len(list(run.chunks.glob("chunk-*.npy"))) == 2
    assert (run.chunks / "chunk.probe").read_bytes() == probe
    monkeypatch.setenv("WINNOW_MIXED", "1")
    assert len(made(run, "local", Squares(run.path, off=1), 40, 4)) == 10
    assert any("--mixed accepts this" in note for note in run.state().notes)
    assert [path.name for path in run.chunks.iterdir() if path.suffix != ".npy"] == []


def test_a_single_chunk_needs_no_engine_and_no_probe(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed, compute = list[tuple[int, ...]](), Squares._compute

    def counted(work: Squares, rows: tuple[int, ...], report: Reporter) -> Array:
        computed.append(rows)
        return compute(work, rows, report)

    monkeypatch.setattr(Squares, "_compute", counted)
    run = new_run(home, "one")
    assert len(made(run, "ray", Squares(run.path), 3, 4)) == 1
    assert computed == [(0, 1, 2)]


def test_a_node_names_its_card_even_if_ray_assigned_none(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows(H100)
    monkeypatch.setenv(cards.VISIBLE, "")
    assert greet({}, home, has_card=True).computer == H100[1]
    assert greet({}, home, has_card=False).computer == cards.processor()
    driver.shows()
    assert greet({}, home, has_card=True).computer == "an unknown card"
