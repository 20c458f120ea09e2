"""Start and stop worker processes. A worker is started by a command line, so its code is not imported here."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM

from core.errors import Cancelled, ResourceError, RunBusy, RunError
from core.runs.context import RunContext
from core.runs.events import RunState
from core.runs.lock import Worker, aside
from core.runs.run import Run
from core.runs.where import Where

GRACE = 12.0  # seconds from the cancellation to SIGKILL, so that the device is free within 15 seconds

POLL = 0.25  # seconds between two checks of a cancelled run

POLITE = 0.4  # share of the grace period after which SIGTERM is sent; most runs stop earlier, at their next `check()`
CHECKPOINT = 5.0  # seconds that a step of a cancelled experiment has to write a checkpoint

LOSSES = 4  # an experiment fails after so many lost processes of one step
_ROOT = Path(__file__).resolve().parents[2]


def start(run: Run, *, module: str = "core.work") -> None:
    """Start or resume a run in a new process, which outlives this one: `python -m <module> work <run> --home <home>`.

    Errors: RunBusy if the run is active, RunError if it has succeeded or no process can be started.
    """
    state = run.state().state
    if state == "succeeded":
        raise RunError(f"run {run.id}: has finished already; read its result or start a new run.")
    # The lock keeps other processes from starting the run. A worker that has finished releases it when it exits.
    if state == "running" or not run.lock.acquire():
        raise RunBusy(f"run {run.id}: is running already{aside(run.held_by())}; wait for it or cancel it.")
    try:
        if coming := run.coming():
            raise RunBusy(f"run {run.id}: is about to begin ({coming.in_words}); wait for it or cancel it.")
        run.cancel_file.unlink(missing_ok=True)
        _spawn(run, module)
    finally:
        run.lock.release()


def tied(run: Run, environment: Mapping[str, str], *, module: str = "core.work") -> subprocess.Popen[bytes]:
    """Start a worker in the session of this process, and return it. The worker ends when this process ends."""
    command = [sys.executable, "-m", module, "work", run.id, "--home", str(run.home), "--tied"]
    with run.log_file.open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=_ROOT, env=dict(environment)
        )


def succeeded(run: Run, status: int, losses: Counter[str], where: str, context: RunContext) -> bool:
    """Return True if a run has succeeded after its process ended; False if it must be started again.

    status: exit status of the process; negative if it was killed or lost. losses: {run: number of lost processes}; this
    function updates it. where: name of the machine.
    Errors: RunError if the run failed; Cancelled if a user stopped it; ResourceError after `LOSSES` lost processes.
    """
    state = run.state()
    if state.state == "succeeded":
        return True
    if status >= 0 and state.state == "failed":
        raise RunError(state.error or f"run {run.id}: has failed.")
    if status >= 0 and state.state == "cancelled":
        raise Cancelled(f"run {run.id}: was stopped on request; resume it to continue.")
    if status < 0 or not state.active:  # otherwise another process works on the run
        losses[run.id] += 1
        if losses[run.id] >= LOSSES:
            raise ResourceError(
                f"on: {LOSSES} processes of run {run.id} ended without a result, the last on {where}; see its "
                "worker.log, and use smaller batches or --on local."
            )
        context.note(f"The process of {run.id} on {where} is lost; the run starts again.", passing=True)
    return False


def _spawn(run: Run, module: str) -> None:
    command = [sys.executable, "-m", module, "work", run.id, "--home", str(run.home)]
    environment = {**os.environ, **Where.read(run.path).environment, "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
    try:
        with run.log_file.open("ab") as log:  # not a pipe, because the process that reads it may exit before the worker
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=_ROOT,
                env=environment,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(
            f"run {run.id}: no worker can be started ({error}); free memory or disk and resume it."
        ) from error
    worker = Worker.of(process.pid, run.id)
    # Collect the worker when it exits, so that a long-lived app has no zombie processes.
    threading.Thread(target=process.wait, name=f"reap {run.id}", daemon=True).start()
    # Rename the file, so that readers see a complete one. Do not sync it, because no worker survives a power cut.
    if worker:
        temporary = run.path / ".launched.tmp"
        temporary.write_bytes(worker.to_json())
        temporary.replace(run.launched_file)


def cancel(run: Run, grace: float = GRACE) -> bool:
    """Cancel a run without waiting for it, and return True; False if it is not active.

    A thread kills the worker if it does not stop within `grace` seconds.
    """
    requested = run.cancel()
    if requested:
        see_to_end(run, grace)
    return requested


def see_to_end(run: Run, grace: float = GRACE) -> None:
    """Watch a cancelled run in a thread of this process, and signal its worker until it stops."""
    threading.Thread(target=_follow, args=(run, grace), name=f"end {run.id}", daemon=True).start()


def _follow(run: Run, grace: float) -> None:
    deadline = time.monotonic() + grace + 5
    with suppress(OSError):  # the run was removed meanwhile
        while run.cancel_file.exists() and run.state().active and time.monotonic() < deadline:
            escalate_if_due(run, grace)
            time.sleep(POLL)


def escalate_if_due(run: Run, grace: float = GRACE) -> None:
    """Send SIGTERM to a cancelled run after 40% of `grace` seconds, and SIGKILL after `grace` seconds.

    Only the worker, identified by pid and create time, and its child processes are signalled.
    """
    try:
        waited = time.time() - run.cancel_file.stat().st_mtime
        if waited < 0:  # the clock was set back: restart the grace period
            os.utime(run.cancel_file)
    except FileNotFoundError:
        return
    if waited < grace * POLITE:
        return
    if worker := run.worker():
        worker.signal(SIGKILL if waited >= grace else SIGTERM)


def stop(run: Run, grace: float = GRACE) -> RunState:
    """Cancel a run and return its state. Wait until the run ends, but at most `grace` + 5 seconds."""
    deadline = time.monotonic() + grace + 5
    run.cancel()
    while (state := run.state()).active and time.monotonic() < deadline:
        escalate_if_due(run, grace)
        time.sleep(0.05)
    return state
