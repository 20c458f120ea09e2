"""Run a benchmark whose experiments execute up to N steps at once, in processes that share one GPU.

    python -m tests.lab.benchmarks.at_once N MODULE ARGUMENTS
    python -m tests.lab.benchmarks.at_once 16 tests.lab.benchmarks.bench_choosing --ground bio-300 --pair 1 --home DIR

A training of Winnow leaves a fast GPU idle most of the time (GPU.md), so several take little longer than one. Splits and
selections are executed one after the other by the command itself. Several of these commands, such as one for each --pair,
share the N places of a machine. Results are the same as without this command. On a GPU, start NVIDIA's Multi-Process
Service first (`nvidia-cuda-mps-control -d`): otherwise the processes take turns.

It gives each process a lock of its own for the device, and uses the encoder of `bench_gpu --prepare` where the bundled one
is not installed (WINNOW_BENCH_MINILM names its folder).
"""

import fcntl
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

from core import cards, work
from core.errors import RunError
from core.experiment import kind as experiment
from core.runs import launch
from core.runs.context import RunContext
from core.runs.run import Run
from core.runs.where import LOCAL, ON

PLACES = Path(tempfile.gettempdir()) / "winnow-places"
MINILM = "WINNOW_BENCH_MINILM"
POLL = 0.1  # seconds between two checks for processes that have ended


class Processes:
    """Executes runs in processes of this machine; has the methods of `RunsOnRay`. n: number of places."""

    def __init__(self, context: RunContext, n: int) -> None:
        self.n, self._context = n, context
        self._at = dict[str, tuple[Run, subprocess.Popen[bytes], IO[str]]]()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *given: object) -> None:
        for _, process, place in self._at.values():
            process.kill()
            _end(process, place)

    @property
    def free(self) -> bool:
        """True if this command may try to start another run."""
        return len(self._at) < self.n

    @property
    def at_work(self) -> bool:
        """True if a run is in progress."""
        return bool(self._at)

    def begin(self, run: Run) -> bool:
        """Start a process for a run. Return False if no place is free, or if a process already works on the run."""
        if run.id in self._at or run.lock.held() or (place := _place(self.n)) is None:
            return False
        run.cancel_file.unlink(missing_ok=True)
        self._context.child(run)
        process = launch.tied(run, {**os.environ, ON: LOCAL}, module="tests.lab.benchmarks.at_once")
        self._at[run.id] = run, process, place
        return True

    def wait(self, seconds: float) -> list[Run]:
        """Wait until a run ends, at most `seconds`; return those that have succeeded. Errors: RunError if one failed."""
        end, done = time.monotonic() + seconds, list[Run]()
        while not done and time.monotonic() < end:
            time.sleep(POLL)
            for name, (run, process, place) in list(self._at.items()):
                if process.poll() is None:
                    continue
                _end(process, place)
                del self._at[name]
                if run.state().state != "succeeded":
                    raise RunError(f"run {run.id}: {run.state().error or 'its process has died'}")
                done.append(run)
        return done


def _end(process: subprocess.Popen[bytes], place: IO[str]) -> None:
    """Collect a process that has ended, and free its place."""
    process.communicate()
    place.close()


def _place(n: int) -> IO[str] | None:
    """Lock one of n files, and return it; None if all are locked."""
    PLACES.mkdir(exist_ok=True)
    for number in range(n):
        file = (PLACES / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return file
    return None


def prepare(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Let processes share a device, by a lock of their own, and use the prepared encoder if one is named."""
    own = f"of-process-{os.getpid()}"
    replace(cards.Card, "lock", property(lambda _: own))
    replace(cards, "processor_lock", lambda: own)
    if folder := os.environ.get(MINILM):
        from tests.lab.benchmarks.gpu_scope import stand_in

        stand_in(Path(folder))


def share(n: int, replace: Callable[[object, str, object], None] = setattr) -> None:
    """Make experiments of this process execute up to n steps at once."""
    prepare(replace)
    replace(experiment, "RunsOnRay", lambda context, _: Processes(context, n))
    replace(experiment, "at_once", lambda: n)
    replace(experiment, "Where", SimpleNamespace(asked=lambda: SimpleNamespace(on="ray")))


def main() -> int:
    if sys.argv[1:2] == ["work"]:  # a process that `Processes.begin` started
        prepare()
        return work.main()
    if len(sys.argv) < 3 or not sys.argv[1].isdecimal():
        sys.exit(__doc__)
    share(int(sys.argv[1]))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
