"""Leaderboards and studies as tables: CSV for a spreadsheet, Markdown for people."""

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from statistics import mean

from core.experiment.result import (
    EXPLORATORY,
    SWAPPED,
    ArmRow,
    CurvePoint,
    ExperimentResult,
    FurtherTest,
    Question,
    StudyResult,
    baseline_words,
    file,
    no_task_learnt,
    nothing_learnt,
    swapped,
)
from core.experiment.words import NOTHING, OTHERS, THESE
from core.files import write_atomic
from core.runs.context import RunContext
from core.stats.verdict import points

COLUMNS = (
    *("arm", "budget", "sentences", "tokens", "mean", "sd", "dev_mean"),
    *("delta", "low", "high", "delta_random", "low_random", "high_random", "verdict", "helped", "chose"),
    *("wins", "ties", "losses", "gpu_hours", "f1_per_hour", "low_per_hour", "high_per_hour", "micro_f1"),
    *("changed", "wanted", "low_share", "mentions", "exploratory", "why"),
)
HEADS = ("variant", "budget", "sentences read", "tokens", "dev F1", "test score", "sd")
ANSWERS = ("helped", "choosing helped", "hours")
FURTHER = ("mean", "sd", "delta")  # columns for each further test set


def as_csv(result: ExperimentResult | StudyResult) -> str:
    """Return a result as CSV with unrounded numbers: one line per arm, or per task and mean over tasks."""
    return _study_csv(result) if isinstance(result, StudyResult) else _board_csv(result)


def as_markdown(result: ExperimentResult | StudyResult) -> str:
    """Return a result as Markdown, with the reason for each verdict, or with what would settle a study's questions."""
    return _study_markdown(result) if isinstance(result, StudyResult) else _board_markdown(result)


def write(context: RunContext, result: ExperimentResult | StudyResult) -> None:
    """Write the tables of an experiment or a study beside its result."""
    for suffix, text in (("csv", as_csv(result)), ("md", as_markdown(result))):
        path = file(context.run, suffix)
        write_atomic(path, text.encode())
        context.artifact(path.name, path)


def _board_csv(result: ExperimentResult) -> str:
    out = io.StringIO()
    further = [f"{column} {test.test}" for test in result.leaderboard[0].also for column in FURTHER]
    writer = csv.DictWriter(out, (*COLUMNS, *further), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in result.leaderboard:
        (low, high), (low_random, high_random) = row.interval, row.interval_random or (None, None)
        bounds = {"low": low, "high": high, "low_random": low_random, "high_random": high_random}
        if row.f1_per_hour and row.delta:  # the rate has the interval of the difference, scaled
            hours = row.delta / row.f1_per_hour
            bounds |= {"low_per_hour": low / hours, "high_per_hour": high / hours}
        bounds |= {f"{column} {test.test}": getattr(test, column) for test in row.also for column in FURTHER}
        writer.writerow({**asdict(row), **bounds, "micro_f1": " ".join(map(str, row.micro_f1))})
    return out.getvalue()


def _board_markdown(result: ExperimentResult) -> str:
    lines = [NOTHING, ""] if nothing_learnt(result.leaderboard) else []
    for words in result.claim_words:
        lines += [words, ""]
    lines += [words for text in (result.overlap_words, result.ceiling_words) if text for words in (text, "")]
    lines += [SWAPPED, ""] if swapped(result.leaderboard) else []
    rows = []
    for row in result.leaderboard:
        gain = "" if row.verdict == "baseline" else points(row.delta, row.interval)
        sd = "" if row.sd is None else f"{row.sd:.2f}"
        cells = [row.arm, row.budget, f"{row.sentences:,}", f"{row.tokens:,}", f"{row.dev_mean:.2f}", f"{row.mean:.2f}"]
        mark = EXPLORATORY * row.exploratory
        answers = [f"{answer}{mark}" if answer else "" for answer in (row.helped or row.verdict, row.chose)]
        rows.append([*cells, sd, gain, *answers, f"{row.gpu_hours:.2f}"])
    heads = (*HEADS, f"against {baseline_words(result.leaderboard)}", *ANSWERS)
    lines += _markdown(heads, rows, numbers=(2, 3, 4, 5, 6, 10))
    labels = {row.arm: row.changed_words or row.drawn_words for row in result.leaderboard}
    counted = {arm: f" ({text})" for arm, text in labels.items() if text}
    reasons = [
        f"- {row.arm} {row.budget}".rstrip() + f"{counted.get(row.arm, '')}: {row.why}" for row in result.leaderboard
    ]
    further = _further(result.leaderboard)
    return "\n".join([*lines, "", *reasons, "", *further, *_curve(result.curve)])


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int]) -> list[str]:
    """Return the lines of a Markdown table. numbers: columns that are aligned to the right."""
    sides = "|".join("---:" if column in numbers else "---" for column in range(len(heads)))
    return [f"| {' | '.join(heads)} |", f"|{sides}|", *(f"| {' | '.join(cells)} |" for cells in rows)]


