"""The words of a study: its verdict, its answers in sentences, and the rows of its forest plot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.experiment.foresight import Open, settled_by
from core.experiment.result import Interval, Question, StudyResult, no_task_learnt, unlearnt_taggers
from core.experiment.words import (
    IDLE,
    MORE_LABELS,
    ONCE,
    REPLICATES,
    Finding,
    arm_words,
    asked_by_control,
    detects_in_words,
    difference_in_words,
    is_known,
    number_in_words,
    points,
    range_in_words,
)
from core.stats.pooled import Estimate, pooled
from core.stats.spread import of_estimate

Asked = Literal["choosing", "reading"]
Answer = Literal["yes", "no evidence", "worse"]
NOTHING = (
    "No tagger learnt anything, so there is no result: no variant scores above chance. "
    "This is no evidence for or against any of them; the training has to work first."
)
FEW = 5  # tasks; with fewer, the interval on other tasks is wide
HEADINGS: dict[Asked, str] = {"choosing": "Did choosing help?", "reading": "Did reading help?"}
THESE, OTHERS = "These, on average", "Others like these"
_DID: Mapping[Answer, str] = {"yes": "helped", "no evidence": "is not shown to help", "worse": "did harm"}
_HOLDS: Mapping[Answer, str] = {
    "yes": "It would on others like these too",
    "no evidence": "Whether it would on others like these is not shown",
    "worse": "It would do harm on others like these too",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """A row of the forest plot: a task, or a mean over tasks. answer: None for a task, which is exploratory."""

    name: str
    delta: float
    interval: Interval
    answer: Answer | None = None

    @property
    def known(self) -> bool:
        """False for an interval that rules nothing out, as with one replicate."""
        return is_known(self.interval)

    @property
    def points(self) -> str:
        """Difference and interval in words."""
        low, high = self.interval
        return f"{self.delta:+z.2f} " + (f"[{low:+z.2f}, {high:+z.2f}]" if self.known else "(no interval)")


def asked(result: StudyResult) -> list[Asked]:
    """Return the questions that a study answers, the claim's first."""
    return ["choosing", "reading"] if result.choosing else ["reading"]


def question(result: StudyResult, of: Asked) -> Question:
    """Return the result of a question. Errors: AssertionError if the study does not ask it."""
    answered = result.choosing if of == "choosing" else result.reading
    assert answered
    return answered


def forest_rows(result: StudyResult, of: Asked) -> list[ForestRow]:
    """Return a row per task, then the mean over these tasks, then that over others like them if there are several."""
    rows = []
    for task in result.tasks:
        gap, interval = task.reading, task.reading_interval
        if of == "choosing" and task.choosing and task.choosing_interval:
            gap, interval = task.choosing, task.choosing_interval
        rows.append(ForestRow(name=task.name, delta=gap.delta, interval=interval))
    asks = question(result, of)
    for name, mean in ((THESE, asks.these), (OTHERS, asks.others)):
        if mean:
            rows.append(ForestRow(name=name, delta=mean.delta, interval=mean.interval, answer=mean.answer))
    return rows


def over(result: StudyResult, of: Asked) -> str:
    """Return the name of what the claim is compared with."""
    planned = result.planned.against if result.planned else "its control"  # results of older versions
    return "none" if of == "reading" else arm_words(result.control or planned)


def study_answer(result: StudyResult) -> list[str]:
    """Return one or two sentences per question, the claim's first; a single sentence if nothing was learnt."""
    if no_task_learnt(result.tasks):
        return [NOTHING]
    idle = [task.name for task in result.tasks if not task.learnt]
    note = [f"No tagger learnt anything on {', '.join(idle)}, which counts all the same."] if idle else []
    return [*(_answered(result, of) for of in asked(result)), *note]


