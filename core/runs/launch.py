"""Starting and stopping workers. A worker is named by its command line, so nothing of it is imported here."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM

from core.errors import RunBusy, RunError
from core.runs.events import RunState
from core.runs.lock import Worker, aside
from core.runs.run import Run
from core.runs.where import LOCAL, ON, Where

GRACE = 12.0  # seconds from the wish to cancel to SIGKILL: a device is free within 15
POLL = 0.25  # seconds between two looks at a run that was asked to end
POLITE = 0.4  # share of the grace that belongs to `check()` alone; SIGTERM follows
_ROOT = Path(__file__).resolve().parents[2]


def start(run: Run, *, module: str = "core.work") -> None:
    """Spawn `python -m <module> work <run> --home <home>`, which outlives this process; also resumes.

    Errors: RunBusy if somebody works on the run, RunError if it has succeeded or no process can be spawned.
    """
    state = run.state().state
    if state == "succeeded":
        raise RunError(f"run {run.id}: has succeeded already; read its result or start a new run.")
    # The lock keeps a second starter out, and waits for a worker that has said its last word but not yet left.
    if state == "running" or not run.lock.acquire():
        raise RunBusy(f"run {run.id}: is being worked on already{aside(run.held_by())}; wait for it or cancel it.")
    try:
        if coming := run.coming():
            raise RunBusy(f"run {run.id}: is about to begin ({coming.in_words}); wait for it or cancel it.")
        run.cancel_file.unlink(missing_ok=True)
        _spawn(run, module)
    finally:
        run.lock.release()


def helper(
    run: Run, *, environment: Mapping[str, str] = os.environ, tied: bool = False, module: str = "core.work"
) -> subprocess.Popen[bytes]:
    """A process that helps with a run until nobody works on it any more; in the session of who calls.

    It makes its chunks itself: workers of an engine may wait for cards that others have who wait for it. tied: it is
    killed with this process.
    """
    command = [sys.executable, "-m", module, "help", run.id, "--home", str(run.home), *(["--tied"] if tied else [])]
    stdin = subprocess.PIPE if tied else subprocess.DEVNULL
    with run.log_file.open("ab") as log:
        return subprocess.Popen(command, stdin=stdin, stdout=log, stderr=log, cwd=_ROOT, env={**environment, ON: LOCAL})


def _spawn(run: Run, module: str) -> None:
    command = [sys.executable, "-m", module, "work", run.id, "--home", str(run.home)]
    environment = {**os.environ, **Where.read(run.path).environment, "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
    try:
        with run.log_file.open("ab") as log:  # never a pipe: nobody may be left to read it
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
    threading.Thread(target=process.wait, name=f"reap {run.id}", daemon=True).start()  # no zombies in a long-lived app
    if worker:  # whole for its readers; nothing is synced, for after a power cut there is no worker
        temporary = run.path / ".launched.tmp"
        temporary.write_bytes(worker.to_json())
        temporary.replace(run.launched_file)


def cancel(run: Run, grace: float = GRACE) -> bool:
    """Ask for an end and return at once; False if nobody works on the run. A thread sees to it that it comes."""
    requested = run.cancel()
    if requested:
        see_to_end(run, grace)
    return requested


def see_to_end(run: Run, grace: float = GRACE) -> None:
    """Follow a run that was asked to end until it has, in a thread of this process, and help it along."""
    threading.Thread(target=_follow, args=(run, grace), name=f"end {run.id}", daemon=True).start()


def _follow(run: Run, grace: float) -> None:
    deadline = time.monotonic() + grace + 5
    with suppress(OSError):  # the run was removed meanwhile
        while run.cancel_file.exists() and run.state().active and time.monotonic() < deadline:
            escalate_if_due(run, grace)
            time.sleep(POLL)


def escalate_if_due(run: Run, grace: float = GRACE) -> None:
    """Help an asked-for end along: SIGTERM after 40% of `grace` seconds, SIGKILL after all of it.

    Signals only the worker's own process, told by pid
    and create time, and what it spawned.
    """
    try:
        waited = time.time() - run.cancel_file.stat().st_mtime
        if waited < 0:  # the clock was set back: the grace begins anew
            os.utime(run.cancel_file)
    except FileNotFoundError:
        return
    if waited < grace * POLITE:
        return
    if worker := run.worker():
        worker.signal(SIGKILL if waited >= grace else SIGTERM)


def stop(run: Run, grace: float = GRACE) -> RunState:
    """Cancel and wait for the end, which comes soon after `grace` seconds at the latest."""
    deadline = time.monotonic() + grace + 5
    run.cancel()
    while (state := run.state()).active and time.monotonic() < deadline:
        escalate_if_due(run, grace)
        time.sleep(0.05)
    return state
