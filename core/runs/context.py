"""The `Reporter` that a recipe is handed: it writes to the run's log and sees its cancellations."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from core.errors import Cancelled
from core.reporter import Checkpoint, Reporter
from core.runs.data import Data
from core.runs.events import Event, EventLog, Kind
from core.runs.run import Run

PROGRESS_SECONDS = 0.5  # seconds
CHECK_SECONDS = 0.2

Listener = Callable[[Event], None]


class RunContext(Reporter):
    """A `Reporter` bound to a run, for the holder of its lock; several threads of it may report.

    listener: is called with every event as it is written, for a command line in the foreground.
    parent: the context of the run that needs this one; events here are relayed to it, and its end is ours.
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
        self._device = ""
        self._wrote_progress = self._checked = float("-inf")

    @property
    def root(self) -> Run:
        """The run that somebody asked for: this one, or whose child it is."""
        return self._parent.root if self._parent else self.run

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM came, here or to the parent."""
        return self._terminated or (self._parent is not None and self._parent.terminated)

    @property
    def unwanted(self) -> bool:
        """Whether somebody asked for the end of the run, or of one that needs it, and not of this process alone."""
        return self.run.cancel_file.exists() or (self._parent is not None and self._parent.unwanted)

    def terminate(self) -> None:
        """Act on SIGTERM: the next `check()` raises Cancelled, here and in the parent."""
        self._terminated = True
        if self._parent:
            self._parent.terminate()

    def stage(self, name: str) -> None:
        self.emit("stage", {"name": name})

    def part(self, number: int, of: int, name: str, *, left: float | None = None, after: float | None = None) -> None:
        """Part `number` of `of` of the whole run begins; a child's parts are its own affair.

        left: seconds of it and of all behind it; after: of those alone; None: not known.
        """
        self.emit("part", {"number": number, "of": of, "name": name, "left": left, "after": after})

    def progress(self, done: int, total: int | None, unit: str) -> None:
        """Thinned to two a second; the last one before any other event is always written."""
        with self._guard:
            self._pending = {"done": int(done), "total": None if total is None else int(total), "unit": unit}
            self._write_progress_if_due()

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self.emit("metric", {"name": name, "value": float(value), "step": step})

    def note(self, text: str, *, passing: bool = False) -> None:
        """passing: it holds until the run is resumed."""
        self.emit("note", {"text": text, "passing": True} if passing else {"text": text})

    def child(self, run: Run) -> None:
        """This run needs what `run` makes or has made; whose child it is by its manifest says only who began it."""
        self.emit("child", {"run": run.id})

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """A complete checkpoint now lies in `run.checkpoints`."""
        self.emit("checkpoint", {"name": checkpoint["name"], "step": checkpoint["step"]})

    def artifact(self, name: str, path: Path) -> None:
        """A complete file or folder within the run, for people or later runs."""
        self.emit("artifact", {"name": name, "path": str(path.relative_to(self.run.path))})

    def check(self) -> None:
        now = time.monotonic()
        if now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        if self.terminated or self.run.cancel_file.exists():
            raise Cancelled(f"run {self.run.id}: was stopped on request; resume it to go on where it was.")
        if self._parent:
            self._parent.check()
        self._write_progress_if_due()

    def waiting(self, run_id: str | None) -> None:
        """Note that this run waits for another, or (None) that it no longer does."""
        text = f"waiting for {run_id}" if run_id else "the wait is over"
        self.emit("note", {"text": text, "waiting_for": run_id})

    def runs_on(self, device: str, machine: str) -> None:
        """Say that the work is done on `device` from now on, in words; machine: its name (see `core.cards.machine`)."""
        if device != self._device:
            self._device = device
            self.emit("device", {"text": device, "machine": machine})

    def emit(self, kind: Kind, data: Data) -> None:
        """Append an event, after the progress it may have held back. Errors: OSError if the disk is full."""
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
        """Pass on what happens in a child run, under its kind's name."""
        kind, data = child.manifest.kind, event.data
        match event.kind:
            case "stage":
                self.stage(f"{kind}: {data['name']}")
            case "progress":
                self.progress(data["done"], data["total"], data["unit"])
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
