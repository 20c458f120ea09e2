"""How far an experiment is, and when it will be done: the plan's seconds, corrected by those that have passed."""

import time
from collections.abc import Callable, Collection, Sequence

from core.experiment.cost import Priced
from core.reporter import Parted

_WORDS = {
    "halves": "splitting the labelled sentences",
    "select": "selecting",
    "skl": "scoring the assisting corpus",
    "difficulty": "measuring how hard mentions are",
    "rebuild": "rebuilding the labels",
    "pretrain": "pre-training",
    "finetune": "fine-tuning",
}
TRUSTED = 20.0  # planned seconds after which the passed time says more about this machine than the calibration does
LIMITS = (0.25, 4.0)  # times the plan: one odd step must not stretch all that are still to come


class Clock:
    """Tells `report` each step as it begins: its name, how many are done, and the seconds left of everything."""

    def __init__(self, steps: Sequence[Priced], report: Parted, at_once: Callable[[], int] = lambda: 1) -> None:
        """at_once: number of steps, by as many processes, which may change."""
        self.steps, self.report, self._at_once = steps, report, at_once
        self._done: Collection[int] = ()
        self._planned = self._passed = 0.0
        self._begun: tuple[float, float] | None = None  # (when, planned seconds) of the step at work

    def next(self, at: int, done: Collection[int] | None = None) -> None:
        """The step of that number, from 0, begins; the one before it has ended. done: the numbers of those that are;
        None: all before it."""
        self._end()
        self._done = range(at) if done is None else done
        step = self.steps[at]
        name = f"{step.line}: {_WORDS[step.kind]}{f' on {step.what}' if step.what else ''}"
        left = self.left()
        self.report.metric("seconds_left", left, at)
        number = len(self._done) + 1
        self.report.part(number, len(self.steps), name, left=left, after=max(left - self._pace() * step.seconds, 0.0))
        self.report.stage(f"[{number} of {len(self.steps)}] {name}")
        self._begun = (time.monotonic(), step.seconds)

    def left(self) -> float:
        """Seconds of this step and all behind it."""
        left = sum(step.seconds for i, step in enumerate(self.steps) if i not in self._done)
        return self._pace() * left / self._at_once()

    def _pace(self) -> float:
        """Seconds a planned one."""
        low, high = LIMITS
        return 1.0 if self._planned < TRUSTED else min(max(self._passed / self._planned, low), high)

    def _end(self) -> None:
        if self._begun:
            when, planned = self._begun
            self._planned += planned
            # A step that was planned to take no time says nothing of the pace.
            self._passed += (time.monotonic() - when) * (planned > 0)
            self._begun = None
