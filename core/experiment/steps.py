"""The runs that an experiment needs, in the order in which they are made: declared here and nowhere else.

`run` makes them, `cost` looks for finished ones and estimates the seconds of the others, `clock` tells how far it is.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from core.experiment.arms import Cell
from core.experiment.claim import as_much_as, times
from core.experiment.halves import side
from core.experiment.labels import Labels, Part, part_in_words
from core.experiment.replicates import Replicate
from core.experiment.seconds import Seconds
from core.experiment.stages import Stages
from core.kind import Options
from core.runs.run import Run

CHECK = ""  # a step without a run: it only says what cannot be trained on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A run for one replicate of one line of the leaderboard.

    needs: steps before it, without whose runs nobody can say its options. options: of the run, from those of the steps
    before it. seconds: that it takes, asked only where it is not finished. part: of L_C.
    """

    kind: str
    cell: Cell
    replicate: Replicate
    options: Callable[[Mapping["Step", Run]], Options]
    seconds: Callable[[Seconds], float] = field(default=lambda seconds: 0.0)
    needs: tuple["Step", ...] = ()
    part: Part = (0, 0)

    @property
    def what(self) -> str:
        """The replicate and the part of L_C in words; "" for the only one and for all of it."""
        return ", ".join(filter(None, (self.replicate.in_words(), part_in_words(*self.part))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Stages, line and number of a replicate. halves: the step that gives it labels of its own; None where it has those
    of all."""

    stages: Stages
    cell: Cell
    replicate: Replicate
    halves: Step | None

    @property
    def needs(self) -> tuple[Step, ...]:
        """Steps that come before all others."""
        return (self.halves,) if self.halves else ()

    def within(self, runs: Mapping[Step, Run]) -> Stages:
        """The stages as this replicate has them."""
        return self.stages.on_half(runs[self.halves], self.replicate.number) if self.halves else self.stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The steps of one replicate; labels, tuned: by part of L_C. halves: shared with others."""

    replicate: Replicate
    halves: Step | None
    select: Step | None
    labels: Mapping[Part, tuple[Step, ...]]
    pretrain: Step | None
    tuned: Mapping[Part, Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The steps of one line of the leaderboard, a chain of them a replicate."""

    cell: Cell
    chains: tuple[Chain, ...]


def lines(stages: Stages, pieces: float) -> list[Line]:
    """One for every line of the leaderboard. pieces: word pieces per token."""
    cells = stages.config.cells
    halves = _halves(stages, cells)
    places = {
        cell: [
            Place(stages=stages, cell=cell, replicate=replicate, halves=halves.get(replicate.number))
            for replicate in stages.config.replicates(cell)
        ]
        for cell in cells
    }
    models = {cell: as_much_as(cell, cells, stages.config.claim) for cell in cells if cell.arm.strategy}
    selects: dict[tuple[Cell, Replicate], Step] = {}
    for cell, model in sorted(models.items(), key=lambda item: item[1] is not None):  # first those that others wait for
        for place in places[cell]:
            selects[cell, place.replicate] = _select(place, selects[model, place.replicate] if model else None)
    return [Line(cell=cell, chains=tuple(_chain(place, selects, pieces) for place in places[cell])) for cell in cells]


def _halves(stages: Stages, cells: Sequence[Cell]) -> dict[int, Step]:
    """The step that splits L_C for each replicate, by its number: two replicates share one, and all lines do."""
    steps: dict[int, Step] = {}
    for replicate in stages.config.replicates(cells[0]) if stages.config.cross else ():
        number = replicate.number
        steps[number] = steps[number - 1] if side(number) else _split(stages, cells[0], replicate)
    return steps


def in_order(lines: Iterable[Line], stops: Sequence[int] = ()) -> list[list[Step]]:
    """The steps until each stop, or all. stops: numbers of replicates.

    Every choice of text and labels first, so that what cannot work fails early, text that has the size of another
    after that one; then the training, replicate by replicate and arm by arm."""
    chains = [chain for line in lines for chain in line.chains]
    ends = stops or (max((chain.replicate.number for chain in chains), default=0),)
    begins = (-1, *ends[:-1])
    return [
        _ordered([chain for chain in chains if after < chain.replicate.number <= upto])
        for after, upto in zip(begins, ends, strict=True)
    ]


def _ordered(chains: Sequence[Chain]) -> list[Step]:
    return [
        *dict.fromkeys(chain.halves for chain in chains if chain.halves),
        # What reads as many tokens as another choice comes after that one.
        *sorted((chain.select for chain in chains if chain.select), key=lambda select: len(select.needs)),
        *(step for chain in chains for steps in chain.labels.values() for step in steps),
        *(
            step
            for chain in sorted(chains, key=lambda chain: chain.replicate.number)
            for step in (chain.pretrain, *chain.tuned.values())
            if step
        ),
    ]


def _chain(place: Place, selects: Mapping[tuple[Cell, Replicate], Step], pieces: float) -> Chain:
    parts, cell = place.stages.parts(place.cell, place.replicate), place.cell
    labels = {part: _labels(place, part) for part in parts}
    chosen = {other: step for (other, of), step in selects.items() if of == place.replicate}
    pretrain = _pretrain(place, chosen, pieces) if cell.arm.pretrains else None
    return Chain(
        replicate=place.replicate,
        halves=place.halves,
        select=chosen.get(cell),
        labels=labels,
        pretrain=pretrain,
        tuned={part: _finetune(place, part, pretrain=pretrain, labels=labels[part]) for part in parts},
    )


def _split(stages: Stages, cell: Cell, replicate: Replicate) -> Step:
    return Step(
        kind="halves",
        cell=cell,
        replicate=replicate,
        options=lambda runs: stages.halves(replicate.number),
        seconds=Seconds.halves,
    )


def _select(place: Place, alike: Step | None) -> Step:
    """alike: the choice that this one has as many tokens of."""
    cell, replicate = place.cell, place.replicate

    def options(runs: Mapping[Step, Run]) -> Options:
        given = (runs[alike], times(cell, alike.cell)) if alike else ()
        return place.within(runs).select(cell, replicate, *given)

    return Step(
        kind="select",
        cell=cell,
        replicate=replicate,
        needs=(*place.needs, *((alike,) if alike else ())),
        options=options,
        seconds=lambda timed: timed.select(cell, replicate),
    )


def _labels(place: Place, part: Part) -> tuple[Step, ...]:
    """The steps that make a line's labels: added to one part of L_C, or instead; none where that is all."""
    cell, replicate = place.cell, place.replicate
    step = partial(Step, cell=cell, replicate=replicate, part=part)

    def within(runs: Mapping[Step, Run]) -> Labels:
        return place.within(runs).labels

    if cell.arm.assisting:
        skl = step(kind="skl", needs=place.needs, options=lambda runs: within(runs).skl(part), seconds=Seconds.skl)
        needs = (skl,) if cell.arm.assisting < math.inf else ()
        check = step(
            kind=CHECK,
            needs=(*place.needs, *needs),
            options=lambda runs: within(runs).assisting_options(cell, replicate, [runs[s] for s in needs], part),
        )
        return (*needs, check)
    if not cell.arm.rebuild:
        return ()
    difficulty = step(
        kind="difficulty",
        needs=place.needs,
        options=lambda runs: within(runs).difficulty(part),
        seconds=lambda timed: timed.difficulty(part, replicate),
    )
    needs = (difficulty,) if cell.arm.measures else ()
    rebuild = step(
        kind="rebuild",
        needs=(*place.needs, *needs),
        options=lambda runs: within(runs).rebuild(cell, replicate, [runs[s] for s in needs], part),
        seconds=Seconds.rebuild,
    )
    return (*needs, rebuild)


def _pretrain(place: Place, selects: Mapping[Cell, Step], pieces: float) -> Step:
    """Step of a pre-training; where all arms are trained alike, by what all select. selects: of this replicate."""
    cell, replicate = place.cell, place.replicate
    own = (selects[cell],) if cell in selects else ()
    needs = own if place.stages.config.fixed == "none" else tuple(selects.values())

    def options(runs: Mapping[Step, Run]) -> Options:
        chosen = {other: runs[step] for other, step in selects.items() if step in needs}
        return place.within(runs).pretrain(cell, replicate, chosen, pieces)

    return Step(
        kind="pretrain",
        cell=cell,
        replicate=replicate,
        needs=(*place.needs, *needs),
        options=options,
        seconds=lambda timed: timed.pretrain(cell),
    )


def _finetune(place: Place, part: Part, *, pretrain: Step | None, labels: tuple[Step, ...]) -> Step:
    cell, replicate = place.cell, place.replicate
    label_steps = tuple(step for step in labels if step.kind != CHECK)

    def options(runs: Mapping[Step, Run]) -> Options:
        encoder = runs[pretrain] if pretrain else None
        learnt_from = [runs[step] for step in label_steps]
        return place.within(runs).finetune(cell, replicate, part, pretrain=encoder, labels=learnt_from)

    return Step(
        kind="finetune",
        cell=cell,
        replicate=replicate,
        part=part,
        needs=(*place.needs, *((pretrain,) if pretrain else ()), *label_steps),
        options=options,
        seconds=lambda timed: timed.finetune(part[0], cell, replicate),
    )
