"""The event log, with lines cut anywhere, and the state computed from it."""

import errno
import json
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import (
    Cancelled,
    ConfigError,
    CorpusError,
    MissingCorpus,
    ModelError,
    PathError,
    ReadError,
    ResourceError,
    Unfinished,
)
from core.runs import Event, Run, RunContext, execute, fold, run_or_reuse
from core.runs.context import Parts
from core.runs.events import MOST, Data, Ending, EventKind, EventLog, read_events

Entry = tuple[EventKind, Data]  # of a log

STARTED: Entry = ("started", {"pid": 1, "created": 0.0})
END: dict[Ending, Data] = {"succeeded": {}, "failed": {"error": "a sentence"}, "cancelled": {}}


def log_of(*parts: Entry) -> list[Event]:
    return [Event(seq=i, time=float(i), kind=kind, data=data) for i, (kind, data) in enumerate(parts)]


def progress(done: int, total: int | None = 10) -> Entry:
    return "progress", {"done": done, "total": total, "unit": "sentences"}


# --- the file ---


def write_some(path: Path) -> bytes:
    with EventLog(path) as log:
        log.append(*STARTED)
        log.append("note", {"text": "zwölf Sätze\nund ein Umbruch"})
        log.append("failed", {"error": "x"})
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1))
def test_a_log_cut_anywhere_keeps_its_complete_lines_and_continues(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    whole = write_some(path)
    cut = round(share * len(whole))
    path.write_bytes(whole[:cut])
    before, offset = read_events(path)
    assert len(before) == whole[:cut].count(b"\n")
    assert offset == whole[:cut].rfind(b"\n") + 1
    with EventLog(path) as log:
        log.append(*STARTED)
    after, _ = read_events(path)
    assert after[:-1] == before
    assert [event.seq for event in after] == list(range(len(after)))


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=5))
def test_reading_from_an_offset_misses_and_repeats_no_event(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    whole = write_some(path)
    expected, _ = read_events(path)
    read, offset = list[Event](), 0
    for cut in [*sorted(cuts), len(whole)]:
        path.write_bytes(whole[:cut])
        events, offset = read_events(path, offset)
        read += events
    assert read == expected


def test_a_damaged_line_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_some(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0\0\0\n" + lines[1] + b'{"seq": 9}\n' + lines[2])
    assert [event.seq for event in read_events(path)[0]] == [0, 1, 2]


def test_an_incomplete_write_leaves_no_partial_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    whole = write_some(path)
    write = os.write
    with EventLog(path) as log:
        monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:7]))
        with pytest.raises(OSError, match="No space") as caught:
            log.append("note", {"text": "x"})
        monkeypatch.undo()
        assert caught.value.errno == errno.ENOSPC
        assert path.read_bytes() == whole
        assert log.append("note", {"text": "y"}).seq == 3


# --- the state ---


@pytest.mark.parametrize("ending", END)
@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("cancel_requested", [True, False])
def test_the_last_event_of_an_attempt_decides_its_state(ending: Ending, locked: bool, cancel_requested: bool) -> None:
    state = fold(log_of(STARTED, progress(3), (ending, END[ending])), locked=locked, cancel_requested=cancel_requested)
    assert (state.state, state.ended, state.active) == (ending, 2.0, False)
    assert state.error == END[ending].get("error")


@pytest.mark.parametrize(
    ("events", "locked", "launching", "cancel_requested", "expected"),
    [
        ([], False, True, False, "queued"),
        ([], True, True, False, "running"),
        ([], True, False, False, "running"),
        ([], False, False, False, "interrupted"),
        ([], False, False, True, "cancelled"),
        ([], False, True, True, "queued"),
        ([STARTED], True, False, False, "running"),
        ([STARTED], True, False, True, "running"),
        ([STARTED], False, False, False, "interrupted"),
        ([STARTED], False, False, True, "cancelled"),
        ([STARTED], False, True, False, "queued"),
        ([STARTED, ("failed", {"error": "x"})], False, True, False, "queued"),
        ([STARTED, ("failed", {"error": "x"})], True, True, False, "queued"),
        ([STARTED, ("failed", {"error": "x"}), STARTED], True, False, False, "running"),
        ([STARTED, ("failed", {"error": "x"}), STARTED], False, False, False, "interrupted"),
        ([STARTED, STARTED, ("succeeded", {})], False, False, True, "succeeded"),
    ],
)
def test_state_by_events_lock_launch_and_cancel_request(
    events: list[Entry], locked: bool, launching: bool, cancel_requested: bool, expected: str
) -> None:
    state = fold(log_of(*events), locked=locked, launching=launching, cancel_requested=cancel_requested)
    assert state.state == expected
    assert (state.error is not None) == (expected == "interrupted")
    assert state.cancelling == (cancel_requested and state.active)