def _answered(result: StudyResult, of: Asked) -> str:
    asks, rows = question(result, of), forest_rows(result, of)
    n, named, answer = len(result.tasks), {row.name: row for row in rows if row.answer}, asks.these.answer
    assert answer  # something was learnt
    where = "on this task" if n == 1 else f"on these {n} tasks on average"
    these = f"{of.capitalize()} {_DID[answer]} {where}: {named[THESE].points} points of score over "
    if asks.others is None or not asks.others.answer:
        return f"{these}{over(result, of)}. One task does not show what holds on others like it."
    wide = f", which is wide as there are only {n} tasks" if n < FEW else ""
    return f"{these}{over(result, of)}. {_HOLDS[asks.others.answer]}: {named[OTHERS].points}{wide}."


def of_study(result: StudyResult) -> Finding:
    """Return the verdict on the claim's question: choosing if it has a control, else reading."""
    if no_task_learnt(result.tasks):
        return Finding(what=IDLE, sure="", next=MORE_LABELS)
    of, asked = ("what was tried", result.reading)
    if result.choosing:
        of, asked = (asked_by_control(result.arm), result.choosing)
    n, answer = result.replicates, asked.these.answer
    assert answer  # something was learnt
    where = "on this task" if len(result.tasks) == 1 else f"on these {len(result.tasks)} tasks on average"
    word = {
        "yes": "Yes: {} helped {}.",
        "worse": "No: {} did harm {}.",
        "no evidence": "Not shown: there is no evidence that {} helps {}.",
    }
    what = word[answer].format(of, where)
    if result.choosing and answer != "yes" and result.reading.these.answer == "yes":
        what = f"{what} Reading helped, whatever was read."
    if asked.others and answer != "no evidence":
        holds = "it would too" if asked.others.answer == answer else "that is not shown"
        what = f"{what} On others like these {holds}."
    if few := [f"{task.name} ({task.too_few})" for task in result.tasks if task.too_few]:
        what = f"{what} On {', '.join(few)} too few labels could be changed to test it, which counts all the same."
    unsettled = _unsettled_study(result, asked)
    then = _train_longer(result) or _next_study(result, asked, unsettled)
    return Finding(what=what, sure=_sure_of(asked, n, unsettled.detects), next=then)


def _sure_of(asked: Question, n: int, detects: float | None) -> str:
    """Return how sure the result is. n: repetitions on each task. detects: smallest mean gain at 80% power, points."""
    if not is_known(asked.these.interval):
        return (
            ONCE
            if n < 2
            else f"{number_in_words(n)} repetitions that differ too much: they do not show the effect of chance."
        )
    seen = difference_in_words(asked.these.delta, asked.these.interval, "on these")
    others = (
        f", {points(asked.others.delta)} on others like these ({range_in_words(asked.others.interval)})"
        if asked.others
        else ""
    )
    return f"{seen}{others}.{detects_in_words(detects, n) if asked.these.answer == 'no evidence' else ''}"


def _unsettled_study(result: StudyResult, asked: Question) -> Open:
    estimates: list[Estimate] = [task.reading for task in result.tasks]
    if result.choosing:
        estimates = [task.choosing for task in result.tasks if task.choosing]
    n = result.replicates
    return Open(
        delta=asked.these.delta,
        interval=asked.these.interval,
        bound=result.planned.bound if result.planned else 0.05,
        estimate=pooled(estimates),
        spread=tuple(of_estimate(estimate, n) for estimate in estimates) if n > 1 else None,
        n=n,
        hours=sum(result.hours.values()),
    )


def _train_longer(result: StudyResult) -> str:
    """Return advice if some taggers of a study learnt nothing; "" if all learnt something."""
    if idle := [task.name for task in result.tasks if not task.learnt]:
        return f"Next: train longer first; on {', '.join(idle)} no tagger learnt anything."
    failed = unlearnt_taggers(result.tasks)
    return f"Next: train longer first; {failed.words}." if failed else ""


def _next_study(result: StudyResult, asked: Question, unsettled: Open) -> str:
    if asked.these.answer == "worse":
        return "Next: leave it."
    if asked.these.answer == "yes":
        if asked.others is None or asked.others.answer == "yes":
            return "Next: use it on tasks like these."
        return "Next: more tasks, if it is to hold on others than these; on these it may be used."
    if not is_known(asked.these.interval):
        return f"Next: {REPLICATES} repetitions on each task."
    return settled_by(unsettled, " on each task" if len(result.tasks) > 1 else "")
