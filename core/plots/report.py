"""An experiment on one page of HTML for a reader who trains no models: no scripts, nothing fetched, text escaped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from core.artifacts.finding import Finding
from core.artifacts.leaderboard import SWAPPED, ArmRow, FurtherTest, against, swapped
from core.artifacts.taggers import Unfound
from core.plots.results import (
    VERDICT_MARKS,
    answers,
    hours_words,
    interval_words,
    known_interval,
    line_name,
    rate_words,
    unfound_words,
)

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1d1f24, #e6e6e6); background: light-dark(#fff, #15171c); color-scheme: light dark; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 1.8rem; }
.answer { border-left: 5px solid #0072B2; padding: .3rem 0 .3rem 1rem; font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; } div { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8888; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { overflow-wrap: anywhere; font-size: .85rem; } svg { width: 100%; height: auto; } svg text { fill: currentColor; }
h2 { break-after: avoid; } svg, tr, .answer { break-inside: avoid; }
@media print { body { margin: 0; max-width: none; } }
"""
_SIGN = {
    "improves": "▲",
    "helped": "△",
    "below control": "▽",
    "hurts": "▼",
    "no evidence": "●",
    "nothing learnt": "✕",
    "baseline": "◆",
    "control": "■",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """A corpus of an experiment. role: its part, in words. sentences: 0 where it is gone."""

    role: str
    name: str
    sentences: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An experiment's results and how they came about, as the report prints them.

    rows: the leaderboard's. hours: of computing. begun: a sentence that says which experiment and when. finding: its
    verdict. missing: why the command would not repeat it, a phrase each. unfound: types that no arm got right.
    planned: what the planned test came to, a sentence. overlap: what was both trained on and tested.
    """

    rows: Sequence[ArmRow]
    corpora: Sequence[CorpusRow]
    encoder: str
    preset: str
    seeds: Sequence[int]
    hours: float
    command: str
    begun: str
    finding: Finding
    version: str
    missing: Sequence[str]
    unfound: Sequence[Unfound] = ()
    planned: str = ""
    overlap: str = ""


def one_page(report: Report) -> str:
    """A whole HTML document."""
    parts = (
        ("The answer", _answer_block(report)),
        ("What was compared", _compared(report)),
        ("On what", corpora_table(report.corpora, report.missing)),
        ("What came out", _results_table(report)),
        ("How sure", _how_sure(report)),
        ("What it cost", _cost(report)),
        ("How to repeat it", f"<p>{escape(repeated(report.version))}</p><p><code>{escape(report.command)}</code></p>"),
    )
    return document(report.begun, parts)


def document(begun: str, parts: Sequence[tuple[str, str]]) -> str:
    """A whole HTML document. begun: its first sentence. parts: headings, and their HTML."""
    body = "".join(f"<h2>{heading}</h2>{text}" for heading, text in parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Was it worth it?</title>'
        '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>Was it worth it?</h1>"
        f"<p>{escape(begun)}</p>{body}</body></html>\n"
    )


def _answer_block(report: Report) -> str:
    unfound = unfound_words(report.unfound)
    also = "".join(f"<p><strong>{escape(text)}</strong></p>" for text in (unfound, report.overlap) if text)
    return f"{finding_block(report.finding)}{also}"


def finding_block(finding: Finding) -> str:
    """A verdict's three parts."""
    what, *others = finding.parts
    below = "".join(f"<p>{escape(part)}</p>" for part in others)
    return f'<div class="answer"><p><strong>{escape(what)}</strong></p>{below}</div>'


def all_read(rows: Sequence[ArmRow]) -> bool:
    """Whether pre-training is all that arms differ in."""
    return all(row.sentences for row in rows if row.verdict != "baseline")


def _compared(report: Report) -> str:
    text = "Programs that find entities in text (names, parties, places) were trained alike, but for one thing"
    arms = ""
    if all_read(report.rows):
        text += (
            ": what plain text the program had read before. Each way of preparing it is an arm. The arm “none” read "
            "nothing; “random” read sentences drawn by lot, and shows what any text of that amount does. The others "
            "read what they chose from a large corpus (D_C) for being like the text of the task (T_C); their choice "
            "is called S_C, and the number behind an arm's name says how much that was."
        )
    else:
        text += ", which is called an arm:"
        named = {row.arm: row.about for row in report.rows}
        arms = "".join(f"<li><strong>{escape(name)}</strong>: {escape(about)}</li>" for name, about in named.items())
    alike = (
        f"Every arm starts from the encoder {report.encoder} with the settings “{report.preset}”, and was trained "
        f"{len(report.seeds)} {'time' if len(report.seeds) == 1 else 'times'}, since chance plays a part (seeds "
        f"{', '.join(map(str, report.seeds))})."
    )
    if swapped(report.rows):
        alike = f"{alike} {SWAPPED}"
    return (
        f"<p>{escape(text)}</p><ul>{arms}</ul><p>{escape(alike)}</p>" if arms else f"<p>{escape(f'{text} {alike}')}</p>"
    )


def corpora_table(corpora: Sequence[CorpusRow], missing: Sequence[str]) -> str:
    """The corpora of a run, and why it cannot be repeated where some are gone."""
    rows = [(c.role, c.name, f"{c.sentences:,}", c.fingerprint[:16]) for c in corpora]
    listed = table(("Part", "Corpus", "Sentences", "Fingerprint"), rows, numbers=(2,))
    if not missing:
        return listed
    return f"{listed}<p><strong>Not repeatable as it was:</strong> {escape('; '.join(missing))}.</p>"


def _results_table(report: Report) -> str:
    text = (
        "F1 says how many of the entities in the test set were found exactly and how few were invented: 100 is "
        f"perfect, 0 is nothing right. The difference is to the arm {against(report.rows)}, in points of F1."
    )
    rows = []
    for row in report.rows:
        spread = f"{row.mean:.2f}" + ("" if row.sd is None else f" ± {row.sd:.2f}")
        helped, chose = answers(row)
        difference = interval_words(row)
        rows.append((line_name(row), _read(row), spread, difference, f"{_SIGN[row.verdict]} {helped}", chose))
    question = "Reading helped" if all_read(report.rows) else "Helped"
    heads = ("Arm", "Sentences (words) read", "F1 ± spread", "Difference (interval)", question, "Choosing helped")
    return f"<p>{escape(text)}</p>{_drawing(report.rows)}{table(heads, rows, numbers=(1, 2, 3))}{_further(report.rows)}"


def _read(row: ArmRow) -> str:
    words = f" ({row.tokens:,})" if row.tokens else ""  # results of older versions have none
    return f"{row.sentences:,}{words}"


def _further(rows: Sequence[ArmRow]) -> str:
    """The test set beside the harder ones, never as one mean."""
    names = [test.test for test in rows[0].also]
    if not names:
        return ""
    cells = [(line_name(row), _tested(row), *map(_tested, row.also)) for row in rows]
    text = f"The same taggers on further test sets, and their difference to {against(rows)}. No verdict rests on these."
    heads = ("Arm", "Test set", *names)
    return f"<p>{escape(text)}</p>{table(heads, cells, numbers=range(1, len(heads)))}"


def _tested(test: ArmRow | FurtherTest) -> str:
    return f"{test.mean:.2f} ({test.delta:+z.2f})"


def _drawing(rows: Sequence[ArmRow]) -> str:
    """Intervals about zero, a line an arm."""
    shown = [row for row in rows if row.verdict != "baseline" and known_interval(row)]
    if not shown:
        return ""
    # Zero stands on the axis even where no interval touches it: what is judged is the distance to it.
    low = min(0.0, *(row.interval[0] for row in shown))
    high = max(0.0, *(row.interval[1] for row in shown))
    factor = 460 / ((high - low) or 1)

    def x(value: float) -> float:
        return float(225 + (value - low) * factor)

    lines = [
        f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{28 * len(shown)}" stroke="#888" stroke-dasharray="4"/>'
    ]
    for i, row in enumerate(shown):
        y, colour = 28 * i + 14, VERDICT_MARKS[row.verdict].colour
        (lo, hi), name = row.interval, escape(line_name(row))
        lines.append(f'<text x="215" y="{y + 5}" text-anchor="end" font-size="14">{name} {_SIGN[row.verdict]}</text>')
        lines.append(f'<line x1="{x(lo):.1f}" x2="{x(hi):.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="4"/>')
        lines.append(f'<circle cx="{x(row.delta):.1f}" cy="{y}" r="6" fill="{colour}"/>')
    compared_with = escape(against(rows))
    lines += scale(low, high, x, 28 * len(shown), f"points of F1 more than {compared_with}")
    name = f"Difference of every arm to {compared_with}, with its interval; the table below has the numbers"
    size = f'viewBox="0 0 700 {28 * len(shown) + 44}"'
    return f'<svg role="img" aria-label="{name}" {size}>{"".join(lines)}</svg>'


def scale(
    low: float,
    high: float,
    x: Callable[[float], float],
    y: float,
    unit: str,
) -> list[str]:
    """The axis below the intervals: a mark at every round number, 0 among them, and what it counts."""
    step = _round_step((high - low) / 6)
    values = [step * i for i in range(ceil(low / step), floor(high / step) + 1)]
    line = f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y}" y2="{y}" stroke="#888"/>'
    marks = [
        f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{y}" y2="{y + 5}" stroke="#888"/>'
        f'<text x="{x(value):.1f}" y="{y + 19}" text-anchor="middle" font-size="13">{words}</text>'
        for value in values
        for words in (f"{value:+.4g}" if value else "0",)
    ]
    label = f'<text x="{x((low + high) / 2):.1f}" y="{y + 38}" text-anchor="middle" font-size="13">{unit}</text>'
    return [line, *marks, label]


