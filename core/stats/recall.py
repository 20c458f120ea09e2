"""Compare strategies by the share of hidden sentences that they find (SOURCES.md, Which strategy)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.results import BoolArray, FloatArray, IntArray

LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over hidden sentences. low, high: its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """The random draw in which each of `n` sentences was hidden in D_C, and its block of neighbouring sentences.

    block, draw: `(n,)` numbers from 0. All sentences of a block are hidden in the same draw.
    """

    block: IntArray
    draw: IntArray

    def mean(self, values: FloatArray, level: float = LEVEL) -> Mean:
        """Return the mean of `values` `(n,)`, each from -1 to 1, with a confidence interval (Student's t).

        The variance is the larger of that between blocks and that between draws, with its own degrees of freedom. There
        must be at least two blocks and two draws.
        """
        from scipy.special import stdtrit

        middle = float(values.mean())
        variance, n = max(self._variance(values - middle, group) for group in (self.block, self.draw))
        half = sqrt(variance) * float(stdtrit(n - 1, (1 + level) / 2))
        return Mean(value=middle, low=max(middle - half, -1.0), high=min(middle + half, 1.0))

    def _variance(self, residuals: FloatArray, group: IntArray) -> tuple[float, int]:
        """Return the variance of the mean if groups are drawn as a whole, and the number of groups."""
        sums = np.bincount(group, weights=residuals)
        groups, n = len(sums), len(residuals)
        # One sentence at +1 and one at -1 are added, as by Agresti and Min (2005). Without them, the interval has no
        # width if two strategies find the same sentences.
        return (float((sums**2).sum()) * groups / (groups - 1) + 2) / n**2, groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A strategy's recall, and its recall minus that of the default; None for the default and for controls."""

    recall: Mean
    difference: Mean | None


def compare(
    found: Mapping[str, BoolArray], hidden: Hidden, default: str, controls: frozenset[str], level: float = LEVEL
) -> dict[str, Compared]:
    """Compare all strategies with the default, sentence by sentence. Return {strategy: result}.

    found: masks `(n,)` of the hidden sentences that each strategy selects. controls: strategies that are not compared.
    With probability `level`, all intervals of differences contain the true values (Bonferroni). If all strategies are
    equally good, the chance that any interval lies above 0 is at most (1 - level) / 2.
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
    """Return the strategy to propose: of those whose whole interval is above 0, the one with the largest recall.

    Return the default if there is none. If recalls are equal, the first in `compared` is returned.
    """
    better = [name for name, one in compared.items() if one.difference and one.difference.low > 0]
    return max(better, key=lambda name: compared[name].recall.value, default=default)
