"""Prediction of F1 by the measures: correlation, regret, and how sure that is.

Dai et al. 2019, 7.2. Their Table 4, language models: Pearson's r per target over all single runs, then the plain mean
over targets (SOURCES.md, Prediction of F1). With few targets every number here is wide: the interval says how wide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from core.results import FloatArray
from core.similarity.grid import Grid
from core.stats.welch import from_moments

CONVENTIONS: Mapping[str, str] = MappingProxyType(
    {
        "runs": "per target over its single runs, mean over targets: what Table 4 of Dai et al. prints",
        "means": "per target over its sources' means, mean over targets",
        "pooled": "over all sources and targets at once",
        "centred": "over all at once, each target's mean taken away first",
        "spearman": "of ranks, per target over its sources' means, mean over targets",
    }
)
ENOUGH = 4  # targets for an interval, and sources of a target that has a say in it
CLOSEST = 0.9999  # r at which Fisher's z is still a number
_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """F1 in percent after training with each source.

    mean, sd, runs: `(t, s)`, NaN or 0 where nobody trained; sd divides by the number of runs, not by one less.
    none: `(t,)` F1 without a source, NaN where it is not known.
    """

    name: str
    mean: FloatArray
    sd: FloatArray
    runs: FloatArray
    none: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """r of one measure by one convention; interval: 95%, by Fisher's z over targets, from four of them on.

    value or interval is None where there are too few sources or targets. targets: how many have a say.
    """

    measure: str
    convention: str
    value: float | None
    interval: tuple[float, float] | None
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The cost of taking a measure's first source for one target.

    lost: F1 points against the best source. p: Welch's, of that difference; None where the source is the best or
    was trained once only.
    """

    target: str
    taken: str
    best: str
    lost: float
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """F1 lost by taking the source that a measure puts first, in points.

    hits: targets where that source was the best. random: what a source drawn by lot loses. concordant: of `pairs`
    pairs of sources, how many the measure orders as F1 does.
    """

    measure: str
    hits: int
    targets: int
    mean: float | None
    random: float | None
    concordant: int
    pairs: int
    choices: tuple[Choice, ...]


def outcomes_of(name: str, runs: Mapping[tuple[int, int], Sequence[float]], none: FloatArray, sources: int) -> Outcomes:
    """Outcomes from the F1 of single runs, {(target, source): [percent, one a run]}."""
    shape = (len(none), sources)
    mean, sd, n = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    for at, values in runs.items():
        mean[at], sd[at], n[at] = np.mean(values), np.std(values), len(values)
    return Outcomes(name=name, mean=mean, sd=sd, runs=n, none=none)


def correlations(grid: Grid, outcomes: Outcomes) -> list[Correlation]:
    """Every measure by every convention, against the change of F1."""
    # Without a baseline the level itself: a constant less for all sources of a target changes no r within it.
    change = outcomes.mean - np.nan_to_num(outcomes.none)[:, None]
    results = []
    for m, measure in enumerate(grid.measures):
        x = grid.values[..., m]
        there = np.isfinite(x) & np.isfinite(change)
        sums = {name: _sums(name, x, change, outcomes, there) for name in CONVENTIONS}
        for convention, table in sums.items():
            results.append(_correlation(measure, convention, table))
    return results


def _sums(convention: str, x: FloatArray, y: FloatArray, outcomes: Outcomes, there: npt.NDArray[np.bool_]) -> _Float64:
    """`(k, 7)`: n, sums of x, y, xx, yy and xy of each target that has a say, and its sources; targets add up."""
    rows = []
    for target in range(len(x)):
        if convention == "pooled" and np.isnan(outcomes.none[target]):
            continue  # without a baseline, levels of F1 would be taken for changes
        here = there[target]
        a, b = x[target, here].astype(np.float64), y[target, here].astype(np.float64)
        weight, extra = np.ones(len(a)), 0.0
        if convention == "runs":
            weight = np.maximum(outcomes.runs[target, here], 1)
            extra = float((weight * outcomes.sd[target, here] ** 2).sum())  # how far runs lie from their means
        if convention == "spearman":
            a, b = _ranks(a), _ranks(b)
        if convention != "pooled":  # shifts change no target's own r, and keep the sums exact
            if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
                continue
            a, b = (values - np.average(values, weights=weight) for values in (a, b))
        if len(a):
            products = (a, b, a * a, b * b, a * b)
            n, *rest = (float(part @ weight) for part in (np.ones(len(a)), *products))
            rows.append([n, *rest[:3], rest[3] + extra, rest[4], len(a)])
    return np.array(rows, dtype=np.float64).reshape(-1, 7)


