"""Estimate how many sentences of one corpus are like those of another, by scores (SOURCES.md, Prevalence)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.results import FloatArray

QUANTILES = (0.25, 0.5)
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileCount:
    """Count at one quantile of the task corpus's scores.

    threshold: score at the quantile. task, domain: number of sentences with at least this score. low, about, high:
    estimated number of sentences of the domain corpus that are like the task corpus.
    """

    quantile: float
    threshold: float
    task: int
    domain: int
    low: float
    about: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prevalence:
    """Estimated number of domain sentences that are like the task corpus.

    low, high: range over all quantiles. about: mean of the estimates at the quantiles.
    """

    low: float
    about: float
    high: float
    quantiles: Sequence[QuantileCount]


def prevalence(task: FloatArray, domain: FloatArray, quantiles: Sequence[float] = QUANTILES) -> Prevalence:
    """Estimate how many sentences of the domain corpus are like the task corpus.

    Count the domain sentences that score above a quantile of the task corpus's scores, and divide by the share of the
    task corpus above it. task: `(n,)`, n > 0, and domain: `(m,)`, scores of distinct sentences by models that were not
    trained on them.
    """
    each = [_above(task, domain, quantile) for quantile in quantiles]
    return Prevalence(
        low=min(above.low for above in each),
        about=float(np.mean([above.about for above in each])),
        high=max(above.high for above in each),
        quantiles=each,
    )


def _above(task: FloatArray, domain: FloatArray, quantile: float) -> QuantileCount:
    # Take the score of a sentence of the task corpus, so that the share above it is never 0.
    threshold = float(np.quantile(task, quantile, method="higher"))
    n, m = int((task >= threshold).sum()), int((domain >= threshold).sum())
    share, count = clopper_pearson(n, len(task)), clopper_pearson(m, len(domain))
    return QuantileCount(
        quantile=quantile,
        threshold=threshold,
        task=n,
        domain=m,
        # The most extreme combinations: smallest count divided by largest share, and vice versa.
        low=len(domain) * count[0] / share[1],
        about=min(m * len(task) / n, len(domain)),
        high=min(len(domain) * count[1] / share[0], len(domain)),
    )


def clopper_pearson(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval of a share for `k` successes in `n` (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high
