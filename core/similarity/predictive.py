"""Test if similarity measures predict F1: correlation, regret, permutation test, and a rule (Dai et al. 2019, 7.2).

For language models, Table 4 of the paper reports Pearson's r per target over all single runs, averaged over targets
(SOURCES.md, Prediction of F1). With few targets, every number is uncertain; the interval shows how uncertain.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, permutations
from math import factorial, prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from core.results import FloatArray, IntArray
from core.similarity.grid import Grid
from core.stats.welch import from_moments, interval

CONVENTIONS: Mapping[str, str] = {
    "runs": "correlation per target over its single runs, then the mean over targets (Table 4 of Dai et al.)",
    "means": "correlation per target over the means of its sources, then the mean over targets",
    "pooled": "correlation over all sources and targets at once",
    "centred": "correlation over all sources and targets at once, after subtracting each target's mean",
    "spearman": "per target, the rank correlation over its sources (means of runs); then the mean over targets",
}
# An interval of r needs at least this many targets, each with at least this many sources.
ENOUGH = 4
# |r| is limited to this value, so that Fisher's z is finite.
CLOSEST = 0.9999
# Maximum number of orders that a permutation test computes, because a page waits for it.
ORDERS = 20_000
# Differences in r below this value are rounding errors.
SAME = 1e-9
# The rule gets a p-value only with at least this many advised sources. By chance, a useless rule is right for 3 of 3
# sources in 1 of 6 cases.
FEWEST_ADVISED = 4
Model = Literal["language model", "word vectors"]
_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """F1 in percent of models that were trained with each source, for one kind of model.

    name: kind of model. mean, sd, runs: `(t, s)` mean and standard deviation of F1, and number of runs n, for each
    target and source. Without runs, mean is NaN, and sd and runs are 0. sd divides by n, not by n - 1. none: `(t,)` F1
    without a source, NaN if unknown.
    """

    name: str
    mean: FloatArray
    sd: FloatArray
    runs: FloatArray
    none: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """Correlation r of a measure with the change of F1, by one convention.

    value: r; None with too few sources. interval: 95% interval by Fisher's z over targets. It needs four targets with
    four sources each, and is None for conventions that pool targets. targets: number of targets with a defined r.
    """

    value: float | None
    interval: tuple[float, float] | None
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """F1 points lost for one target by following a measure, that is, by taking the source that it ranks first.

    taken: this source. best: source with the highest F1. lost: difference of their F1 in points. p: p-value of Welch's
    test of this difference; None if `taken` is the best source, or if one of the two was trained only once.
    """

    target: str
    taken: str
    best: str
    lost: float
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """F1 points lost by following a measure, that is, by always taking the source that it ranks first.

    hits: number of `targets` for which this source was the best. mean: mean loss over targets. random: expected loss of
    a source drawn at random. concordant: number of pairs of sources, of all `pairs`, that the measure orders as F1
    does. choices: the loss for each target.
    """

    measure: str
    hits: int
    targets: int
    mean: float | None
    random: float | None
    concordant: int
    pairs: int
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """One-sided permutation p-values of r, which test if closer sources have a higher F1.

    by_measure: {measure: share of orders of the sources in which its r is at least the observed r}. best: share of
    orders in which the highest r of all measures is at least the highest observed r. orders: number of orders,
    including the observed order. exact: True if all possible orders were computed.
    """

    by_measure: Mapping[str, float]
    best: float
    orders: int
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """A source of a target for which both a language model and word vectors were trained.

    place: rank by closeness among `of` sources, from 1 for the closest; ties share their mean rank. advice: model that
    the rule advises; None for the middle source. better: model with the higher F1; None if equal. f1: F1 of the
    language model and of the word vectors, percent. interval: 95% interval of their difference over runs; None for one
    run or without spread.
    """

    target: str
    source: str
    place: float
    of: int
    advice: Model | None
    better: Model | None
    f1: tuple[float, float]
    interval: tuple[float, float] | None

    @property
    def clear(self) -> bool:
        """True if the interval of the difference excludes 0."""
        return self.interval is not None and self.interval[0] * self.interval[1] > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Test of the rule (see `rule`) on all sources.

    right: number of the `advised` sources for which the advised model has the higher mean F1. chance: expected value of
    `right` if the advice were shuffled within each target. p: probability of at least `right` under this shuffling;
    None below `FEWEST_ADVISED`. clear_right, clear: `right` and `advised` for sources whose interval excludes 0 only.
    sentence: the result in words.
    """

    rows: Sequence[Advised]
    right: int
    advised: int
    chance: float
    p: float | None
    clear_right: int
    clear: int
    sentence: str


