"""Things that runs share: finished children, and the device they train on."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.errors import RunError
from core.runs.context import RunContext
from core.runs.lock import Lock
from core.runs.run import Run
from core.runs.store import RunStore
from core.runs.worker import Recipe, attempt

_devices_held: set[Path] = set()


def run_or_reuse(
    context: RunContext,
    kind: str,
    config: Mapping[str, object],
    inputs: Mapping[str, str],
    function: Recipe,
    *,
    seed: int | None = None,
    versions: Mapping[str, str],
    key: str,
) -> Run:
    """A succeeded run with `key`: a finished one, else an unfinished one resumed here, else a new child.

    It runs in this process and its events are relayed to `context`. Where another process is at
    it, this one waits for that. Errors: whatever ends the child ends the caller.
    """
    if _devices_held:
        raise RunError(f"{context.run.id}: a child run inside device_lock could wait for ever; make it before.")
    store = RunStore(context.run.home)
    with store.critical():
        if run := store.finished(key):
            context.emit("note", {"text": f"{kind}: reusing {run.id}", "reused": run.id})
            context.child(run)
            return run
        run = store.unfinished(key) or store.create(
            kind, config, inputs, seed=seed, versions=versions, key=key, parent=context.run.id
        )
    context.child(run)
    with _waited_for(run.lock, context, run.id, name=run.id):
        run.cancel_file.unlink(missing_ok=True)
        attempt(run, function, parent=context)
    return run


@contextmanager
def device_lock(home: Path, device: str, context: RunContext) -> Iterator[None]:
    """Have `device` ("cpu", "gpu0") of this home alone; wait for the run that has it. Take it last."""
    if not re.fullmatch(r"[a-z]+\d*", device):
        raise RunError(f"device {device!r}: is not a name like cpu or gpu0.")
    path = home / "locks" / f"{device}.lock"
    if path in _devices_held:
        raise RunError(f"{context.run.id}: has {device} already; a second device_lock would wait for ever.")
    with _waited_for(Lock(path), context, context.run.id):
        _devices_held.add(path)
        try:
            yield
        finally:
            _devices_held.remove(path)


@contextmanager
def _waited_for(lock: Lock, context: RunContext, run: str, *, name: str | None = None) -> Iterator[None]:
    """Hold `lock` for `run`. name: what is waited for; None: the run that the lock's holder works on."""
    announced = None
    while not lock.acquire(run, patience=0.2):
        context.check()
        holder = lock.holder()
        if (waits_for := name or (holder.run if holder else None)) and waits_for != announced:
            context.waiting(announced := waits_for)
    try:
        if announced:
            context.waiting(None)
        yield
    finally:
        lock.release()
