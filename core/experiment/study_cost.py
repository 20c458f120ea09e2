"""What a study will cost on this machine: its experiments' costs, each replicate once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.experiment.cost import Cost, cost
from core.experiment.study_config import StudyConfig
from core.kind import Kind
from core.tagging.calibration import CalibrateResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCost:
    """The costs of every task's experiment: at each look {(task, replicates): ...}; what is finished costs nothing."""

    names: Sequence[str]
    stops: Sequence[int]
    costs: Mapping[tuple[int, int], Cost]

    def of(self, task: int, replicates: int) -> float:
        """Seconds of the experiment of a task at a look."""
        return self.costs[task, replicates].seconds

    def task(self, number: int) -> float:
        """Seconds of a task in all: of its last experiment, and of what earlier ones train for themselves alone."""
        *early, last = (self.costs[number, n] for n in self.stops)
        alone = (step for cost in early for step in cost.steps if step.kind == "finetune" and not step.what)
        return last.seconds + sum(step.seconds for step in alone)

    @property
    def seconds(self) -> float:
        return sum(self.task(number) for number in range(len(self.names)))

    @property
    def memory_gb(self) -> float:
        """The most that is taken at once, 10^9 bytes."""
        return max(cost.memory_gb for cost in self.costs.values())

    @property
    def disk_gb(self) -> float:
        """The most that is taken at once, 10^9 bytes."""
        return sum(self.costs[number, self.stops[-1]].disk_gb for number in range(len(self.names)))

    @property
    def device(self) -> str:
        return self.costs[0, self.stops[-1]].device

    def as_json(self) -> dict[str, object]:
        """Fields that `--plan-only --json` prints."""
        tasks = {name: self.task(number) / 3600 for number, name in enumerate(self.names)}
        sizes = {"memory_gb": self.memory_gb, "disk_gb": self.disk_gb, "device": self.device}
        return {"hours": self.seconds / 3600, "tasks": tasks, **sizes}


def study_cost(
    config: StudyConfig,
    measured: Sequence[CalibrateResult],
    home: Path,
    kinds: Mapping[str, Kind],
    names: Sequence[str],
) -> StudyCost:
    """measured: the result of a `calibrate` run a task. names: of the tasks."""
    costs = {
        (task, n): cost(config.experiment(task, n), timed, home, kinds)
        for task, timed in enumerate(measured)
        for n in config.stops
    }
    return StudyCost(names=names, stops=config.stops, costs=costs)