def outcomes_of(name: str, runs: Mapping[tuple[int, int], Sequence[float]], none: FloatArray, sources: int) -> Outcomes:
    """Return outcomes from the F1 of single runs.

    name: kind of model. runs: {(target, source): F1 of each run, percent}. none: F1 without a source, by target.
    sources: number of sources.
    """
    shape = (len(none), sources)
    mean, sd, n = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    for at, values in runs.items():
        mean[at], sd[at], n[at] = np.mean(values), np.std(values), len(values)
    return Outcomes(name=name, mean=mean, sd=sd, runs=n, none=none)


def correlations(grid: Grid, outcomes: Outcomes) -> dict[str, dict[str, Coefficient]]:
    """Correlate every measure with the change of F1. Return {measure: {convention: r}}."""
    # Without a baseline, use F1 itself: subtracting one value per target does not change a correlation within a target.
    change = outcomes.mean - np.nan_to_num(outcomes.none)[:, None]
    table: dict[str, dict[str, Coefficient]] = {}
    for m, measure in enumerate(grid.measures):
        x = grid.values[..., m]
        there = np.isfinite(x) & np.isfinite(change)
        table[measure] = {name: _coefficient(name, _sums(name, x, change, outcomes, there)) for name in CONVENTIONS}
    return table


def _sums(convention: str, x: FloatArray, y: FloatArray, outcomes: Outcomes, there: npt.NDArray[np.bool_]) -> _Float64:
    """Return a row per usable target, `(k, 7)`: n, the sums of x, y, xx, yy and xy, and the number of sources.

    x: value of the measure, `(t, s)`. y: change of F1, `(t, s)`. there: True for pairs that have both.
    """
    rows = []
    for target in range(len(x)):
        if convention == "pooled" and np.isnan(outcomes.none[target]):
            continue  # Without a baseline, the change of F1 is unknown.
        here = there[target]
        a, b = x[target, here].astype(np.float64), y[target, here].astype(np.float64)
        weight, extra = np.ones(len(a)), 0.0
        if convention == "runs":
            weight = np.maximum(outcomes.runs[target, here], 1)
            # Add the variation of the single runs around their means to the sum of yy.
            extra = float((weight * outcomes.sd[target, here] ** 2).sum())
        if convention == "spearman":
            a, b = _ranks(a), _ranks(b)
        if convention != "pooled":  # Centring changes no r within a target, and keeps rounding errors small.
            if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
                continue
            a, b = (values - np.average(values, weights=weight) for values in (a, b))
        if len(a):
            products = (a, b, a * a, b * b, a * b)
            n, *rest = (float(part @ weight) for part in (np.ones(len(a)), *products))
            rows.append([n, *rest[:3], rest[3] + extra, rest[4], len(a)])
    return np.array(rows, dtype=np.float64).reshape(-1, 7)


def _coefficient(convention: str, table: _Float64) -> Coefficient:
    k = len(table)
    whole = convention in ("pooled", "centred")
    rs = _r(table[:, :6].sum(axis=0))[None] if whole and k else _r(table[:, :6])
    value = float(rs.mean()) if k else np.nan
    return Coefficient(
        value=value if np.isfinite(value) else None,
        # Only targets are independent, because the sources of a target share its test set. Pooled r has no interval.
        interval=None if whole else _interval(rs[table[:, 6] >= ENOUGH]),
        targets=k,
    )


