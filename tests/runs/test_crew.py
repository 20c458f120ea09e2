"""Workers of an engine that is a stand-in: who is refused, who dies, and when the run goes on without them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.cards import Card, lock_name
from core.errors import ResourceError
from core.project_list import shared_home
from core.runs import executors
from core.runs.executors import on_ray
from core.runs.executors.hand import environment
from core.runs.executors.hello import Hello
from core.runs.lock import Lock
from core.runs.store import Run, RunStore
from core.runs.versions import versions
from tests.fake_cards import H100, T4, Driver, Row
from tests.runs.works import Squares, begun, made

CLUSTER = "ray:head:6379"
N, SIZE = 40, 4


class Lost(Exception):
    """What an engine says of a worker that has died."""


class Engine:
    """Ray, as far as a crew asks it: workers of this process, each on a node of its own, which do what a test says.

    fates: (worker's number, what it is asked) -> what it does then, for "hello", "open" and "make"; all else goes well.
    """

    exceptions = SimpleNamespace(RayError=Lost)

    def __init__(self, room: int, fates: Mapping[tuple[int, str], Callable[[Any], Any]], n_cards: int = 0) -> None:
        self.room, self.fates, self.n_cards = room, fates, n_cards
        self.hired, self.asked = 0, dict[object, Callable[[], Any]]()
        self.computed = defaultdict[int, int](int)

    def put(self, value: Any) -> Any:
        return value

    def kill(self, actor: Any) -> None: ...

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.room), "GPU": float(self.n_cards)}

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": f"n{i}", "NodeManagerHostname": f"ward{i}", "Alive": i <= self.room, "Resources": {"CPU": 1.0}}
            for i in range(1, 10)
        ]

    def remote(self, kind: type) -> Any:
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=self._hire))

    def _hire(self, environment: object) -> Any:
        self.hired += 1
        number = self.hired
        methods = {name: SimpleNamespace(remote=self._method(number, name)) for name in ("hello", "open", "make")}
        return SimpleNamespace(**methods)

    def _method(self, number: int, name: str) -> Callable[..., object]:
        def asked(*given: Any) -> object:
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

    def wait(self, references: Sequence[object], timeout: float) -> tuple[list[object], list[object]]:
        assert references, "a crew waits for nothing"
        return [references[0]], []

    def get(self, reference: object) -> Any:
        return self.asked.pop(reference)()


def hello(number: int, **others: str) -> Hello:
    return Hello(versions={**versions(), **others}, node=f"ward{number}", place=f"n{number}", guarded=True)


def older(number: int) -> Callable[[Engine], Hello]:
    return lambda engine: hello(number, numpy="0.1")


def dies(engine: Engine) -> None:
    raise Lost("No module named 'core'")


def odd(engine: Engine) -> Any:
    return np.array([0.5])


@pytest.fixture(autouse=True)
def engine_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda name: name)
    monkeypatch.setattr(on_ray, "_COUNT", 0.0)


def on(engine: Engine, run: Run, works: int = 1) -> list[bytes]:
    """A run's chunks, made by an engine's workers, who serve one work after the other."""
    with on_ray.session() as held:
        held.ray, held.address = engine, CLUSTER.removeprefix("ray:")
        for number in range(works):
            each = run if number + 1 == works else begun(run.home, f"before {number}")
            files = made(each, CLUSTER, Squares(run.path), N, SIZE)
    return files


@pytest.mark.parametrize("fates", [{(2, "hello"): older(2)}, {(2, "make"): odd}])
def test_one_worker_that_differs_is_left_idle_and_named(
    home: Path, fates: Mapping[tuple[int, str], Callable[[Any], Any]]
) -> None:
    expected = made(begun(home, "local"), "local", Squares(home), N, SIZE)
    run, engine = begun(home, "run"), Engine(3, fates)
    assert on(engine, run, works=2) == expected
    assert engine.hired == 3  # nobody else is begun in its place
    assert engine.computed[2] == 0
    before = next(each for each in RunStore(home).list() if each.manifest.key == "before 0")
    assert sum(note.startswith("worker on ward2: ") for note in before.state().notes) == 1
    assert not any("the one on" in note for note in run.state().notes)


def test_a_run_ends_if_most_workers_differ_or_no_other_is_left(home: Path) -> None:
    def node_dies(engine: Engine) -> None:
        engine.room = 1
        raise Lost

    most = Engine(3, {(1, "hello"): older(1), (2, "hello"): older(2)})
    with pytest.raises(ResourceError, match=r"^worker on ward2: has numpy 0\.1, this machine .*, or give --mixed\.$"):
        on(most, begun(home, "most"))
    last = Engine(2, {(1, "hello"): older(1), (2, "make"): node_dies})
    with pytest.raises(ResourceError, match=r"^worker on ward1: has numpy 0\.1"):
        on(last, begun(home, "last"))


def test_the_place_of_a_refused_worker_is_free_again_with_its_node(home: Path) -> None:
    class Moved(Engine):
        def nodes(self) -> list[dict[str, Any]]:
            return [node for node in super().nodes() if node["NodeID"] != "n2" or self.computed[1] < 3]

    engine = Moved(2, {(2, "hello"): older(2)})
    on(engine, begun(home, "run"))
    assert engine.hired > 2


def test_a_night_of_preemptions_does_not_end_a_run(home: Path) -> None:
    def makes_one(number: int) -> Callable[[Engine], Any]:
        def fate(engine: Engine) -> Any:
            engine.computed[number] += 1
            if engine.computed[number] > 2:  # the probe, and a chunk
                raise Lost
            return np.arange(4) ** 2

        return fate

    fates = {(number, "hello"): dies for number in (1, 2, 3, 5, 6, 7)} | {(4, "make"): makes_one(4)}
    engine = Engine(1, fates)
    assert on(engine, begun(home, "run"))
    assert engine.hired == 8


def test_workers_that_served_a_work_before_have_begun(home: Path) -> None:
    opened = defaultdict[int, int](int)

    def second_time(number: int) -> Callable[[Engine], Any]:
        def fate(engine: Engine) -> Any:
            opened[number] += 1
            if opened[number] == 2:
                raise Lost
            return {"model": "none"}, ("abacus", "abacus")

        return fate

    engine = Engine(4, {(number, "open"): second_time(number) for number in range(1, 5)})
    assert on(engine, begun(home, "run"), works=2)
    assert engine.hired > 4


def test_what_no_worker_can_begin_with_is_named_and_in_the_log(home: Path) -> None:
    run = begun(home, "run")
    with pytest.raises(ResourceError, match=r"4 workers died before .* on a node \(Lost, see worker\.log\); see that"):
        on(Engine(2, {(number, "hello"): dies for number in range(1, 9)}), run)
    assert "No module named 'core'" in run.log_file.read_text()


@pytest.mark.parametrize(
    ("device", "expected", "passed"), [("auto", [H100, T4], "auto"), ("cuda:1", [H100], "cuda"), ("cpu", [], "cpu")]
)
def test_workers_of_this_machine_have_the_cards_that_device_leaves_to_themselves(
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
    run = begun(home, "cards")
    assert len(made(run, "ray", Squares(run.path, card=True), N, SIZE)) == N // SIZE
    assert not any(lock.held() for lock in locks.values())
    monkeypatch.setattr(on_ray, "engine", without_a_card(locks))
    run = begun(home, "counted")
    assert len(made(run, "ray", Squares(run.path), N, SIZE)) == N // SIZE


def without_a_card(locks: Mapping[Row, Lock]) -> Any:
    """An engine for what no card is of use to."""

    @contextmanager
    def begins(address: str, own: Sequence[Card] | None) -> Iterator[Engine]:
        assert own == []
        assert not any(lock.held() for lock in locks.values())
        yield Engine(2, {})

    return begins
