"""The `Reporter` of a run: it writes events to the run's log and checks for cancellation."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from core.errors import Cancelled
from core.reporter import Checkpoint, Reporter
from core.runs.events import Data, Event, EventKind, EventLog
from core.runs.run import Run

PROGRESS_SECONDS = 0.5  # minimum number of seconds between two progress events

CHECK_SECONDS = 0.2  # minimum number of seconds between two checks for a cancellation

# A stage moves the progress bar only through this share of the rest of its part, so that later stages can move it too.
_STAGE = 0.8

Listener = Callable[[Event], None]


class RunContext(Reporter):
    """The `Reporter` of a run, for the process that holds the run's lock. Several threads may use it.

    listener: function that is called with each event, so that a command can show progress. parent: context of the run
    that needs this run. It receives the events of this run. If the parent is cancelled, this run is cancelled too.
    """

    def __init__(
        self, run: Run, log: EventLog, *, listener: Listener | None = None, parent: "RunContext | None" = None
    ) -> None:
        self.run = run
        self.config = dict(run.manifest.config)
        self.is_child = parent is not None
        self._terminated = False
        self._log, self._listener, self._parent = log, listener, parent
        self._pending: Data | None = None
        self._guard = threading.RLock()
        self._whole = Whole()
        self._device = ""
        self._wrote_progress = self._checked = float("-inf")

    @property
    def root(self) -> Run:
        """The run that the user started: this run, or the topmost parent run if this is a child run."""
        return self._parent.root if self._parent else self.run

    @property
    def terminated(self) -> bool:
        """True if this run or its parent run received SIGTERM."""
        return self._terminated or (self._parent is not None and self._parent.terminated)

    def terminate(self) -> None:
        """Handle SIGTERM: the next `check()` of this run and of its parent run raises Cancelled."""
        self._terminated = True
        if self._parent:
            self._parent.terminate()

    def stage(self, name: str) -> None:
        self._whole.begin()
        self.emit("stage", {"name": name})

    def part(
        self,
        number: int,
        of: int,
        name: str,
        *,
        left: float | None = None,
        after: float | None = None,
        shares: tuple[float, float] | None = None,
    ) -> None:
        """Report that part `number`, counted from 1, begins. Parts of child runs are not reported to the parent run.

        of: number of parts. left: estimated seconds of this part and all later parts; None if unknown. after: estimated
        seconds of the later parts alone; None if unknown. shares: shares of the run that are done before and after this
        part, 0 to 1; None if all parts take equally long.
        """
        self._whole.part(*(shares or ((number - 1) / of, number / of)))
        whole = self._whole.done
        self.emit("part", {"number": number, "of": of, "name": name, "left": left, "after": after, "whole": whole})

    def progress(self, done: int, total: int | None, unit: str) -> None:
        """Report progress. At most two progress events are written per second; the last one is never dropped."""
        if total:
            self._whole.move(_STAGE * min(done / total, 1.0))
        self._report(int(done), None if total is None else int(total), unit)

    def _report(self, done: int, total: int | None, unit: str) -> None:
        with self._guard:
            self._pending = {"done": done, "total": total, "unit": unit, "whole": self._whole.done}
            self._write_progress_if_due()

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self.emit("metric", {"name": name, "value": float(value), "step": step})

    def note(self, text: str, *, passing: bool = False) -> None:
        """Report a sentence to the user. passing: True for a note that is dropped when the run is resumed."""
        self.emit("note", {"text": text, "passing": True} if passing else {"text": text})

    def child(self, run: Run) -> None:
        """Report that this run needs the result of `run`. Another run may have started `run`."""
        self.emit("child", {"run": run.id})

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Report that a checkpoint in the folder `run.checkpoints` is complete."""
        self.emit("checkpoint", {"name": checkpoint["name"], "step": checkpoint["step"]})

    def artifact(self, name: str, path: Path) -> None:
        """Report that an output file or folder of the run is complete. Users or later runs may read it."""
        self.emit("artifact", {"name": name, "path": str(path.relative_to(self.run.path))})

    def check(self) -> None:
        now = time.monotonic()
        if now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        if self.terminated or self.run.cancel_file.exists():
            raise Cancelled(f"run {self.run.id}: was stopped on request; resume it to continue.")
        if self._parent:
            self._parent.check()
        self._write_progress_if_due()

    def waiting(self, run_id: str | None) -> None:
        """Report that this run waits for the run `run_id`. None: this run no longer waits."""
        text = f"waiting for {run_id}" if run_id else "no longer waiting"
        self.emit("note", {"text": text, "waiting_for": run_id})

    def runs_on(self, device: str, machine: str) -> None:
        """Report the device that the run uses from now on.

        device: description in words. machine: name of the device, as `core.cards.machine` returns it.
        """
        if device != self._device:
            self._device = device
            self.emit("device", {"text": device, "machine": machine})

    def emit(self, kind: EventKind, data: Data) -> None:
        """Write any pending progress to the log, then append an event. Errors: OSError if the disk is full."""
        with self._guard:
            if self._pending is not None and kind != "progress":
                pending, self._pending = self._pending, None
                self.emit("progress", pending)
            event = self._log.append(kind, data)
            if self._listener:
                self._listener(event)
        if self._parent:
            self._parent.relay(self.run, event)

    def relay(self, child: Run, event: Event) -> None:
        """Report an event of a child run as an event of this run, with the name of the child's kind added."""
        kind, data = child.manifest.kind, event.data
        match event.kind:
            case "started":
                self._whole.begin()
            case "stage":
                self.emit("stage", {"name": f"{kind}: {data['name']}"})
            case "progress":
                self._whole.move(data.get("whole") or 0.0)
                self._report(data["done"], data["total"], data["unit"])
            case "metric":
                self.metric(f"{kind}/{data['name']}", data["value"], data["step"])
            case "note" if "waiting_for" in data:
                self.waiting(data["waiting_for"])
            case "device":
                self.runs_on(data["text"], data["machine"])
            case "note":
                self.note(f"{kind}: {data['text']}", passing=data.get("passing", False))

    def _write_progress_if_due(self) -> None:
        with self._guard:
            now = time.monotonic()
            if self._pending is not None and now - self._wrote_progress >= PROGRESS_SECONDS:
                pending, self._pending = self._pending, None
                self._wrote_progress = now
                self.emit("progress", pending)


