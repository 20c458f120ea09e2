"""An experiment's steps by several processes at once: each takes one that is ready and that nobody else is at.

They know of each other by the locks of the steps' runs alone, so that one may die, or come later, and the others go
on. Where this machine has several cards a process a card is begun here, and `--on ray:HOST:PORT` has the other nodes of
the cluster begin theirs; `--share` begins others.
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
from core.training.ranks import rank

if TYPE_CHECKING:
    from core.runs.executors.companions import Companions

CHOICES = ("halves", "select")  # steps before which a cluster's workers make chunks, and no steps
LOOK = 1.0  # seconds between two looks at the steps that others are at
_GRACE = 5.0  # seconds in which whoever helps sees a wish to cancel


def run_steps(steps: Iterable[Step], runs: dict[Step, Run], job: Job, begins: Callable[[Step], None]) -> None:
    """Have the runs of `steps`, which join `runs`, made: in their order here, and by others at the same time.

    begins: is told each that is made here.
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
    """Whether there is the run of a step now; else another process is at it."""
    if _busy(step, runs, job):
        return False
    options = step.options(runs)
    if step.kind != CHECK:
        begins(step)
        try:
            runs[step] = job.child_if_free(step.kind, **options)
        except RunBusy:  # who was sooner by a moment
            return False
    return True


def _busy(step: Step, runs: Mapping[Step, Run], job: Job) -> Run | None:
    """The run of a step while another process is at it."""
    ready = step.kind != CHECK and all(need in runs for need in step.needs)
    return job.at_work(step.kind, **step.options(runs)) if ready else None


def at_once() -> int:
    """Number of steps that this machine makes at once: one a card, each of which a training has to itself."""
    return max(len(cards.usable()), 1)


class Helpers:
    """Whoever works on a job's experiment, this process included."""

    def __init__(self, job: Job, here: int, on: str, stack: ExitStack) -> None:
        """here: how many there are without the other nodes of a cluster. on: where it computes, as of `--on`."""
        self._context, self._here, self._on, self._stack = job.context, here, on, stack
        self._nodes: Companions | None = None

    @property
    def n(self) -> int:
        """Their number now."""
        return self._here + (self._nodes.n if self._nodes else 0)

    def before(self, step: Step) -> None:
        """Have the other nodes of the cluster help from the first step on that is no choice: until then, all of them
        make the chunks of one. Errors: as of `engine`, where it cannot be joined."""
        if self._on.startswith("ray:") and self._nodes is None and step.kind not in CHOICES:
            from core.runs.executors.companions import companions

            self._nodes = self._stack.enter_context(companions(self._context, self._on))


@contextmanager
def helpers(job: Job) -> Iterator[Helpers]:
    """Processes that help with the job's experiment for a block; where it is shared, those of `--share` come by
    themselves."""
    run, own = job.context.run, share()
    alone = job.context.root is not run or isinstance(job.context, Aside) or own or rank()
    n = 1 if alone else at_once()
    helping = [launch.helper(run) for _ in range(n - 1)]
    try:
        with ExitStack() as stack:
            yield Helpers(job, own.of if own else n, LOCAL if alone else Where.asked().on, stack)
    finally:
        asked = job.context.terminated or run.cancel_file.exists()  # which they see too, and leave a checkpoint
        for process in helping:
            with suppress(TimeoutExpired):
                process.wait(_GRACE if asked else 0)
            process.terminate()
            process.wait()


def wall(steps: Sequence[Step], seconds: Mapping[Step, float], at_once: int) -> float:
    """Seconds that `steps` take where so many are made at once, each by the first that is free. seconds: of each."""
    free, ends, left = [0.0] * at_once, dict[Step, float](), list(steps)
    while left:
        at = min(range(at_once), key=free.__getitem__)
        ready = {
            step: max(map(ends.__getitem__, step.needs), default=0.0) for step in left if ends.keys() >= {*step.needs}
        }
        # Of those that could begin at one time the first, as `run_steps` takes them.
        step = min(ready, key=lambda step: max(ready[step], free[at]))
        free[at] = ends[step] = max(ready[step], free[at]) + seconds.get(step, 0.0)
        left.remove(step)
    return max(ends.values(), default=0.0)
