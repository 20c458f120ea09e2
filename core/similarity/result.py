"""What a `similarity` run leaves, and its rows looked at: as a grid, in order of closeness, in words, as a .csv."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

import numpy as np

from core.corpora.writers import harmless
from core.results import Prefer
from core.similarity.advice import advise
from core.similarity.agreement import Agreement
from core.similarity.grid import Grid
from core.similarity.leads import Lead
from core.similarity.measures import MEASURES, title
from core.similarity.predictive import Regret


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityRow:
    """Similarity of a source to a target by one measure.

    value: the mean over the draws, in `unit`; None where none could be measured, and `problem` says why. prefer: which
    end is closer. convention: how the number was made, in words. sample_tokens, target_tokens: read of the source, of
    the target. draws: the value of each; low, high: the ends of these. columns: the measure's other readings by name.
    whole: nothing of the source was left out.
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
    """A measure's value on a smaller sample of the source, of so many tokens; None where it could not be measured."""

    target: str
    source: str
    measure: str
    tokens: int
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """Result of a `similarity` run.

    targets, sources: {name: fingerprints of the corpora that make it up}. too_small: {source that was left out: its
    tokens}. measurements: one a target, source and measure. curve: the same at smaller caps. closest: {measure:
    source}, where there are several targets {target: {measure: source}}. recommendation: {target: a sentence}.
    warnings: to be seen beside the table; notes: behind it. cap_tokens: of every source at most; None: all that it has.
    leads: one a target and measure that has a vote.
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
    leads: Sequence[Lead] = ()  # results of older versions have none


def grid_of(rows: Sequence[SimilarityRow]) -> Grid:
    """The rows of `measurements` as one table."""
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
    """Rows of `measurements` with the sources of each target in order of closeness: by mean rank over the measures.

    A source that a measure could not read ranks last by it; ties keep their order.
    """
    from scipy.stats import rankdata  # a second to load

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


def advice(grid: Grid, target: str, ahead: Sequence[Lead], past: Sequence[Regret] = ()) -> str:
    """The recommendation for one target, with what following the measures cost before. ahead: `leads` of a result."""
    own = [lead for lead in ahead if lead.target == target]
    return advise(grid, grid.targets.index(target), [title(name) for name in grid.measures], own, past)


def best_value(rows: Sequence[SimilarityRow]) -> float | None:
    """The value that is closest, of one target and measure; None where nothing is ahead of the rest."""
    values = [row.value for row in rows if row.value is not None]
    if len(set(values)) < 2:
        return None
    return float(max(values) if rows[0].prefer == "high" else min(values))


def as_csv(rows: Sequence[SimilarityRow]) -> str:
    """The table for a spreadsheet, one line a number; no cell is a formula, and a missing value is empty."""
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