def test_rate_and_time_left_are_counted_within_a_stage() -> None:
    events = log_of(
        STARTED, ("stage", {"name": "a"}), progress(50, 100), ("stage", {"name": "b"}), progress(4), progress(6)
    )
    state = fold(events, locked=True)
    assert (state.stage, state.done, state.total, state.unit) == ("b", 6, 10, "sentences")
    assert (state.rate, state.eta) == (2.0, None)
    assert fold(events[:-1], locked=True).rate is None
    unknown = fold([*events, Event(seq=6, time=9.0, kind="progress", data=progress(9, None)[1])], locked=True)
    assert (unknown.rate, unknown.eta) == (1.0, None)


def at(times: Sequence[float], *parts: Entry) -> list[Event]:
    return [replace(event, time=time) for event, time in zip(log_of(*parts), times, strict=True)]


def test_time_left_is_given_only_after_enough_progress() -> None:
    stage: Entry = ("stage", {"name": "tagging"})

    def progressed(times: Sequence[float], *done: int) -> list[Event]:
        return at(times, STARTED, stage, *(progress(n, 100) for n in done))

    assert fold(progressed((0, 0, 0, 34, 35), 0, 1, 20), locked=True).eta is None  # a slow first batch
    assert fold(progressed((0, 0, 0, 1, 2, 3), 0, 11, 22, 33), locked=True).eta is None  # too early
    later = progressed((0, 0, 0, 4, 8, 12), 0, 20, 40, 60)
    assert fold(later, locked=True).eta == pytest.approx(8)
    again = fold([*later, Event(seq=9, time=13.0, kind="stage", data={"name": "saving"})], locked=True)
    assert (again.eta, again.rate, again.reports) == (None, None, 0)


def part(number: int, of: int, left: float | None = None, after: float | None = None) -> Entry:
    return "part", {"number": number, "of": of, "name": f"the {number}.", "left": left, "after": after}


def test_state_reports_the_part_of_a_run_and_the_time_left() -> None:
    stage: Entry = ("stage", {"name": "training"})
    events = at((100, 110, 110, 120), STARTED, part(2, 3, left=90.0, after=40.0), stage, progress(5))
    state = fold(events, locked=True)
    assert state.part is not None
    assert (state.part.number, state.part.of, state.part.name, state.stage) == (2, 3, "the 2.", "training")
    left = [state.left(now) for now in (110, 120, 150, 400)]
    assert left == [90, 80, 50, 40]  # a late part does not change the estimate of the next
    assert state.elapsed(130) == 30
    resumed = fold([*events, *at((300, 310), STARTED, part(2, 3))], locked=True)
    assert (resumed.elapsed(330), resumed.left(330)) == (20 + 30, None)
    over = fold([*events, *at((130,), ("succeeded", {}))], locked=False)
    assert (over.elapsed(999), over.left(999)) == (30, None)


