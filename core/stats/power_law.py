"""Predict the gain of more text or labels, with F1 as a power law of size: c - a n^-b (SOURCES.md, Power laws).

Predictions are advice, not evidence, because three parameters are fitted to a few points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from core.errors import CorpusError
from core.results import FloatArray

DRAWS = 1000
# Number of draws of a forecast. Many are needed, because intervals at a corrected level use the far tails.
_FORECASTS = 4000
# Number of values drawn for the unknown variance between runs. Each draw of a forecast uses one of these values.
_SPREADS = 500
# Exponents b to try. Below 0.05 a law is nearly linear in log n, and above 3 nearly a step, so a few sizes cannot
# distinguish further exponents.
_EXPONENTS = np.geomspace(0.05, 3, 40)
# Laws of a forecast, given as 2^-b: the gain of a doubling as a share of the previous doubling's gain. At 1.41, F1
# grows as the square root of the size. The grid leaves out 1, a logarithm, because b = 0 would need a separate formula.
_RATIOS = np.linspace(0.01, 1.41, 36)
# A doubling brings at least this share of the gain that the law predicts, because real curves may flatten more.
_BEND = 0.5
# Exponents b of the curves for the upper bound: near -0.5 a square root, near 0 a logarithm, at 3 nearly a step. The
# grid does not contain 0, which would need a separate formula.
_SHAPES = np.linspace(-0.505, 3, 351)


@dataclass(frozen=True, slots=True, kw_only=True)
class Laws:
    """Power laws F1(n) = c - a n^-b with a >= 0, as arrays `(d,)`.

    Index 0 is fitted to the mean F1s. All others are fitted to the means plus random noise.
    """

    c: FloatArray
    a: FloatArray
    b: FloatArray

    def at(self, n: float) -> FloatArray:
        """Return F1 in percent at size n, `(d,)`."""
        return self.c - self.a * n**-self.b

    def reach(self, f1: FloatArray) -> FloatArray:
        """Return the size at which each law reaches `f1` `(d,)`; inf if it never does."""
        # A law never reaches f1 if f1 is at least c, or if the law is flat (a = 0).
        room = (self.c - f1) / np.where(self.a > 0, self.a, np.nan)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            sizes = np.where(room > 0, room ** (-1 / self.b), inf)
        return np.where(np.isnan(room), inf, sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Expected F1 gain of the next size, in points, and its upper 90% bound (inf if unknown)."""

    gain: float
    upper: float

    def stop(self, hours: float, worth: float) -> bool:
        """Return True if the step is not worthwhile, because even its upper bound is less than `worth * hours`.

        hours: duration of the step. worth: F1 points that an hour must gain.
        """
        return self.upper < worth * hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Number of labelled sentences that one variant saves, because another variant needs more for the same F1.

    lo, hi: 80% interval. A value is inf if the other variant's law never reaches this F1.
    """

    sentences: float
    lo: float
    hi: float

    def worth(self, minutes: float, wage: float) -> float:
        """Return the cost of labelling the saved sentences. minutes: time per sentence. wage: cost per hour."""
        return max(self.sentences, 0.0) * minutes / 60 * wage


def fit(points: Mapping[int, Sequence[float]], *, seed: int = 0) -> Laws:
    """Fit power laws to mean F1s, and to the same means with random noise.

    points: {size above 0: F1 of each run}, at least three sizes. The method is non-negative least squares over a grid
    of exponents. The noise has the spread between runs, pooled over sizes. Errors: CorpusError for fewer than three
    sizes.
    """
    sizes, runs = _by_size(points)
    means, counts = np.array([run.mean() for run in runs]), np.array([len(run) for run in runs])
    rng = np.random.default_rng(seed)
    spread, dof = _pooled(runs)
    # Use Student's t, because the spread is estimated from few runs. Without repeated runs, the spread is 0.
    noise = rng.standard_t(max(dof, 1), size=(DRAWS, len(sizes))) * spread / np.sqrt(counts)
    return _laws(sizes, np.vstack([means, means + noise]))


def _by_size(points: Mapping[int, Sequence[float]]) -> tuple[FloatArray, list[FloatArray]]:
    """Return the sizes, ascending, and the F1 of the runs at each size."""
    sizes = np.array(sorted(points), dtype=np.float64)
    if len(sizes) < 3 or sizes[0] <= 0:
        raise CorpusError(f"curve: {len(sizes)} sizes are too few for a law with three parameters; run at least three.")
    return sizes, [np.asarray(points[int(size)], dtype=np.float64) for size in sizes]


def _pooled(runs: Sequence[FloatArray]) -> tuple[float, int]:
    """Return the standard deviation between runs of one size, pooled over sizes, and its degrees of freedom.

    Return (0, 0) if no size was run twice.
    """
    dof = sum(len(run) for run in runs) - len(runs)
    return sqrt(sum(((run - run.mean()) ** 2).sum() for run in runs) / dof) if dof else 0.0, dof


def _laws(sizes: FloatArray, f1: FloatArray) -> Laws:
    """Return the best-fitting law for each row of `f1`, `(d, s)`."""
    candidates = []
    # For a given b, the law is linear in c and a, so a grid over b finds the best law and no local minimum.
    for b in _EXPONENTS:
        x = -(sizes**-b)
        shape = x - x.mean()
        # Least squares with a, c >= 0. Clipping a is enough: neither mean F1 nor n^-b is negative, so c is not, either.
        a = np.maximum((f1 @ shape) / (shape @ shape), 0)
        c = f1.mean(axis=1) - a * x.mean()
        candidates.append((((c[:, None] + a[:, None] * x - f1) ** 2).sum(axis=1), c, a, np.full(len(f1), b)))
    errors, *parts = (np.array(values) for values in zip(*candidates, strict=True))
    best = errors.argmin(axis=0), np.arange(len(f1))
    c, a, b = (values[best] for values in parts)
    return Laws(c=c, a=a, b=b)


def next_step(points: Mapping[int, Sequence[float]], size: int) -> Step:
    """Return the expected gain from the largest size to `size`. points and errors: as for `fit`.

    Each F1 of a size must come from a separate pre-training, because taggers on one pre-training share its random
    variation. The upper bound is the largest gain of any curve that fits the points at 90%, one-sided (profile
    likelihood). It is inf if no size was run twice. The curves may grow as fast as a square root, because power laws
    alone were often too flat.
    """
    from scipy.special import stdtrit  # Imported here because it takes a second to load.

    sizes, runs = _by_size(points)
    means, counts = np.array([run.mean() for run in runs]), np.array([len(run) for run in runs])
    ratios = np.append(sizes, size) / sizes[-1]
    # Shape (exponents, sizes + 1); the last column is the next size.
    x = -(ratios ** -_SHAPES[:, None]) * np.sign(_SHAPES)[:, None]
    shape = x[:, :-1] - np.average(x[:, :-1], axis=1, weights=counts)[:, None]
    f1 = means - np.average(means, weights=counts)
    width = (counts * shape**2).sum(axis=1)
    slope = (counts * shape * f1).sum(axis=1) / width
    error = (counts * (f1 - slope[:, None] * shape) ** 2).sum(axis=1)
    # If the best slope is negative, use the error of a flat curve.
    held = error + width * np.minimum(slope, 0) ** 2
    # Take the gain along the curve. The last mean itself is noisy.
    step = x[:, -1] - x[:, -2]
    # The estimate only uses the exponents of `fit`; the other shapes are for the upper bound.
    best = np.where(_EXPONENTS[0] > _SHAPES, inf, held).argmin()
    gain = float(max(slope[best], 0) * step[best])
    spread, dof = _pooled(runs)
    if not dof:
        return Step(gain=gain, upper=inf)
    room = held.min() + (stdtrit(dof, 0.9) * spread) ** 2 - error
    gains = np.where(room >= 0, (slope + np.sqrt(np.maximum(room, 0) / width)) * step, 0.0)
    return Step(gain=gain, upper=max(gain, float(gains.max())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Random draws of F1 at a larger size, `(d,)`.

    f1: percent. gain: gain over the largest size so far, points. fixed: part of the gain's variance that further runs
    do not reduce, squared points.
    """

    f1: FloatArray
    gain: FloatArray
    fixed: float

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval that contains a share `level` of the F1 draws, percent."""
        return _middle(self.f1, level)

    def gain_interval(self, level: float) -> tuple[float, float]:
        """Return the interval that contains a share `level` of the drawn gains, points."""
        return _middle(self.gain, level)


def _middle(draws: FloatArray, level: float) -> tuple[float, float]:
    lo, hi = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(lo), float(hi)


def forecast(
    sizes: Sequence[int], f1: FloatArray, size: int, *, common: float = 0.0, apart: float = 0.0, seed: int = 0
) -> Forecast:
    """Draw plausible values of F1 at `size`, given F1 at smaller sizes (SOURCES.md, Power laws).

    sizes: ascending, three or more. f1: `(sizes, runs)` percent, two or more runs per size. common: variance that the
    test sentences cause in F1, squared points. apart: variance that they cause in a difference between two sizes.
    Errors: CorpusError for fewer sizes or runs.

    Each draw uses a random power law c - a n^-b. The ratio of the gains of successive doublings has a uniform prior,
    from 0 to the ratio of a square root. c has a flat prior, and so has the gain from the smallest to the largest size,
    which is never negative. Each draw multiplies its law's gain by a random factor between `_BEND` and 1 per doubling.
    It then adds the random variation of new runs at `size`, as many as at each smaller size.
    """
    from scipy.special import ndtr, ndtri  # Imported here because it takes a second to load.

    k, n = f1.shape
    if k < 3 or n < 2:
        raise CorpusError(f"forecast: {k} sizes with {n} runs are too few; give three sizes with two runs.")
    rng, dof = np.random.default_rng(seed), k * (n - 1)
    means, spread = f1.mean(axis=1), max(float(f1.var(axis=1, ddof=1).mean()), 1e-6)
    x, ahead = _rises(sizes, size)
    middle = x.mean(axis=1)
    shape, off = x - middle[:, None], means - means.mean()
    width = (shape**2).sum(axis=1)
    slope = (shape * off).sum(axis=1) / width
    error = ((off - slope[:, None] * shape) ** 2).sum(axis=1)
    # Draw plausible variances between runs; `spread` is only an estimate.
    runs = dof * spread / rng.chisquare(dof, size=_SPREADS)
    # Variance of a mean F1.
    noise = runs / n + apart / 2
    # Probability that the slope is not negative.
    steady = ndtr(slope / np.sqrt(noise[:, None] / width))
    log_weights = np.log(np.maximum(steady, 1e-300)) - error / (2 * noise[:, None]) - np.log(width) / 2
    weights = np.exp(log_weights - log_weights.max())
    each = weights.sum(axis=1) * noise ** (1 - k / 2)
    of = rng.choice(_SPREADS, size=_FORECASTS, p=each / each.sum())
    cumulated = weights.cumsum(axis=1)
    law = (cumulated[of] < rng.random((_FORECASTS, 1)) * cumulated[of, -1:]).sum(axis=1)
    below = 1 - steady[of, law]
    quantile = np.clip(below + (1 - below) * rng.random(_FORECASTS), 1e-12, 1 - 1e-12)
    rise = np.maximum(slope[law] + np.sqrt(noise[of] / width[law]) * ndtri(quantile), 0.0)
    now = means.mean() - rise * middle[law] + np.sqrt(noise[of] / k) * rng.standard_normal(_FORECASTS)
    bend = rng.uniform(_BEND, 1.0, size=_FORECASTS) ** np.log2(size / sizes[-1])
    smooth = rise * ahead[law]
    gain = smooth * bend + np.sqrt(runs[of] / n) * rng.standard_normal(_FORECASTS)
    later = now + gain + sqrt(common) * rng.standard_normal(_FORECASTS)
    return Forecast(f1=np.clip(later, 0.0, 100.0), gain=gain, fixed=float(bend.var() * smooth.mean() ** 2))


def _rises(sizes: Sequence[int], size: int) -> tuple[FloatArray, FloatArray]:
    """Return the value of each law of `_RATIOS` at `sizes`, `(laws, s)`, and at `size`, `(laws,)`.

    Laws are scaled to the value -1 at the smallest and 0 at the largest of `sizes`.
    """
    ratios, b = np.append(np.asarray(sizes, dtype=np.float64), size) / sizes[-1], -np.log2(_RATIOS)[:, None]
    law = -(ratios**-b) * np.sign(b)
    x = (law - law[:, -2:-1]) / (law[:, -2:-1] - law[:, :1])
    return x[:, :-1], x[:, -1]


def saved(
    system: Mapping[int, Sequence[float]], other: Mapping[int, Sequence[float]], size: int, *, seed: int = 0
) -> Saved:
    """Return how many labels `other` needs beyond `size` to reach the F1 of `system` at `size`.

    system, other: points of each variant, as for `fit`. Errors: as for `fit`.
    """
    # Use different seeds, because the errors of the two curves are independent.
    system_laws, other_laws = fit(system, seed=seed), fit(other, seed=seed + 1)
    more = other_laws.reach(system_laws.at(size)) - size
    # Take the nearest draw: interpolating between inf (never reached) and a number would give NaN.
    lo, hi = np.quantile(more[1:], [0.1, 0.9], method="nearest")
    return Saved(sentences=float(more[0]), lo=float(lo), hi=float(hi))