def _interval(rs: _Float64) -> tuple[float, float] | None:
    """Return the 95% interval of the mean r, by Student's t on Fisher's z; None below four targets.

    rs: r of each target.
    """
    from scipy.special import stdtrit

    if len(rs) < ENOUGH:
        return None
    z = np.arctanh(np.clip(rs, -CLOSEST, CLOSEST))
    half = float(stdtrit(len(z) - 1, 0.975)) * z.std(ddof=1) / np.sqrt(len(z))
    return float(np.tanh(z.mean() - half)), float(np.tanh(z.mean() + half))


def _r(sums: _Float64) -> _Float64:
    """Return Pearson's r, NaN if x or y does not vary. sums: `(..., 6)`, n and the sums of x, y, xx, yy and xy."""
    columns: list[_Float64] = list(np.moveaxis(sums, -1, 0))
    n, x, y, xx, yy, xy = columns
    with np.errstate(divide="ignore", invalid="ignore"):
        r: _Float64 = (xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n))
    return r


def _ranks(values: _Float64) -> _Float64:
    """Return ranks from 0; ties share their mean rank."""
    below = (values[None] < values[:, None]).sum(axis=1)
    level = (values[None] == values[:, None]).sum(axis=1)
    return np.asarray(below + (level - 1) / 2, dtype=np.float64)


def regrets(grid: Grid, outcomes: Outcomes) -> list[Regret]:
    """Return the regret of each measure. Targets with fewer than two trained sources are left out."""
    return [_regret(grid, outcomes, m) for m in range(len(grid.measures))]


def _regret(grid: Grid, outcomes: Outcomes, m: int) -> Regret:
    choices, random, concordant, pairs = [], [], 0, 0
    for target in range(len(grid.targets)):
        close, f1 = grid.closeness()[target, :, m], outcomes.mean[target]
        both = np.flatnonzero(np.isfinite(close) & np.isfinite(f1))
        if len(both) < 2:
            continue
        # argmax returns the first of equal values, so the listed order of the sources breaks ties.
        choices.append(
            _choice(grid, outcomes, target, int(both[np.argmax(close[both])]), int(both[np.argmax(f1[both])]))
        )
        # Take the expected loss of a random source, because drawing a source would only add noise.
        random.append(f1[both].max() - f1[both].mean())
        # Each pair occurs twice in the table, in both orders, so halve the sum. Ties do not count.
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
        # The standard deviation in `outcomes` divides by n, but Welch's test needs n - 1.
        sample_sd = sd * np.sqrt(runs / (runs - 1))
        a, b = ((float(mean[i]), float(sample_sd[i] ** 2), int(runs[i])) for i in (0, 1))
        p = from_moments(a, b)[1]
    return Choice(target=grid.targets[target], taken=grid.sources[taken], best=grid.sources[best], lost=lost, p=p)


def chance(grid: Grid, outcomes: Outcomes, *, seed: int = 0) -> Chance | None:
    """Test the correlation r of each measure (convention `runs`) by permutation; None if no measure has an r.

    If a measure were unrelated to F1, every order of a target's sources would be equally likely. F1 is therefore
    shuffled over the sources of each target, in the same way for all measures, and r is computed again. If there are
    at most `ORDERS` orders, all are computed; otherwise `ORDERS` of them are drawn (SOURCES.md, Prediction of F1).
    """
    trained = [np.flatnonzero(np.isfinite(row)) for row in outcomes.mean]
    targets = [at for at, sources in enumerate(trained) if len(sources) > 1]
    if not targets:
        return None
    counts = [len(trained[at]) for at in targets]
    exact = prod(map(factorial, counts)) <= ORDERS
    orders = _all_orders(counts) if exact else _some_orders(counts, np.random.default_rng(seed))
    close = grid.closeness()
    rs = [_shuffled_r(close[at, trained[at]], outcomes, at, order) for at, order in zip(targets, orders, strict=True)]
    there = np.isfinite(rs).sum(axis=0)  # Number of targets with a defined r, by order and measure.
    r = np.divide(np.nansum(rs, axis=0), there, out=np.full(np.shape(there), -np.inf), where=there > 0)
    known = np.flatnonzero(np.isfinite(r[0]))
    if not len(known):
        return None
    # Subtract `SAME`, because sums of the same numbers in another order differ in their last digits.
    at_least = (r >= r[0] - SAME).mean(axis=0)
    return Chance(
        by_measure={grid.measures[m]: float(at_least[m]) for m in known},
        best=float((r.max(axis=1) >= r[0].max() - SAME).mean()),
        orders=len(r),
        exact=exact,
    )