def test_time_left_follows_the_speed_of_finished_parts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def child(context: RunContext) -> dict[str, object]:
        context.part(2, 2, "within")
        return {}

    def recipe(context: RunContext) -> dict[str, object]:
        parts = Parts(context, [10, 10, 20, 40])
        for i in (0, 2, 3):  # the second part was finished before
            parts.next(i, f"part {i}")
            now[0] += 30 if i else 15
        Parts(context, [5]).next(0, "the only one")
        Parts(context, [5, 5]).next(1, "the second of two")
        run_or_reuse(context, "child", {}, {}, child, versions={}, key="c")
        part = run.state().part
        assert part is not None
        assert (part.number, part.of) == (2, 2)  # parts of a child do not count for its parent
        return {}

    execute(run, recipe)
    part_events = [event.data for event in run.events()[0] if event.kind == "part"]
    assert [(one["number"], one["of"]) for one in part_events] == [(1, 4), (3, 4), (4, 4), (2, 2)]
    assert [one["left"] for one in part_events] == [None, 1.5 * 60, 1.5 * 40, None]
    assert [one["after"] for one in part_events] == [None, 1.5 * 40, 0, None]


def test_the_share_of_a_run_that_is_done_never_falls(run: Run) -> None:
    def child(context: RunContext) -> dict[str, object]:
        context.stage("reading")
        context.progress(5, 10, "rows")
        context.stage("counting")
        context.progress(1, 10, "rows")
        context.progress(10, 10, "rows")
        return {}

    def recipe(context: RunContext) -> dict[str, object]:
        context.part(1, 3, "first", shares=(0.0, 0.2))
        context.stage("preparing")
        context.progress(10, 10, "rows")
        context.part(2, 3, "second", shares=(0.2, 0.9))
        context.stage("reading")
        context.progress(5, 10, "rows")
        run_or_reuse(context, "child", {}, {}, child, versions={}, key="c")
        context.part(3, 3, "third", shares=(0.9, 1.0))
        Parts(context, [1, 3]).next(0, "early")  # parts of its own, after parts that are over
        context.progress(3, None, "rows")
        return {}

    execute(run, recipe)
    events = run.events()[0]
    # A stage fills 80% of what is left of its part. In the child: 0.4 after 5 of 10 rows, then 0.4 + 0.8 * 0.6 = 0.88.
    shares = [round(fold(events[: i + 1], locked=True).reached, 3) for i in range(len(events))]
    assert shares == sorted(shares)
    second = 0.2 + 0.7 * 0.4
    child_of_second = [round(second + (0.9 - second) * share, 3) for share in (0.4, 0.88)]
    assert list(dict.fromkeys(shares)) == [0.0, 0.16, 0.2, second, *child_of_second, 0.9]


def test_the_share_that_is_done_is_that_of_the_time_once_it_is_known() -> None:
    known: Entry = ("part", {**part(1, 2, 9.0, 3.0)[1], "whole": 0.5})
    longer: Entry = ("part", {**part(2, 2, 90.0, 0.0)[1], "whole": 0.6})
    state = fold(at((100, 101), STARTED, known), locked=True)  # after 1 second of 10
    assert (state.reached, state.share(101), state.share(104)) == (0.1, 0.1, 0.4)
    later = fold(at((100, 101, 102, 103), STARTED, known, progress(1), longer), locked=True)
    assert later.reached == later.share(103) == 0.2  # 2 seconds of 10, not 3 seconds of 93
    assert later.share(163) == pytest.approx(63 / 93)


def test_time_left_is_the_estimate_until_a_part_has_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def recipe(context: RunContext) -> dict[str, object]:
        parts = Parts(context, [10, 30], expected=80)
        for i in (0, 1):
            parts.next(i, f"part {i}")
            now[0] += 15  # 20 s were expected
        return {}

    execute(run, recipe)
    part_events = [event.data for event in run.events()[0] if event.kind == "part"]
    assert [(one["left"], one["after"]) for one in part_events] == [(80, 60), (45, 0)]


