"""Read and write the events of a run, and derive its state from them.

    started  part  stage  progress  metric  note  device  child  checkpoint  artifact  succeeded | failed | cancelled

`events.jsonl` is append-only. Only the process that holds the run's lock writes it. An attempt begins with `started`
and ends with `succeeded`, `failed` or `cancelled`; if all three are missing, the worker died. Readers check each line,
because a failing disk may have damaged it.
"""

import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict, TypeGuard, get_args

from core.files import WholeLines, sync

LARGEST = 1e15  # Reject larger times, counts and steps: they are damaged, and arithmetic on them may fail.
_WHOLE, _NUMBER, _TEXT, _NONE = (int,), (int, float), (str,), (type(None),)
_SHAPES: Mapping[str, Mapping[str, tuple[type, ...]]] = {  # {kind of event: {key that readers use: its types}}
    "started": {"pid": _WHOLE, "created": _NUMBER},
    "part": {
        "number": _WHOLE,
        "of": _WHOLE,
        "name": _TEXT,
        "left": _NUMBER + _NONE,
        "after": _NUMBER + _NONE,
        "whole": _NUMBER + _NONE,
    },
    "stage": {"name": _TEXT},
    "progress": {"done": _WHOLE, "total": _WHOLE + _NONE, "unit": _TEXT, "whole": _NUMBER + _NONE},
    "metric": {"name": _TEXT, "value": _NUMBER, "step": _WHOLE + _NONE},
    "note": {"text": _TEXT, "waiting_for": _TEXT + _NONE},
    "device": {"text": _TEXT, "machine": _TEXT},
    "child": {"run": _TEXT},
    "succeeded": {"size": _WHOLE + _NONE, "crc": _WHOLE + _NONE},  # size and checksum of result.json
    "failed": {"error": _TEXT + _NONE},
}

Ending = Literal["succeeded", "failed", "cancelled"]
EventKind = (
    Literal["started", "part", "stage", "progress", "metric", "note", "device", "child", "checkpoint", "artifact"]
    | Ending
)
State = Literal["queued", "running", "interrupted"] | Ending

EVENTS = "events.jsonl"
ENDINGS: Mapping[str, Ending] = {ending: ending for ending in get_args(Ending)}
# Estimate a stage's end only after 10 seconds and 3 progress reports, because the first batch is slow.
JUDGED_AFTER, JUDGED_REPORTS = 10.0, 3
MOST = 1000  # maximum number of notes, and of metrics, in a state, because adding one copies all others
OUT_OF_MEMORY = "memory ran out"
INTERRUPTED = "The worker ended without an error message (killed, or out of memory). See worker.log, or resume the run."


class Data(TypedDict, total=False):
    """Data of an event. Each kind of event has some of these keys; see `_SHAPES`."""

    pid: int
    created: float
    number: int
    of: int
    name: str
    left: float | None
    after: float | None
    done: int
    total: int | None
    unit: str
    whole: float
    value: float
    step: int | None
    text: str
    passing: bool
    waiting_for: str | None
    machine: str
    reused: str
    run: str
    path: str
    size: int | None
    crc: int | None
    error: str | None
    permanent: bool


