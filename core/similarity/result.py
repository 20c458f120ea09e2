"""The rows of a `similarity` run (as stored, as a grid, closest first, and as CSV), and its recommendation."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

import numpy as np

from core.corpora.writers import harmless
from core.results import Prefer
from core.shown import count, listed
from core.similarity.agreement import Agreement
from core.similarity.grid import Grid, Lead
from core.similarity.measures import MEASURES, title
from core.similarity.predictive import Regret


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityRow:
    """Similarity of a source to a target by one measure.

    value: mean over the random samples, in `unit`; None if it could not be measured, and `problem` says why. prefer:
    the end that means "closer". convention: how the number was computed, in words. sample_tokens, target_tokens: tokens
    used of the source and of the target. draws: value per sample; low, high: their range. columns: {name: further
    value}. whole: True if all text of the source was used.
    """

    target: str
    source: str
    measure: str
    value: float | None
    unit: str
    prefer: Prefer
    convention: str
    sample_tokens: int
    target_tokens: int
    draws: Sequence[float]
    low: float | None
    high: float | None
    columns: Mapping[str, float | None]
    whole: bool
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Value of a measure on a smaller sample of the source, with `tokens` tokens; None if it could not be measured."""

    target: str
    source: str
    measure: str
    tokens: int
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """Result of a `similarity` run.

    targets, sources: {name: fingerprints of its corpora}. too_small: {source that was left out: its tokens}.
    measurements: one per target, source and measure. curve: values with fewer tokens. closest: {measure: source}, or
    {target: {measure: source}} for several targets. recommendation: {target: sentence}. warnings: shown with the table.
    notes: shown below it. cap_tokens: most tokens per source; None: all. leads: one per target and voting measure.
    """

    targets: Mapping[str, Sequence[str]]
    sources: Mapping[str, Sequence[str]]
    too_small: Mapping[str, int]
    measurements: Sequence[SimilarityRow]
    curve: Sequence[CurvePoint]
    agreement: Agreement
    closest: Mapping[str, str] | Mapping[str, Mapping[str, str]]
    recommendation: Mapping[str, str]
    warnings: Sequence[str]
    notes: Sequence[str]
    cap_tokens: int | None
    draws: int
    seed: int
    leads: Sequence[Lead]


def grid_of(rows: Sequence[SimilarityRow]) -> Grid:
    """Return the rows of `measurements` as one table."""
    targets = tuple(dict.fromkeys(row.target for row in rows))
    sources = tuple(dict.fromkeys(row.source for row in rows))
    measures = tuple(dict.fromkeys(row.measure for row in rows))
    shape = (len(targets), len(sources), len(measures))
    values, spread = np.full(shape, np.nan), np.zeros(shape)
    for row in rows:
        at = targets.index(row.target), sources.index(row.source), measures.index(row.measure)
        if row.value is not None:
            values[at], spread[at] = row.value, max(row.draws) - min(row.draws)
    several = any(len(row.draws) > 1 for row in rows)
    prefer = tuple(MEASURES[name].prefer for name in measures)
    return Grid(
        targets=targets,
        sources=sources,
        measures=measures,
        prefer=prefer,
        values=values,
        spread=spread if several else None,
    )


def closest_first(rows: Sequence[SimilarityRow]) -> list[SimilarityRow]:
    """Sort rows of `measurements` by target, then by the source's mean rank over the measures, the closest first.

    If a measure has no value for a source, the source ranks last by this measure. Ties keep their order.
    """
    from scipy.stats import rankdata  # loads in about a second

    grid = grid_of(rows)
    closeness = np.where(np.isnan(grid.values), -np.inf, grid.closeness())
    ranks = rankdata(-closeness, axis=1).mean(axis=2)  # `(t, s)`
    place = {
        (target, source): rank
        for target, row in zip(grid.targets, ranks, strict=True)
        for source, rank in zip(grid.sources, row, strict=True)
    }
    order = {target: at for at, target in enumerate(grid.targets)}
    return sorted(rows, key=lambda row: (order[row.target], place[row.target, row.source]))


