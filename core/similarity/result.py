"""Result of a `similarity` run: its rows, also as a grid, as CSV or sorted by closeness, and its recommendation."""

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

    value: mean over the random samples, in `unit`; None if it could not be measured. problem: the reason in this case.
    prefer: "low" if low values mean "closer", else "high". convention: how the value was computed, in words.
    sample_tokens, target_tokens: number of tokens used of the source and of the target. draws: value on each sample.
    low, high: range of these values. columns: {name: further value}. whole: True if all text of the source was used.
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
    """Point of the size curve.

    tokens: number of tokens of the source's sample. value: value of the measure; None if it could not be measured.
    """

    target: str
    source: str
    measure: str
    tokens: int
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """Result of a `similarity` run.

    targets, sources: {name: fingerprints of its corpora}. too_small: {source that was left out: number of its tokens}.
    measurements: one row per target, source and measure. curve: values with fewer tokens. closest: {measure: source},
    or {target: {measure: source}} for several targets. recommendation: {target: sentence}. warnings, notes: sentences
    to show with the table, and below it. cap_tokens: maximum number of tokens per source; None: all. draws: number of
    random samples. leads: one per target and voting measure.
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
    """Return the rows of `measurements` as a grid of targets, sources and measures."""
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
    """Sort rows of `measurements` by target, and the sources of a target by mean rank over the measures.

    The closest source comes first. If a measure has no value for a source, the source ranks last by this measure. Ties
    keep their order.
    """
    from scipy.stats import rankdata  # Imported here because it takes a second to load.

    grid = grid_of(rows)
    closeness = np.where(np.isnan(grid.values), -np.inf, grid.closeness())
    ranks = rankdata(-closeness, axis=1).mean(axis=2)  # Shape (targets, sources).
    place = {
        (target, source): rank
        for target, row in zip(grid.targets, ranks, strict=True)
        for source, rank in zip(grid.sources, row, strict=True)
    }
    order = {target: at for at, target in enumerate(grid.targets)}
    return sorted(rows, key=lambda row: (order[row.target], place[row.target, row.source]))


def advise(grid: Grid, target: int, ahead: Sequence[Lead] = (), past: Sequence[Regret] = ()) -> str:
    """Return a sentence that recommends a source for one target, and says how certain the recommendation is.

    target: index of the target. ahead: leads of this target, and possibly of others. past: regret of each measure in
    earlier experiments.
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
    # Sources are sorted by votes, so if the second does not tie with the first, none does.
    if others and len(others[0][1]) == len(supporters):
        camps = [f"{source} by {listed(measures)}" for source, measures in ((first, supporters), *others)]
        head = f"The measures are split over {name}: {listed(camps)}"
    else:
        head = f"{first} is closest to {name} by {len(supporters)} of {sum(map(len, votes.values()))} measures"
        head += ", TVC and TVcC counting as one" if len(voters) < len(grid.measures) else ""
        head += f" ({listed([f'{source} by {listed(measures)}' for source, measures in others])})" if others else ""
    return f"{head}; {_doubt(name, [lead for lead in ahead if lead.target == name])}{_past(past)}."


def _doubt(target: str, ahead: Sequence[Lead]) -> str:
    """Return a clause that says which leads may be chance. ahead: leads of this target."""
    judged = [lead for lead in ahead if lead.p is not None]
    if not judged:
        few = any(lead.parts for lead in ahead)
        return (
            "there is too little text to test the leads against chance"
            if few
            else "the leads were not tested against chance"
        )
    short = [title(lead.measure) for lead in ahead if lead.p is None]
    unjudged = f"; for {listed(short)} there is too little text to test the lead" if short else ""
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
    """Return {measure: value of the closest source}; the value is None if no two sources differ.

    rows: rows of one target.
    """
    best: dict[str, float | None] = {}
    for measure in dict.fromkeys(row.measure for row in rows):
        of_measure = [row for row in rows if row.measure == measure]
        values = [row.value for row in of_measure if row.value is not None]
        closest = max if of_measure[0].prefer == "high" else min
        best[measure] = closest(values) if len(set(values)) > 1 else None
    return best


def as_csv(rows: Sequence[SimilarityRow]) -> str:
    """Return the rows as CSV. Cells that look like formulas are escaped, and missing values are empty cells."""
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
