"""What a study answers: did reading help, did choosing, on these tasks and on others like them; and what is lacking."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from core.experiment.study_config import StudyConfig
from core.experiment.study_result import Conclusion, Question, TaskRow, nothing_learnt, unlearnt
from core.stats.pooled import Estimate, Mean, between, corpora_needed, pooled, random_effects
from core.stats.sequential import ALPHA
from core.stats.verdict import ANSWERS, LEVEL, lacking


def reading(config: StudyConfig, tasks: Sequence[TaskRow], replicates: int, bound: float | None) -> Question:
    """Whether the claim is above `none`. bound: the p that the planned test asked for; None: there was none."""
    own = ALPHA if config.control else bound
    question = _question([task.reading for task in tasks], tasks, config.unit, replicates, own or ALPHA)
    return _unanswered(question) if nothing_learnt(tasks) else question


def choosing(config: StudyConfig, tasks: Sequence[TaskRow], replicates: int, bound: float | None) -> Question | None:
    """Whether the claim is above its control; None where it has none."""
    estimates = [task.choosing for task in tasks if task.choosing]
    if not config.control or len(estimates) < len(tasks):
        return None
    question = _question(estimates, tasks, config.unit, replicates, bound or ALPHA)
    return _unanswered(question) if nothing_learnt(tasks) else question


def _question(
    estimates: Sequence[Estimate], tasks: Sequence[TaskRow], unit: str, replicates: int, asked: float
) -> Question:
    mean, deltas = pooled(estimates), np.array([each.delta for each in estimates])
    these = _conclusion(mean, asked)
    if len(estimates) == 1:
        return Question(these=these, others=None, between=None, lacking=_lacking(mean, these, tasks, unit, replicates))
    others = _conclusion(random_effects(deltas), ALPHA)
    if others.answer != these.answer:  # what is not shown on these is not shown on all of their kind
        others = replace(others, answer="no evidence")
    lacks = _lacking(mean, these, tasks, unit, replicates) or _tasks_lacking(others, float(deltas.var(ddof=1)))
    return Question(these=these, others=others, between=between(estimates), lacking=lacks)


def _unanswered(question: Question) -> Question:
    """The same differences, by which nothing is answered, as no tagger learnt anything."""
    others = replace(question.others, answer=None) if question.others else None
    return replace(question, these=replace(question.these, answer=None), others=others, lacking="")


def _conclusion(mean: Mean, asked: float) -> Conclusion:
    delta, half, p = float(mean.delta), float(mean.half()), float(mean.p)
    # F1 ends at 0 and 100, and so does a difference.
    low, high = max(delta - half, -100.0), min(delta + half, 100.0)
    if not float(mean.dof):
        low, high = -100.0, 100.0
    # By the interval too: no answer may stand beside an interval that contradicts it.
    sign = (int(low > 0) - int(high < 0)) if p <= asked else 0
    return Conclusion(delta=delta, interval=(low, high), p=p, dof=float(mean.dof), answer=ANSWERS[sign])


def _lacking(mean: Mean, these: Conclusion, tasks: Sequence[TaskRow], unit: str, n: int) -> str:
    """Sentence on what would settle a mean of the size that was seen on these tasks; "" where it is settled."""
    if these.answer != "no evidence":
        return ""
    if failed := unlearnt(tasks):
        return f"Train longer first: {failed.words}."
    if not these.dof:
        return f"One of the {unit} says nothing about the spread between them; run 2 at least, better 6."
    size, each = abs(these.delta), f" on each of {len(tasks)} tasks" if len(tasks) > 1 else ""
    if size < LEVEL:
        return "The two are level; more of anything would only show more closely how level."
    lacks = lacking(size, float(mean.falling), float(mean.fixed), n)
    if lacks.sentences == 1:
        what = "pre-trainings" if unit == "replicates" else "taggers' seeds"
        return f"Lacking are {what}: {n} {unit}{each} are too few to settle a mean difference of {size:.2f}."
    sentences = sum(task.sentences for task in tasks)
    wanted = ceil(sentences * lacks.sentences / 100) * 100
    more = "" if lacks.repetitions == n else f" and about {lacks.repetitions:,} {unit}{each}"
    corpora = ceil(len(tasks) * lacks.corpora)
    return (
        f"Lacking are test sentences or task corpora: {sentences:,} test sentences are too few to settle a mean "
        f"difference of {size:.2f}. It would take about {wanted:,} of them{more}, or the same on {corpora:,} tasks."
    )


def _tasks_lacking(others: Conclusion, variance: float) -> str:
    """The same for others like them. variance: of the differences between tasks."""
    if others.answer != "no evidence":
        return ""
    if abs(others.delta) < LEVEL:
        return "On others like these the two are level, as far as can be told."
    enough = corpora_needed(others.delta, variance)
    return (
        f"Settled on these. Lacking for others like them are task corpora: about {enough:,} would settle a mean "
        f"difference of {abs(others.delta):.2f}, if they differ as these do."
    )