def advise(grid: Grid, target: int, ahead: Sequence[Lead] = (), past: Sequence[Regret] = ()) -> str:
    """Recommend a source for one target, in a sentence that says how certain that is.

    ahead: leads, of this target and possibly others. past: regret per measure in earlier experiments.
    """
    name, voters = grid.targets[target], grid.voters()
    if len(grid.sources) == 1:
        return f"{grid.sources[0]} is the only source, and one source cannot be compared; add another one."
    votes: dict[str, list[str]] = {}
    for measure, source in grid.only(voters).closest(target).items():
        votes.setdefault(source, []).append(title(measure))
    if not votes:
        return f"No measure ranks one source first for {name}: the sources are equally close, or could not be measured."
    (first, supporters), *others = sorted(votes.items(), key=lambda vote: -len(vote[1]))
    # The votes are sorted, so only the second source can tie with the first.
    if others and len(others[0][1]) == len(supporters):
        camps = [f"{source} by {listed(measures)}" for source, measures in ((first, supporters), *others)]
        head = f"The measures are split over {name}: {listed(camps)}"
    else:
        head = f"{first} is closest to {name} by {len(supporters)} of {sum(map(len, votes.values()))} measures"
        head += ", TVC and TVcC counting as one" if len(voters) < len(grid.measures) else ""
        head += f" ({listed([f'{source} by {listed(measures)}' for source, measures in others])})" if others else ""
    return f"{head}; {_doubt(name, [lead for lead in ahead if lead.target == name])}{_past(past)}."


def _doubt(target: str, ahead: Sequence[Lead]) -> str:
    """Return a clause that says which leads are beyond chance, and for which text this holds."""
    judged = [lead for lead in ahead if lead.p is not None]
    if not judged:
        few = any(lead.parts for lead in ahead)
        return "there is too little text to test this against chance" if few else "this was not tested against chance"
    short = [title(lead.measure) for lead in ahead if lead.p is None]
    unjudged = f"; by {listed(short)} there is too little text to judge it" if short else ""
    other = f"other text of {target} and of the sources"
    if chance := [title(lead.measure) for lead in judged if not lead.holds]:
        return f"by {listed(chance)} the lead may be chance, so {other} may reverse it{unjudged}"
    parts = min(lead.parts for lead in judged)
    whose = "the" if short else "every"
    return f"{whose} lead is beyond chance, also on {other} (95%, {parts} parts of each){unjudged}"


def _past(past: Sequence[Regret]) -> str:
    losses = [(regret.mean, regret.targets) for regret in past if regret.mean is not None]
    if not losses:
        return ""
    mean, targets = float(np.mean([points for points, _ in losses])), max(n for _, n in losses)
    runs = f"on your past runs ({count(targets, 'target')})"
    return f"; {runs} the closest source lost {mean:.1f} points on average against the best"


def best_values(rows: Sequence[SimilarityRow]) -> dict[str, float | None]:
    """Return {measure: value of the closest source} for rows of one target; None if all sources have the same value."""
    best: dict[str, float | None] = {}
    for measure in dict.fromkeys(row.measure for row in rows):
        of_measure = [row for row in rows if row.measure == measure]
        values = [row.value for row in of_measure if row.value is not None]
        closest = max if of_measure[0].prefer == "high" else min
        best[measure] = closest(values) if len(set(values)) > 1 else None
    return best


def as_csv(rows: Sequence[SimilarityRow]) -> str:
    """Return the table as CSV, one row per value. Formulas are escaped, and a missing value is empty."""
    columns = (
        "target",
        "source",
        "measure",
        "value",
        "low",
        "high",
        "unit",
        "prefer",
        "sample_tokens",
        "target_tokens",
    )
    other = list(dict.fromkeys(key for row in rows for key in row.columns))
    out = StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([*columns, *other, "convention", "problem"])
    for row in rows:
        values = [getattr(row, key) for key in columns] + [row.columns.get(key) for key in other]
        writer.writerow([harmless(value) for value in (*values, row.convention, row.problem)])
    return out.getvalue()