def _round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is no less than `least`."""
    # A step that rounding left a hair below `least` still counts as no less, else the axis would lose half its marks.
    power: float = 10.0 ** floor(log10(least or 1.0))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= (least or 1.0) * 0.999)


def _how_sure(report: Report) -> str:
    text = (
        "The interval is where the true difference lies, in 95 of 100 such experiments, had other seeds and another "
        "test set of this size been drawn. One arm was named beforehand for the planned test; the others are "
        "exploratory, and the more of them there are, the surer each has to be. An arm “improves” only if it is surely "
        "above no pre-training and above random text of the same amount (an arm that reads all text has chosen "
        "nothing, so only the first counts for it). Each arm read the test set once; every choice was made on a "
        "separate dev set. Where an arm has one selection and one pre-training, a quick look, the interval does not "
        "hold what other ones would change, so it cannot show that choosing helped. Text from elsewhere is in no "
        "interval."
    )
    reasons = "".join(
        f"<li><strong>{escape(line_name(row))}</strong>: {escape(row.why)}</li>"
        for row in report.rows
        if row.verdict != "baseline"
    )
    planned = f"<p><strong>{escape(report.planned)}</strong></p>" if report.planned else ""
    return f"{planned}<p>{escape(text)}</p><ul>{reasons}</ul>"


def _cost(report: Report) -> str:
    rows = [(line_name(row), hours_words(row.gpu_hours), rate_words(row)) for row in report.rows]
    text = f"All in all {hours_words(report.hours)} of computing. What arms share is counted with each of them below."
    heads = ("Arm", "Time by itself", "Points of F1 for each further hour (interval)")
    return f"<p>{escape(text)}</p>{table(heads, rows, numbers=(1, 2))}"


def repeated(version: str) -> str:
    """How it can be had again, in words."""
    return f"Winnow {version}, on one machine; nothing left it. The same command gives the same result:"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> str:
    """A table as HTML. numbers: the columns of numbers."""

    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if i in numbers else ''}>{escape(value)}</{tag}>" for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div><table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table></div>"
