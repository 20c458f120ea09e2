"""A run: its manifest, folder, state and result."""

import hashlib
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from core.errors import RunError
from core.files import changed, json_bytes, read_json
from core.runs.events import EVENTS, Event, RunState, follow, read_events, settle, step
from core.runs.lock import Lock, Worker, aside

RESULT = "result.json"
# Empty file in the folder of an imported run. It is removed when a user of this machine accepts the run's options.
BROUGHT = "brought"

LAUNCH_PATIENCE = 10.0  # seconds within which a worker should start after the manifest was written


_ELSEWHERE = re.compile(r"/.*?/runs/(?=(\d{8}-\d{6}-[a-z][a-z0-9-]*-[0-9a-f]{4})/)")
Result = dict[str, Any]  # result of the run's function, as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Options and inputs of a run, from its file manifest.json. The file is written once and never changed.

    config: options as JSON. inputs: {option: fingerprint of the corpus}. created: time of creation, ISO 8601, UTC.
    parent: id of the run that started this one; None if a user started it. key: hash that is equal for runs that must
    give the same result.
    """

    run_id: str
    kind: str
    config: Mapping[str, Any]
    inputs: Mapping[str, str]
    seed: int | None
    versions: Mapping[str, str]
    created: str
    parent: str | None
    key: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a manifest. Unknown keys, which a newer version may add, are ignored.

        Errors: OSError, ValueError or TypeError if there is no complete manifest at `path`.
        """
        try:
            document = here(read_json(path), path.parents[2])
        except RecursionError as error:
            raise ValueError("is nested too deeply") from error
        tables = ("config", "inputs", "versions")
        if not isinstance(document, dict) or not all(isinstance(document.get(name), dict) for name in tables):
            raise TypeError("is not a manifest")
        if not all(isinstance(mark, str) for mark in document["inputs"].values()):
            raise TypeError("has an input that is not a fingerprint")
        if not all(isinstance(document.get(name), str) for name in ("run_id", "kind", "created", "key")):
            raise TypeError("lacks an id, kind, time or key")
        if not isinstance(document.get("parent"), str | None):
            raise TypeError("has a parent that is not a run")
        try:
            datetime.fromisoformat(document["created"]).astimezone()
        except OverflowError as error:
            raise ValueError("has a time that the system cannot convert") from error
        return cls(**{column.name: document[column.name] for column in fields(cls) if column.name in document})


def here(value: Any, home: Path) -> Any:
    """Return a JSON value with paths to runs in other folders replaced by paths to the same runs in `home`.

    home: folder of the project. A path is kept if `home` does not have the run. Paths to other folders occur if a
    project was moved, or imported from another machine.
    """
    if isinstance(value, dict):
        return {name: here(part, home) for name, part in value.items()}
    if isinstance(value, list):
        return [here(part, home) for part in value]
    if isinstance(value, str) and value[:1] == "/" and (there := _ELSEWHERE.match(value)):
        runs = home / "runs"
        return f"{runs}/{value[there.end() :]}" if (runs / there[1]).is_dir() else value
    return value


def relative_to_home(value: Any, home: Path) -> Any:
    """Return a JSON value in which paths to runs of a project are relative, so that its folder `home` can be moved."""
    if isinstance(value, dict):
        return {name: relative_to_home(part, home) for name, part in value.items()}
    if isinstance(value, list):
        return [relative_to_home(part, home) for part in value]
    return value.removeprefix(f"{home}/") if isinstance(value, str) and value.startswith(f"{home}/runs/") else value


def run_key(
    kind: str, config: Mapping[str, object], inputs: Mapping[str, str], *, seed: int | None, code_version: str
) -> str:
    """Return the sha256 (hex) of everything that a run's result depends on."""
    parts = {"kind": kind, "config": config, "inputs": inputs, "seed": seed, "code": code_version}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def holders(runs: Iterable["Run"]) -> str:
    """Describe the processes that hold these runs, in brackets for an error message; "" if none is known."""
    return aside("; ".join(f"{run.id}: {holder}" for run in runs if (holder := run.held_by())))


