"""What the measures predicted and what training came to: for a pasted table, and for the user's own experiments."""

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
    for each in outcomes:
        table: dict[str, dict[str, Any]] = {measure: {} for measure in grid.measures}
        for found in correlations(grid, each):
            table[found.measure][found.convention] = {
                "value": found.value, "interval": found.interval, "targets": found.targets,
            }  # fmt: skip
        lost = [asdict(regret) for regret in regrets(grid, each)]
        effects.append({"name": each.name, "correlations": table, "regrets": lost, "sentence": _sentence(table, lost)})
    return {
        "targets": list(grid.targets),
        "sources": list(grid.sources),
        "measures": list(grid.measures),
        "conventions": dict(CONVENTIONS),
        "agreement": asdict(agreement(grid)),
        "effects": effects,
    }


def _sentence(table: Mapping[str, Mapping[str, Any]], lost: Sequence[Mapping[str, Any]]) -> str:
    """Which measure went with F1 most, how sure that is, and what following it cost."""
    by_size = {m: abs(row["runs"]["value"]) for m, row in table.items() if row["runs"]["value"] is not None}
    if not by_size:
        return "There are too few sources with an F1 to say what predicts it: give at least two for a target."
    best = max(by_size, key=by_size.__getitem__)
    r = table[best]["runs"]
    many = f"{r['targets']} target{'s' if r['targets'] > 1 else ''}"
    sure = (
        f"95% interval {r['interval'][0]:.2f} to {r['interval'][1]:.2f}" if r["interval"] else "one target, no interval"
    )
    regret = next(each for each in lost if each["measure"] == best)
    return (
        f"{title(best)} goes with F1 most closely, r = {r['value']:.3f} over {many} ({sure}); taking the source it "
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
            source = names.get(row.get("source") or arm[2]) if arm else None
            if arm and source in grid.sources:
                kinds.add(kind := KINDS[arm[1]])
                own = runs.setdefault(kind, {}).setdefault((at, grid.sources.index(source)), [])
                own += row["micro_f1"]
        bare = [f1 for row in board if row["arm"] == "none" for f1 in row["micro_f1"]]
        for kind in kinds:
            none.setdefault(kind, {}).setdefault(at, []).extend(bare)
    return [outcomes_of(kind, made, _means(none[kind], grid), len(grid.sources)) for kind, made in runs.items()]


def _means(runs: Mapping[int, Sequence[float]], grid: Grid) -> FloatArray:
    """`(t,)`, NaN where there is no run."""
    return np.array([np.mean(runs[at]) if runs.get(at) else np.nan for at in range(len(grid.targets))])
