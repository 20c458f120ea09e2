"""What an experiment will cost on this machine: seconds a stage from the calibration, and what is finished already.

The same steps that an experiment makes are walked with a job that only looks: what it finds costs nothing, and what it
does not find ends an arm's walk, for the steps behind it cannot exist either.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

from core.errors import ModelError
from core.experiment import fewer_labels
from core.experiment.config import ExperimentConfig
from core.experiment.fan import at_once, wall
from core.experiment.halves import resized
from core.experiment.seconds import Seconds
from core.experiment.stages import Stages
from core.experiment.steps import CHECK, Step, in_order, lines
from core.kind import Job, Kind, Options, plan
from core.reporter import Silent
from core.runs.context import RunContext
from core.runs.store import Run, RunStore
from core.tagging.calibration import CalibrateResult
from core.tagging.estimate import Speeds

GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A step of the plan. what: of what part of L_C. seconds: 0 where it is finished already. finished: or not needed,
    since the experiment ended before it."""

    kind: str
    line: str
    what: str
    seconds: float
    finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """steps: in the order in which they are run. memory_gb, disk_gb: at most, 10^9 bytes. wall: seconds that they take
    with `at_once` made at once, as this machine's cards allow. basis: what trainings' seconds rest on, sentences."""

    steps: tuple[Priced, ...]
    device: str
    memory_gb: float
    disk_gb: float
    wall: float = 0.0
    at_once: int = 1
    basis: str = ""

    def ended(self) -> "Cost":
        """The cost of an experiment that has finished: nothing, also where it ended early."""
        steps = tuple(replace(step, seconds=0.0, finished=True) for step in self.steps)
        return replace(self, steps=steps, disk_gb=0.0, wall=0.0)

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def lines(self) -> dict[str, float]:
        """Seconds an arm; what several arms share is counted with the first of them."""
        names = dict.fromkeys(step.line for step in self.steps)
        return {name: sum(step.seconds for step in self.steps if step.line == name) for name in names}

    def as_json(self) -> dict[str, object]:
        """Fields that `--plan-only --json` prints."""
        arms = {name: seconds / 3600 for name, seconds in self.lines.items()}
        sizes = {"memory_gb": self.memory_gb, "disk_gb": self.disk_gb, "device": self.device}
        times = {"hours": self.seconds / 3600, "wall_hours": self.wall / 3600, "at_once": self.at_once}
        return {**times, "arms": arms, **sizes, "steps": [asdict(step) for step in self.steps]}


class NotYet(Exception):
    """The run that was asked for has not finished."""


class Lookup(Job):
    """A `Job` that finds finished runs and makes none."""

    def child(self, kind: str, **options: object) -> Run:
        """Errors: NotYet."""
        known = self.kinds[kind]
        try:
            wanted = plan(known, known.config.parse(options), self.home)
        except ModelError as error:  # an encoder that is still to be fetched
            raise NotYet from error
        run = RunStore(self.home).finished(wanted.key)
        if run is None:
            raise NotYet
        return run


def calibration_options(config: ExperimentConfig, encoder: str = "") -> Options:
    """Options of the `calibrate` run that an estimate rests on; without a T_C, L_C is the text that MLM is timed on.

    encoder: one of the axis, "" for the experiment's own.
    """
    given = {name: getattr(config, name) for name in ("train", "domain", "allow_download")}
    return {"encoder": encoder or config.encoder, **given, **config.tagger, "task": config.task or config.train}


def cost(
    config: ExperimentConfig,
    measured: CalibrateResult,
    home: Path,
    kinds: Mapping[str, Kind],
    others: Mapping[str, CalibrateResult] | None = None,
    *,
    labels: int = 0,
) -> Cost:
    """measured: the result of a `calibrate` run on these corpora. others: the same of every encoder of the axis.

    labels: number of training sentences of a part that is not sealed yet, in place of all.
    """
    job = Lookup(home, cast(RunContext, Silent()), kinds)
    names = {role: getattr(config, role) for role in ("task", "domain", "train", "dev", "test", "assisting")}
    corpora = {role: job.corpus(name) for role, name in names.items() if name}
    corpora = resized(config, corpora) if config.cross else corpora
    if labels:
        corpora["train"] = fewer_labels.resized(corpora["train"], labels)
    further = {role: [job.corpus(name) for name in getattr(config, role)] for role in ("sources", "also_test")}
    speeds = Speeds(RunStore(home))
    seconds = Seconds(config, measured, corpora, **further, others=others or {}, speeds=speeds)
    planned = lines(Stages(config, job), measured.pieces["task"])
    steps = [step for block in in_order(planned, config.stops) for step in block]
    found = _look(job, steps)
    # A tagger that is finished was trained on all labels.
    runs = {step: run for step, run in found.items() if not (labels and step.kind == "finetune")}
    takes = {step: 0.0 if step in runs or step.kind == CHECK else step.seconds(seconds) for step in steps}
    priced = tuple(
        Priced(kind=step.kind, line=str(step.cell), what=step.what, finished=step in runs, seconds=takes[step])
        for step in steps
        if step.kind != CHECK
    )
    largest = max((measured, *seconds.others.values()), key=lambda result: result.parameters)
    disk_gb = _disk_gb(priced, seconds, largest)
    n = at_once()
    together = wall(steps, takes, n) if n > 1 else sum(takes.values())
    sizes = {"memory_gb": largest.memory_gb, "disk_gb": disk_gb}
    basis = " ".join(seconds.basis)
    return Cost(steps=priced, device=measured.device, **sizes, wall=together, at_once=n, basis=basis)


def _look(job: Job, steps: Iterable[Step]) -> dict[Step, Run]:
    """The runs that have finished, each behind all that it needs."""
    runs: dict[Step, Run] = {}
    for step in steps:
        if all(need in runs for need in step.needs):
            with suppress(NotYet):
                options = step.options(runs)
                runs |= {step: job.child(step.kind, **options)} if step.kind != CHECK else {}
    return runs


def _disk_gb(steps: Sequence[Priced], seconds: Seconds, measured: CalibrateResult) -> float:
    """Every model in float32, one training's checkpoints beside it, and the embeddings of D_C."""
    weights = 4 * measured.parameters / GB
    models = sum(not step.finished and step.kind in ("pretrain", "finetune") for step in steps)
    rows = len(seconds.corpora["domain"]) * seconds.embeds if seconds.embeds else 0
    return weights * (models + (3 if models else 0)) + rows * 2 * measured.dimension / GB
