"""`study`: one claim on several tasks, with one test over all of them.

Every task is an experiment with its own T_C and L_C. At each look all experiments have as many replicates, and the
claim's differences are pooled; what a look adds is what the next experiments have to make, for replicates are shared
by their keys, with a single experiment on one of the tasks too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.corpora.checks import Check, listed
from core.corpora.library import Library
from core.experiment import result as boards
from core.experiment import study_questions as questions
from core.experiment import study_tables as tables
from core.experiment.arms import NONE, Cell
from core.experiment.cost import calibration_options
from core.experiment.study_config import StudyConfig, task_names
from core.experiment.study_cost import study_cost
from core.experiment.study_interim_analysis import planned_test
from core.experiment.study_result import StudyResult, TaskRow, write
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind
from core.runs import durations
from core.runs import result as results
from core.runs.store import Run, RunStore
from core.tagging.calibration import CalibrateResult


def run(config: StudyConfig, job: Job) -> StudyResult:
    """Artifacts: `study.csv`, `study.md`."""
    names = task_names(config, job.library)
    timings = [calibration_options(config.experiment(number)) for number in range(len(names))]
    measured = [results.read(job.child("calibrate", **options), CalibrateResult) for options in timings]
    for number in range(len(config.stops)):
        runs = _experiments(config, job, number, names, measured)
        tasks = [_task(config, job, *each) for each in zip(names, range(len(names)), runs, strict=True)]
        planned = planned_test(config, tasks, number)
        if planned:
            job.context.note(planned.why)
            break
    replicates, bound = config.stops[number], planned.bound if planned else None
    result = StudyResult(
        arm=config.claimed.arm.name,
        budget=config.claimed.budget,
        control=str(config.control or ""),
        tasks=tasks,
        reading=questions.reading(config, tasks, replicates, bound),
        choosing=questions.choosing(config, tasks, replicates, bound),
        planned=planned,
        replicates=replicates,
        hours={kind: seconds / 3600 for kind, seconds in durations.by_kind(runs, RunStore(job.home)).items()},
    )
    write(job.context, {"csv": tables.as_csv(result), "md": tables.as_markdown(result)})
    return result


def _experiments(
    config: StudyConfig, job: Job, number: int, names: Sequence[str], measured: Sequence[CalibrateResult]
) -> list[Run]:
    """The finished experiment of every task at a look. number: of the look, from 0."""
    runs, n, of = [], config.stops[number], len(config.stops) * len(names)
    priced = study_cost(config, measured, job.home, job.kinds, names)
    left = priced.seconds
    for task, name in enumerate(names):
        after = max(left - priced.of(task, n), 0.0)
        part = number * len(names) + task + 1
        job.context.part(part, of, f"{name}, {n} {config.unit}", left=left, after=after)
        runs.append(job.child("experiment", **config.experiment(task, n).model_dump(exclude={"weights"})))
        left = after
    return runs


def _task(config: StudyConfig, job: Job, name: str, number: int, run: Run) -> TaskRow:
    board = boards.read(run).leaderboard
    rows = {(row.arm, row.budget): row for row in board}
    claim, none = rows[_place(config.claimed)], rows[NONE, ""]
    control = rows[_place(config.control)] if config.control else None
    compared = [row for row in (claim, none, control) if row]
    assert claim.estimate
    return TaskRow(
        name=name,
        run=run.id,
        sentences=sum(len(job.corpus(tested)) for tested in _tested(config, number)),
        tokens=claim.tokens,
        f1=claim.mean,
        none_f1=none.mean,
        control_f1=control.mean if control else None,
        reading=claim.estimate,
        reading_interval=claim.interval,
        choosing=claim.estimate_random,
        choosing_interval=claim.interval_random,
        learnt=not boards.nothing_learnt(board),
        too_few=claim.changed_words if claim.verdict == "not tested" else "",
        unlearnt=sum(len(row.collapsed) for row in compared),
        taggers=sum(len(row.micro_f1) for row in compared),
    )


def _tested(config: StudyConfig, number: int) -> set[str]:
    """The corpora of a task whose sentences are tested: with halves swapped, all that have labels."""
    splits = (config.train, config.dev, config.test) if config.cross else (config.test,)
    return {split[number] for split in splits}


def _place(cell: Cell) -> tuple[str, str]:
    return cell.arm.name, cell.budget


def _title(run: About) -> str:
    tasks = ", ".join(run.config["names"]) or run.corpora(run.config["test"])
    return f"Study: {', '.join(run.config['arms'])} on {tasks}"


def study_red_items(kind: str, options: Mapping[str, object], library: Library) -> list[Check]:
    """Return the red items of all tasks of a study, each naming the tasks unless all have it."""
    config = StudyConfig.parse(dict(options))
    tasks = dict[Check, list[str]]()
    names = task_names(config, library)
    for number, name in enumerate(names):
        for check in red_items("experiment", config.experiment(number).model_dump(), library):
            tasks.setdefault(check, []).append(name)
    return [
        check if of == names else replace(check, sentence=f"{listed(of)}: {check.sentence}")
        for check, of in tasks.items()
    ]


KIND = Kind(
    "study",
    StudyConfig,
    run,
    StudyResult,
    title=_title,
    outcome=lambda finding, _: " ".join(finding.parts),
    page="Training",
    opens=True,
    red_items=study_red_items,
)
