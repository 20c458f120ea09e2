"""Compare strategies by the share of sentences, hidden in D_C, that they select (SOURCES.md, Which strategy)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.results import BoolArray, FloatArray, IntArray

LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over the hidden sentences. low, high: confidence interval of this mean."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """The n sentences that were hidden in D_C, in several random draws of blocks of neighbouring sentences.

    block, draw: `(n,)` number of each sentence's block and draw, from 0. All sentences of a block are in one draw.
    """

    block: IntArray
    draw: IntArray

    def mean(self, values: FloatArray, level: float = LEVEL) -> Mean:
        """Return the mean of `values`, `(n,)` from -1 to 1, with its confidence interval (Student's t).

        The variance is estimated between blocks and between draws, and the larger estimate is used with its degrees of
        freedom. There must be at least two blocks and two draws.
        """
        from scipy.special import stdtrit

        middle = float(values.mean())
        variance, n = max(self._variance(values - middle, group) for group in (self.block, self.draw))
        half = sqrt(variance) * float(stdtrit(n - 1, (1 + level) / 2))
        return Mean(value=middle, low=max(middle - half, -1.0), high=min(middle + half, 1.0))

    def _variance(self, residuals: FloatArray, group: IntArray) -> tuple[float, int]:
        """Return the variance of the mean if whole groups of sentences are drawn, and the number of groups."""
        sums = np.bincount(group, weights=residuals)
        groups, n = len(sums), len(residuals)
        # Add 2 for two further sentences with values +1 and -1 (Agresti and Min 2005). Without them, the interval would
        # have no width if two strategies found the same sentences.
        return (float((sums**2).sum()) * groups / (groups - 1) + 2) / n**2, groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Recall of a strategy. difference: its recall minus the default's; None for the default and for controls."""

    recall: Mean
    difference: Mean | None


def compare(
    found: Mapping[str, BoolArray], hidden: Hidden, default: str, controls: frozenset[str], level: float = LEVEL
) -> dict[str, Compared]:
    """Compare all strategies with the default, sentence by sentence. Return {strategy: result}.

    found: {strategy: mask `(n,)` of the hidden sentences that it selects}. controls: strategies that are not compared
    with the default. With probability `level`, all intervals of differences contain the true values (Bonferroni). If
    all strategies are equally good, the chance that any interval lies above 0 is at most (1 - level) / 2.
    """
    rivals = found.keys() - {default} - controls
    each = 1 - (1 - level) / max(len(rivals), 1)
    values = {name: mask.astype(np.float64) for name, mask in found.items()}
    return {
        name: Compared(
            recall=_share(hidden.mean(own, level)),
            difference=hidden.mean(own - values[default], each) if name in rivals else None,
        )
        for name, own in values.items()
    }


def _share(mean: Mean) -> Mean:
    return Mean(value=mean.value, low=max(mean.low, 0.0), high=mean.high)


def best(compared: Mapping[str, Compared], default: str) -> str:
    """Return the strategy with the largest recall among those that are better than the default; else the default.

    A strategy is better if the whole interval of its difference is above 0. Of equal recalls, the first one wins.
    """
    better = [name for name, one in compared.items() if one.difference and one.difference.low > 0]
    return max(better, key=lambda name: compared[name].recall.value, default=default)
