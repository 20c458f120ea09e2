"""A study as a report, as `experiment` has it for an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.experiment.report.drawing import Interval, intervals
from core.experiment.report.experiment import TITLE, CorpusRow, corpora_parts, cost_in_words, repeated, verdict_facts
from core.experiment.report.parts import Code, Cover, Document, Facts, Heading, Part, Picture, Table, Text
from core.experiment.result import StudyResult
from core.experiment.study_words import OTHERS, THESE, Asked, asked, forest_rows, over, question, study_answer
from core.experiment.words import Finding

_COLOURS = {"yes": "#009E73", "no evidence": "#8F8F8F", "worse": "#D55E00"}
_HEADINGS: dict[Asked, str] = {"choosing": "Did choosing help?", "reading": "Did reading help?"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport:
    """A study's results and how they came about. begun, finding, missing: as in `Report`."""

    result: StudyResult
    corpora: Sequence[CorpusRow]
    encoder: str
    preset: str
    command: str
    begun: str
    finding: Finding
    version: str
    missing: Sequence[str]


def study_document(report: StudyReport, cover: Cover) -> Document:
    """The report in parts."""
    result = report.result
    names = ", ".join(f"“{task.name}”" for task in result.tasks)
    question_asked = f"Does choosing what a program reads make it better at finding entities in {names}?"
    if result.choosing is None:
        question_asked = f"Is a program with {result.arm} better at finding entities in {names}?"
    first: list[Part] = [
        Facts(verdict_facts(question_asked, report.finding, cost_in_words(sum(result.hours.values()))), leading=True)
    ]
    second: list[Part] = []
    answers = study_answer(result)  # one a question, and more; of all only one where nothing was learnt
    for number, of in enumerate(asked(result)):
        drawn, cells = _results(result, of)
        first += [Heading(_HEADINGS[of]), *drawn]
        second += [Heading(_HEADINGS[of]), *map(Text, answers[number : number + 1]), *cells]
    second = [
        *second,
        *map(Text, answers[len(asked(result)) :]),
        Heading("What was compared"),
        Text(_compared(report)),
        Heading("How sure"),
        *_how_sure(result),
        Heading("On what"),
        *corpora_parts(report.corpora, report.missing),
        Heading("How to repeat it"),
        Text(repeated(report.version)),
        Code(report.command),
    ]
    return Document(
        title=TITLE, answer=report.finding.what, about=report.begun, cover=cover, first=first, second=second
    )


def _compared(report: StudyReport) -> str:
    result = report.result
    claim = f"{result.arm} {result.budget}".strip()
    differ = "what plain text they had read before" if any(task.tokens for task in result.tasks) else "one thing"
    return (
        f"Programs that find entities in text were trained alike for {len(result.tasks)} tasks, but for {differ}. The "
        f"claim, named beforehand, is about {claim}. Every program starts from the encoder {report.encoder} with the "
        f"settings “{report.preset}”, and all was made anew {result.replicates} "
        f"{'time' if result.replicates == 1 else 'times'} for each task, since chance plays a part."
    )


def _results(result: StudyResult, of: Asked) -> tuple[list[Part], list[Part]]:
    """The drawing of a question, and its table with what is lacking."""
    rows = forest_rows(result, of)
    shown = [
        Interval(
            name=row.name,
            value=row.delta,
            low=row.interval[0],
            high=row.interval[1],
            colour=_COLOURS[row.answer] if row.answer else "#0072B2",
            bold=bool(row.answer),
        )
        for row in rows
        if row.known
    ]
    than = over(result, of)
    drawn = intervals(shown, f"points of 100 more than {'without' if than == 'none' else than}; at 0 no difference")
    words = f"Difference to {than} on every task with its interval, {THESE} and {OTHERS}; the table has them too"
    f1s = {task.name: f"{task.f1:.2f}" for task in result.tasks}
    cells = [(row.name, "" if row.answer else f1s.get(row.name, ""), row.points, row.answer or "") for row in rows]
    heads = ("Task", "Score (F1)", f"Difference to {than} (interval)", "Answer")
    lacking = question(result, of).lacking
    table: list[Part] = [Table(heads, cells, (1, 2)), *([Text(lacking, strong=True)] if lacking else [])]
    return [Picture(drawn, words)] if drawn else [], table


def _how_sure(result: StudyResult) -> list[Part]:
    planned = [Text(result.planned.why, strong=True)] if result.planned else []
    text = (
        "An interval is where the true difference lies, in 95 of 100 such studies. “These, on average” speaks of these "
        "very tasks, had all been drawn and trained anew and had other test sentences been labelled. “Others like "
        "these” takes the tasks for a sample of their kind: from fewer than five of them that is wide, and it is said "
        "only where it is shown on these. One test was planned, over all tasks together; each task by itself is "
        "exploratory."
    )
    return [*planned, Text(text)]
