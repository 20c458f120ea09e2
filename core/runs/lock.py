"""Lock files, and the processes that hold them. The operating system releases a lock when its process dies.

A lock (`flock`) shows that a live process holds the file. The pid and create time in the file identify this process.
The create time is needed because another process may get the same pid later.
"""

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from core.audit_log import account
from core.errors import ResourceError, RunBusy
from core.files import read_json
from core.runs.events import LARGEST
from core.shown import shown

PATIENCE = 1.0  # seconds to wait for a lock; a process that only checks the lock holds it for microseconds

_descriptors: set[int] = set()


def _let_go_after_fork() -> None:
    """Close the lock files in a forked process, such as a data loader, so that only the parent holds the locks."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


os.register_at_fork(after_in_child=_let_go_after_fork)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process, identified by pid and create time.

    created: time at which the process was created, in seconds since 1970. run: id of the run that it works on.
    account, host: names of its account and machine. A process on another machine can be neither checked nor signalled.
    """

    pid: int
    created: float
    run: str = ""
    account: str = ""
    host: str = ""

    @classmethod
    def of(cls, pid: int, run: str = "") -> "Worker | None":
        """Return the process with this pid; None if there is none. run: id of the run that it works on."""
        try:
            created = psutil.Process(pid).create_time()
        except psutil.Error:
            return None
        return cls(pid=pid, created=created, run=run, account=account(), host=socket.gethostname())

    @property
    def elsewhere(self) -> bool:
        """True if the process runs on another machine that uses the same home folder."""
        return self.host not in ("", socket.gethostname())

    @property
    def in_words(self) -> str:
        """Describe the process: "anna, process 4711 on ward3, since 2026-11-23 14:02"."""
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.created))
        words = f"{shown(self.account) or 'somebody'}, process {self.pid}"
        return f"{words}{f' on {shown(self.host)}' if self.host else ''}, since {since}"

    def alive(self) -> bool:
        """Return True if the process that is described here still runs on this machine."""
        return self._process() is not None

    def same(self, pid: int, created: float) -> bool:
        """Return True if pid and create time belong to this process.

        Create times may differ by up to 2 seconds. They depend on the boot time, which clock corrections change.
        """
        return self.pid == pid and abs(self.created - created) < 2

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, but never to the calling process.

        If the process leads a session, signal its process group; else signal the processes one by one.
        """
        process = self._process()
        if process is None or self.pid == os.getpid():
            return
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(self.pid) == self.pid:
                os.killpg(self.pid, number)
                return
            for member in [*process.children(recursive=True), process]:
                with suppress(psutil.Error):
                    member.send_signal(number)

    def _process(self) -> psutil.Process | None:
        if self.elsewhere:  # a process with this pid on this machine is a different process
            return None
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            # A zombie process has ended, but its parent process has not collected it yet.
            if self.same(self.pid, process.create_time()) and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, path: Path) -> "Worker | None":
        """Read a worker from a file; None if there is none or it is damaged."""
        try:
            worker = cls(**read_json(path))
        except (OSError, ValueError, TypeError):
            return None
        whole = isinstance(worker.pid, int) and worker.pid > 0 and isinstance(worker.created, int | float)
        texts = all(isinstance(text, str) for text in (worker.run, worker.account, worker.host))
        return worker if whole and texts and 0 <= worker.created < LARGEST else None


class Lock:
    """A lock file. Two `Lock` objects for one file exclude each other even within one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, run: str | None = None, *, patience: float = PATIENCE) -> bool:
        """Take the lock within `patience` seconds, or return False.

        run: id of the run that this process works on. Without an id, the process is not a worker and is never
        signalled. Errors: ResourceError if the file cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if not _flock(descriptor, patience):
                    os.close(descriptor)
                    return False
                os.ftruncate(descriptor, 0)
                if me := Worker.of(os.getpid(), run or ""):
                    os.pwrite(descriptor, me.to_json(), 0)
            except BaseException:
                os.close(descriptor)
                raise
        except OSError as error:
            problem = f"cannot be locked ({error.strerror}); free disk space or check its permissions"
            raise ResourceError(f"{self.path}: {problem}.") from error
        _descriptors.add(descriptor)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lock. Also empty its file, so that it does not name a process that no longer holds the lock."""
        if self._descriptor in _descriptors:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            _descriptors.remove(self._descriptor)
        self._descriptor = None

    def holder(self) -> Worker | None:
        """Return the worker that holds the lock.

        None if the lock is free, or if a process holds it only to start or remove a run.
        """
        worker = self._name()
        return worker if worker and worker.run else None

    def held_by(self) -> str:
        """Describe the process that holds the lock; "" if the lock is free or the process is unknown."""
        worker = self._name()
        return worker.in_words if worker else ""

    def _name(self) -> Worker | None:
        """Return the live process that holds the lock, or None. A process on another machine counts as live."""
        worker = Worker.read(self.path) if self.held() else None
        return worker if worker and (worker.elsewhere or worker.alive()) else None

    def held(self) -> bool:
        """Return True if a process holds the lock."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            # Use a shared lock, so that two simultaneous checks do not mistake each other for a holder.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def aside(words: str) -> str:
    """Return `words` in brackets after a blank: " (words)". Return "" if `words` is empty."""
    return f" ({words})" if words else ""


@contextmanager
def locked(path: Path, *, patience: float) -> Iterator[None]:
    """Hold a lock for a short critical section. Errors: RunBusy after `patience` seconds."""
    lock = Lock(path)
    if not lock.acquire(patience=patience):
        raise RunBusy(
            f"{path}: stayed locked for {patience:g} seconds{aside(lock.held_by())}; stop the process that holds it "
            "if it hangs, and try again."
        )
    try:
        yield
    finally:
        lock.release()


def _flock(descriptor: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            # Poll the lock, because `flock` has no timeout.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True
