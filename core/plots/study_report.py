"""A study on one page of HTML for a reader who trains no models, as `report` has it for an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from core.artifacts.finding import Finding
from core.artifacts.study import StudyResult
from core.plots.report import CorpusRow, corpora_table, document, finding_block, repeated, scale, table
from core.plots.results import hours_words
from core.plots.study import OTHERS, THESE, Asked, ForestRow, asked, forest_rows, over, question, study_answer

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


def study_page(report: StudyReport) -> str:
    """A whole HTML document."""
    result = report.result
    answers = "".join(f"<p>{escape(sentence)}</p>" for sentence in study_answer(result))
    parts = [
        ("The answer", f"{finding_block(report.finding)}{answers}"),
        ("What was compared", f"<p>{escape(_compared(report))}</p>"),
        *((_HEADINGS[of], _results(result, of)) for of in asked(result)),
        ("How sure", _how_sure(result)),
        ("On what", corpora_table(report.corpora, report.missing)),
        ("What it cost", f"<p>{hours_words(sum(result.hours.values()))} of computing.</p>"),
        ("How to repeat it", f"<p>{escape(repeated(report.version))}</p><p><code>{escape(report.command)}</code></p>"),
    ]
    return document(report.begun, parts)


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


def _results(result: StudyResult, of: Asked) -> str:
    rows = forest_rows(result, of)
    f1s = {task.name: f"{task.f1:.2f}" for task in result.tasks}
    cells = [(row.name, "" if row.answer else f1s[row.name], row.points, row.answer or "") for row in rows]
    heads = ("Task", "F1", f"Difference to {over(result, of)} (interval)", "Answer")
    lacking = question(result, of).lacking
    return f"{_drawing(result, rows, of)}{table(heads, cells, numbers=(1, 2))}" + (
        f"<p><strong>{escape(lacking)}</strong></p>" if lacking else ""
    )


def _drawing(result: StudyResult, rows: Sequence[ForestRow], of: Asked) -> str:
    """Intervals about zero, the means below the tasks."""
    shown = [row for row in rows if row.known]
    if not shown:
        return ""
    low = min(0.0, *(row.interval[0] for row in shown))
    high = max(0.0, *(row.interval[1] for row in shown))
    factor, bottom = 460 / ((high - low) or 1), 28 * len(shown)

    def x(value: float) -> float:
        return float(225 + (value - low) * factor)

    lines = [f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{bottom}" stroke="#888" stroke-dasharray="4"/>']
    for number, row in enumerate(shown):
        y, (lo, hi) = 28 * number + 14, row.interval
        colour, weight = (_COLOURS[row.answer], "bold") if row.answer else ("#0072B2", "normal")
        words = escape(row.name if len(row.name) <= 24 else f"{row.name[:23]}…")
        lines.append(
            f'<text x="215" y="{y + 5}" text-anchor="end" font-size="14" font-weight="{weight}">{words}</text>'
            f'<line x1="{x(lo):.1f}" x2="{x(hi):.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="4"/>'
            f'<circle cx="{x(row.delta):.1f}" cy="{y}" r="{7 if row.answer else 5}" fill="{colour}"/>'
        )
    against = over(result, of)
    lines += scale(low, high, x, bottom, escape(f"points of F1 more than {against}; at 0 there is no difference"))
    name = escape(
        f"Difference to {against} on every task with its interval, {THESE} and {OTHERS}; the table has them too"
    )
    return f'<svg role="img" aria-label="{name}" viewBox="0 0 700 {bottom + 44}">{"".join(lines)}</svg>'


def _how_sure(result: StudyResult) -> str:
    planned = f"<p><strong>{escape(result.planned.why)}</strong></p>" if result.planned else ""
    text = (
        "An interval is where the true difference lies, in 95 of 100 such studies. “These, on average” speaks of these "
        "very tasks, had all been drawn and trained anew and had other test sentences been labelled. “Others like "
        "these” takes the tasks for a sample of their kind: from fewer than five of them that is wide, and it is said "
        "only where it is shown on these. One test was planned, over all tasks together; each task by itself is "
        "exploratory."
    )
    return f"{planned}<p>{escape(text)}</p>"
