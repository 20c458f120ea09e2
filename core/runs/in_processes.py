"""Execute runs in several processes that share this machine's processor or GPUs (`--on processes:N`).

A training of a small encoder leaves most of a fast GPU idle (measured in tests/lab/benchmarks/GPU.md). On a processor,
a training step is split into two parts, one per core (option `parts`).
"""

import os
import time
from collections import Counter
from signal import SIGKILL
from subprocess import Popen

from core import cards
from core.processes import cores
from core.runs import launch
from core.runs.context import RunContext
from core.runs.run import Run
from core.runs.shared import STEP_OF
from core.runs.where import LOCAL, ON

THREADS = "OMP_NUM_THREADS"
MOST = 8  # processes to propose; each needs memory for a training
_LOOK = 0.1  # seconds between two checks for processes that have ended


def processes_that_pay() -> int:
    """Return a number of steps of an experiment to run at once on this machine, at most `MOST`.

    With a GPU, each process needs one core. On a processor with four cores or more, each gets two, because a training
    step has two parts.
    """
    n = cores() if cards.usable() or cores() < 4 else cores() // 2
    return min(n, MOST)


class RunsInProcesses:
    """Executes up to n runs at a time. Has the methods of `on_ray.RunsOnRay`."""

    def __init__(self, context: RunContext, n: int) -> None:
        self.n, self._context = n, context
        self._at = dict[str, tuple[Run, Popen[bytes]]]()
        self._losses = Counter[str]()

    def __enter__(self) -> "RunsInProcesses":
        return self

    def __exit__(self, *given: object) -> None:
        """Cancel the runs in progress. Each run has `launch.CHECKPOINT` seconds to write a checkpoint."""
        for run, _ in self._at.values():
            run.cancel()
        deadline = time.monotonic() + launch.CHECKPOINT
        while time.monotonic() < deadline and any(process.poll() is None for _, process in self._at.values()):
            time.sleep(_LOOK)
        for run, process in self._at.values():
            if process.poll() is None and (worker := run.worker()):
                worker.signal(SIGKILL)
            process.kill()
            process.communicate()

    @property
    def free(self) -> bool:
        """True if another run may start."""
        return len(self._at) < self.n

    @property
    def at_work(self) -> bool:
        """True if a run is in progress."""
        return bool(self._at)

    def begin(self, run: Run) -> bool:
        """Start a process for a run. Return False if n runs are in progress, or if a process has this run already."""
        if not self.free or run.id in self._at or run.lock.held():
            return False
        run.cancel_file.unlink(missing_ok=True)
        self._context.child(run)
        self._at[run.id] = run, launch.tied(run, {**os.environ, **self._environment()})
        return True

    def wait(self, seconds: float) -> list[Run]:
        """Wait until a run ends, at most `seconds`, and return the runs that have succeeded meanwhile.

        If the process of a run died, the caller must call `begin` again; the run continues from its checkpoint.
        Errors: those of `launch.succeeded`.
        """
        end = time.monotonic() + seconds
        while True:
            ended = [each for each in self._at.values() if each[1].poll() is not None]
            if ended or time.monotonic() >= end:
                break
            time.sleep(_LOOK)
        done = []
        for run, process in ended:
            del self._at[run.id]
            process.communicate()
            if launch.succeeded(run, process.returncode, self._losses, "this machine", self._context):
                done.append(run)
        return done

    def _environment(self) -> dict[str, str]:
        """Return environment variables of the processes, which share the cores unless the user set a number of threads.

        Trainings with an encoder give the same bytes with any number of threads.
        """
        threads = os.environ.get(THREADS) or str(max(cores() // self.n, 1))
        given = {ON: LOCAL, STEP_OF: str(self._context.root.path), cards.SHARED: str(self.n), THREADS: threads}
        return given | cards.for_workers()
