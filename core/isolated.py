"""Reading what a stranger made in a process of its own: a forged file may kill it, fill its memory or never end, and
the server lives.

    python -m core.isolated core.corpora.preview

imports the module, reads one request from stdin, gives it to the module's `answer`, writes what that returned to stdout
and ends; both are JSON.
"""

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


def serving() -> None:
    """Say that this process is the app's server, which many need: from now on it reads nothing of a stranger itself."""
    _server.set()


def is_serving() -> bool:
    """Whether this process is the app's server; a worker or a command dies for itself alone."""
    return _server.is_set()


def is_isolated() -> bool:
    """Whether this process is one of those that may die of what they read."""
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
        payload = json.dumps([os.getcwd(), environment, self._seconds, request]).encode()
        try:
            with self._lock:
                process, self._spare = self._waiting() or _started(self._module), None
        except OSError as error:
            raise self._failed(what, f"no process can be started to read it ({error.strerror})") from error
        try:
            written = _written(process, payload, self._seconds, check)
        except subprocess.TimeoutExpired:
            raise self._failed(what, f"reading it took more than {self._seconds:g} seconds") from None
        finally:
            _end(process)
            if self._keeps_spare:
                self.ready()
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

    def _failed(self, what: str, why: str) -> ResourceError:
        return ResourceError(f"{what}: {why}; {self._advice}.")


def _started(module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "core.isolated", module],
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
    """Answer one request; nothing where whoever started this is gone."""
    signal.alarm(IDLE)
    _isolated.set()
    answer = importlib.import_module(sys.argv[1]).answer
    if request := sys.stdin.buffer.read():
        _limit()
        sys.stdout.buffer.write(_reply(answer, request))
        sys.stdout.flush()
        os._exit(0)  # without the tens of milliseconds that taking an interpreter down costs


def _limit() -> None:
    """No more memory than allowed, where the system holds a process to it; after a crash none of it on disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _reply(answer: Callable[..., object], request: bytes) -> bytes:
    try:
        folder, environment, seconds, arguments = json.loads(request)  # as they are now: a spare was started before
        signal.alarm(int(seconds) + 5)  # where who asked was killed meanwhile
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
    main()
