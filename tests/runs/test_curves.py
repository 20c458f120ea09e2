"""Curves have every point once, in order of steps, even if reading pauses or the run restarts."""

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.runs import RunContext, RunStore, execute, run_or_reuse
from core.runs.curves import Curve, Curves
from core.runs.durations import _overlap
from core.runs.events import Event, EventLog
from core.runs.run import Run

points = st.lists(st.tuples(st.integers(0, 9), st.floats(-1, 1)), max_size=30)


def log(run: Run, *points: tuple[str, float, int | None]) -> None:
    with EventLog(run.events_file) as events:
        for name, value, step in points:
            events.append("metric", {"name": name, "value": value, "step": step})


@settings(deadline=None)
@given(points)
def test_a_curve_keeps_the_last_value_of_each_step_in_order(steps: list[tuple[int, float]]) -> None:
    curve = Curve()
    for step, value in steps:
        curve.add(step, value)
    kept = [(step, value) for i, (step, value) in enumerate(steps) if all(step < later for later, _ in steps[i + 1 :])]
    assert list(zip(curve.steps, curve.values, strict=True)) == kept


def test_curves_read_only_new_events(run: Run) -> None:
    curves = Curves(run)
    assert curves.read() == {}
    log(run, ("loss@1", 3.0, 10), ("dev_f1/PER@1", 50.0, 10))
    first = curves.read()
    assert first == {"loss@1": Curve([10], [3.0]), "dev_f1/PER@1": Curve([10], [50.0])}
    whole = run.events_file.read_bytes()
    run.events_file.write_bytes(b"\0" * len(whole))  # reading the beginning again would find no event
    with run.events_file.open("ab") as file:
        file.write(b'{"seq": 2, "time": 1.0, "kind": "metric", "data": {"name": "loss@1", "value": 2.0, "step": 20}}\n')
        file.write(b'{"seq": 3, "time": 1.0, "kind": "metr')  # incomplete
    assert curves.read()["loss@1"] == Curve([10, 20], [3.0, 2.0])
    assert first["loss@1"].steps == [10]


def test_a_resumed_run_continues_its_curve(run: Run) -> None:
    log(run, *(("loss", 3 - step / 10, step) for step in range(1, 8)))
    log(run, ("loss", 2.4, 5), ("loss", 2.3, 6))  # its checkpoint was written at step 4
    assert Curves(run).read()["loss"].steps == [1, 2, 3, 4, 5, 6]


def test_two_pages_that_read_at_once_count_each_point_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(run, ("speed", 1.0, None), ("speed", 2.0, None))
    curves, events = Curves(run), Run.events
    other = threading.Thread(target=curves.read)

    def while_the_other_reads(run: Run, offset: int = 0) -> tuple[list[Event], int]:
        read = events(run, offset)
        if threading.current_thread() is not other:
            other.start()
            other.join(0.2)  # it ends only if the lock does not stop it
        return read

    monkeypatch.setattr(Run, "events", while_the_other_reads)
    curves.children()
    other.join()
    monkeypatch.undo()
    assert curves.read()["speed"] == Curve([0, 1], [1.0, 2.0])


def test_curves_list_the_children_of_a_run(run: Run, tmp_path: Path) -> None:
    store = RunStore(tmp_path)

    def needs_two(context: RunContext) -> dict[str, str]:
        return {key: run_or_reuse(context, "b1", {}, {}, lambda _: {}, versions={}, key=key).id for key in "cc"}

    made = execute(run, needs_two)["c"]
    assert Curves(run).children() == [made]
    assert store.get(made).state().state == "succeeded"


def test_children_that_overlap_on_ray_are_subtracted_once() -> None:
    assert _overlap([(0.0, 10.0)], [(1.0, 4.0), (2.0, 6.0), (8.0, 12.0)]) == 7.0
