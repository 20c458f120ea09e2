"""Read untrusted files in a separate process, the reader.

A forged file may kill the reader, fill its memory or keep it busy for ever, but the app's server continues.

    python -m core.isolated core.corpora.preview 4711

imports the module `core.corpora.preview` and reads one request from stdin. It passes the request to the module's
function `answer`, writes the result to stdout and exits. Request and result are JSON. 4711 is the pid of the process
that sent the request. If that process dies, Linux kills the reader.
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
from typing import IO, TypedDict

from core import errors
from core.errors import ResourceError, WinnowError, memory_ran_out
from core.paths import home

SECONDS = 20  # time limit of a request

MEMORY = 800 << 20  # default memory limit of a reader process, in bytes, in addition to its imports

IDLE = 900  # seconds that a spare reader waits for a request before it ends
_ROOT = Path(__file__).resolve().parents[1]
# Use one thread per library. On a machine with many cores, the stacks of more threads would exceed the memory limit.
_SMALL = {"OMP_NUM_THREADS": "1", "ARROW_IO_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
_server, _isolated = threading.Event(), threading.Event()
_PR_SET_PDEATHSIG = 1  # constant from <linux/prctl.h>

_GRACE = 5  # a reader that nobody has killed ends itself this many seconds after its time limit

# Exit statuses of a reader that exceeded its limit of wall-clock time, or its limit of CPU time.
_OUT_OF_TIME = (-signal.SIGALRM, -signal.SIGXCPU)


class _Clock:
    """Time limit of this process. deadline: time by `time.monotonic`; None if the process has no time limit."""

    deadline: float | None = None


def seconds_left(seconds: float) -> float:
    """Return the time limit of a new reader process, in seconds.

    This is `seconds`, or the time left to this process if that is less.
    """
    left = seconds if _Clock.deadline is None else _Clock.deadline - time.monotonic()
    return max(min(seconds, left), 0.1)


def serving() -> None:
    """Mark this process as the app's server. From now on, it reads no untrusted file itself."""
    _server.set()


def is_serving() -> bool:
    """Return True if this process is the app's server, which must not crash on a forged file."""
    return _server.is_set()


def is_isolated() -> bool:
    """Return True in a process that this module started to read untrusted files."""
    return _isolated.is_set()


class _Reply(TypedDict, total=False):
    """Reply of a reader: `answer`, or one kind of failure.

    error, args: name of a class in `core.errors`, and its arguments. memory: True if memory ran out. bug: stack frames
    and class of any other exception.
    """

    answer: object
    error: str
    args: Sequence[object]
    memory: bool
    bug: str


class Isolated:
    """Passes requests to reader processes that run `module`. Each reader answers one request.

    advice: what to do if a reader fails, for the error message. seconds: time limit of a request. spare: True to keep a
    spare reader that has already done its imports; False if requests are rare. memory: memory limit in bytes, in
    addition to the memory of the imports.
    """

    def __init__(
        self, module: str, advice: str, seconds: float = SECONDS, *, spare: bool = True, memory: int = MEMORY
    ) -> None:
        self._module, self._advice, self._seconds, self._keeps_spare = module, advice, seconds, spare
        self._memory = memory
        self._lock = threading.Lock()
        self._spare: subprocess.Popen[bytes] | None = None

    def ready(self) -> None:
        """Start a spare reader unless there is one. Do not wait for its imports."""
        with self._lock, suppress(OSError):  # if this fails for lack of memory, the next request reports it
            self._spare = self._waiting() or _started(self._module)

    def _waiting(self) -> subprocess.Popen[bytes] | None:
        """Return the spare reader, or None if there is none or it has ended."""
        if self._spare and self._spare.poll() is not None:
            _end(self._spare)
            self._spare = None
        return self._spare

    def ask(self, what: str, check: Callable[[], object] = lambda: None, /, **request: object) -> object:
        """Return the JSON result of the module's `answer(**request)`.

        what: name of the file, for errors. check: function that is called each second; if it raises, the reader is
        killed. Errors: ResourceError if the reader takes too long or too much memory, dies or cannot be started; any
        WinnowError that `answer` raises.
        """
        # Send the project's folder, because the new process does not know the browser window and its project.
        environment = {**os.environ, "WINNOW_HOME": str(home())}
        seconds = seconds_left(self._seconds)
        payload = json.dumps([os.getcwd(), environment, seconds, self._memory, request]).encode()
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
            raise self._failed(
                what, "the process that read it crashed; the file is damaged or forged, or memory ran out"
            )
        return self._answer(what, json.loads(written))

    def _answer(self, what: str, reply: _Reply) -> object:
        if "memory" in reply:
            raise self._failed(what, f"reading it took more than {self._memory >> 20} MB of memory")
        if "bug" in reply:
            raise RuntimeError(f"in a separate process\n{reply['bug']}")
        kind = vars(errors).get(reply.get("error", ""))
        if isinstance(kind, type) and issubclass(kind, WinnowError):
            raise kind(*reply["args"])
        return reply["answer"]

    def _late(self, what: str, seconds: float) -> ResourceError:
        return self._failed(what, f"reading it took more than {max(round(seconds), 1)} seconds")

    def _failed(self, what: str, why: str) -> ResourceError:
        return ResourceError(f"{what}: {why}; {self._advice}.")


