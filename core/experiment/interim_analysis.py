"""The planned test of an experiment: at every look, whether the claim is decided, and in words why it ended there."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.experiment import changed_labels, collapsed, further_tests, rivals
from core.experiment.config import ExperimentConfig
from core.experiment.result import PlannedTest
from core.experiment.stages import FinishedLine
from core.stats import sequential
from core.stats.bootstrap import DRAWS, Resampled, resample
from core.stats.sequential import ALPHA, Look


def planned_test(config: ExperimentConfig, lines: Sequence[FinishedLine], number: int) -> PlannedTest | None:
    """The claim's test at a look; None where it goes on, or where nothing can be tested. number: of the look, from 0.

    By the finished runs and the options alone, so that a resumed experiment ends where one that was never stopped does.
    """
    claim = config.claimed
    if claim is None or len(config.seeds) < 2:
        return None
    by_cell = {line.cell: line for line in lines}
    control = rivals.control(claim, list(by_cell))
    line, other = by_cell[claim], by_cell[control or rivals.baseline(claim, list(by_cell))]
    quick = control and claim.arm.pretrains and not line.chains[0].replicate.number
    if quick or changed_labels.of_line(line).too_few:
        return None
    seeds = collapsed.collapsed_seeds(lines)
    if collapsed.nothing_learnt(lines, seeds):
        return None
    gap = resample(further_tests.evaluations_of(line), further_tests.evaluations_of(other), DRAWS, config.draw_seed)
    look = _look(gap)
    side = gap.difference(1 - ALPHA).sign  # of the interval that stands beside the answer
    if (ended := sequential.ending(look, config.stops, number, config.effect, side=side)) is None:
        return None
    chance = float(sequential.conditional_power(look, config.stops, number, config.effect))
    bound = sequential.bounds(config.stops)[number]
    test = PlannedTest(
        arm=claim.arm.name,
        budget=claim.budget,
        against=str(other.cell),
        looks=config.stops,
        replicates=config.stops[number],
        ended=ended,
        p=gap.p,
        bound=bound,
        effect=config.effect,
        chance=chance,
        why="",
    )
    unit = "replicates" if line.chains[0].replicate.number else "seeds"
    return replace(test, why=in_words(test, unit) + collapsed.in_words(claim, control, seeds))


def _look(gap: Resampled) -> Look:
    return Look(
        delta=np.array(gap.delta),
        p=np.array(gap.p),
        falling=np.array(gap.var_seeds + gap.var_both),
        fixed=np.array(gap.var_sentences - gap.var_both),
    )


def in_words(test: PlannedTest, unit: str, where: str = "") -> str:
    """unit: replicates, or seeds where that is all that was made anew. where: on each of how many tasks."""
    n, of = test.replicates, test.looks[-1]
    claim = f"{test.arm} {test.budget}".strip()
    after = f"all {of} {unit}{where}" if n == of else f"{n} of {of} {unit}{where}"
    tested = (
        f"The claim, {claim} against {test.against}, after {after}: p = {test.p:.2g}, asked for is {test.bound:.2g}"
    )
    if test.p <= test.bound and test.ended not in ("shown", "worse"):
        tested = f"{tested}, but the interval includes 0"
    early = f" It ended there, {of - n} {unit if of - n > 1 else unit[:-1]}{where} early." if n < of else ""
    had = f"were {test.effect:+g} points there, the end would show it in {test.chance:.0%} of cases"
    outcome = {
        "shown": "shown",
        "worse": f"{claim} is shown to be worse",
        "futile": f"not shown, and {had}",
        "complete": "not shown",
    }
    return f"{tested}: {outcome[test.ended]}.{early}"
