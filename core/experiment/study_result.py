"""What a `study` came to, and the tables that it leaves beside its result.

artifacts/study.csv, study.md    for a spreadsheet, for people
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.experiment.result import Interval, PlannedTest
from core.files import write_atomic
from core.runs import result
from core.runs.context import RunContext
from core.runs.run import Run
from core.stats.pooled import Estimate
from core.stats.verdict import Answer, Unlearnt


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task of a study: the claim there. F1 in percent, differences in points of it.

    run: its `experiment` run. sentences: of its test split. tokens: that the claim read, mean over replicates. f1,
    none_f1, control_f1: means over replicates of the claim, of `none` and of the control. reading, choosing: the
    differences to these, with their 95% intervals. learnt: False where no tagger of any arm learnt anything there.
    too_few: where the claim rebuilds L_C and could change too little there to be tested, how much; else "".
    unlearnt, taggers: how many of the taggers of the claim, of `none` and of the control learnt nothing, and of how
    many.
    """

    name: str
    run: str
    sentences: int
    tokens: int
    f1: float
    none_f1: float
    control_f1: float | None
    reading: Estimate
    reading_interval: Interval
    choosing: Estimate | None
    choosing_interval: Interval | None
    learnt: bool = True
    too_few: str = ""  # results of older versions have none, nor the two below
    unlearnt: int = 0
    taggers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """A mean over tasks in points, its 95% interval, p (two-sided), degrees of freedom, and the answer by it, or None
    where no tagger learnt anything."""

    delta: float
    interval: Interval
    p: float
    dof: float
    answer: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Did reading, or choosing, help: on these tasks on average, and on others like these.

    others, between: None for a single task; between: sd of the true differences between tasks, points. lacking: what
    would settle it, in words; "" where it is settled.
    """

    these: Conclusion
    others: Conclusion | None
    between: float | None
    lacking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """Result of a `study` run.

    reading: the claim against `none`. choosing: against its control, where it has one. control: that control's name, ""
    where it has none. planned: the one planned test, over all tasks; None with a single replicate, where a task has no
    difference to the control, and where nothing was learnt. hours: of computing by kind of run, each run once.
    """

    arm: str
    budget: str
    tasks: Sequence[TaskRow]
    reading: Question
    choosing: Question | None
    planned: PlannedTest | None
    replicates: int
    hours: Mapping[str, float]
    control: str = ""  # results of older versions have none


def nothing_learnt(tasks: Sequence[TaskRow]) -> bool:
    """Whether no tagger of any task learnt anything, so that nothing can be compared."""
    return not any(task.learnt for task in tasks)


def unlearnt(tasks: Sequence[TaskRow]) -> Unlearnt:
    """Return how many of the taggers that the claim rests on learnt nothing, over all tasks."""
    return Unlearnt(taggers=sum(task.unlearnt for task in tasks), of=sum(task.taggers for task in tasks))


def read(run: Run) -> StudyResult:
    """Result of a finished run. Errors: RunError."""
    return result.read(run, StudyResult)


def file(run: Run, suffix: str) -> Path:
    """The path of the table. suffix: `csv` or `md`."""
    return run.artifacts / f"study.{suffix}"


def write(context: RunContext, texts: Mapping[str, str]) -> None:
    """texts: {"csv", "md"}."""
    for suffix, text in texts.items():
        path = file(context.run, suffix)
        write_atomic(path, text.encode())
        context.artifact(path.name, path)