def is_whole(kind: str, data: object) -> TypeGuard[Data]:
    """Return True if `data` has the keys and types of its kind of event.

    Unknown kinds and keys are accepted, so that logs of newer versions can be read.
    """
    shape = _SHAPES.get(kind, {})
    return isinstance(data, dict) and all(_fits(data.get(name), kinds) for name, kinds in shape.items())


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (not isinstance(value, int) or abs(value) < LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. seq: number of the event, counted from 0 over all attempts. time: seconds since 1970."""

    seq: int
    time: float
    kind: str
    data: Data


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a run. number: number of the part, from 1. of: number of parts.

    left: estimated seconds of this part and all later parts, at time `since`. after: estimated seconds of the later
    parts alone. None: unknown.
    """

    number: int
    of: int
    name: str
    left: float | None
    after: float | None
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """State of a run, as a page shows it. It is computed from the events and never stored.

    part: current part; None if the run does not report parts. A part may have several stages.
    done, total, unit: progress of the current stage; total is None if unknown. rate: units per second.
    eta: estimated seconds until the stage ends; None before it can be estimated.
    started, ended: start and end of the latest attempt. updated: time of the last event. All in seconds since 1970.
    earlier: seconds that previous attempts took.
    permanent: True if the run failed because of its options, so that resuming cannot help.
    passing: notes that are dropped when the run is resumed. metrics: latest value of each metric.
    waiting_for: id of the run that it waits for. child: id of the latest child run that it needed.
    result: size in bytes and CRC-32 of result.json; None if unknown.
    device: description of the device in words. machine: name of the GPU or processor.
    cancelling: True if the run was asked to stop and is still running.
    worker: (pid, create time) of the latest attempt.
    reached: share of the run that was done at the last event, 0 to 1; it never falls within an attempt.
    stage_from: (time, done) of the stage's first progress report, from which the rate is computed.
    reports: number of progress reports since the first one.
    """

    state: State = "queued"
    part: Part | None = None
    stage: str | None = None
    done: int = 0
    total: int | None = None
    unit: str = ""
    rate: float | None = None
    eta: float | None = None
    started: float | None = None
    ended: float | None = None
    updated: float | None = None
    earlier: float = 0.0
    error: str | None = None
    permanent: bool = False
    notes: tuple[str, ...] = ()
    passing: frozenset[str] = frozenset()
    metrics: Mapping[str, float] = field(default_factory=dict)
    waiting_for: str | None = None
    child: str | None = None
    result: tuple[int, int] | None = None
    device: str | None = None
    machine: str | None = None
    cancelling: bool = False
    attempts: int = 0
    worker: tuple[int, float] | None = None
    reached: float = 0.0
    stage_from: tuple[float, int] | None = None
    reports: int = 0

    @property
    def active(self) -> bool:
        """True if the run is queued or running."""
        return self.state in ("queued", "running")

    @property
    def resumable(self) -> bool:
        """True if the run ended early and may finish if it is resumed."""
        return not self.active and self.state != "succeeded" and not self.permanent

    @property
    def seconds(self) -> float:
        """Seconds of work in all attempts. For a running run, the latest attempt is counted up to its last event."""
        return self.earlier + ((self.ended or self.updated or 0.0) - self.started if self.started else 0.0)

    def elapsed(self, now: float) -> float:
        """Return the seconds of work in all attempts, until `now` or until the run ended."""
        return self.earlier + now - self.started if self.active and self.started else self.seconds

    def left(self, now: float) -> float | None:
        """Return the estimated seconds until the whole run ends, or None if unknown.

        If the current part takes longer than estimated, the later parts are still counted in full.
        """
        if not self.active or self.part is None or self.part.left is None:
            return None
        return max(self.part.left - (now - self.part.since), self.part.after or 0.0)

    def share(self, now: float) -> float:
        """Return the share of the run that is done, 0 to 1: by time if the time left is estimated, else by parts."""
        left = self.left(now)
        if left is None:
            return self.reached
        # The 1.0 avoids a division by zero: at the start of a run, both times may be 0.
        return max(self.reached, min(self.elapsed(now) / max(self.elapsed(now) + left, 1.0), 1.0))

    @property
    def out_of_memory(self) -> bool:
        """True if the run failed because the GPU or the machine ran out of memory. Smaller batches may help."""
        return self.state == "failed" and OUT_OF_MEMORY in (self.error or "")


def fold(events: Iterable[Event], *, locked: bool, cancel_requested: bool = False, launching: bool = False) -> RunState:
    """Return the state of a run from its events.

    locked: True if a process holds the run's lock. cancel_requested: True if a user has cancelled the run. launching:
    True if a worker was started but has not written the event `started` yet.
    """
    state = RunState()
    for event in events:
        state = step(state, event)
    return settle(state, locked=locked, cancel_requested=cancel_requested, launching=launching)


def step(state: RunState, event: Event) -> RunState:
    """Return the state after one more event. An attempt counts as running until an event ends it.

    `settle` then checks if the attempt's process is alive.
    """
    data = event.data
    match event.kind:
        case "started":
            state = RunState(
                state="running",
                started=event.time,
                notes=tuple(note for note in state.notes if note not in state.passing),
                metrics=state.metrics,
                device=state.device,
                machine=state.machine,
                attempts=state.attempts + 1,
                worker=(int(data["pid"]), float(data["created"])),
                earlier=state.seconds,
            )
        case "part":
            state = _reaching(replace(state, part=_part(data, event.time)), event)
        case "stage":
            state = replace(state, done=0, total=None, unit="", rate=None, eta=None)
            state = replace(state, stage=data["name"], stage_from=None, reports=0)
        case "progress":
            state = _reaching(_progress(state, event), event)
        case "metric" if data["name"] in state.metrics or len(state.metrics) < MOST:
            state = replace(state, metrics={**state.metrics, data["name"]: data["value"]})
        case "note" if "waiting_for" in data:
            state = replace(state, waiting_for=data["waiting_for"])
        case "child":
            state = replace(state, child=data["run"])
        case "device":
            state = replace(state, device=data["text"], machine=data["machine"])
        case "note" if len(state.notes) < MOST and data["text"] not in state.notes:
            passing = state.passing | {data["text"]} if data.get("passing") else state.passing
            state = replace(state, notes=(*state.notes, data["text"]), passing=passing)
        case ending if ending in ENDINGS:
            state = _over(state, ENDINGS[ending], event.time, data.get("error"))
            state = replace(state, permanent=data.get("permanent", False), result=_sum(data))
    return replace(state, updated=event.time)


def _part(data: Data, since: float) -> Part:
    left, after = data.get("left"), data.get("after")
    return Part(number=data["number"], of=data["of"], name=data["name"], left=left, after=after, since=since)


def _reaching(state: RunState, event: Event) -> RunState:
    """Return the state with `reached`, the finished share of the run, updated after an event."""
    by_parts = event.data.get("whole") or 0.0 if state.left(event.time) is None else 0.0
    return replace(state, reached=max(state.share(event.time), min(by_parts, 1.0)))


def _sum(data: Data) -> tuple[int, int] | None:
    size, crc = data.get("size"), data.get("crc")
    return None if size is None or crc is None else (size, crc)


def _over(state: RunState, end: Ending | Literal["interrupted"], time: float | None, error: str | None) -> RunState:
    """Return the state of a run that ended as `end` at `time`."""
    return replace(state, state=end, ended=time, error=error, eta=None, waiting_for=None)


def settle(state: RunState, *, locked: bool, cancel_requested: bool, launching: bool) -> RunState:
    """Correct a state that was computed from the log by facts about live processes, and return it.

    Parameters: see `fold`.
    """
    ended = state.state in ENDINGS
    # The new attempt has not written an event yet, so the log still ends with the previous attempt.
    if launching and (ended or not locked):
        return replace(state, state="queued", ended=None, error=None, permanent=False, cancelling=cancel_requested)
    if ended:
        return state
    if locked:
        return replace(state, state="running", cancelling=cancel_requested)
    if cancel_requested:  # the worker was killed, because it did not stop when the run was cancelled
        return _over(state, "cancelled", state.updated, state.error)
    return _over(state, "interrupted", state.updated, INTERRUPTED)


def _progress(state: RunState, event: Event) -> RunState:
    done, total = event.data["done"], event.data["total"]
    # Compute the rate from the stage's first report, because items done before a resume took no time in this attempt.
    since, first = state.stage_from or (event.time, done)
    seconds, gained = event.time - since, done - first
    rate = gained / seconds if seconds > 0 and gained > 0 else None
    reports = state.reports + (done > state.done and state.stage_from is not None)
    judged = seconds >= JUDGED_AFTER and reports >= JUDGED_REPORTS
    eta = (total - done) / rate if judged and rate and total is not None else None
    return replace(
        state,
        done=done,
        total=total,
        unit=event.data["unit"],
        rate=rate,
        eta=eta,
        stage_from=(since, first),
        reports=reports,
    )


def read_events(path: Path, after: int = 0) -> tuple[list[Event], int]:
    """Return the events after byte `after` of the log, and the number of the byte at which to continue.

    An incomplete last line is not read.
    """
    events = list[Event]()

    def take(event: Event | None) -> None:
        if event:
            events.append(event)

    return events, follow(path, after, take)


def follow(path: Path, after: int, take: Callable[[Event | None], None]) -> int:
    """Pass each event after byte `after` of the log to `take`. Return the number of the byte at which to continue.

    For a damaged line or sector, `take` is called with None, and the rest of the log is still read.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return after
    except OSError:  # the log cannot be read, for example because it is a folder
        take(None)
        return after
    with file:
        lines = WholeLines(file, after)
        try:
            for line in lines:
                take(_parse(line))
        except OSError:  # a sector that cannot be read
            take(None)
        if lines.torn not in (b"", b"{"):  # every undamaged line begins with "{"
            take(None)
    return lines.end


def _parse(line: bytes) -> Event | None:
    """Return the event of a line, or None if the line is damaged."""
    try:
        record = json.loads(line)
        event = Event(seq=int(record["seq"]), time=float(record["time"]), kind=str(record["kind"]), data=record["data"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return event if is_whole(event.kind, event.data) and 0 <= event.time < LARGEST else None


class EventLog:
    """Append events to `events.jsonl`. Only the process that holds the run's lock may do so."""

    def __init__(self, path: Path) -> None:
        events, whole = read_events(path)
        self._next = events[-1].seq + 1 if events else 0
        self.ended = False  # True after the last event of this attempt
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.ftruncate(self._file, whole)  # drop an incomplete last line
        sync(path.parent)

    def append(self, kind: EventKind, data: Data) -> Event:
        """Append an event with one write, so that readers never see half a line. Errors: OSError for a full disk."""
        event = Event(seq=self._next, time=round(time.time(), 6), kind=kind, data=data.copy())
        line = json.dumps({"seq": event.seq, "time": event.time, "kind": kind, "data": event.data}).encode() + b"\n"
        written = os.write(self._file, line)
        if written < len(line):
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), EVENTS)
        self._next += 1
        if kind in ENDINGS:
            self.ended = True
            os.fsync(self._file)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