class Whole:
    """Estimate the finished share of a run. done: this share, 0 to 1; it never falls.

    Each part of the run is announced with the shares at its start and its end; the estimate is only as exact as these.
    A child run moves `done` up to the end of its parent's part. A stage moves `done` only through `_STAGE` of the rest
    of its part, because more stages may follow.
    """

    def __init__(self) -> None:
        self.done = self._from = 0.0
        self._upto = 1.0

    def part(self, before: float, after: float) -> None:
        """Begin a part. before, after: finished shares of the run before and after this part."""
        self.done = max(self.done, round(before, 4))
        self._upto = max(self.done, after)
        self.begin()

    def begin(self) -> None:
        """Begin a stage or a child run at the current share."""
        self._from = self.done

    def move(self, share: float) -> None:
        """Update `done`. share: finished share of the current stage or child run, 0 to 1."""
        self.done = max(self.done, round(self._from + (self._upto - self._from) * share, 4))


class Parts:
    """Report the parts of a run one by one. The seconds left are estimated from the parts that have ended.

    sizes: amount of work of each part, in any unit. judged: number of parts that must end in this attempt before the
    estimate uses their durations. expected: estimated seconds of all parts, used until then; None if unknown.
    """

    def __init__(
        self, context: RunContext, sizes: Sequence[float], *, judged: int = 1, expected: float | None = None
    ) -> None:
        self._context, self._sizes, self._judged = context, sizes, judged
        self._pace = expected / sum(sizes) if expected else None  # seconds per unit of size
        self._passed = self._seconds = 0.0
        self._ended = 0
        self._begun: tuple[int, float] | None = None

    def next(self, i: int, name: str) -> None:
        """Report that part `i`, counted from 0, begins and the previous one has ended."""
        now = time.monotonic()
        if self._begun:
            before, since = self._begun
            self._ended += 1
            self._passed += self._sizes[before]
            self._seconds += now - since
        self._begun = (i, now)
        after = left = None
        if self._ended >= self._judged and self._passed:
            self._pace = self._seconds / self._passed
        if self._pace:
            after = self._pace * sum(self._sizes[i + 1 :])
            left = after + self._pace * self._sizes[i]
        if len(self._sizes) > 1:
            done, whole = sum(self._sizes[:i]), sum(self._sizes)
            shares = (done / whole, (done + self._sizes[i]) / whole) if whole else None
            self._context.part(i + 1, len(self._sizes), name, left=left, after=after, shares=shares)