def test_a_new_attempt_keeps_notes_metrics_and_seconds_but_no_progress() -> None:
    failed: Entry = ("failed", {"error": "x"})
    note: Entry = ("note", {"text": "n"})
    metric: Entry = ("metric", {"name": "loss", "value": 2.0, "step": 1})
    state = fold(log_of(STARTED, note, metric, progress(3), STARTED, note), locked=True)
    assert (state.notes, state.metrics, state.done, state.attempts) == (("n",), {"loss": 2.0}, 0, 2)
    events = at((100, 160, 500, 530, 900, 911), STARTED, failed, STARTED, progress(3), STARTED, ("succeeded", {}))
    assert fold(events, locked=False).seconds == 60 + 30 + 11  # the second attempt was killed after its last event
    assert fold(events[:4], locked=True).seconds == 60 + 30
    assert fold([], locked=False).seconds == 0
    wait: Entry = ("note", {"text": "waiting for r", "waiting_for": "r"})
    over: Entry = ("note", {"text": "the wait is over", "waiting_for": None})
    assert fold(log_of(STARTED, wait, progress(1)), locked=True).waiting_for == "r"
    ended = fold(log_of(STARTED, wait, over), locked=True)
    assert (ended.waiting_for, ended.notes) == (None, ())
    assert fold(log_of(STARTED, wait), locked=False).waiting_for is None


def test_a_passing_note_ends_with_its_attempt(run: Run) -> None:
    def stopped(context: RunContext) -> dict[str, object]:
        context.note("reads well")
        context.note("stopped; something is kept", passing=True)
        raise Cancelled("enough")

    def resumed(context: RunContext) -> dict[str, object]:
        context.note("done")
        return {}

    with pytest.raises(Cancelled):
        execute(run, stopped)
    assert run.state().notes == ("reads well", "stopped; something is kept")
    execute(run, resumed)
    assert run.state().notes == ("reads well", "done")


@pytest.mark.parametrize(
    ("error", "resumable"),
    [
        (CorpusError("shares no type"), False),
        (ConfigError("an option"), False),
        (ReadError("a.conll", 3, "no column"), False),
        (MissingCorpus("was removed"), True),
        (Unfinished("wait for its end"), True),
        (PathError("not there"), True),
        (ResourceError("the disk is full"), True),
        (ModelError("not here"), True),
        (MemoryError(), True),
        (ZeroDivisionError(), True),
    ],
)
def test_a_failure_records_if_resuming_can_help(run: Run, error: Exception, resumable: bool) -> None:
    def recipe(context: RunContext) -> dict[str, object]:
        raise error

    with pytest.raises(Exception):  # noqa: B017, PT011  # each error is of another class
        execute(run, recipe)
    assert run.state().resumable is resumable
    with pytest.raises(Cancelled):
        execute(run, lambda context: (_ for _ in ()).throw(Cancelled("stop")))
    assert run.state().resumable
    execute(run, lambda context: {})
    assert not run.state().resumable


# --- the context ---


def test_progress_is_thinned_but_the_last_progress_of_a_stage_is_written(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def recipe(context: RunContext) -> dict[str, object]:
        context.progress(0, 9, "rows")
        context.progress(5, 9, "rows")
        assert run.state().done == 0
        now[0] += 1
        context.check()
        assert run.state().done == 5  # a later check writes the progress that was held back
        for stage in ("a", "b"):
            context.stage(stage)
            for i in range(1000):
                now[0] += 0.01
                context.progress(i, 1000, "rows")
        return {}

    execute(run, recipe)
    events, _ = run.events()
    written = [event.data["done"] for event in events if event.kind == "progress"]
    assert len(written) <= 2 * 20 + 5
    stages = [i for i, event in enumerate(events) if event.kind in ("stage", "succeeded")]
    assert [events[i - 1].data["done"] for i in stages[1:]] == [999, 999]


def test_threads_write_complete_lines_in_one_order(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runs.context.PROGRESS_SECONDS", 0.0)
    switch = sys.getswitchinterval()

    def reports(context: RunContext) -> dict[str, object]:
        def report(number: int) -> None:
            for i in range(200):
                context.progress(i, 200, "sentences")
                context.note(f"{number} {i}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(report, range(4)))
        return {}

    sys.setswitchinterval(1e-6)
    try:
        execute(run, reports)
    finally:
        sys.setswitchinterval(switch)
    events, _ = run.events()
    assert [event.seq for event in events] == list(range(len(events)))
    assert sum(event.kind == "note" for event in events) == 800


@pytest.mark.parametrize(
    ("error", "raised", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), ResourceError, "the disk that holds .* is full; free some"),
        (Exception("I/O error: No space left on device (os error 28)"), ResourceError, "is full"),
        (MemoryError(), ResourceError, "memory ran out; choose smaller batches"),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), ResourceError, "memory ran out"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), ResourceError, "memory ran out"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), ResourceError, "memory ran out"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when"), ResourceError, "memory ran out"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), ResourceError, "memory ran out"),
        (ResourceError("a sentence."), ResourceError, "a sentence"),
        (ValueError("Herr Geheim wohnt hier"), ValueError, "bug in Winnow: ValueError; the traceback is in worker.log"),
        (SystemExit(3), SystemExit, "bug in Winnow: SystemExit"),
    ],
)
def test_a_failure_has_a_clear_error(
    run: Run, error: BaseException, raised: type[BaseException], sentence: str
) -> None:
    def recipe(context: RunContext) -> dict[str, object]:
        raise error

    with pytest.raises(raised):
        execute(run, recipe)
    state = run.state()
    assert state.state == "failed"
    assert re.search(sentence, state.error or "")
    assert state.out_of_memory == ("memory ran out" in sentence)
    with pytest.raises(TypeError):  # a result that is not JSON is not kept either
        execute(run, lambda context: {"x": object()})
    assert (run.state().state, run.result_file.exists()) == ("failed", False)
    with pytest.raises(Cancelled):
        execute(run, lambda context: (_ for _ in ()).throw(KeyboardInterrupt()))
    assert run.state().state == "cancelled"


