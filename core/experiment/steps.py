"""The steps of an experiment: every run that it needs, in the order in which they are made.

`fan` makes the runs; `cost` finds finished ones and estimates the seconds of the others.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from core.experiment.arms import Cell, as_much_as, times
from core.experiment.config import Replicate
from core.experiment.stages import Labels, Part, Stages
from core.kind import Options
from core.runs.run import Run

CHECK = ""  # kind of a step without a run: it only raises an error for data that cannot be trained on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A run for one replicate of one line of the leaderboard.

    options: returns the options of the run, given the runs of the steps in `needs`. part: part of L_C that it uses.
    """

    kind: str
    cell: Cell
    replicate: Replicate
    options: Callable[[Mapping["Step", Run]], Options]
    needs: tuple["Step", ...] = ()
    part: Part = (0, 0)

    @property
    def what(self) -> str:
        """Replicate and part of L_C in words; "" for a single replicate on all of L_C."""
        size, draw = self.part
        part = f"{size:,} labelled sentences, draw {draw + 1}" if size else ""
        return ", ".join(filter(None, (self.replicate.in_words(), part)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A replicate of a line and its stages. halves: step that splits off its own labels; None if all share L_C."""

    stages: Stages
    cell: Cell
    replicate: Replicate
    halves: Step | None

    @property
    def needs(self) -> tuple[Step, ...]:
        """Steps that must come before all others of the replicate."""
        return (self.halves,) if self.halves else ()

    def within(self, runs: Mapping[Step, Run]) -> Stages:
        """Return the stages on the replicate's own labels."""
        return self.stages.on_half(runs[self.halves], self.replicate) if self.halves else self.stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The steps of one replicate. labels, tuned: by part of L_C. halves: shared with other lines and replicates."""

    replicate: Replicate
    halves: Step | None
    select: Step | None
    labels: Mapping[Part, tuple[Step, ...]]
    pretrain: Step | None
    tuned: Mapping[Part, Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The steps of one line of the leaderboard, one chain per replicate."""

    cell: Cell
    chains: tuple[Chain, ...]


def lines(stages: Stages, pieces: float) -> list[Line]:
    """Return the steps of every line of the leaderboard. pieces: word pieces per token of T_C."""
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
    # Lines that others take their number of tokens from come first.
    for cell, model in sorted(models.items(), key=lambda item: item[1] is not None):
        for place in places[cell]:
            selects[cell, place.replicate] = _select(place, selects[model, place.replicate] if model else None)
    return [Line(cell=cell, chains=tuple(_chain(place, selects, pieces) for place in places[cell])) for cell in cells]


def _halves(stages: Stages, cells: Sequence[Cell]) -> dict[int, Step]:
    """Return the step that splits the labelled sentences, by number of the replicate; {} unless halves are swapped.

    All lines share a step, and so do the two replicates that swap its halves.
    """
    steps: dict[int, Step] = {}
    for replicate in stages.config.replicates(cells[0]) if stages.config.cross else ():
        if replicate.side:
            steps[replicate.number] = steps[replicate.number - 1]
        else:
            steps[replicate.number] = _split(stages, cells[0], replicate)
    return steps


def _split(stages: Stages, cell: Cell, replicate: Replicate) -> Step:
    return Step(kind="halves", cell=cell, replicate=replicate, options=lambda runs: stages.halves(replicate))


def in_order(lines: Iterable[Line], stops: Sequence[int] = ()) -> list[list[Step]]:
    """Return the steps up to each stop; all in one block without stops. stops: numbers of replicates.

    All selections and labels come first, so that data that cannot work fails early. Then come the trainings, replicate
    by replicate and arm by arm.
    """
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
        # A selection that takes its number of tokens from another one comes after it.
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


def _select(place: Place, alike: Step | None) -> Step:
    """Return the step of a selection. alike: selection whose number of tokens it takes."""
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
    )


def _labels(place: Place, part: Part) -> tuple[Step, ...]:
    """Return the steps behind a line's labels: sentences added to a part of L_C, or rebuilt; () for the part itself."""
    cell, replicate = place.cell, place.replicate
    step = partial(Step, cell=cell, replicate=replicate, part=part)

    def within(runs: Mapping[Step, Run]) -> Labels:
        return place.within(runs).labels

    if cell.arm.assisting:
        skl = step(kind="skl", needs=place.needs, options=lambda runs: within(runs).skl(part))
        needs = (skl,) if cell.arm.assisting < math.inf else ()
        check = step(
            kind=CHECK,
            needs=(*place.needs, *needs),
            options=lambda runs: within(runs).assisting_options(cell, replicate, [runs[s] for s in needs], part),
        )
        return (*needs, check)
    if not cell.arm.rebuild:
        return ()
    difficulty = step(kind="difficulty", needs=place.needs, options=lambda runs: within(runs).difficulty(part))
    needs = (difficulty,) if cell.arm.measures else ()
    rebuild = step(
        kind="rebuild",
        needs=(*place.needs, *needs),
        options=lambda runs: within(runs).rebuild(cell, replicate, [runs[s] for s in needs], part),
    )
    return (*needs, rebuild)


def _pretrain(place: Place, selects: Mapping[Cell, Step], pieces: float) -> Step:
    """Return the step of a pre-training; under `fixed` it needs the selections of all lines.

    selects: the selections of this replicate.
    """
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
    )
