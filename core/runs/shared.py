"""Share finished child runs and devices between runs."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from core.errors import RunError
from core.files import write_atomic
from core.project_list import shared_home
from core.runs.context import RunContext
from core.runs.lock import Lock
from core.runs.run import Manifest, Run
from core.runs.store import RunStore
from core.runs.worker import Compute, attempt

STEP_OF = "WINNOW_STEP_OF"  # folder of the experiment, for a process that executes one of its steps
_NEXT = ".next"
# A parent run loses its place in the queue for a device if this many seconds pass between two of its child runs.
TURN = 120.0

_devices_held: set[Path] = set()


def find_or_create(
    context: RunContext,
    kind: str,
    config: Mapping[str, object],
    inputs: Mapping[str, str],
    *,
    seed: int | None = None,
    versions: Mapping[str, str],
    key: str,
) -> Run:
    """Return the run with `key`: a finished one, else an unfinished one, else a new child run of `context.run`.

    If a finished run is reused, a note in `context` names it.
    """
    store = RunStore(context.run.home)
    with store.critical():
        if run := store.finished(key, config):
            context.emit("note", {"text": f"{kind}: reusing {run.id}", "reused": run.id})
            context.child(run)
            return run
        return store.unfinished(key, config) or store.create(
            kind, config, inputs, seed=seed, versions=versions, key=key, parent=context.run.id
        )


def run_or_reuse(
    context: RunContext,
    kind: str,
    config: Mapping[str, object],
    inputs: Mapping[str, str],
    function: Compute,
    *,
    seed: int | None = None,
    versions: Mapping[str, str],
    key: str,
) -> Run:
    """Return the run of `find_or_create`; if it is not finished, work on it first.

    This process does the work and relays its events to `context`. If another process works on the run already, this
    process waits. function: does the work of the run. Errors: any error of the child run.
    """
    if _devices_held:
        raise RunError(
            f"{context.run.id}: a child run within device_lock could wait for ever; start it before the lock."
        )
    run = find_or_create(context, kind, config, inputs, seed=seed, versions=versions, key=key)
    if run.state().state == "succeeded":
        return run
    context.child(run)
    with _waited_for([run.lock], context, run.id, name=run.id):
        run.cancel_file.unlink(missing_ok=True)
        attempt(run, function, parent=context)
    return run


@contextmanager
def device_lock(home: Path, devices: str | Sequence[str], context: RunContext) -> Iterator[str]:
    """Lock a free device for a block, and yield its name. devices: names to choose from, such as "cpu" or a GPU's lock.

    All projects in a home folder share the devices. If all devices are locked, wait until one is released. A run that
    needs a device again has priority over runs that began later. Do not acquire another lock within the block.
    """
    names = [devices] if isinstance(devices, str) else devices
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise RunError(f"device {name!r}: is not a name like cpu or gpu0.")
    paths = [shared_home(home) / "locks" / f"{name}.lock" for name in names]
    if _devices_held.intersection(paths):
        raise RunError(f"{context.run.id}: holds {names[0]} already; a second device_lock would wait for ever.")
    root = _started_by_user(context)
    turn = _Turn(run=str(root.path), began=root.state().started or time.time())
    with _waited_for([Lock(path) for path in paths], context, context.run.id, turn=turn) as path:
        _devices_held.add(path)
        try:
            yield path.stem
        finally:
            if context.is_child or root is not context.root:
                turn.keep(path)
            _devices_held.remove(path)


def _started_by_user(context: RunContext) -> Run:
    """Return the run that the user started: for an experiment's step in a process of its own, the experiment."""
    if experiment := os.environ.get(STEP_OF):
        with suppress(OSError, ValueError, TypeError, KeyError):  # another machine may not see the experiment's folder
            return Run(Path(experiment), Manifest.read(Path(experiment) / "manifest.json"))
    return context.root


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """Place of a run in the queue for a device. A child run that releases the device stores it beside the lock file.

    run: folder of the run that the user started. began: start of that run, in seconds since 1970.
    """

    run: str
    began: float

    def keep(self, lock: Path) -> None:
        """Store the place in the queue, so that this run gets the device again before runs that began later."""
        write_atomic(lock.with_suffix(_NEXT), json.dumps(asdict(self)).encode())

    def after(self, lock: Path, run: str) -> str:
        """Return the id of the run that has priority for the device; "" if `run` may take it now.

        A run loses its place if it does not request the device within `TURN` seconds, has ended, or waits for `run`.
        """
        file = lock.with_suffix(_NEXT)
        try:
            kept = _Turn(**json.loads(file.read_bytes()))
            fresh = time.time() - file.stat().st_mtime < TURN
            other = Run(Path(kept.run), Manifest.read(Path(kept.run) / "manifest.json"))
        except (OSError, ValueError, TypeError, KeyError):  # no place is stored, or its run was removed
            return ""
        if not fresh or kept.run == self.run or kept.began >= self.began or not other.lock.held():
            return ""
        return "" if other.state().waiting_for in (run, Path(self.run).name) else other.id


@contextmanager
def _waited_for(
    locks: Sequence[Lock],
    context: RunContext,
    run: str,
    *,
    name: str | None = None,
    turn: _Turn | None = None,
) -> Iterator[Path]:
    """Wait until one of `locks` is free, hold it during the block, and yield its file.

    run: id of the run that waits. name: id of the run to report as the one that is waited for; None to report the run
    that holds the lock. turn: place of this run in the queue for a device; None if there is no queue.
    """
    announced = None
    # One attempt on all locks takes 0.2 seconds in total; a cancellation is checked between two attempts.
    while True:
        places = {lock.path: turn.after(lock.path, run) if turn else "" for lock in locks}
        free = [lock for lock in locks if not places[lock.path]]
        if taken := next((lock for lock in free if lock.acquire(run, patience=0.2 / len(locks))), None):
            # The run that released the lock may have stored its place meanwhile.
            places[taken.path] = turn.after(taken.path, run) if turn else ""
            if not places[taken.path]:
                break
            taken.release()
        context.check()
        if not free:
            time.sleep(0.2)
        holder = locks[0].holder()
        waits_for = name or (holder.run if holder else next(filter(None, places.values()), None))
        if waits_for and waits_for not in (announced, run):  # another process of this run may hold the lock
            context.waiting(announced := waits_for)
    try:
        if announced:
            context.waiting(None)
        yield taken.path
    finally:
        taken.release()
