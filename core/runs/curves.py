"""Read the metrics of a run as curves, and the ids of the runs that it needs."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from core.runs.events import Event
from core.runs.run import Run


class MetricName(NamedTuple):
    """The parts of a metric's name. `dev_f1/PER@1` is the metric `dev_f1` for entity type PER and seed 1.

    type: entity type, which may contain `/` and `@`; "" for all types. seed: None if the run trains only one seed.
    """

    metric: str
    type: str = ""
    seed: int | None = None

    def __str__(self) -> str:
        return self.of_seed(f"{self.metric}/{self.type}" if self.type else self.metric, self.seed)

    @staticmethod
    def of_seed(name: str, seed: int | None) -> str:
        """Return `name` with `@seed` appended; unchanged if `seed` is None."""
        return name if seed is None else f"{name}@{seed}"

    @classmethod
    def parse(cls, name: str) -> "MetricName":
        head, _, seed = name.rpartition("@")
        own, number = (head, int(seed)) if head and seed.isdecimal() else (name, None)
        metric, _, type = own.partition("/")
        return cls(metric, type, number)


@dataclass(slots=True)
class Curve:
    """Values of a metric by step. `steps` ascend; `values[i]` belongs to `steps[i]`."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: int | None, value: float) -> None:
        """Add a value of the metric. step: None for the step after the last one.

        If a resumed run repeats a step, the earlier values of that step and of later steps are dropped.
        """
        step = (self.steps[-1] + 1 if self.steps else 0) if step is None else step
        while self.steps and self.steps[-1] >= step:
            self.steps.pop()
            self.values.pop()
        self.steps.append(step)
        self.values.append(value)


class Curves:
    """All curves of a run. Each call of `read` reads only lines that were added to the log since the last call."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._curves: dict[str, Curve] = {}
        self._children: dict[str, None] = {}
        self._offset, self._guard = 0, threading.Lock()

    def read(self) -> Mapping[str, Curve]:
        """Return {metric: copy of its curve}. Metrics of child runs have names of the form `kind/metric`."""
        with self._guard:
            self._read_on()
            return {name: Curve(list(curve.steps), list(curve.values)) for name, curve in self._curves.items()}

    def children(self) -> list[str]:
        """Return the ids of the runs whose results this run has needed so far, in order."""
        with self._guard:
            self._read_on()
            return list(self._children)

    def _read_on(self) -> None:
        events, self._offset = self.run.events(self._offset)
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        data = event.data
        if event.kind == "metric":
            self._curves.setdefault(data["name"], Curve()).add(data["step"], data["value"])
        elif event.kind == "child":
            self._children.setdefault(data["run"])
