"""What an arm is worth in another one's coin: so many times its text, or so many more labels, for the same F1.

The other arm was run at several sizes, in the same replicates. At each multiple of its smallest size its F1 is read off
between the two sizes beside it, on a straight line over the logarithm, replicate by replicate, and the arm's F1 less
that is tested as any difference of replicates is. The interval is made of the multiples about the estimate that the
test does not refuse (Fieller 1954). So it holds the truth as often as the test does, from two replicates on; to draw
from so few with replacement does not (see `bootstrap`). It never goes beyond what was run (SOURCES.md, Multipliers).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from core.results import BoolArray, Evaluation, FloatArray
from core.stats import crossed
from core.stats.bootstrap import replicates_part, tables_of

STEPS = 100  # of the multiples that are tried, evenly over the logarithm


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The multiple of `size` that the other arm needs for the same F1.

    times: from 1, which stands for less too, to `most`, the largest that was run, which stands for more too. lo, hi:
    at 95%; None where the interval goes below 1, or beyond `most`. replicates: that it rests on.
    """

    size: float
    times: float
    lo: float | None
    hi: float | None
    most: float
    replicates: int

    @property
    def unknown(self) -> bool:
        """Whether nothing can be told."""
        return self.lo is None and self.hi is None

    @property
    def below(self) -> bool:
        """Whether the other arm surely needs less than its smallest size."""
        return self.lo is None and self.hi == 1

    @property
    def beyond(self) -> bool:
        """Whether it surely needs more than was run."""
        return self.hi is None and self.lo == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiples:
    """The same of many experiments at once, arrays `(...)`: 0 where the estimate, or the lower end, is below 1; inf
    where the estimate, or the upper end, is beyond what was run."""

    times: FloatArray
    lo: FloatArray
    hi: FloatArray


def contrasts(sizes: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """`(g,)` multiples of the first of `sizes`, which rise, and `(g, 1 + s)` weights of the arm's F1 and of the other's
    at each size, whose sum is the difference at that multiple."""
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
    """Multiple where the difference comes down to 0, with interval. gaps: `(g, r, ...)`, of two replicates or more.

    sentences: `(g, ...)` the variance that other test sentences, of which there are `m`, would give to their mean;
    both: the part of it that is in the spread of replicates too.
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
    # By the ends too: where replicates are few, the test refuses some multiple by luck.
    return Multiples(
        times=times,
        lo=np.where(above[0], ratios[last], 0.0),
        hi=np.where(below[-1], ratios[first], np.inf),
    )


def _crossing(ratios: FloatArray, delta: FloatArray) -> FloatArray:
    """Multiple at which the difference `(g, ...)` first comes down to 0."""
    down = delta <= 0
    # Down from the start is told apart below; here there must be a place before it.
    at = np.maximum(down.argmax(axis=0), 1)
    before, after = (np.take_along_axis(delta, i[None], axis=0)[0] for i in (at - 1, at))
    logs = np.log(ratios)
    share = np.clip(before / np.where(before > after, before - after, 1.0), 0.0, 1.0)
    crossing = np.exp(logs[at - 1] + share * (logs[at] - logs[at - 1]))
    times: FloatArray = np.where(delta[0] <= 0, 0.0, np.where(down.any(axis=0), crossing, np.inf))
    return times


def worth(system: Sequence[Evaluation], others: Mapping[float, Sequence[Evaluation]]) -> Worth | None:
    """Worth of `system` in the other arm's coin, whose evaluations `others` holds by size; all of them one a
    replicate, in the same order. None with a single size, or a single replicate.

    Errors: CorpusError where a replicate's evaluations are not of the same sentences.
    """
    sizes, n = sorted(others), min(map(len, [system, *others.values()]))
    if n < 2 or len(sizes) < 2:
        return None
    tables = tables_of([one for arm in (system, *(others[size] for size in sizes)) for one in arm[:n]], n)
    m = tables.shape[1]
    f1, moves = crossed.f1_and_moves(tables)
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
    """Variance of a weighted sum of mean F1s by other test sentences, and the part that replicates have too.

    moves: `(1 + s, r, m)` what each sentence moves each F1 by.
    """
    m, gaps = moves.shape[-1], np.tensordot(weights, moves, axes=1)
    of_sentences = float((gaps.mean(axis=0) ** 2).sum()) * m / max(m - 1, 1)
    return of_sentences, min(crossed.interaction_variance(gaps, tested), of_sentences)