def _curve(points: Sequence[CurvePoint]) -> list[str]:
    """Return a table of test F1 by number of training sentences, mean over draws and seeds; [] without sizes."""
    sizes = sorted({point.train_sentences for point in points})
    if not sizes:
        return []
    rows = []
    for arm, budget in dict.fromkeys((point.arm, point.budget) for point in points):
        f1s = {
            size: [
                f1
                for point in points
                if (point.arm, point.budget, point.train_sentences) == (arm, budget, size)
                for f1 in point.micro_f1
            ]
            for size in sizes
        }
        rows.append([arm, budget, *(f"{mean(values):.2f}" if values else "" for values in f1s.values())])
    heads = ("variant", "budget", *(f"{size:,}" for size in sizes))
    title = "Test F1 by number of training sentences, mean over draws and seeds:"
    return [title, "", *_markdown(heads, rows, numbers=range(2, len(heads))), ""]


def _further(rows: Sequence[ArmRow]) -> list[str]:
    """Return a table of all test sets, one line per arm; [] if there is only one test set."""
    tests = [test.test for test in rows[0].also]
    if not tests:
        return []
    heads = ("variant", "budget", "test", *tests)
    cells = ([row.arm, row.budget, _score_words(row), *map(_score_words, row.also)] for row in rows)
    return [*_markdown(heads, cells, numbers=range(2, len(heads))), ""]


def _score_words(test: ArmRow | FurtherTest) -> str:
    """Return mean, spread over seeds, and difference to `none`."""
    spread = "" if test.sd is None else f" ± {test.sd:.2f}"
    return f"{test.mean:.2f}{spread} ({test.delta:+z.2f})"


STUDY_COLUMNS = (
    *("task", "run", "test_sentences", "tokens", "f1", "none_f1", "control_f1"),
    *("reading", "reading_low", "reading_high", "reading_p", "helped"),
    *("choosing", "choosing_low", "choosing_high", "choosing_p", "chose"),
)
_MEANS = ((THESE.lower(), "these"), (OTHERS.lower(), "others"))


def _study_csv(result: StudyResult) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, STUDY_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for task in result.tasks:
        low, high = task.choosing_interval or (None, None)
        writer.writerow(
            {
                **{"task": task.name, "run": task.run, "test_sentences": task.sentences, "tokens": task.tokens},
                **{"f1": task.f1, "none_f1": task.none_f1, "control_f1": task.control_f1},
                **{"reading": task.reading.delta, "choosing": task.choosing.delta if task.choosing else None},
                **dict(zip(("reading_low", "reading_high"), task.reading_interval, strict=True)),
                **{"choosing_low": low, "choosing_high": high},
            }
        )
    for name, which in _MEANS:
        if getattr(result.reading, which):
            writer.writerow({"task": name, **_means(result, which)})
    return out.getvalue()


def _means(result: StudyResult, which: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for head, answer, question in (("reading", "helped", result.reading), ("choosing", "chose", result.choosing)):
        if question:
            one = getattr(question, which)
            low, high = one.interval
            row |= {head: one.delta, f"{head}_low": low, f"{head}_high": high, f"{head}_p": one.p, answer: one.answer}
    return row


def _study_markdown(result: StudyResult) -> str:
    lines = [NOTHING, ""] if no_task_learnt(result.tasks) else []
    lines += [result.planned.why, ""] if result.planned else []
    rows = []
    for task in result.tasks:
        control = "" if task.control_f1 is None else f"{task.control_f1:.2f}"
        cells = [task.name, f"{task.sentences:,}", f"{task.f1:.2f}", f"{task.none_f1:.2f}", control]
        chose = points(task.choosing.delta, task.choosing_interval) if task.choosing and task.choosing_interval else ""
        rows.append([*cells, points(task.reading.delta, task.reading_interval), chose])
    for name, which in _MEANS:
        if getattr(result.reading, which):
            rows.append([name, "", "", "", "", _answered(result.reading, which), _answered(result.choosing, which)])
    heads = ("task", "test sentences", "test F1", "none", "control", "reading helped", "choosing helped")
    lines += _markdown(heads, rows, numbers=(1, 2, 3, 4))
    asked = (("Reading", result.reading), ("Choosing", result.choosing))
    lacking = [f"- {name}: {question.lacking}" for name, question in asked if question and question.lacking]
    return "\n".join([*lines, "", *lacking, ""])


def _answered(question: Question | None, which: str) -> str:
    if question is None:
        return ""
    one = getattr(question, which)
    answer = f"{one.answer}: " if one.answer else ""
    return f"{answer}{points(one.delta, one.interval)}"
