"""A study as a table: for a spreadsheet, and for people."""

import csv
import io

from core.experiment.collapsed import NOTHING
from core.experiment.study_result import Question, StudyResult, nothing_learnt
from core.stats.verdict import points

COLUMNS = (
    *("task", "run", "test_sentences", "tokens", "f1", "none_f1", "control_f1"),
    *("reading", "reading_low", "reading_high", "reading_p", "helped"),
    *("choosing", "choosing_low", "choosing_high", "choosing_p", "chose"),
)
THESE, OTHERS = "these, on average", "others like these"


def as_csv(result: StudyResult) -> str:
    """A line a task, then the two means, numbers as they are."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
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
    for name, which in ((THESE, "these"), (OTHERS, "others")):
        if getattr(result.reading, which):
            writer.writerow({"task": name, **_pooled(result, which)})
    return out.getvalue()


def _pooled(result: StudyResult, which: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for head, answer, question in (("reading", "helped", result.reading), ("choosing", "chose", result.choosing)):
        if question:
            one = getattr(question, which)
            low, high = one.interval
            row |= {head: one.delta, f"{head}_low": low, f"{head}_high": high, f"{head}_p": one.p, answer: one.answer}
    return row


def as_markdown(result: StudyResult) -> str:
    """A table for people, and what is lacking."""
    lines = [NOTHING, ""] if nothing_learnt(result.tasks) else []
    lines += [result.planned.why, ""] if result.planned else []
    heads = ("task", "test sentences", "test F1", "none", "control", "reading helped", "choosing helped")
    lines += [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|---|---|"]
    for task in result.tasks:
        control = "" if task.control_f1 is None else f"{task.control_f1:.2f}"
        cells = [task.name, f"{task.sentences:,}", f"{task.f1:.2f}", f"{task.none_f1:.2f}", control]
        chose = points(task.choosing.delta, task.choosing_interval) if task.choosing and task.choosing_interval else ""
        lines.append(f"| {' | '.join([*cells, points(task.reading.delta, task.reading_interval), chose])} |")
    for name, which in ((THESE, "these"), (OTHERS, "others")):
        if getattr(result.reading, which):
            cells = [name, "", "", "", "", _answered(result.reading, which), _answered(result.choosing, which)]
            lines.append(f"| {' | '.join(cells)} |")
    asked = (("Reading", result.reading), ("Choosing", result.choosing))
    lacking = [f"- {name}: {question.lacking}" for name, question in asked if question and question.lacking]
    return "\n".join([*lines, "", *lacking, ""])


def _answered(question: Question | None, which: str) -> str:
    if question is None:
        return ""
    one = getattr(question, which)
    answer = f"{one.answer}: " if one.answer else ""
    return f"{answer}{points(one.delta, one.interval)}"
