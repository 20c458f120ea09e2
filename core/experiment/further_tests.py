"""What stands beside an arm's verdict: its F1 on further test sets, and Welch's test."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev

import numpy as np

from core.corpora.library import Library
from core.experiment.halves_result import tables
from core.experiment.result import ArmRow, FurtherTest
from core.experiment.stages import FinishedLine
from core.results import Evaluation
from core.runs.store import Run
from core.stats.bootstrap import compare
from core.stats.welch import Welch, welch
from core.tagging import evaluations


def evaluations_of(line: FinishedLine) -> list[Evaluation]:
    """Evaluations of a line's taggers on the first test set: one a seed, replicate by replicate."""
    return [one for chain in line.chains for one in tables(chain.finetune, chain.halves)]


def _of_runs(finetunes: Sequence[Run], number: int, *, crossed: bool) -> list[Evaluation]:
    """The same on a further test set, which is the same one for all."""
    return [
        replace(one, tested=np.ones(len(one.gold), dtype=np.bool_)) if crossed else one
        for run in finetunes
        for one in evaluations.read(run, number)
    ]


def rows_of(
    finetunes: Sequence[Run], none: Sequence[Run], library: Library, seed: int, *, crossed: bool = False
) -> list[FurtherTest]:
    """F1 on every test set beside the first.

    Intervals at 95%, by seeds and test sentences; nothing is concluded from them, so there is no correction. crossed:
    replicates have labels of their own, the same in all arms, so that they are compared one by one.
    """
    rows = []
    for number, reference in enumerate(finetunes[0].manifest.config["test"][1:], 1):
        table = _of_runs(finetunes, number, crossed=crossed)
        f1s = [one.f1() for one in table]
        difference = compare(table, _of_runs(none, number, crossed=crossed), seed=seed)
        rows.append(
            FurtherTest(
                test=library.find(reference).name,
                micro_f1=f1s,
                mean=mean(f1s),
                sd=stdev(f1s) if len(f1s) > 1 else None,
                delta=difference.delta,
                interval=(difference.lo, difference.hi) if finetunes != none else (0.0, 0.0),
            )
        )
    return rows


def with_welch(arm: Sequence[float], none: Sequence[float], why: str) -> tuple[Welch | None, str]:
    """`welch` against `none`, and `why` with it in words, as Murthy et al. 2018 tell results."""
    test = welch(arm, none)
    if test is None:
        return None, why
    return test, f"{why} Welch's two-sided test over seeds: t = {test.t:z.2f}, p = {test.p:.3f}."


def as_markdown(rows: Sequence[ArmRow]) -> list[str]:
    """A table of the further test sets beside the first, a line an arm; nothing where there are none."""
    tests = [test.test for test in rows[0].also]
    if not tests:
        return []
    lines = [f"| variant | budget | test | {' | '.join(tests)} |", f"|---|---|---:|{'---:|' * len(tests)}"]
    for row in rows:
        cells = [row.arm, row.budget, in_words(row), *map(in_words, row.also)]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def in_words(test: ArmRow | FurtherTest) -> str:
    """Mean, spread over seeds, difference to `none`."""
    spread = "" if test.sd is None else f" ± {test.sd:.2f}"
    return f"{test.mean:.2f}{spread} ({test.delta:+z.2f})"
