"""The measures' predictions against F1 after training: for a pasted table, and for the user's own experiments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from core.measures import title
from core.measures.agreement import agreement
from core.measures.grid import Grid
from core.measures.pasted import read_table
from core.measures.predictive import CONVENTIONS, Outcomes, correlations, outcomes_of, regrets
from core.results import FloatArray

ARM = re.compile(r"(vectors|lm):(.+)")  # arms of an experiment that begin from one source
KINDS = {"vectors": "word vectors", "lm": "language model"}


def judge_table(text: str, name: str = "the table") -> dict[str, Any]:
    """A pasted table of measures and F1 (see `measures.pasted`). Errors: ReadError with the line."""
    pasted = read_table(text, name)
    return judge(pasted.grid, pasted.outcomes)


def judge(grid: Grid, outcomes: Sequence[Outcomes]) -> dict[str, Any]:
    """`agreement` of the measures, and one of `effects` a kind of model: `correlations`, `regrets`, `sentence`.

    correlations: {measure: {convention: {value, interval, targets}}}, against the change of F1.
    """
    effects = []
    for outcome in outcomes:
        table: dict[str, dict[str, Any]] = {measure: {} for measure in grid.measures}
        for r in correlations(grid, outcome):
            table[r.measure][r.convention] = {"value": r.value, "interval": r.interval, "targets": r.targets}
        regret_rows = [asdict(regret) for regret in regrets(grid, outcome)]
        effects.append(
            {
                "name": outcome.name,
                "correlations": table,
                "regrets": regret_rows,
                "sentence": _sentence(table, regret_rows),
            }
        )
    return {
        "targets": list(grid.targets),
        "sources": list(grid.sources),
        "measures": list(grid.measures),
        "conventions": dict(CONVENTIONS),
        "agreement": asdict(agreement(grid)),
        "effects": effects,
    }


def _sentence(table: Mapping[str, Mapping[str, Any]], regrets: Sequence[Mapping[str, Any]]) -> str:
    """The sentence on the measure that went with F1 most, how sure that is, and the cost of following it."""
    by_size = {m: abs(row["runs"]["value"]) for m, row in table.items() if row["runs"]["value"] is not None}
    if not by_size:
        return "There are too few sources with an F1 to say what predicts it: give at least two for a target."
    # Size, not sign: a measure that is reliably wrong predicts too, and its r says which way.
    best = max(by_size, key=by_size.__getitem__)
    r = table[best]["runs"]
    over = f"{r['targets']} target{'s' if r['targets'] > 1 else ''}"
    sure = (
        f"95% interval {r['interval'][0]:.2f} to {r['interval'][1]:.2f}" if r["interval"] else "one target, no interval"
    )
    regret = next(row for row in regrets if row["measure"] == best)
    return (
        f"{title(best)} goes with F1 most closely, r = {r['value']:.3f} over {over} ({sure}); taking the source it "
        f"puts first lost {regret['mean']:.2f} F1 on average, a source drawn by lot {regret['random']:.2f}."
    )


def own_outcomes(
    grid: Grid, boards: Iterable[tuple[str, Sequence[Mapping[str, Any]]]], names: Mapping[str, str]
) -> list[Outcomes]:
    """Finished experiments as outcomes on `grid`.

    boards: (target, leaderboard) an experiment; its arms `vectors:SOURCE` and `lm:SOURCE` count, and the `none` beside
    them is their baseline. names: {a source's fingerprint, or what an arm may call it: its name in the grid}. Several
    runs of one arm are joined.
    """
    runs: dict[str, dict[tuple[int, int], list[float]]] = {}
    none: dict[str, dict[int, list[float]]] = {}
    for target, board in boards:
        at = grid.targets.index(target)
        kinds = set()
        for row in board:
            arm = ARM.fullmatch(row["arm"])
            # The fingerprint first: an arm's own name for its source may have been reused.
            source = names.get(row.get("source") or arm[2]) if arm else None
            if arm and source in grid.sources:
                kinds.add(kind := KINDS[arm[1]])
                f1s = runs.setdefault(kind, {}).setdefault((at, grid.sources.index(source)), [])
                f1s += row["micro_f1"]
        baseline = [f1 for row in board if row["arm"] == "none" for f1 in row["micro_f1"]]
        for kind in kinds:
            none.setdefault(kind, {}).setdefault(at, []).extend(baseline)
    return [outcomes_of(kind, by_pair, _means(none[kind], grid), len(grid.sources)) for kind, by_pair in runs.items()]


def _means(runs: Mapping[int, Sequence[float]], grid: Grid) -> FloatArray:
    """`(t,)`, NaN where there is no run."""
    return np.array([np.mean(runs[at]) if runs.get(at) else np.nan for at in range(len(grid.targets))])
