"""The commands `similarity`, `predictiveness` and `survey`: the closest source, by measures or people's opinion."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from core.cli.options import FILE, config_options, given, several
from core.cli.terminal import finish, json_option, progress, report
from core.kinds import KINDS
from core.projects import runs
from core.runs.result import read
from core.runs.run import Run
from core.shown import count
from core.similarity import view as similarity
from core.similarity.agreement import Agreement
from core.similarity.measures import symbol, title
from core.similarity.predictive import Rule
from core.similarity.result import SimilarityResult, SimilarityRow, best_values
from core.similarity.survey import opinions_in
from core.similarity.worth import Judgement

CONFIG = KINDS["similarity"].config


@click.command("similarity")
@config_options(CONFIG)
@click.option("--output", type=FILE, help="Write the table: a .csv or .json file.")
@json_option
def measure(output: str | None, as_json: bool, **values: object) -> None:
    """Measure how close each source is to each target, on equal samples.

    \b
    Perplexity (PPL) and word vector variance (WVV): lower is closer. Target vocabulary covered (TVC) and content
    words covered (TVcC): higher is closer.
    """
    if output:
        similarity.check_output(Path(output))
    run = runs.execute("similarity", given(values, CONFIG), progress)
    finish(run, as_json, output, _write, plain=lambda _: in_words(run.id))


def _write(run: Run, output: str) -> Mapping[str, str]:
    return {"output": str(similarity.export(run.id, Path(output)))}


@click.command()
@click.argument("table", metavar="TABLE")
@click.option("--measure", multiple=True, callback=several, metavar="NAME,...", help="Measures to judge; default: all.")
@json_option
def predictiveness(table: str, measure: tuple[str, ...], as_json: bool) -> None:
    """Test if the measures predicted the score (F1): correlation, regret, and which model suits a close source.

    TABLE: a .csv with target, source, measures and F1; or the id of a similarity run, to use your experiments.
    """
    judgement = similarity.judge_named(table, measure)
    report(asdict(judgement), as_json, worth_in_words(judgement))


@click.command()
@click.argument("answers", type=click.Path(dir_okay=False))
@json_option
def survey(answers: str, as_json: bool) -> None:
    """Test which source people think is closer. ANSWERS.csv has target, a, b, answer and optionally person.

    answer: 1 (strongly disagree) to 5 (strongly agree) that a is closer to the target than b.
    """
    opinions = opinions_in(Path(answers))
    report({"opinions": [asdict(one) for one in opinions]}, as_json, [one.sentence for one in opinions])


def in_words(run_id: str) -> list[str]:
    """Format the result of a run: a table per target, with the closest source marked, and the recommendations."""
    lines, result = [], read(runs.get(run_id), SimilarityResult)
    for target, sentence in result.recommendation.items():
        lines += ["", *_matrix(target, similarity.rows(run_id, target)), sentence]
    return [*lines, *_agreement(result.agreement), *(f"warning: {warning}" for warning in result.warnings)]


def _agreement(kappa: Agreement) -> list[str]:
    """Describe how far the measures agree (Dai et al. 2019, 7.1).

    Return [] if every pair of sources has a tie or a missing value by some measure.
    """
    if not kappa.items:
        return []
    return [
        "",
        f"The measures agree on {kappa.unanimous} of {count(kappa.items, 'pair')} of sources: Fleiss' kappa "
        f"{_number(kappa.fleiss_kappa)}, Randolph's {_number(kappa.randolph_kappa)}.",
    ]


def _matrix(target: str, rows: Sequence[SimilarityRow]) -> list[str]:
    measures = list(dict.fromkeys(row.measure for row in rows))
    best = best_values(rows)
    wide = max(len(target), *(len(row.source) for row in rows))
    ends = {row.measure: row.prefer for row in rows}
    words = [title(measure) for measure in measures]
    widths = {measure: max(16, len(word) + 2) for measure, word in zip(measures, words, strict=True)}
    lines = [
        f"{target:<{wide}} " + "".join(f"{word:>{widths[m]}}" for m, word in zip(measures, words, strict=True)),
        f"{'':<{wide}} " + "".join(f"{f'{symbol(m)} ({ends[m]})':>{widths[m]}}" for m in measures),
    ]
    for source in dict.fromkeys(row.source for row in rows):
        cells = [row for row in rows if row.source == source]
        firsts = [row.value is not None and row.value == best[row.measure] for row in cells]
        shown = [
            f"{_number(row.value) + '* '[not first]:>{widths[row.measure]}}"
            for row, first in zip(cells, firsts, strict=True)
        ]
        lines.append(f"{source:<{wide}} " + "".join(shown))
    return lines


def worth_in_words(judgement: Judgement) -> list[str]:
    """Format how well the measures predict F1: a table of correlations r and a sentence for each kind of model.

    The columns of a table are the conventions of r (Table 4 of Dai et al. 2019). The test of the rule and the agreement
    of the measures come last.
    """
    lines = []
    for effect in judgement.effects:
        wide = max(12, *(len(title(measure)) + 2 for measure in effect.correlations))
        lines += ["", effect.name, f"{'':<{wide}}" + "".join(f"{name:>10}" for name in (*judgement.conventions, "p"))]
        chances = effect.chance.by_measure if effect.chance else {}
        for measure, row in effect.correlations.items():
            cells = "".join(f"{_number(row[name].value):>10}" for name in judgement.conventions)
            lines.append(f"{title(measure):<{wide}}{cells}{_number(chances.get(measure)):>10}")
        lines.append(effect.sentence)
    return [*lines, *_rule(judgement.rule), *_agreement(judgement.agreement)]


def _rule(rule: Rule | None) -> list[str]:
    """Format the test of the rule in `predictive.rule` as a table and a sentence; [] if there was no test.

    A row has a source's rank by closeness, the F1 difference of the two models, and the rule's advice. The closest
    source of each target comes first.
    """
    if rule is None:
        return []
    wide = max(len(f"{row.target} {row.source}") for row in rule.rows)
    lines = ["", f"{'':<{wide}} {'closeness':>11} {'LM minus vectors':>24} {'the rule':>16}"]
    for row in rule.rows:
        gap = f"{row.f1[0] - row.f1[1]:+z.2f} " + (
            f"[{row.interval[0]:+z.2f}, {row.interval[1]:+z.2f}]" if row.interval else "(no interval)"
        )
        where = f"{row.place:g} of {row.of}"
        lines.append(f"{f'{row.target} {row.source}':<{wide}} {where:>11} {gap:>24} {row.advice or 'none':>16}")
    return [*lines, rule.sentence]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
