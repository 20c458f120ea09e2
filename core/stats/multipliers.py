"""Multipliers: how many times as much text, or as many labels, another variant needs for the same F1.

The other variant was run at several sizes, in the same replicates. For each multiple of its smallest size, its F1 is
interpolated between the neighbouring sizes on a log scale, replicate by replicate. The difference of the two variants
at this multiple is then tested like any difference of replicates. The interval consists of the multiples around the
estimate that the test does not reject (Fieller 1954). With two replicates or more, its coverage therefore equals the
coverage of the test. An interval from resampling so few replicates would cover the truth less often (see `bootstrap`).
No multiple is extrapolated beyond the sizes that were run (SOURCES.md, Multipliers).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from core.results import BoolArray, Evaluation, FloatArray
from core.stats.bootstrap import f1_and_moves, interaction_variance, replicates_part, tables_of

STEPS = 100  # number of multiples to test, evenly spaced on a log scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Multiplier: how many times its smallest size another variant needs to reach the F1 of this variant.

    size: smallest size of the other variant. times: the multiplier; 1 means 1 or less, and `most` means `most` or more.
    lo, hi: 95% interval of the multiplier; lo is None if the interval extends below 1, and hi is None if it extends
    beyond `most`. most: largest multiple of `size` that was run. replicates: number of replicates used.
    """

    size: float
    times: float
    lo: float | None
    hi: float | None
    most: float
    replicates: int

    @property
    def unknown(self) -> bool:
        """True if the interval has no limit on either side, so that nothing can be concluded."""
        return self.lo is None and self.hi is None

    @property
    def below(self) -> bool:
        """True if the whole interval is below the smallest size."""
        return self.lo is None and self.hi == 1

    @property
    def beyond(self) -> bool:
        """True if the whole interval is beyond the largest size."""
        return self.hi is None and self.lo == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiples:
    """The values `times`, `lo` and `hi` of `Worth` for many experiments at once: arrays `(...)`.

    A value is 0 if it is below the smallest size that was run, and inf if it is beyond the largest size.
    """

    times: FloatArray
    lo: FloatArray
    hi: FloatArray


def contrasts(sizes: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return multiples of the smallest size, `(g,)`, and one row of weights per multiple, `(g, 1 + s)`.

    sizes: the s sizes of the other variant, ascending. A row weights 1 + s F1s: that of the first variant, and those of
    the other variant at its sizes. The weighted sum is the difference of the two variants at the row's multiple.
    """
    logs = np.log(np.asarray(sizes, dtype=np.float64) / sizes[0])
    grid = np.unique(np.concatenate([np.linspace(0, logs[-1], STEPS), logs]))
    read = [np.interp(grid, logs, row) for row in np.eye(len(logs))]
    return np.exp(grid), np.stack([np.ones(len(grid)), *(-row for row in read)], axis=1)


def multiples(
    ratios: FloatArray,
    gaps: FloatArray,
    sentences: FloatArray | float = 0.0,
    both: FloatArray | float = 0.0,
    m: int = 1,
) -> Multiples:
    """Return the multiple at which the difference of two variants falls to 0, with its 95% interval.

    ratios: `(g,)` multiples. gaps: `(g, r, ...)` differences in at least two replicates. sentences: `(g, ...)` variance
    that the `m` test sentences cause in the mean difference. both: the part of `sentences` that the variance between
    replicates also includes.
    """
    from scipy.special import stdtrit

    n, delta = gaps.shape[1], gaps.mean(axis=1)
    noise = gaps.var(axis=1, ddof=1) / n
    of_sentences, twice = (np.broadcast_to(part, delta.shape) for part in (sentences, both))
    seeds, dof = replicates_part(noise, twice, of_sentences, n, m)
    half = stdtrit(dof, 0.975) * np.sqrt(seeds + of_sentences)
    above, below = delta > half, delta < -half
    times = _crossing(ratios, delta)
    nearest = np.searchsorted(ratios, np.clip(times, 1.0, ratios[-1]))
    order = np.arange(len(ratios)).reshape(-1, *[1] * (delta.ndim - 1))
    last = np.where(above & (order <= nearest), order, 0).max(axis=0)
    first = np.where(below & (order >= nearest), order, len(ratios) - 1).min(axis=0)
    # Set a limit on a side only if the test rejects the outermost multiple on this side, too. With few replicates, it
    # may reject a single multiple by chance.
    return Multiples(
        times=times,
        lo=np.where(above[0], ratios[last], 0.0),
        hi=np.where(below[-1], ratios[first], np.inf),
    )


def _crossing(ratios: FloatArray, delta: FloatArray) -> FloatArray:
    """Return the multiple at which the difference `(g, ...)` first falls to 0."""
    down = delta <= 0
    # The interpolation needs the preceding multiple, so start at index 1; `delta[0] <= 0` is handled below.
    at = np.maximum(down.argmax(axis=0), 1)
    before, after = (np.take_along_axis(delta, i[None], axis=0)[0] for i in (at - 1, at))
    logs = np.log(ratios)
    share = np.clip(before / np.where(before > after, before - after, 1.0), 0.0, 1.0)
    crossing = np.exp(logs[at - 1] + share * (logs[at] - logs[at - 1]))
    times: FloatArray = np.where(delta[0] <= 0, 0.0, np.where(down.any(axis=0), crossing, np.inf))
    return times


def worth(system: Sequence[Evaluation], others: Mapping[float, Sequence[Evaluation]]) -> Worth | None:
    """Return the multiplier of `system` against another variant; None with a single size or a single replicate.

    others: {size: evaluations of the other variant}. Each list has one evaluation per replicate, in the same order.
    Errors: CorpusError if evaluations of one replicate are of different sentences.
    """
    sizes, n = sorted(others), min(map(len, [system, *others.values()]))
    if n < 2 or len(sizes) < 2:
        return None
    tables = tables_of([one for arm in (system, *(others[size] for size in sizes)) for one in arm[:n]], n)
    m = tables.shape[1]
    f1, moves = f1_and_moves(tables)
    f1, moves = f1.reshape(-1, n), moves.reshape(-1, n, m)
    tested = np.stack([np.ones(m, dtype=np.bool_) if one.tested is None else one.tested for one in system[:n]])
    ratios, weights = contrasts(sizes)
    of_sentences, both = np.array([_variances(row, moves, tested) for row in weights]).T
    many = multiples(ratios, weights @ f1, of_sentences, both, m)
    times, lo, hi = float(many.times), float(many.lo), float(many.hi)
    return Worth(
        size=sizes[0],
        times=min(max(times, 1.0), float(ratios[-1])),
        lo=lo or None,
        hi=hi if isfinite(hi) else None,
        most=float(ratios[-1]),
        replicates=n,
    )


def _variances(weights: FloatArray, moves: FloatArray, tested: BoolArray) -> tuple[float, float]:
    """Return the variance that test sentences cause in a weighted sum of mean F1s, and its shared part.

    The variance between replicates also includes the shared part. weights: `(1 + s,)`. moves: `(1 + s, r, m)` points by
    which each sentence moves each F1. tested: `(r, m)`, True if the replicate was tested on the sentence.
    """
    m, gaps = moves.shape[-1], np.tensordot(weights, moves, axes=1)
    of_sentences = float((gaps.mean(axis=0) ** 2).sum()) * m / max(m - 1, 1)
    return of_sentences, min(interaction_variance(gaps, tested), of_sentences)
