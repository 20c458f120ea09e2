"""Untrusted files are read in a separate process. A forged file may kill that process, fill its memory or keep it
busy for ever; the server survives.

    python -m core.isolated core.corpora.preview 4711

imports the module, reads one request from stdin, passes it to the module's `answer`, writes the result to stdout and
exits. Request and result are JSON. The number is the id of the process that asks: when that dies, so does this one.
"""

import ctypes
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from core import errors
from core.errors import ResourceError, WinnowError, memory_ran_out
from core.paths import home

SECONDS = 20
MEMORY = 800 << 20  # bytes, beyond what the imports took
IDLE = 900  # seconds that a spare waits for its request
_ROOT = Path(__file__).resolve().parents[1]
# One thread each: on a machine of many cores their stacks alone would fill the memory that is allowed.
_SMALL = {"OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
_server, _isolated = threading.Event(), threading.Event()
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
_GRACE = 5  # seconds after which a reader ends by itself if nobody has stopped it
# Killed by one of these, a reader ran out of time: wall-clock time, or CPU time of all its threads.
_OUT_OF_TIME = (-signal.SIGALRM, -signal.SIGXCPU)


class _Clock:
    """When the request that this isolated process answers must be finished; None outside of such a process."""

    deadline: float | None = None


def seconds_left(seconds: float) -> float:
    """Limit of a reader that is started now: `seconds`, or what the caller itself has left if that is less."""
    left = seconds if _Clock.deadline is None else _Clock.deadline - time.monotonic()
    return max(min(seconds, left), 0.1)


def serving() -> None:
    """Mark this process as the app's server. From now on it reads no untrusted file itself."""
    _server.set()


def is_serving() -> bool:
    """Return True in the app's server. A worker or a command may die without harm to others."""
    return _server.is_set()


def is_isolated() -> bool:
    """Return True in a process that this module started to read untrusted files."""
    return _isolated.is_set()


class _Reply(TypedDict, total=False):
    """Message that the other process writes: `answer`, or one of the ways in which there is none.

    error, args: the name of a class of `core.errors`, and what it is made of. bug: the frames of any other exception.
    """

    answer: object
    error: str
    args: Sequence[object]
    memory: bool
    bug: str


class Isolated:
    """Processes that each answer one request to `module`, and a spare one that has done its imports already.

    advice: what to do where that fails, the end of a sentence. spare: False for who asks once or twice in its life.
    """

    def __init__(self, module: str, advice: str, seconds: float = SECONDS, *, spare: bool = True) -> None:
        self._module, self._advice, self._seconds, self._keeps_spare = module, advice, seconds, spare
        self._lock = threading.Lock()
        self._spare: subprocess.Popen[bytes] | None = None

    def ready(self) -> None:
        """Start the spare where there is none; returns at once."""
        with self._lock, suppress(OSError):  # short of memory: the next who asks is told
            self._spare = self._waiting() or _started(self._module)

    def _waiting(self) -> subprocess.Popen[bytes] | None:
        """The spare, if it has not been killed or waited too long."""
        if self._spare and self._spare.poll() is not None:
            _end(self._spare)
            self._spare = None
        return self._spare

    def ask(self, what: str, check: Callable[[], None] = lambda: None, /, **request: object) -> object:
        """The result of the module's `answer(**request)`, as JSON holds it.

        what: the file's name for errors. check: called each second, may raise, which ends the other process. Errors:
        ResourceError if it took too long or too much memory, killed its process or there can be none; the WinnowError
        that `answer` raised.
        """
        # The project of a window is known to this process alone.
        environment = {**os.environ, "WINNOW_HOME": str(home())}
        seconds = seconds_left(self._seconds)
        payload = json.dumps([os.getcwd(), environment, seconds, request]).encode()
        try:
            with self._lock:
                process, self._spare = self._waiting() or _started(self._module), None
        except OSError as error:
            raise self._failed(what, f"no process can be started to read it ({error.strerror})") from error
        try:
            written = _written(process, payload, seconds, check)
        except subprocess.TimeoutExpired:
            raise self._late(what, seconds) from None
        finally:
            _end(process)
            if self._keeps_spare:
                self.ready()
        if process.returncode in _OUT_OF_TIME:
            raise self._late(what, seconds)
        if process.returncode:
            raise self._failed(what, "its reader broke off, as a damaged or forged file makes it, or memory ran out")
        return self._answer(what, json.loads(written))

    def _answer(self, what: str, reply: _Reply) -> object:
        if "memory" in reply:
            raise self._failed(what, f"reading it took more than {MEMORY >> 20} MB of memory")
        if "bug" in reply:
            raise RuntimeError(f"in a process apart\n{reply['bug']}")
        kind = vars(errors).get(reply.get("error", ""))
        if isinstance(kind, type) and issubclass(kind, WinnowError):
            raise kind(*reply["args"])
        return reply["answer"]

    def _late(self, what: str, seconds: float) -> ResourceError:
        return self._failed(what, f"reading it took more than {max(round(seconds), 1)} seconds")

    def _failed(self, what: str, why: str) -> ResourceError:
        return ResourceError(f"{what}: {why}; {self._advice}.")


class _Starter:
    """One thread that starts every reader and lives as long as this process.

    Linux ends a reader when the *thread* that started it ends, and the threads of a page live for seconds.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Take a new thread: that of the parent does not exist in a forked process."""
        self._threads = ThreadPoolExecutor(1, "starts-readers")

    def start(self, module: str) -> subprocess.Popen[bytes]:
        try:
            return self._threads.submit(_popen, module).result()
        except RuntimeError as error:  # the interpreter is shutting down
            raise OSError(0, "this process is ending") from error


_starter = _Starter()
os.register_at_fork(after_in_child=_starter.renew)


def _started(module: str) -> subprocess.Popen[bytes]:
    return _starter.start(module)


def _popen(module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "core.isolated", module, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        env={**os.environ, **_SMALL},
        start_new_session=True,
    )


def _written(process: subprocess.Popen[bytes], payload: bytes, seconds: float, check: Callable[[], None]) -> bytes:
    """All that it writes. Errors: TimeoutExpired; whatever `check` raises."""
    end, sent = time.monotonic() + seconds, False
    while True:
        try:
            return process.communicate(None if sent else payload, min(1, max(end - time.monotonic(), 0)))[0]
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise
        sent = True
        check()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it with its group. One that the kernel does not let go (a dead network folder) is not waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def main() -> None:
    """Answer one request, or exit without an answer if the process that asks is gone."""
    signal.alarm(IDLE)
    _isolated.set()
    _die_with(int(sys.argv[2]))
    answer = importlib.import_module(sys.argv[1]).answer
    if request := sys.stdin.buffer.read():
        _limit_memory()
        sys.stdout.buffer.write(_reply(answer, request))
        sys.stdout.flush()
        os._exit(0)  # without the tens of milliseconds that taking an interpreter down costs


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when `parent` dies. Elsewhere the limits of time end it later."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before Linux was asked
            os._exit(1)


def _limit_memory() -> None:
    """No more memory than allowed, if the system enforces that; after a crash none of it on disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limit_time(seconds: float) -> None:
    """End this process after `seconds` and a grace, also if the process that asks is stopped and cannot kill it.

    The CPU limit counts all threads (a reader of Parquet has two), holds for processes that a reader starts, and no
    code in this process can put it off.
    """
    _Clock.deadline = time.monotonic() + seconds
    signal.alarm(int(seconds) + _GRACE)
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + 2 * seconds) + _GRACE
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))


def _reply(answer: Callable[..., object], request: bytes) -> bytes:
    try:
        folder, environment, seconds, arguments = json.loads(request)  # as they are now: a spare was started before
        _limit_time(seconds)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        result = {"answer": answer(**arguments)}
        return json.dumps(result, ensure_ascii=False).encode("utf-8", "replace")
    except WinnowError as error:
        reply: _Reply = {"error": type(error).__name__, "args": error.__reduce__()[1]}
    except Exception as error:  # noqa: BLE001  the server writes its log
        frames = "".join(traceback.format_tb(error.__traceback__))  # no message: it may quote the file
        reply = {"memory": True} if memory_ran_out(error) else {"bug": f"{frames}{type(error).__name__}"}
    return json.dumps(reply).encode()


if __name__ == "__main__":
    # This file now runs as `__main__`. The modules that it imports ask the one named `core.isolated`, another object.
    importlib.import_module("core.isolated").main()