def _all_orders(counts: Sequence[int]) -> Iterator[IntArray]:
    """Yield, for each target, an array `(orders, sources)` of orders of its sources.

    Row i of all arrays together is one combination of orders, and the rows go through all combinations. Row 0 is the
    observed order. counts: number of sources of each target.
    """
    places = np.unravel_index(np.arange(prod(map(factorial, counts))), [factorial(n) for n in counts])
    for n, at in zip(counts, places, strict=True):
        yield np.array(list(permutations(range(n))))[at]


def _some_orders(counts: Sequence[int], rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield, for each target, an array `(ORDERS, sources)` of random orders of its sources.

    Row 0 is the observed order, so that no p-value is 0. counts: number of sources of each target.
    """
    for n in counts:
        orders = rng.permuted(np.tile(np.arange(n), (ORDERS, 1)), axis=1)
        orders[0] = np.arange(n)
        yield orders


def _shuffled_r(close: FloatArray, outcomes: Outcomes, target: int, orders: IntArray) -> FloatArray:
    """Return r over a target's single runs for each order of its F1s and each measure, `(orders, m)`.

    close: `(s, m)` closeness of the trained sources, NaN if not measured.
    """
    sources = np.isfinite(outcomes.mean[target])
    mean, sd, runs = (table[target, sources] for table in (outcomes.mean, outcomes.sd, outcomes.runs))
    # After scaling, one threshold can distinguish columns without variation from columns with little variation.
    there, x, y = np.isfinite(close), _scaled(close), _scaled(mean[:, None])[:, 0]
    # Convert to the unit of y, which has a standard deviation of 1.
    spread = sd / max(float(mean.std()), SAME)
    w = np.maximum(runs, 1)
    weight, once, twice = (values[orders] for values in (w, w * y, w * (y * y + spread * spread)))
    n, sx, sxx = weight @ there, weight @ x, weight @ (x * x)
    sy, syy, sxy = once @ there, twice @ there, once @ x
    left, right = n * sxx - sx * sx, n * syy - sy * sy
    with np.errstate(divide="ignore", invalid="ignore"):
        r: FloatArray = np.where((left > SAME) & (right > SAME), (n * sxy - sx * sy) / np.sqrt(left * right), np.nan)
    return r


def _scaled(values: FloatArray) -> FloatArray:
    """Scale each column to mean 0 and standard deviation 1. Missing values and constant columns become 0."""
    there = np.isfinite(values)
    n = np.maximum(there.sum(axis=0), 1)
    shifted = np.where(there, values - np.where(there, values, 0).sum(axis=0) / n, 0.0)
    sd = np.sqrt((shifted * shifted).sum(axis=0) / n)
    scaled: FloatArray = np.where(
        sd > SAME * np.abs(np.where(there, values, 0)).max(axis=0), shifted / np.maximum(sd, 1e-300), 0.0
    )
    return scaled


def rule(grid: Grid, outcomes: Sequence[Outcomes]) -> Rule | None:
    """Test the rule "use the language model of a close source, but the word vectors of a distant source".

    Return None if no source has both models. The paper states the rule for single pairs, and does not say where "close"
    ends (SOURCES.md, Close source, language model). Here, the sources of a target are ordered by mean rank over the
    measures. The rule advises the language model for the closer half, and word vectors for the farther half. The middle
    source gets no advice.
    """
    lm, vectors = _named(outcomes, ("language model", "lm")), _named(outcomes, ("word vectors", "vectors"))
    if lm is None or vectors is None:
        return None
    rows = [row for target in range(len(grid.targets)) for row in _advise(grid, target, lm, vectors)]
    return _tested(rows) if rows else None


def _named(outcomes: Sequence[Outcomes], names: tuple[str, ...]) -> Outcomes | None:
    return next((each for each in outcomes if each.name.lower().replace("_", " ").startswith(names)), None)


def _advise(grid: Grid, target: int, lm: Outcomes, vectors: Outcomes) -> list[Advised]:
    from scipy.stats import rankdata  # Imported here because it takes a second to load.

    both = np.flatnonzero(np.isfinite(lm.mean[target]) & np.isfinite(vectors.mean[target]))
    closeness = grid.only(grid.voters()).closeness()[target, both]
    known = np.where(np.isnan(closeness), -np.inf, closeness)
    places = rankdata(rankdata(-known, axis=0).mean(axis=1))
    rows = []
    for source, place in zip(both.tolist(), places.tolist(), strict=True):
        moments = [_moments(each, target, source) for each in (lm, vectors)]
        (high, _, runs), (low, _, others) = moments
        middle = (len(both) + 1) / 2
        rows.append(
            Advised(
                target=grid.targets[target],
                source=grid.sources[source],
                place=place,
                of=len(both),
                advice=_by_sign(middle - place),
                better=_by_sign(high - low),
                f1=(high, low),
                interval=interval(*moments) if min(runs, others) > 1 else None,
            )
        )
    return sorted(rows, key=lambda row: row.place)


def _by_sign(lead: float) -> Model | None:
    return None if lead == 0 else "language model" if lead > 0 else "word vectors"


def _moments(outcomes: Outcomes, target: int, source: int) -> tuple[float, float, int]:
    """Return the mean F1, its variance between runs (divisor n - 1), and the number of runs n."""
    n = int(outcomes.runs[target, source])
    return float(outcomes.mean[target, source]), float(outcomes.sd[target, source] ** 2) * n / max(n - 1, 1), n


def _tested(rows: Sequence[Advised]) -> Rule:
    advised = [row for row in rows if row.advice and row.better]
    right = sum(row.advice == row.better for row in advised)
    clear = [row for row in advised if row.clear]
    by_target = [_right_by_chance(list(group)) for _, group in groupby(advised, key=lambda row: row.target)]
    # Targets are independent, so the distribution of the total is the convolution of their distributions.
    distribution = reduce(np.convolve, by_target, np.ones(1))
    expected = float(distribution @ np.arange(len(distribution)))
    # Rounding may put the sum slightly above 1.
    p = min(float(distribution[right:].sum()), 1.0) if len(advised) >= FEWEST_ADVISED else None
    clear_right = sum(row.advice == row.better for row in clear)
    sentence = (
        "The rule (close source: its language model, distant source: its word vectors) predicted the better "
        f"model for {right} of {len(advised)} sources (by chance {expected:.3g}"
    )
    if p is None:
        sentence += f"); with fewer than {FEWEST_ADVISED} sources there is no test."
    else:
        sentence += f", p = {p:.2g})" + ("." if p <= 0.05 else ", which may well be chance.")
        sentence += f" Among sources whose two scores differ clearly: {clear_right} of {len(clear)}."
    return Rule(
        rows=rows,
        right=right,
        advised=len(advised),
        chance=expected,
        p=p,
        clear_right=clear_right,
        clear=len(clear),
        sentence=sentence,
    )


def _right_by_chance(rows: Sequence[Advised]) -> np.ndarray:
    """Return the probabilities, `(m + 1,)`, that 0 to m sources of a target get right advice if it is shuffled."""
    from scipy.stats import hypergeom

    m = len(rows)
    by_rule, better = (
        sum(kind == "language model" for kind in kinds)
        for kinds in zip(*((row.advice, row.better) for row in rows), strict=True)
    )
    distribution = np.zeros(m + 1)
    for both in range(min(by_rule, better) + 1):
        if (right := m - by_rule - better + 2 * both) >= 0:
            distribution[right] = hypergeom.pmf(both, m, better, by_rule)
    return distribution
