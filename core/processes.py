"""Run a function on many items in several processes, because Python computes on one core per process.

    python -m core.processes 12

starts one of these processes. It reads pickled items from the pipe with descriptor 12, which its parent opened, and
ends when the pipe is closed.

`concurrent.futures` is not used for two reasons. Its processes import the parent's main module, which may be a page.
They also continue to run if the parent is killed.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from core.errors import InputError, ResourceError
from core.reporter import Reporter, Silent

Item = TypeVar("Item")
Result = TypeVar("Result")
_Reply = tuple[bool, Any]  # (True, result), or (False, error that `work` raised)

MOST = 8  # maximum number of processes; eight compute items as fast as the parent can prepare and collect them
_ROOT = Path(__file__).resolve().parents[1]


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(
    work: Callable[[Item, Reporter], Result], items: Iterable[Item], report: Reporter, *, pays: bool
) -> Generator[Result, None, None]:
    """Yield `work(item, report)` per item, in the order of the items, computed by one process per core.

    work: function that can be pickled, with all values that it refers to; it is sent to each process once. pays: False
    if starting processes (0.3 s each) would cost more time than it saves; this process then computes all items.
    report: its `check` is called at least once per second; if it raises, all processes are ended.
    Wrap the generator in `contextlib.closing` if the caller may not consume all results.
    Errors: any error of `work`, and InputError of `items`, after the results of earlier items; ResourceError if a
    process dies or cannot start.
    """
    n = min(cores(), MOST) if pays else 1
    if n == 1:
        for item in items:
            report.check()
            yield work(item, report)
        return
    wrong = list[InputError]()
    upcoming, started, given = enumerate(_until_wrong(items, wrong)), dict[Connection, int](), 0
    results = dict[int, _Reply]()
    with ExitStack() as stack:
        idle = [stack.enter_context(_Process(work)).pipe for _ in range(n)]
        while True:
            # Limit the number of results in memory that wait for the result of an earlier item.
            while idle and len(results) < 2 * n and (following := next(upcoming, None)):
                started[idle[-1]] = following[0]
                _send(idle.pop(), following[1])
            if not started:
                for error in wrong:
                    raise error
                return
            ready = [pipe for pipe in wait(list(started), timeout=1) if isinstance(pipe, Connection)]
            report.check()
            for pipe in ready:
                results[started.pop(pipe)] = _received(pipe)
            idle += ready
            while given in results:
                done, value = results.pop(given)
                if not done:
                    raise value
                yield value
                given += 1


def _until_wrong(items: Iterable[Item], wrong: list[InputError]) -> Iterator[Item]:
    """Yield the items. If reading an item fails, add the error to `wrong` and end."""
    try:
        yield from items
    except InputError as error:
        wrong.append(error)


class _Process:
    """A process that computes `work`, as a context manager. pipe: connection to send items and receive results."""

    def __init__(self, work: Callable[[Item, Reporter], Result]) -> None:
        self.pipe, theirs = Pipe()
        # Add the root to PYTHONPATH, whose other folders may hold packages that this process uses. Keep the working
        # directory, because paths of corpora may be relative to it.
        paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "core.processes", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C in a terminal then reaches only the parent, which ends its processes
            )
        except OSError as error:
            raise ResourceError(
                f"No further process can be started ({error.strerror}); close other programs."
            ) from error
        theirs.close()
        _send(self.pipe, work)

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.wait()


def _send(pipe: Connection, value: object) -> None:
    try:
        pipe.send(value)
    except OSError as error:
        raise _died() from error


def _received(pipe: Connection) -> _Reply:
    """Return the reply of a process. Errors: ResourceError if the process died."""
    try:
        reply: _Reply = pipe.recv()
    except (EOFError, OSError) as error:
        raise _died() from error
    return reply


def _died() -> ResourceError:
    return ResourceError(
        "The system ended a process of this run, probably because memory ran out; close other programs, "
        "and resume the run."
    )


def main() -> None:
    """Compute items until the parent closes the pipe."""
    with Connection(int(sys.argv[1])) as pipe:
        try:
            work, report = pipe.recv(), Silent()
            while True:
                item = pipe.recv()
                try:
                    reply: _Reply = True, work(item, report)
                except Exception as error:  # noqa: BLE001  the parent raises it
                    reply = False, error
                pipe.send(reply)
        except (EOFError, OSError):
            return


if __name__ == "__main__":
    main()
