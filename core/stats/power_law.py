"""Gains of more text or more labels: F1 as a power law of size, c - a n^-b (SOURCES.md, Power laws).

Advice, not evidence: a law of three numbers is put through a handful of points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from core.errors import CorpusError
from core.results import FloatArray

DRAWS = 1000
# Below .05 a law is a straight line in the logarithm, beyond 3 a step: neither can be told from its neighbours by a
# handful of sizes.
_EXPONENTS = np.geomspace(0.05, 3, 40)
_SHAPES = np.linspace(-0.505, 3, 351)  # from a square root over the logarithm, near 0, to a step; never 0 itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Laws:
    """F1(n) = c - a n^-b with a >= 0, once for the means (draw 0) and once for each draw of them; arrays `(d,)`."""

    c: FloatArray
    a: FloatArray
    b: FloatArray

    def at(self, n: float) -> FloatArray:
        """`(d,)` F1 in percent."""
        return self.c - self.a * n**-self.b

    def reach(self, f1: FloatArray) -> FloatArray:
        """`(d,)` the size at which each law comes to `f1` `(d,)`; inf where it never does."""
        # No room, or a flat law (a = 0): the size is never reached.
        room = (self.c - f1) / np.where(self.a > 0, self.a, np.nan)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            sizes = np.where(room > 0, room ** (-1 / self.b), inf)
        return np.where(np.isnan(room), inf, sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The gain of the next size, in points: the estimate, and what it exceeds in at most one case of ten (inf where
    that is not known)."""

    gain: float
    upper: float

    def stop(self, hours: float, worth: float) -> bool:
        """Whether even `upper` is under `worth`, F1 points an hour, over the `hours` that the step takes."""
        return self.upper < worth * hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Labelled sentences that one arm spares over another at the present size; lo, hi hold 80% of the draws.

    inf: the other arm never comes so far, as far as its law tells.
    """

    sentences: float
    lo: float
    hi: float

    def worth(self, minutes: float, wage: float) -> float:
        """The cost of labelling them: minutes a sentence, wage an hour."""
        return max(self.sentences, 0.0) * minutes / 60 * wage


def fit(points: Mapping[int, Sequence[float]], *, seed: int = 0) -> Laws:
    """Laws through the mean F1s. points: {size above 0: F1 of every run there}, at least three sizes.

    Non-negative least squares over a grid of exponents. Each draw moves the means by what their runs' spread, pooled
    over sizes, allows. Errors: CorpusError for fewer than three sizes.
    """
    sizes, runs = _by_size(points)
    means, counts = np.array([run.mean() for run in runs]), np.array([len(run) for run in runs])
    rng = np.random.default_rng(seed)
    spread, dof = _pooled(runs)
    # Student's t: the spread itself is estimated, from few runs; without a repeat there is none to draw.
    noise = rng.standard_t(max(dof, 1), size=(DRAWS, len(sizes))) * spread / np.sqrt(counts)
    return _laws(sizes, np.vstack([means, means + noise]))


def _by_size(points: Mapping[int, Sequence[float]]) -> tuple[FloatArray, list[FloatArray]]:
    """The sizes from the smallest, and F1 of the runs of each."""
    sizes = np.array(sorted(points), dtype=np.float64)
    if len(sizes) < 3 or sizes[0] <= 0:
        raise CorpusError(f"curve: {len(sizes)} sizes are too few for a law of three numbers; run at least three.")
    return sizes, [np.asarray(points[int(size)], dtype=np.float64) for size in sizes]


def _pooled(runs: Sequence[FloatArray]) -> tuple[float, int]:
    """The standard deviation of runs of one size, over all sizes, and its degrees of freedom: 0 without a repeat."""
    dof = sum(len(run) for run in runs) - len(runs)
    return sqrt(sum(((run - run.mean()) ** 2).sum() for run in runs) / dof) if dof else 0.0, dof


def _laws(sizes: FloatArray, f1: FloatArray) -> Laws:
    """The best law for each row of `f1` `(d, s)`."""
    candidates = []
    # Given b the law is linear in c and a: a grid over b alone finds the best without a start or a local minimum.
    for b in _EXPONENTS:
        x = -(sizes**-b)
        shape = x - x.mean()
        a = np.maximum((f1 @ shape) / (shape @ shape), 0)  # NNLS in closed form: the mean of F1 is never negative
        c = f1.mean(axis=1) - a * x.mean()
        candidates.append((((c[:, None] + a[:, None] * x - f1) ** 2).sum(axis=1), c, a, np.full(len(f1), b)))
    errors, *parts = (np.array(values) for values in zip(*candidates, strict=True))
    best = errors.argmin(axis=0), np.arange(len(f1))
    c, a, b = (values[best] for values in parts)
    return Laws(c=c, a=a, b=b)


def next_step(points: Mapping[int, Sequence[float]], size: int) -> Step:
    """The gain of going on from the largest size to `size`. points: as for `fit`, whose errors it has.

    To know the noise of pre-trainings, each F1 of a size must be that of a pre-training of its own: taggers on one
    share its luck. `upper` is the largest gain of any curve that the points allow at 90%, one-sided (profile
    likelihood). These curves may grow as fast as a square root: laws alone were too often all too flat. inf where no
    size was run twice.
    """
    from scipy.special import stdtrit  # a second to load

    sizes, runs = _by_size(points)
    means, counts = np.array([run.mean() for run in runs]), np.array([len(run) for run in runs])
    ratios = np.append(sizes, size) / sizes[-1]
    x = -(ratios ** -_SHAPES[:, None]) * np.sign(_SHAPES)[:, None]  # `(b, s + 1)`, the next size at the end
    shape = x[:, :-1] - np.average(x[:, :-1], axis=1, weights=counts)[:, None]
    f1 = means - np.average(means, weights=counts)
    width = (counts * shape**2).sum(axis=1)
    slope = (counts * shape * f1).sum(axis=1) / width
    error = (counts * (f1 - slope[:, None] * shape) ** 2).sum(axis=1)
    held = error + width * np.minimum(slope, 0) ** 2  # a curve is flat where the best slope would fall
    step = x[:, -1] - x[:, -2]  # along the curve, not from the last mean, which has its own luck
    # The estimate keeps to the exponents of `fit`; the flatter shapes are there for the bound alone.
    best = np.where(_EXPONENTS[0] > _SHAPES, inf, held).argmin()
    gain = float(max(slope[best], 0) * step[best])
    spread, dof = _pooled(runs)
    if not dof:
        return Step(gain=gain, upper=inf)
    room = held.min() + (stdtrit(dof, 0.9) * spread) ** 2 - error
    gains = np.where(room >= 0, (slope + np.sqrt(np.maximum(room, 0) / width)) * step, 0.0)
    return Step(gain=gain, upper=max(gain, float(gains.max())))


def saved(
    system: Mapping[int, Sequence[float]], other: Mapping[int, Sequence[float]], size: int, *, seed: int = 0
) -> Saved:
    """Labels that `other` needs beyond `size` to reach the F1 of `system` there: the gap between two curves, sideways.

    system, other: as for `fit`, whose errors it has.
    """
    # Different seeds: the two curves err independently of each other.
    system_laws, other_laws = fit(system, seed=seed), fit(other, seed=seed + 1)
    more = other_laws.reach(system_laws.at(size)) - size
    # The nearest draw, not between two: a law that never gets there is inf, and inf mixed with a number is NaN.
    lo, hi = np.quantile(more[1:], [0.1, 0.9], method="nearest")
    return Saved(sentences=float(more[0]), lo=float(lo), hi=float(hi))