class _Starter:
    """Starts all readers in one thread that lives as long as this process.

    Linux kills a reader when the *thread* that started it ends, and a thread that draws a page ends after seconds.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start a new thread. A forked process must call this, because threads are not copied into it."""
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


def _written(process: subprocess.Popen[bytes], payload: bytes, seconds: float, check: Callable[[], object]) -> bytes:
    """Send `payload` to a reader and return its output. Errors: TimeoutExpired; any error of `check`."""
    end = time.monotonic() + seconds
    # Send the payload in a thread. After a timeout, `communicate` would not send the rest of its input.
    pipe, process.stdin = process.stdin, None
    assert pipe
    threading.Thread(target=_send, args=(pipe, payload), name="sends a request", daemon=True).start()
    while True:
        try:
            return process.communicate(timeout=min(1, max(end - time.monotonic(), 0)))[0]
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise
        check()


def _send(pipe: IO[bytes], payload: bytes) -> None:
    with suppress(OSError), pipe:  # the reader may have been killed
        pipe.write(payload)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a reader and its process group.

    Wait at most a second for the reader's end, because a process that waits for a dead network folder cannot be killed.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def main() -> None:
    """Run a reader: answer one request, or exit without an answer if the process that started it has ended."""
    signal.alarm(IDLE)
    _isolated.set()
    _die_with(int(sys.argv[2]))
    answer = importlib.import_module(sys.argv[1]).answer
    if request := sys.stdin.buffer.read():
        sys.stdout.buffer.write(_reply(answer, request))
        sys.stdout.flush()
        os._exit(0)  # skip the interpreter's shutdown, which takes tens of milliseconds


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when the process `parent` dies. On other systems, it ends at its time limit."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call of prctl
            os._exit(1)


def _limit_memory(more: int) -> None:
    """Let this process allocate only `more` further bytes, if the system supports such a limit. Turn off core dumps."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limit_time(seconds: float) -> None:
    """End this process some seconds after its time limit, even if the process that sent the request cannot kill it.

    Also limit the CPU time of all threads together (a reader of Parquet has two). Child processes inherit this limit,
    and the process cannot raise it.
    """
    _Clock.deadline = time.monotonic() + seconds
    signal.alarm(int(seconds) + _GRACE)
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + 2 * seconds) + _GRACE
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))


def _reply(answer: Callable[..., object], request: bytes) -> bytes:
    try:
        # Use the folder and environment of the request, because a spare reader may have been started with different
        # ones.
        folder, environment, seconds, memory, arguments = json.loads(request)
        _limit_memory(memory)
        _limit_time(seconds)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        result = {"answer": answer(**arguments)}
        return json.dumps(result, ensure_ascii=False).encode("utf-8", "replace")
    except WinnowError as error:
        reply: _Reply = {"error": type(error).__name__, "args": error.__reduce__()[1]}
    except Exception as error:  # noqa: BLE001  the server logs it
        frames = "".join(traceback.format_tb(error.__traceback__))  # leave out the message, which may quote the file
        reply = {"memory": True} if memory_ran_out(error) else {"bug": f"{frames}{type(error).__name__}"}
    return json.dumps(reply).encode()


if __name__ == "__main__":
    # This file runs as the module `__main__`. Other modules import `core.isolated`, which is a second module object.
    importlib.import_module("core.isolated").main()
