"""Estimate from scores how many sentences of one corpus are like those of another corpus (SOURCES.md, Prevalence)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.results import FloatArray

QUANTILES = (0.25, 0.5)
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileCount:
    """Estimate at one quantile of the task corpus's scores.

    threshold: score at the quantile. task, domain: number of sentences of each corpus with at least this score. about:
    estimated number of domain sentences that are like the task corpus. low, high: interval of this number.
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

    low, high: lowest and highest bound at any quantile. about: mean of the estimates at the quantiles.
    """

    low: float
    about: float
    high: float
    quantiles: Sequence[QuantileCount]


def prevalence(task: FloatArray, domain: FloatArray, quantiles: Sequence[float] = QUANTILES) -> Prevalence:
    """Estimate how many sentences of the domain corpus are like the task corpus.

    At each quantile of the task corpus's scores, count the domain sentences with at least this score. Then divide by
    the share of task sentences with at least this score. task, domain: scores of distinct sentences, `(n,)` with n > 0
    and `(m,)`, by models that were not trained on these sentences.
    """
    each = [_above(task, domain, quantile) for quantile in quantiles]
    return Prevalence(
        low=min(above.low for above in each),
        about=float(np.mean([above.about for above in each])),
        high=max(above.high for above in each),
        quantiles=each,
    )


def _above(task: FloatArray, domain: FloatArray, quantile: float) -> QuantileCount:
    # Take the score of a task sentence, so that at least one task sentence reaches the threshold.
    threshold = float(np.quantile(task, quantile, method="higher"))
    n, m = int((task >= threshold).sum()), int((domain >= threshold).sum())
    share, count = clopper_pearson(n, len(task)), clopper_pearson(m, len(domain))
    return QuantileCount(
        quantile=quantile,
        threshold=threshold,
        task=n,
        domain=m,
        # low divides the smallest count by the largest share, and high does the reverse.
        low=len(domain) * count[0] / share[1],
        about=min(m * len(task) / n, len(domain)),
        high=min(len(domain) * count[1] / share[0], len(domain)),
    )


def clopper_pearson(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact confidence interval of a share, given `k` of `n` cases (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high
