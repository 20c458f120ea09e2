"""An experiment's steps by several processes at once: each takes a step that is ready and that no other has locked.

Processes know of each other only by the locks of runs, so one may die or join later while the others go on. On a
machine with several cards, one process per card is started here. `--on ray:HOST:PORT` starts processes on the other
nodes of a cluster; `--share` starts others.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

from core import cards
from core.errors import RunBusy
from core.experiment.steps import CHECK, Step
from core.kind import Job
from core.runs import launch
from core.runs.executors.share import Aside, share
from core.runs.store import Run
from core.runs.where import LOCAL, Where
from core.training.on_device import rank

if TYPE_CHECKING:
    from core.runs.executors.companions import Companions

CHOICES = ("halves", "select")  # kinds of steps for which a cluster's workers compute chunks instead of steps
LOOK = 1.0  # seconds between two checks of steps that other processes run
_GRACE = 5.0  # seconds that helpers have to notice a cancellation


def run_steps(steps: Iterable[Step], runs: dict[Step, Run], job: Job, begins: Callable[[Step], None]) -> None:
    """Make or find the runs of `steps` in order and add them to `runs`, while other processes may make some of them.

    begins: called with each step that starts here.
    """
    left, waits = list(steps), False
    while left:
        ready = (step for step in left if all(need in runs for need in step.needs))
        taken = next((step for step in ready if _take(step, runs, job, begins)), None)
        if taken:
            left.remove(taken)
        elif not waits and (busy := next(filter(None, (_busy(step, runs, job) for step in left)), None)):
            job.context.waiting(busy.id)
            waits = True
        if not taken:
            job.context.check()
            time.sleep(LOOK)
        elif waits:
            job.context.waiting(None)
            waits = False


def _take(step: Step, runs: dict[Step, Run], job: Job, begins: Callable[[Step], None]) -> bool:
    """Make or find the run of a step; return False if another process has it."""
    if _busy(step, runs, job):
        return False
    options = step.options(runs)
    if step.kind != CHECK:
        begins(step)
        try:
            runs[step] = job.child_if_free(step.kind, **options)
        except RunBusy:  # another process locked it a moment earlier
            return False
    return True


def _busy(step: Step, runs: Mapping[Step, Run], job: Job) -> Run | None:
    """Return the run of a step while another process makes it; else None."""
    ready = step.kind != CHECK and all(need in runs for need in step.needs)
    return job.at_work(step.kind, **step.options(runs)) if ready else None


def at_once() -> int:
    """Return the number of steps that this machine runs at once: one per card."""
    return max(len(cards.usable()), 1)


class Helpers:
    """The processes that work on a job's experiment, including this one."""

    def __init__(self, job: Job, here: int, on: str, stack: ExitStack) -> None:
        """here: number of processes without the other nodes of a cluster. on: value of `--on`."""
        self._context, self._here, self._on, self._stack = job.context, here, on, stack
        self._nodes: Companions | None = None

    @property
    def n(self) -> int:
        """Current number of processes."""
        return self._here + (self._nodes.n if self._nodes else 0)

    def before(self, step: Step) -> None:
        """Start the other nodes of a cluster at the first step that is no selection; until then they compute chunks.

        Errors: those of `engine`, if the cluster cannot be joined.
        """
        if self._on.startswith("ray:") and self._nodes is None and step.kind not in CHOICES:
            from core.runs.executors.companions import companions

            self._nodes = self._stack.enter_context(companions(self._context, self._on))


@contextmanager
def helpers(job: Job) -> Iterator[Helpers]:
    """Start processes that help with the job's experiment for a block; with `--share` the user starts them."""
    run, own = job.context.run, share()
    alone = job.context.root is not run or isinstance(job.context, Aside) or own or rank()
    n = 1 if alone else at_once()
    helping = [launch.helper(run) for _ in range(n - 1)]
    try:
        with ExitStack() as stack:
            yield Helpers(job, own.of if own else n, LOCAL if alone else Where.asked().on, stack)
    finally:
        # Helpers see a cancellation too and write a checkpoint.
        asked = job.context.terminated or run.cancel_file.exists()
        for process in helping:
            with suppress(TimeoutExpired):
                process.wait(_GRACE if asked else 0)
            process.terminate()
            process.wait()


def wall(steps: Sequence[Step], seconds: Mapping[Step, float], at_once: int) -> float:
    """Return the seconds that `steps` take with `at_once` processes, each taking the next ready step."""
    free, ends, left = [0.0] * at_once, dict[Step, float](), list(steps)
    while left:
        at = min(range(at_once), key=free.__getitem__)
        ready = {
            step: max(map(ends.__getitem__, step.needs), default=0.0) for step in left if ends.keys() >= {*step.needs}
        }
        # Of steps that could start at the same time take the first, as `run_steps` does.
        step = min(ready, key=lambda step: max(ready[step], free[at]))
        free[at] = ends[step] = max(ready[step], free[at]) + seconds.get(step, 0.0)
        left.remove(step)
    return max(ends.values(), default=0.0)
