"""Runs that need child runs, and runs that need the same device."""

from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from core.errors import Cancelled, RunError
from core.runs import Run, RunContext, RunStore, device_lock, durations, execute, run_or_reuse
from core.runs.lock import Lock
from core.runs.shared import STEP_OF
from tests.runs.lifecycle_worker import crunch
from tests.runs.lifecycle_worker import parent as parent_recipe
from tests.runs.test_lifecycle import create, ended, kinds, start, worked, worker_of
from tests.waiting import until

CHILD = {"seconds": 0.03}


def parent(store: RunStore, key: str, **child: str) -> Run:
    return create(store, kind="parent", key=key, child={**CHILD, **child}, child_key="child")


def children(store: RunStore) -> list[Run]:
    return [run for run in store.list() if run.manifest.kind == "crunch"]


def test_a_child_is_created_once_and_reused(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    creating, held = RunStore.create, list[bool]()

    def watched(self: RunStore, *arguments: Any, **options: Any) -> Run:
        held.append(Lock(store.home / "locks" / "store.lock").held())
        return creating(self, *arguments, **options)

    first, second = parent(store, "1"), parent(store, "2")
    monkeypatch.setattr(RunStore, "create", watched)
    result = execute(first, parent_recipe)
    assert held == [True]  # the lock is held, so no other process can create the same child after the search
    [child] = children(store)
    assert (child.manifest.parent, child.state().state) == (first.id, "succeeded")
    events = child.events_file.read_bytes()
    assert execute(second, parent_recipe) == result
    assert children(store) == [child]
    assert child.events_file.read_bytes() == events
    assert second.state().notes == (f"crunch: reusing {child.id}",)


def test_a_parent_shows_the_progress_of_its_child_and_fails_with_it(store: RunStore) -> None:
    def child(context: RunContext) -> dict[str, object]:
        context.stage("embedding")
        context.progress(7, 9, "sentences")
        context.metric("loss", 2.0, 1)
        context.note("a note")
        raise RunError("the child's sentence.")

    run = create(store)
    with pytest.raises(RunError, match="the child's sentence"):
        execute(run, lambda context: run_or_reuse(context, "b1", {}, {}, child, versions={}, key="c").result())
    state = run.state()
    assert (state.stage, state.done, state.total) == ("b1: embedding", 7, 9)
    assert (dict(state.metrics), state.notes) == ({"b1/loss": 2.0}, ("b1: a note",))
    assert state.error == "the child's sentence."
    unfinished = store.unfinished("c", {})
    assert unfinished is not None
    assert unfinished.state().state == "failed"


def test_the_time_of_a_child_that_another_parent_began_is_counted_as_the_childs_time(store: RunStore) -> None:
    def failing(context: RunContext) -> dict[str, object]:
        raise RunError("stopped half-way.")

    def working(context: RunContext) -> dict[str, object]:
        return {}

    def execute_with(work: Callable[[RunContext], dict[str, object]]) -> Run:
        run = create(store, key=work.__name__)
        execute(run, lambda context: run_or_reuse(context, "part", {}, {}, work, versions={}, key="c").result())
        return run

    with pytest.raises(RunError, match="half-way"):
        execute_with(failing)
    run = execute_with(working)
    part = store.finished("c", {})
    assert part
    assert part.manifest.parent != run.id
    seconds = durations.by_kind([run], store)
    assert seconds["part"] == pytest.approx(part.state().seconds)
    assert seconds[run.manifest.kind] < run.state().seconds
    assert durations.by_kind([run, part], store) == seconds


def test_two_parents_at_once_share_one_child(store: RunStore) -> None:
    pair = [start(parent(store, "1")), start(parent(store, "2"))]
    assert [ended(run) for run in pair] == ["succeeded"] * 2
    [child] = children(store)
    assert kinds(child).count("started") == 1
    assert pair[0].result() == pair[1].result()
    waited = [event.data for run in pair for event in run.events()[0] if "waiting_for" in event.data]
    assert [data["waiting_for"] for data in waited] in ([child.id, None], [])


def test_a_resumed_parent_resumes_its_child(store: RunStore, gate: Path) -> None:
    run = start(parent(store, "1", gate=str(gate)))
    until(lambda: children(store) and worked(children(store)[0], 4))
    [child] = children(store)
    worker_of(run).signal(SIGKILL)
    assert (ended(run), ended(child)) == ("interrupted", "interrupted")
    gate.touch()
    assert ended(start(run)) == "succeeded"
    assert children(store) == [child]
    assert child.state().attempts == 2
    undisturbed = create(store, key="alone", seconds=CHILD["seconds"])
    assert execute(undisturbed, crunch) == {key: value for key, value in run.result().items() if key != "child"}


@pytest.mark.parametrize("whom", ["parent", "child"])
def test_cancelling_parent_or_child_cancels_both(store: RunStore, whom: str, gate: Path) -> None:
    run = start(parent(store, "1", gate=str(gate)))
    until(lambda: children(store) and worked(children(store)[0], 2))
    [child] = children(store)
    (run if whom == "parent" else child).cancel()
    assert (ended(run), ended(child)) == ("cancelled", "cancelled")
    assert kinds(run)[-1] == kinds(child)[-1] == "cancelled"


def test_a_second_training_waits_for_the_first(store: RunStore, gate: Path) -> None:
    first, second, third = (create(store, kind="train", key=str(i), until=str(gate)) for i in range(3))
    start(first)
    until(lambda: first.state().stage == "training")
    start(second)
    start(third)
    until(lambda: second.state().waiting_for == third.state().waiting_for == first.id)
    assert second.state().stage is None
    third.cancel()
    assert ended(third) == "cancelled"
    gate.touch()
    assert (ended(first), ended(second)) == ("succeeded", "succeeded")
    assert second.state().waiting_for is None


def test_the_next_part_of_a_run_precedes_a_later_run(store: RunStore, gate: Path, tmp_path: Path) -> None:
    between = tmp_path / "between"
    early = start(create(store, kind="parts", key="early", until=str(gate), between=str(between)))
    until(lambda: early.state().stage == "train: training")
    late = start(create(store, kind="train", key="late", until=str(gate)))
    until(lambda: late.state().waiting_for is not None)
    gate.touch()  # the first part ends; the run waits before the second
    until(lambda: late.state().waiting_for == early.id)
    between.touch()
    assert (ended(early), ended(late)) == ("succeeded", "succeeded")
    second = max((run for run in store.list("train") if run.manifest.parent == early.id), key=lambda run: run.id)
    assert "waiting_for" not in [key for run in (early, second) for event in run.events()[0] for key in event.data]
    [trains] = [event.time for event in late.events()[0] if event.kind == "stage"]
    assert trains >= (second.state().ended or 0.0)


def test_a_step_in_a_process_of_its_own_has_the_place_of_its_experiment(
    store: RunStore, gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = tmp_path / "between"
    early = start(create(store, kind="parts", key="early", until=str(gate), between=str(between)))
    until(lambda: early.state().stage == "train: training")
    late = start(create(store, kind="train", key="late", until=str(gate)))
    gate.touch()  # the first part ends and keeps the place of its run
    until(lambda: late.state().waiting_for == early.id)
    monkeypatch.setenv(STEP_OF, str(early.path))
    step = start(create(store, kind="train", key="step", until=str(gate)))
    assert ended(step) == "succeeded"
    assert late.state().waiting_for == early.id
    assert not [event for event in step.events()[0] if event.data.get("waiting_for") == early.id]
    between.touch()
    assert (ended(early), ended(late)) == ("succeeded", "succeeded")


def test_a_device_is_free_after_any_ending_and_a_deadlock_is_refused(store: RunStore) -> None:
    def recipe(context: RunContext) -> dict[str, object]:
        with device_lock(store.home, "cpu", context):
            raise Cancelled("x")

    def twice(context: RunContext) -> dict[str, object]:
        with device_lock(store.home, "cpu", context), device_lock(store.home, "cpu", context):
            return {}

    def child_within(context: RunContext) -> dict[str, object]:
        with device_lock(store.home, "cpu", context):
            return run_or_reuse(context, "b1", {}, {}, crunch, versions={}, key="c").result()

    for key in "ab":
        run = create(store, key=key)
        with pytest.raises(Cancelled):
            execute(run, recipe)
        assert not any("waiting_for" in event.data for event in run.events()[0])
    for waits in (twice, child_within):
        with pytest.raises(RunError, match="for ever"):
            execute(create(store), waits)
