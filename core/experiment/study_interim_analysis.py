"""The planned test of a study: at every look, whether the claim is decided over all tasks together."""

from collections.abc import Sequence
from dataclasses import replace

from core.experiment.arms import NONE
from core.experiment.interim_analysis import in_words
from core.experiment.result import PlannedTest
from core.experiment.study_config import StudyConfig
from core.experiment.study_result import TaskRow, nothing_learnt
from core.stats import sequential
from core.stats.pooled import Estimate, pooled


def planned_test(config: StudyConfig, tasks: Sequence[TaskRow], number: int) -> PlannedTest | None:
    """The claim's test at a look; None where it goes on, or where nothing can be tested. number: of the look, from 0.

    By the experiments' results and the options alone, so that a resumed study ends where one that was never stopped
    does.
    """
    estimates = claimed(config, tasks)
    if len(config.seeds) < 2 or len(estimates) < len(tasks) or nothing_learnt(tasks):
        return None
    mean = pooled(estimates)
    ended = sequential.ending(mean.look, config.stops, number, config.effect)
    if ended is None:
        return None
    test = PlannedTest(
        arm=config.claimed.arm.name,
        budget=config.claimed.budget,
        against=str(config.control or NONE),
        looks=config.stops,
        replicates=config.stops[number],
        ended=ended,
        p=float(mean.p),
        bound=sequential.bounds(config.stops)[number],
        effect=config.effect,
        chance=float(sequential.conditional_power(mean.look, config.stops, number, config.effect)),
        why="",
    )
    where = f" on each of {len(tasks)} tasks" if len(tasks) > 1 else ""
    return replace(test, why=in_words(test, config.unit, where))


def claimed(config: StudyConfig, tasks: Sequence[TaskRow]) -> list[Estimate]:
    """The differences that the claim is about: to the control, or to `none` where it has none. A task without a
    difference to its control has none here: that to `none` would answer another question."""
    return [task.choosing for task in tasks if task.choosing] if config.control else [task.reading for task in tasks]
