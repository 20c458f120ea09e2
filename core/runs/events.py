"""The events of a run, line by line, and the state that follows from them.

    started  part  stage  progress  metric  note  device  child  checkpoint  artifact  succeeded | failed | cancelled

`events.jsonl` is append-only and has one writer, the holder of the run's lock. An attempt opens
with `started` and ends with exactly one of the last three; if it does not, its worker died.
"""

import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

from core.files import WholeLines, sync
from core.runs.data import LARGEST, Data, is_whole

Ending = Literal["succeeded", "failed", "cancelled"]
Kind = (
    Literal["started", "part", "stage", "progress", "metric", "note", "device", "child", "checkpoint", "artifact"]
    | Ending
)
State = Literal["queued", "running", "interrupted"] | Ending

EVENTS = "events.jsonl"
ENDINGS: Mapping[str, Ending] = {ending: ending for ending in get_args(Ending)}
JUDGED_AFTER, JUDGED_REPORTS = 10.0, 3  # seconds and reports; a first batch, which warms up, says too much by far
MOST = 1000  # notes, and names of metrics, of a state: each further one would be compared with, or copied beside, all
OUT_OF_MEMORY = "memory ran out"
INTERRUPTED = "The worker ended without a word (killed, or out of memory); what it left is in worker.log; resume it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """seq: 0-based, goes on over attempts. time: seconds since 1970."""

    seq: int
    time: float
    kind: str
    data: Data


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Place of a run in its whole: part `number`, from 1, of `of`.

    left: seconds of this part and of all behind it, as judged at `since`; after: of those behind it; None: not known.
    """

    number: int
    of: int
    name: str
    left: float | None
    after: float | None
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run as a page shows it, never stored.

    part: of the whole run, where its parts are known from the start; a part may have several stages.
    done, total, unit: progress of the current stage (total None: unknown). rate: units a second;
    eta: seconds left of the stage, once enough of it was seen to judge by. started: of the latest attempt;
    started, ended, updated: seconds since 1970. earlier: seconds that the attempts before it took.
    permanent: it failed of what it was asked for, so that resuming it cannot help. passing: those of the
    notes that only hold until it is resumed. metrics: the latest value of each name. waiting_for: a run's id.
    child: the run that it needed last. result: bytes and CRC-32 of its result, None where it did not keep them.
    device: what it runs on, in words; machine: the name of that card or processor; None: it has not said.
    cancelling: asked to stop, not yet there. worker: (pid, create time) of the latest attempt.
    stage_from: (time, done) of the stage's first progress, from which the rate is counted; reports: how
    many times it has got further since.
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
    stage_from: tuple[float, int] | None = None
    reports: int = 0

    @property
    def active(self) -> bool:
        """Whether somebody works on it or is about to."""
        return self.state in ("queued", "running")

    @property
    def resumable(self) -> bool:
        """Whether it has ended before its time, and going on may bring it to its end."""
        return not self.active and self.state != "succeeded" and not self.permanent

    @property
    def seconds(self) -> float:
        """Seconds of work, over all attempts; of one at work until its last event."""
        return self.earlier + ((self.ended or self.updated or 0.0) - self.started if self.started else 0.0)

    def elapsed(self, now: float) -> float:
        """Seconds over all attempts until `now`; of one that has ended, until its end."""
        return self.earlier + now - self.started if self.active and self.started else self.seconds

    def left(self, now: float) -> float | None:
        """Seconds that all of it will still take; None: not known. A part that takes longer than was thought
        leaves what is behind it as it was."""
        if not self.active or self.part is None or self.part.left is None:
            return None
        return max(self.part.left - (now - self.part.since), self.part.after or 0.0)

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed because memory, a device's or the machine's, ran out: smaller batches may do."""
        return self.state == "failed" and OUT_OF_MEMORY in (self.error or "")


def fold(events: Iterable[Event], *, locked: bool, cancel_requested: bool = False, launching: bool = False) -> RunState:
    """The state of a run. locked: somebody holds its lock. launching: a worker was spawned and has yet to start."""
    state = RunState()
    for event in events:
        state = step(state, event)
    return settle(state, locked=locked, cancel_requested=cancel_requested, launching=launching)


def step(state: RunState, event: Event) -> RunState:
    """The state by the log alone after one more event: an attempt without an end is `running`."""
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
            state = replace(state, part=_part(data, event.time))
        case "stage":
            state = replace(state, done=0, total=None, unit="", rate=None, eta=None)
            state = replace(state, stage=data["name"], stage_from=None, reports=0)
        case "progress":
            state = _progress(state, event)
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


def _sum(data: Data) -> tuple[int, int] | None:
    size, crc = data.get("size"), data.get("crc")
    return None if size is None or crc is None else (size, crc)


def _over(state: RunState, end: Ending | Literal["interrupted"], time: float | None, error: str | None) -> RunState:
    """`state` once nobody works on it any more: nothing is left of a stage, and nothing is waited for."""
    return replace(state, state=end, ended=time, error=error, eta=None, waiting_for=None)


def settle(state: RunState, *, locked: bool, cancel_requested: bool, launching: bool) -> RunState:
    """The state by the log, set against who is alive."""
    ended = state.state in ENDINGS
    # The log still says how the attempt before ended, for the new one has not written yet.
    if launching and (ended or not locked):
        return replace(state, state="queued", ended=None, error=None, permanent=False, cancelling=cancel_requested)
    if ended:
        return state
    if locked:
        return replace(state, state="running", cancelling=cancel_requested)
    if cancel_requested:  # it had to be killed
        return _over(state, "cancelled", state.updated, state.error)
    return _over(state, "interrupted", state.updated, INTERRUPTED)


def _progress(state: RunState, event: Event) -> RunState:
    done, total = event.data["done"], event.data["total"]
    # From the stage's first report on: what a resumed one had before took no time here.
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
    """Return the events from byte `after` on, and the byte to continue from. A torn last line is left for next time."""
    events = list[Event]()

    def take(event: Event | None) -> None:
        if event:
            events.append(event)

    return events, follow(path, after, take)


def follow(path: Path, after: int, take: Callable[[Event | None], None]) -> int:
    """Pass each event from byte `after` on to `take`, and return the byte to continue from.

    None stands for what a failing disk spoilt; the rest of the log still counts.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return after
    except OSError:  # a folder in its place
        take(None)
        return after
    with file:
        lines = WholeLines(file, after)
        try:
            for line in lines:
                take(_parse(line))
        except OSError:  # a sector that cannot be read
            take(None)
        if lines.torn not in (b"", b"{"):  # every line begins so
            take(None)
    return lines.end


def _parse(line: bytes) -> Event | None:
    """None for a line that no writer of ours has finished."""
    try:
        record = json.loads(line)
        event = Event(seq=int(record["seq"]), time=float(record["time"]), kind=str(record["kind"]), data=record["data"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return event if is_whole(event.kind, event.data) and 0 <= event.time < LARGEST else None


class EventLog:
    """The writing end of `events.jsonl`, for the holder of the run's lock only."""

    def __init__(self, path: Path) -> None:
        events, whole = read_events(path)
        self._next = events[-1].seq + 1 if events else 0
        self.ended = False  # this attempt has had its last event
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.ftruncate(self._file, whole)  # a torn last line
        sync(path.parent)

    def append(self, kind: Kind, data: Data) -> Event:
        """One event, one write: a reader sees all of a line or none. Errors: OSError if the disk is full."""
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
