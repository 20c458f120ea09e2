"""The runs that an experiment needs, in the order in which they are made: declared here and nowhere else.

`run` makes them, `cost` looks for them and says what the others will take, the clock follows them.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from core.recipes.base import Options
from core.recipes.experiment.arms import Cell
from core.recipes.experiment.labels import Part, part_in_words
from core.recipes.experiment.seconds import Seconds
from core.recipes.experiment.stages import Stages
from core.runs.run import Run

CHECK = ""  # a step without a run: it only says what cannot be trained on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A run for one line of the leaderboard.

    needs: steps before it, without whose runs nobody can say its options. options: of the run, from those of the steps
    before it. seconds: that it takes, asked only where it is not finished. part: of L_C.
    """

    kind: str
    cell: Cell
    options: Callable[[Mapping["Step", Run]], Options]
    seconds: Callable[[Seconds], float] = field(default=lambda seconds: 0.0)
    needs: tuple["Step", ...] = ()
    part: Part = (0, 0)

    @property
    def what(self) -> str:
        """The part of L_C in words; "" for all of it."""
        return part_in_words(*self.part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The steps of one line of the leaderboard; labels, tuned: by part of L_C."""

    cell: Cell
    select: Step | None
    labels: Mapping[Part, tuple[Step, ...]]
    pretrain: Step | None
    tuned: Mapping[Part, Step]


def lines(stages: Stages, pieces: float) -> list[Line]:
    """One for every line of the leaderboard. pieces: a token has."""
    cells = stages.config.cells
    selects = {cell: _select(stages, cell) for cell in cells if cell.arm.strategy}
    planned = []
    for cell in cells:
        labels = {part: _labels(stages, cell, part) for part in stages.labels.sizes}
        pretrain = _pretrain(stages, cell, selects, pieces) if cell.arm.pretrains else None
        tuned = {part: _finetune(stages, cell, pretrain, labels[part], part) for part in stages.labels.sizes}
        planned.append(Line(cell=cell, select=selects.get(cell), labels=labels, pretrain=pretrain, tuned=tuned))
    return planned


def in_order(lines: Iterable[Line]) -> list[Step]:
    """Every choice of text and labels first, so that what cannot work fails early; then arm by arm the training."""
    all_lines = list(lines)
    return [
        *(line.select for line in all_lines if line.select),
        *(step for line in all_lines for steps in line.labels.values() for step in steps),
        *(step for line in all_lines for step in (line.pretrain, *line.tuned.values()) if step),
    ]


def _select(stages: Stages, cell: Cell) -> Step:
    return Step(
        kind="select", cell=cell, options=lambda runs: stages.select(cell), seconds=lambda timed: timed.select(cell)
    )


def _labels(stages: Stages, cell: Cell, part: Part) -> tuple[Step, ...]:
    """Steps that say what a line learns from beside, or instead of, one part of L_C; nothing where that is all."""
    arm, labels, step = cell.arm, stages.labels, partial(Step, cell=cell, part=part)
    if arm.assisting:
        skl = step(kind="skl", options=lambda runs: labels.skl(part), seconds=Seconds.skl)
        needs = (skl,) if arm.assisting < math.inf else ()
        check = step(kind=CHECK, needs=needs, options=lambda runs: labels.lent(cell, [runs[s] for s in needs], part))
        return (*needs, check)
    if not arm.rebuild:
        return ()
    difficulty = step(
        kind="difficulty", options=lambda runs: labels.difficulty(part), seconds=lambda timed: timed.difficulty(part)
    )
    needs = (difficulty,) if arm.measures else ()
    rebuild = step(
        kind="rebuild",
        needs=needs,
        options=lambda runs: labels.rebuild(cell, [runs[s] for s in needs], part),
        seconds=Seconds.rebuild,
    )
    return (*needs, rebuild)


def _pretrain(stages: Stages, cell: Cell, selects: Mapping[Cell, Step], pieces: float) -> Step:
    """Where all arms are trained alike, by what all of them select."""
    own = (selects[cell],) if cell in selects else ()
    needs = own if stages.config.fixed == "none" else tuple(selects.values())

    def options(runs: Mapping[Step, Run]) -> Options:
        chosen = {other: runs[step] for other, step in selects.items() if step in needs}
        return stages.pretrain(cell, chosen, pieces)

    return Step(kind="pretrain", cell=cell, needs=needs, options=options, seconds=lambda timed: timed.pretrain(cell))


def _finetune(stages: Stages, cell: Cell, pretrain: Step | None, labels: tuple[Step, ...], part: Part) -> Step:
    label_steps = tuple(step for step in labels if step.kind != CHECK)

    def options(runs: Mapping[Step, Run]) -> Options:
        return stages.finetune(cell, runs[pretrain] if pretrain else None, [runs[step] for step in label_steps], part)

    return Step(
        kind="finetune",
        cell=cell,
        part=part,
        needs=(*((pretrain,) if pretrain else ()), *label_steps),
        options=options,
        seconds=lambda timed: timed.finetune(part[0], cell),
    )
