"""Locks that any death frees, and who holds them.

An OS lock (`flock`) says that somebody is alive; the pid and create time inside the file say who.
Neither is believed without the other: a pid alone may long belong to somebody else.
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
from core.runs.data import LARGEST
from core.shown import shown

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
    """A process, told from any later one with its pid. created: seconds since 1970; run: id of the run it works on.

    account, host: whose it is, and on which machine; "" by older versions. One of another machine cannot be seen.
    """

    pid: int
    created: float
    run: str = ""
    account: str = ""
    host: str = ""

    @classmethod
    def of(cls, pid: int, run: str = "") -> "Worker | None":
        """The process of this account with this pid; None if there is none."""
        try:
            created = psutil.Process(pid).create_time()
        except psutil.Error:
            return None
        return cls(pid=pid, created=created, run=run, account=account(), host=socket.gethostname())

    @property
    def elsewhere(self) -> bool:
        """Whether it is a process of another machine, which shares the home."""
        return self.host not in ("", socket.gethostname())

    @property
    def in_words(self) -> str:
        """Whose it is, where, since when, and for what: "anna, process 4711 on ward3, since 2026-11-23 14:02"."""
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.created))
        words = f"{shown(self.account) or 'somebody'}, process {self.pid}"
        return f"{words}{f' on {shown(self.host)}' if self.host else ''}, since {since}"

    def alive(self) -> bool:
        """Whether the process runs here and is the one that was meant."""
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
        if self.elsewhere:  # a process of ours that has its number is another one
            return None
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            # A zombie has ended, only its parent has not asked yet.
            if self.same(self.pid, process.create_time()) and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, path: Path) -> "Worker | None":
        """The worker written in `path`; None if there is none that can be read."""
        try:
            worker = cls(**read_json(path))
        except (OSError, ValueError, TypeError):
            return None
        whole = isinstance(worker.pid, int) and worker.pid > 0 and isinstance(worker.created, int | float)
        texts = all(isinstance(text, str) for text in (worker.run, worker.account, worker.host))
        return worker if whole and texts and 0 <= worker.created < LARGEST else None


class Lock:
    """One lock file. Within a process, two `Lock`s on one file exclude each other as well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, run: str | None = None, *, patience: float = PATIENCE) -> bool:
        """Take the lock within `patience` seconds, or return False.

        run: what its holder works on. Without it the holder is no worker, so nobody who means one can signal it.
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
        """Leave no name behind: a living process that has let go must not be taken for the next holder."""
        if self._descriptor in _descriptors:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            _descriptors.remove(self._descriptor)
        self._descriptor = None

    def holder(self) -> Worker | None:
        """The worker that holds the lock; None if it is free, or held by who only begins or removes something."""
        worker = self._name()
        return worker if worker and worker.run else None

    def held_by(self) -> str:
        """Holder of the lock, in words; "" where nobody does or it is not known."""
        worker = self._name()
        return worker.in_words if worker else ""

    def _name(self) -> Worker | None:
        """The living process that holds the lock, as far as it can be seen from here."""
        worker = Worker.read(self.path) if self.held() else None
        return worker if worker and (worker.elsewhere or worker.alive()) else None

    def held(self) -> bool:
        """Whether anybody holds the lock."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            # Shared: two that look at once are no holders to each other.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def aside(words: str) -> str:
    """Words in brackets, to stand behind what they are about; nothing for none."""
    return f" ({words})" if words else ""


@contextmanager
def locked(path: Path, *, patience: float) -> Iterator[None]:
    """A short critical section. Errors: RunBusy."""
    lock = Lock(path)
    if not lock.acquire(patience=patience):
        raise RunBusy(
            f"{path}: stayed locked for {patience:g} seconds{aside(lock.held_by())}; see whether that process hangs, "
            "then try again."
        )
    try:
        yield
    finally:
        lock.release()


def _flock(descriptor: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            # Asked again and again: flock knows no time limit.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True