def test_a_bug_logs_its_traceback_without_corpus_text(run: Run) -> None:
    sentence = "Herr Geheim wohnt hier"

    def recipe(context: RunContext) -> dict[str, object]:
        return {"x": int(sentence)}

    with pytest.raises(ValueError, match="Geheim"):
        execute(run, recipe)
    assert "in recipe" in "\n".join(run.log_tail())
    assert run.log_tail()[-1].startswith("ValueError")
    contents = [file.read_text() for file in run.path.rglob("*") if file.is_file()]
    assert not any("wohnt hier" in text for text in contents)


def test_a_listener_gets_every_event_and_each_is_one_line_of_json(run: Run) -> None:
    heard: list[Event] = []

    def recipe(context: RunContext) -> dict[str, object]:
        context.metric("loss", 1.5, 3)
        return {}

    execute(run, recipe, listener=heard.append)
    assert heard == run.events()[0]
    assert [event.kind for event in heard] == ["started", "metric", "succeeded"]
    for line in run.events_file.read_text().splitlines():
        assert list(json.loads(line)) == ["seq", "time", "kind", "data"]


def test_a_huge_log_of_blank_lines_takes_seconds_and_little_memory(run: Run) -> None:
    """Blank lines are never kept in memory, and the events around them count."""
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 1, "created": 0.0})
    with run.events_file.open("ab") as file:
        for _ in range(300):
            file.write(b"\n" * 1_000_000)
        file.write(b"x" * 40_000_000 + b"\n")
    with run.events_file.open("ab") as file:
        file.write(json.dumps({"seq": 1, "time": 5.0, "kind": "stage", "data": {"name": "behind it"}}).encode() + b"\n")
    began = time.process_time()
    tracemalloc.start()
    state = run.state()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (state.stage, run.spoilt()) == ("behind it", True)
    assert peak < 100_000_000
    assert time.process_time() - began < 20
    assert [event.seq for event in run.events()[0]] == [0, 1]


def test_forty_thousand_notes_and_metrics_take_seconds(run: Run) -> None:
    """A project file may contain such a log, and every page that lists runs reads it."""
    entries: list[Entry] = [STARTED]
    for number in range(20_000):
        entries += [("note", {"text": f"note {number}"}), ("metric", {"name": f"m{number}", "value": 1.0, "step": 1})]
    lines = (
        json.dumps({"seq": seq, "time": 5.0, "kind": kind, "data": data}) for seq, (kind, data) in enumerate(entries)
    )
    run.events_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    began = time.process_time()
    state = run.state()
    assert time.process_time() - began < 4
    assert (state.notes[0], len(state.notes), len(state.metrics)) == ("note 0", MOST, MOST)
