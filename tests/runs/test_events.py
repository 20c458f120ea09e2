"""The log and the state folded from it, against every way a line can tear."""

import errno
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Cancelled, ResourceError
from core.runs import Event, RunContext, RunStore, execute, fold
from core.runs import context as context_module
from core.runs.events import EventLog, read_events

STARTED = ("started", {"pid": 1, "created": 0.0})
END = {"succeeded": {}, "failed": {"error": "a sentence"}, "cancelled": {}}


def log_of(*parts: tuple[str, dict]) -> list[Event]:
    return [Event(seq=i, time=float(i), kind=kind, data=data) for i, (kind, data) in enumerate(parts)]


def progress(done: int, total: int | None = 10) -> tuple[str, dict]:
    return "progress", {"done": done, "total": total, "unit": "sentences"}


@pytest.fixture
def run(tmp_path):
    return RunStore(tmp_path).create("test", {}, {}, versions={}, key="k")


# --- the file ---


def write_some(path: Path) -> bytes:
    with EventLog(path) as log:
        log.append(*STARTED)
        log.append("note", {"text": "zwölf Sätze\nund ein Umbruch"})
        log.append("failed", {"error": "x"})
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1))
def test_a_log_cut_anywhere_reads_as_its_whole_lines_and_goes_on(tmp_path_factory, share):
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
def test_reading_on_from_an_offset_misses_and_repeats_nothing(tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    whole = write_some(path)
    expected, _ = read_events(path)
    read, offset = [], 0
    for cut in [*sorted(cuts), len(whole)]:
        path.write_bytes(whole[:cut])
        events, offset = read_events(path, offset)
        read += events
    assert read == expected


def test_a_spoilt_line_does_not_hide_the_others(tmp_path):
    path = tmp_path / "events.jsonl"
    write_some(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0\0\0\n" + lines[1] + b'{"seq": 9}\n' + lines[2])
    assert [event.seq for event in read_events(path)[0]] == [0, 1, 2]


def test_a_short_write_leaves_no_half_line(tmp_path, monkeypatch):
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
def test_an_ended_attempt_is_what_its_last_event_says(ending, locked, cancel_requested):
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
def test_state_table(events, locked, launching, cancel_requested, expected):
    state = fold(log_of(*events), locked=locked, launching=launching, cancel_requested=cancel_requested)
    assert state.state == expected
    assert (state.error is not None) == (expected == "interrupted")
    assert state.cancelling == (cancel_requested and state.active)


def test_rate_and_time_left_are_counted_within_a_stage():
    events = log_of(
        STARTED, ("stage", {"name": "a"}), progress(50, 100), ("stage", {"name": "b"}), progress(4), progress(6)
    )
    state = fold(events, locked=True)
    assert (state.stage, state.done, state.total, state.unit) == ("b", 6, 10, "sentences")
    assert (state.rate, state.eta) == (2.0, 2.0)
    assert fold(events[:-1], locked=True).rate is None
    unknown = fold([*events, Event(seq=6, time=9.0, kind="progress", data=progress(9, None)[1])], locked=True)
    assert (unknown.rate, unknown.eta) == (1.0, None)


def test_notes_and_metrics_outlive_an_attempt_but_progress_does_not():
    note, metric = ("note", {"text": "n"}), ("metric", {"name": "loss", "value": 2.0, "step": 1})
    state = fold(log_of(STARTED, note, metric, progress(3), STARTED, note), locked=True)
    assert (state.notes, state.metrics, state.done, state.attempts) == (("n",), {"loss": 2.0}, 0, 2)


def test_a_wait_shows_until_it_is_over():
    wait = ("note", {"text": "waiting for r", "waiting_for": "r"})
    over = ("note", {"text": "the wait is over", "waiting_for": None})
    assert fold(log_of(STARTED, wait, progress(1)), locked=True).waiting_for == "r"
    assert fold(log_of(STARTED, wait, over), locked=True).waiting_for is None
    assert fold(log_of(STARTED, wait), locked=False).waiting_for is None
    assert fold(log_of(STARTED, wait, over), locked=True).notes == ()


# --- the context ---


def test_progress_is_thinned_but_the_last_of_a_stage_is_written(run, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(context_module.time, "monotonic", lambda: now[0])

    def recipe(context: RunContext) -> dict:
        for stage in ("a", "b"):
            context.stage(stage)
            for i in range(1000):
                now[0] += 0.01
                context.progress(i, 1000, "rows")
        return {}

    execute(run, recipe)
    events, _ = run.events()
    written = [event.data["done"] for event in events if event.kind == "progress"]
    assert len(written) <= 2 * 20 + 3
    stages = [i for i, event in enumerate(events) if event.kind in ("stage", "succeeded")]
    assert [events[i - 1].data["done"] for i in stages[1:]] == [999, 999]


def test_progress_held_back_is_written_by_a_later_check(run, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(context_module.time, "monotonic", lambda: now[0])

    def recipe(context: RunContext) -> dict:
        context.progress(0, 9, "rows")
        context.progress(5, 9, "rows")
        assert run.state().done == 0
        now[0] += 1
        context.check()
        assert run.state().done == 5
        return {}

    execute(run, recipe)


def test_a_listener_hears_every_event(run):
    heard = []
    execute(run, lambda context: context.metric("loss", 1.5, 3) or {}, listener=heard.append)
    assert heard == run.events()[0]
    assert [event.kind for event in heard] == ["started", "metric", "succeeded"]


@pytest.mark.parametrize(
    ("error", "raised", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), ResourceError, "the disk that holds .* is full; free some"),
        (Exception("I/O error: No space left on device (os error 28)"), ResourceError, "is full"),
        (MemoryError(), ResourceError, "memory ran out; choose smaller batches"),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), ResourceError, "memory ran out"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), ResourceError, "memory ran out"),
        (ResourceError("a sentence."), ResourceError, "a sentence"),
        (ValueError("Herr Geheim wohnt hier"), ValueError, "bug in Winnow: ValueError; the traceback is in worker.log"),
        (SystemExit(3), SystemExit, "bug in Winnow: SystemExit"),
    ],
)
def test_a_failure_is_one_sentence(run, error, raised, sentence):
    def recipe(context: RunContext) -> dict:
        raise error

    with pytest.raises(raised):
        execute(run, recipe)
    state = run.state()
    assert state.state == "failed"
    assert re.search(sentence, state.error)
    assert state.out_of_memory == ("memory ran out" in sentence)


def test_a_bug_leaves_its_traceback_in_the_log_and_no_text_of_a_corpus(run):
    sentence = "Herr Geheim wohnt hier"

    def recipe(context: RunContext) -> dict:
        return {"x": int(sentence)}

    with pytest.raises(ValueError, match="Geheim"):
        execute(run, recipe)
    assert "in recipe" in "\n".join(run.log_tail())
    assert run.log_tail()[-1].startswith("ValueError")
    told = [file.read_text() for file in run.path.rglob("*") if file.is_file()]
    assert not any("wohnt hier" in text for text in told)


def test_a_result_that_is_no_json_is_a_failure(run):
    with pytest.raises(TypeError):
        execute(run, lambda context: {"x": object()})
    assert run.state().state == "failed"
    assert not run.result_file.exists()


def test_ctrl_c_cancels(run):
    def recipe(context: RunContext) -> dict:
        raise KeyboardInterrupt

    with pytest.raises(Cancelled):
        execute(run, recipe)
    assert run.state().state == "cancelled"


def test_events_are_plain_json_lines(run):
    execute(run, lambda context: context.note("n") or {})
    for line in run.events_file.read_text().splitlines():
        assert list(json.loads(line)) == ["seq", "time", "kind", "data"]