class Run:
    """A run and the files in its folder. Any process or thread may read these files at any time."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self.id = manifest.run_id
        self.home = path.parents[1]
        self.chunks, self.checkpoints, self.artifacts = path / "chunks", path / "checkpoints", path / "artifacts"
        self.events_file, self.result_file = path / EVENTS, path / RESULT
        self.log_file, self.launched_file = path / "worker.log", path / "launched"
        self.cancel_file = path / "cancel"
        self.rank_error_file = path / "rank-error"  # a sentence on why another process of torchrun failed
        self.brought_file = path / BROUGHT
        self.lock = Lock(path / "lock")
        self._state, self._offset, self._guard = RunState(), 0, threading.Lock()
        self._spoilt = False

    def state(self) -> RunState:
        """Return the current state. Only events that were appended since the last call are read.

        The order matters: first check for a live worker, then read the log. If the worker ends in between, its last
        event is already in the log, so the run is not reported as interrupted.
        """
        launching = self.coming() is not None
        held = self.lock.held()
        state = self._read_on()
        if state.attempts == 0 and not self.launched_file.exists():
            launching = abs(self._age()) < LAUNCH_PATIENCE  # `abs`, because the clock may have been set back
        if state.state == "running" and not held:
            held = self.lock.held()  # an attempt may have begun between the first check and the read
        return settle(state, locked=held, cancel_requested=self.cancel_file.exists(), launching=launching)

    def spoilt(self) -> bool:
        """Return True if a line of the event log cannot be read. The state is then computed from the other lines."""
        self._read_on()
        return self._spoilt

    def events(self, after: int = 0) -> tuple[list[Event], int]:
        """Return the events after byte `after` of the log, and the number of the byte at which to continue."""
        return read_events(self.events_file, after)

    def result(self) -> Result:
        """Return the run's result as JSON. Errors: RunError if it has not succeeded, or the result is damaged."""
        state = self._read_on()
        if state.state != "succeeded":
            raise RunError(
                f"run {self.id}: has no result, because it is {self.state().state}; resume it, or wait until it ends."
            )
        try:
            payload = json_bytes(self.result_file)
            result: Result = here(json.loads(payload), self.home)
        except (OSError, ValueError, RecursionError) as error:
            problem = f"run {self.id}: its {self.result_file.name} cannot be read; remove the run and start it again."
            raise RunError(problem) from error
        if state.result not in (None, (len(payload), zlib.crc32(payload))):
            raise changed(self.result_file, self.id)
        return result

    def cancel(self) -> bool:
        """Ask the run to stop and return at once; False if no process works on it. See `launch.cancel`."""
        if not self.state().active:
            return False
        with suppress(FileExistsError):  # a second cancellation must not restart the grace period
            self.cancel_file.touch(exist_ok=False)
        return True

    def coming(self) -> Worker | None:
        """Return the live process that was started for the run but has not begun to work; None if there is none."""
        worker = Worker.read(self.launched_file)
        if worker is None or not worker.alive():
            return None
        state = self._read_on()
        return None if state.worker and worker.same(*state.worker) else worker

    def worker(self) -> Worker | None:
        """Return the live process that works on the run or is about to, or None."""
        return self.lock.holder() if self.lock.held() else self.coming()

    def held_by(self) -> str:
        """Describe the process that works on the run or is about to; "" if there is none."""
        coming = self.coming()
        return self.lock.held_by() or (coming.in_words if coming else "")

    @property
    def began(self) -> datetime:
        """Time at which the run was created, UTC."""
        return datetime.fromisoformat(self.manifest.created)

    def log_tail(self, n: int = 30) -> list[str]:
        """Return the last `n` lines of worker.log, from at most its last 64 KiB."""
        if not self.log_file.exists():
            return []
        with self.log_file.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 65_536))
            return file.read().decode(errors="replace").splitlines()[-n:]

    def _read_on(self) -> RunState:
        with self._guard:
            self._offset = follow(self.events_file, self._offset, self._take)
            return self._state

    def _take(self, event: Event | None) -> None:
        if event:
            self._state = step(self._state, event)
        self._spoilt = self._spoilt or event is None

    def _age(self) -> float:
        return time.time() - self.began.timestamp()
