"""How far an experiment is, and when it will be done: the plan's seconds, corrected by those that have passed."""

import time
from collections.abc import Sequence

from core.recipes.experiment.cost import Priced
from core.reporter import Parted

_WORDS = {
    "halves": "splitting the labelled sentences",
    "select": "selecting",
    "skl": "scoring the assisting corpus",
    "difficulty": "measuring how hard mentions are",
    "rebuild": "rebuilding L_C",
    "pretrain": "pre-training",
    "finetune": "fine-tuning",
}
TRUSTED = 20.0  # planned seconds after which the passed time says more about this machine than the calibration does
LIMITS = (0.25, 4.0)


class Clock:
    """Tells `report` each step as it begins: its name and number, and the seconds left of everything."""

    def __init__(self, steps: Sequence[Priced], report: Parted) -> None:
        self.steps, self.report = steps, report
        self._planned = self._passed = 0.0
        self._begun: tuple[float, float] | None = None  # (when, planned seconds) of the step at work
        self._at = 0

    def next(self, at: int) -> None:
        """The step of that number, from 0, begins; the one before it has ended."""
        self._end()
        self._at = at
        step = self.steps[at]
        name = f"{step.line}: {_WORDS[step.kind]}{f' on {step.what}' if step.what else ''}"
        left = self.left()
        self.report.metric("seconds_left", left, at)
        self.report.part(at + 1, len(self.steps), name, left=left, after=max(left - self._pace() * step.seconds, 0.0))
        self.report.stage(f"[{at + 1} of {len(self.steps)}] {name}")
        self._begun = (time.monotonic(), step.seconds)

    def left(self) -> float:
        """Seconds of this step and all behind it."""
        return self._pace() * sum(step.seconds for step in self.steps[self._at :])

    def _pace(self) -> float:
        """Seconds a planned one."""
        low, high = LIMITS
        return 1.0 if self._planned < TRUSTED else min(max(self._passed / self._planned, low), high)

    def _end(self) -> None:
        if self._begun:
            when, planned = self._begun
            self._planned += planned
            self._passed += (time.monotonic() - when) * (planned > 0)
            self._begun = None