def _correlation(measure: str, convention: str, table: _Float64) -> Correlation:
    k = len(table)
    whole = convention in ("pooled", "centred")
    rs = _r(table[:, :6].sum(axis=0))[None] if whole and k else _r(table[:, :6])
    value = float(rs.mean()) if k else np.nan
    return Correlation(
        measure=measure,
        convention=convention,
        value=value if np.isfinite(value) else None,
        # Sources of one target share its test set, so that targets are what is counted; all at once are none.
        interval=None if whole else _interval(rs[table[:, 6] >= ENOUGH]),
        targets=k,
    )


def _interval(rs: _Float64) -> tuple[float, float] | None:
    """95%: Student's t over targets on Fisher's z, which hardly depends on r; None below four targets."""
    from scipy.special import stdtrit

    if len(rs) < ENOUGH:
        return None
    z = np.arctanh(np.clip(rs, -CLOSEST, CLOSEST))
    half = float(stdtrit(len(z) - 1, 0.975)) * z.std(ddof=1) / np.sqrt(len(z))
    return float(np.tanh(z.mean() - half)), float(np.tanh(z.mean() + half))


def _r(sums: _Float64) -> _Float64:
    """Pearson's r from `(..., 6)` sums; NaN where one side does not vary."""
    columns: list[_Float64] = list(np.moveaxis(sums, -1, 0))
    n, x, y, xx, yy, xy = columns
    with np.errstate(divide="ignore", invalid="ignore"):
        r: _Float64 = (xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n))
    return r


def _ranks(values: _Float64) -> _Float64:
    """Ranks from 0, ties share their mean."""
    below = (values[None] < values[:, None]).sum(axis=1)
    level = (values[None] == values[:, None]).sum(axis=1)
    return np.asarray(below + (level - 1) / 2, dtype=np.float64)


def regrets(grid: Grid, outcomes: Outcomes) -> list[Regret]:
    """One a measure, its choice being among the sources that were trained; a target with fewer than two is left out."""
    return [_regret(grid, outcomes, m) for m in range(len(grid.measures))]


def _regret(grid: Grid, outcomes: Outcomes, m: int) -> Regret:
    choices, random, concordant, pairs = [], [], 0, 0
    for target in range(len(grid.targets)):
        close, f1 = grid.closeness()[target, :, m], outcomes.mean[target]
        both = np.flatnonzero(np.isfinite(close) & np.isfinite(f1))
        if len(both) < 2:
            continue
        # argmax takes the first of equals, on both sides: a tie is settled by the order in which sources are listed.
        choices.append(
            _choice(grid, outcomes, target, int(both[np.argmax(close[both])]), int(both[np.argmax(f1[both])]))
        )
        # What a source by lot loses is an expectation; drawing one would only add noise to it.
        random.append(f1[both].max() - f1[both].mean())
        # Each pair stands twice in the table, once either way round, hence the half below; ties count for nothing.
        steps = np.sign(close[both, None] - close[both]) * np.sign(f1[both, None] - f1[both])
        concordant += int((steps > 0).sum()) // 2
        pairs += len(both) * (len(both) - 1) // 2
    return Regret(
        measure=grid.measures[m],
        hits=sum(choice.lost == 0 for choice in choices),
        targets=len(choices),
        mean=float(np.mean([choice.lost for choice in choices])) if choices else None,
        random=float(np.mean(random)) if random else None,
        concordant=concordant,
        pairs=pairs,
        choices=tuple(choices),
    )


def _choice(grid: Grid, outcomes: Outcomes, target: int, taken: int, best: int) -> Choice:
    mean, sd, runs = (table[target, [best, taken]] for table in (outcomes.mean, outcomes.sd, outcomes.runs))
    lost, p = float(mean[0] - mean[1]), None
    if lost > 0 and runs.min() >= 2 and sd.max() > 0:
        # Outcomes carry deviations over n, Welch wants them over n - 1.
        sample_sd = sd * np.sqrt(runs / (runs - 1))
        a, b = ((float(mean[i]), float(sample_sd[i] ** 2), int(runs[i])) for i in (0, 1))
        p = from_moments(a, b)[1]
    return Choice(target=grid.targets[target], taken=grid.sources[taken], best=grid.sources[best], lost=lost, p=p)
