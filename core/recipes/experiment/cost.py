"""What an experiment will cost on this machine: seconds a stage from the calibration, and what is finished already.

The same `Stages` that make an experiment's runs are walked with a job that only looks: what it finds costs nothing,
and what it does not find ends an arm's walk, for the stages behind it cannot exist either.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from core.errors import ModelError
from core.recipes.base import Job, Recipe, plan
from core.recipes.experiment.arms import Cell
from core.recipes.experiment.config import ExperimentConfig
from core.recipes.experiment.labels import Labels, part_in_words
from core.recipes.experiment.seconds import Seconds
from core.recipes.experiment.stages import Stages
from core.reporter import Silent
from core.runs.context import RunContext
from core.runs.store import Run, RunStore

GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A child run to come. what: of what part of L_C. seconds: 0 where it is finished already."""

    kind: str
    line: str
    what: str
    seconds: float
    finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """steps: in the order in which they are run. memory_gb, disk_gb: at most, 10^9 bytes."""

    steps: tuple[Step, ...]
    device: str
    memory_gb: float
    disk_gb: float

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def lines(self) -> dict[str, float]:
        """Seconds an arm; what several arms share is counted with the first of them."""
        names = dict.fromkeys(step.line for step in self.steps)
        return {name: sum(step.seconds for step in self.steps if step.line == name) for name in names}

    def as_json(self) -> dict[str, Any]:
        """What `--plan-only --json` says."""
        arms = {name: seconds / 3600 for name, seconds in self.lines.items()}
        sizes = {"memory_gb": self.memory_gb, "disk_gb": self.disk_gb, "device": self.device}
        return {"hours": self.seconds / 3600, "arms": arms, **sizes, "steps": [asdict(step) for step in self.steps]}


class NotYet(Exception):
    """The run that was asked for has not finished."""


class Looking(Job):
    """A `Job` that finds finished runs and makes none."""

    def child(self, kind: str, **options: Any) -> Run:
        """Errors: NotYet."""
        recipe = self.recipes[kind]
        try:
            wanted = plan(recipe, recipe.config.parse(options), self.home)
        except ModelError as error:  # an encoder that is still to be fetched
            raise NotYet from error
        found = RunStore(self.home).finished(wanted.key)
        if found is None:
            raise NotYet
        return found


def calibration_options(config: ExperimentConfig) -> dict[str, Any]:
    """Of the `calibrate` run that an estimate rests on; without a T_C, L_C is the text that MLM is timed on."""
    given = {name: getattr(config, name) for name in ("encoder", "train", "domain", "allow_download")}
    return {**given, **config.tagger, "task": config.task or config.train}


def cost(config: ExperimentConfig, measured: Mapping[str, Any], home: Path, recipes: Mapping[str, Recipe]) -> Cost:
    """measured: the result of a `calibrate` run on these corpora."""
    job = Looking(home, cast(RunContext, Silent()), recipes)
    names = {role: getattr(config, role) for role in ("task", "domain", "train", "dev", "test", "assisting")}
    corpora = {role: job.corpus(name) for role, name in names.items() if name}
    further = {role: [job.corpus(name) for name in getattr(config, role)] for role in ("sources", "also_test")}
    seconds = Seconds(config, measured, corpora, **further)
    stages = Stages(config, job, lambda kind, cell, what: None)
    steps = tuple(_steps(config, seconds, stages, measured["pieces"]["task"]))
    disk_gb = _disk_gb(steps, seconds, measured)
    return Cost(steps=steps, device=measured["device"], memory_gb=measured["memory_gb"], disk_gb=disk_gb)


Found = tuple[Any] | None  # what a stage has made; None: it has not finished


def _step(kind: str, cell: Cell, found: Found, seconds: float, what: str = "") -> Step:
    done = found is not None
    return Step(kind=kind, line=str(cell), what=what, seconds=0.0 if done else seconds, finished=done)


def _look(stage: Callable[..., Any], *given: Any) -> Found:
    try:
        return (stage(*given),)
    except NotYet:
        return None


def _steps(config: ExperimentConfig, seconds: Seconds, stages: Stages, pieces: float) -> Iterator[Step]:
    """Every step, in the order in which `experiment` makes them."""
    found = {cell: _look(stages.select, cell) for cell in config.cells}
    for cell in config.cells:
        if cell.arm.strategy:
            yield _step("select", cell, found[cell], 0.0 if found[cell] else seconds.select(cell))
    selects = {cell: run[0] for cell, run in found.items() if run}
    amount = _look(stages.amount, selects, pieces) if len(selects) == len(found) else None
    labels = {}
    for cell in config.cells:
        for part in stages.labels.sizes:
            labels[cell, part] = _look(stages.labels.made, cell, *part)
            yield from _label_steps(stages.labels, seconds, cell, part, labels[cell, part])
    for cell in config.cells:
        ready = cell in selects and (amount is not None or config.fixed == "none")
        encoder = _look(stages.pretrain, cell, selects[cell], amount[0] if amount else {}) if ready else None
        if cell.arm.pretrains:
            yield _step("pretrain", cell, encoder, seconds.pretrain(cell))
        for size, draw in stages.labels.sizes:
            ready = encoder is not None and labels[cell, (size, draw)] is not None
            given = (cell, *(encoder or ()), *(labels[cell, (size, draw)] or ()), size, draw)
            tuned = _look(stages.finetune, *given) if ready else None
            yield _step("finetune", cell, tuned, seconds.finetune(size, cell), part_in_words(size, draw))


def _label_steps(labels: Labels, seconds: Seconds, cell: Cell, part: tuple[int, int], made: Found) -> Iterator[Step]:
    """What makes an arm's labels of one part of L_C, of which `made` is all."""
    what = part_in_words(*part)
    if 0 < cell.arm.assisting < math.inf:
        yield _step("skl", cell, made, seconds.skl(), what)
    if cell.arm.measures:
        yield _step("difficulty", cell, _look(labels.difficulty, cell, *part), seconds.difficulty(part), what)
    if cell.arm.rebuild:
        yield _step("rebuild", cell, made, seconds.rebuild(), what)


def _disk_gb(steps: Sequence[Step], seconds: Seconds, measured: Mapping[str, Any]) -> float:
    """Every model in float32, one training's checkpoints beside it, and the embeddings of D_C."""
    weights = 4 * float(measured["parameters"]) / GB
    models = sum(not step.finished and step.kind in ("pretrain", "finetune") for step in steps)
    rows = len(seconds.corpora["domain"]) * seconds.embeds if seconds.embeds else 0
    return weights * (models + (3 if models else 0)) + rows * 2 * int(measured["dimension"]) / GB
