"""Locks that any death frees, and who holds them.

An OS lock (`flock`) says that somebody is alive; the pid and create time inside the file say who.
Neither is believed without the other: a pid alone may long belong to somebody else.
"""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from core.errors import ResourceError, RunBusy

PATIENCE = 1.0  # seconds; whoever only probes a lock holds it for microseconds

_descriptors: set[int] = set()


def _let_go_after_fork() -> None:
    """A forked helper (a data loader) must not keep its dead parent's lock."""
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()


os.register_at_fork(after_in_child=_let_go_after_fork)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process, told from any later one with its pid. created: seconds since 1970; run: id of the run it works on."""

    pid: int
    created: float
    run: str = ""

    @classmethod
    def of(cls, pid: int, run: str = "") -> "Worker | None":
        """The process with this pid; None if there is none."""
        try:
            return cls(pid=pid, created=psutil.Process(pid).create_time(), run=run)
        except psutil.Error:
            return None

    def alive(self) -> bool:
        """Whether the process runs and is the one that was meant."""
        return self._process() is not None

    def same(self, pid: int, created: float) -> bool:
        """Whether that is this process.

        Create times are counted from the boot time, which a clock correction moves by a second.
        """
        return self.pid == pid and abs(self.created - created) < 2

    def signal(self, number: signal.Signals) -> None:
        """Signal it and all it spawned: its group if it leads a session of its own, else it and its children."""
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
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if self.same(self.pid, process.create_time()) and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None

    def to_json(self) -> bytes:
        return json.dumps({"pid": self.pid, "created": self.created, "run": self.run}).encode()

    @classmethod
    def read(cls, path: Path) -> "Worker | None":
        """The worker written in `path`; None if there is none that can be read."""
        try:
            worker = cls(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        whole = isinstance(worker.pid, int) and worker.pid > 0 and isinstance(worker.created, int | float)
        return worker if whole else None


class Lock:
    """One lock file. Within a process, two `Lock`s on one file exclude each other as well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, run: str | None = None, *, patience: float = PATIENCE) -> bool:
        """Take the lock within `patience` seconds, or return False.

        run: what its holder works on, which puts this process's name into the file. Without it
        the holder stays nameless, so nobody who means a worker can signal it.
        Errors: ResourceError if the disk does not let a lock be made.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if not _flock(descriptor, patience):
                    os.close(descriptor)
                    return False
                os.ftruncate(descriptor, 0)
                if run is not None and (me := Worker.of(os.getpid(), run)):
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
        """Leave no name behind: a living process that has let go must not be taken for the next holder."""
        if self._descriptor in _descriptors:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            _descriptors.remove(self._descriptor)
        self._descriptor = None

    def holder(self) -> Worker | None:
        """The living process that holds the lock; None if it is free."""
        worker = Worker.read(self.path) if self.held() else None
        return worker if worker and worker.alive() else None

    def held(self) -> bool:
        """Whether anybody holds the lock."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


@contextmanager
def locked(path: Path, *, patience: float) -> Iterator[None]:
    """A short critical section. Errors: RunBusy."""
    lock = Lock(path)
    if not lock.acquire(patience=patience):
        raise RunBusy(f"{path}: stayed locked for {patience:g} seconds; see whether a process hangs, then try again.")
    try:
        yield
    finally:
        lock.release()


def _flock(descriptor: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True
