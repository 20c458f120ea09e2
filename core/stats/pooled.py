"""Mean differences over several corpora: for these corpora (fixed effects), and for similar ones (random effects).

For these corpora, the variances of their differences add up (Satterthwaite 1946). For similar corpora, these are only
a sample. The variance between their differences is then used, with Student's t and one degree of freedom fewer than
there are corpora (Hartung and Knapp 2001 with equal weights; SOURCES.md, Several corpora).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.results import FloatArray
from core.stats.bootstrap import Difference, two_sided
from core.stats.sequential import Look

SURE = 1e9  # limit of the degrees of freedom, because JSON cannot store infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Difference of two variants on one corpus, with its variance.

    delta: points. falling: part of the variance that more replicates reduce. fixed: the rest. dof: degrees of freedom
    of the whole variance; 0 if it is unknown, because there is one replicate or one sentence.
    """

    delta: float
    falling: float
    fixed: float
    dof: float

    @classmethod
    def of(cls, gap: Difference) -> "Estimate":
        """Return the estimate of a comparison."""
        falling = gap.se_seeds**2 + gap.se_both**2
        fixed = max(gap.se_sentences**2 - gap.se_both**2, 0.0)
        return cls(delta=gap.delta, falling=falling, fixed=fixed, dof=min(gap.dof, SURE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Mean over corpora, arrays `(...)`: points, variance by parts as in `Estimate`, degrees of freedom."""

    delta: FloatArray
    falling: FloatArray
    fixed: FloatArray
    dof: FloatArray

    @property
    def se(self) -> FloatArray:
        """Standard error, points."""
        root: FloatArray = np.sqrt(self.falling + self.fixed)
        return root

    @property
    def p(self) -> FloatArray:
        """Two-sided p by Student's t; 1 if the variance is unknown."""
        return two_sided(self.delta, self.se, self.dof)

    @property
    def look(self) -> Look:
        """This mean, as the data of an interim analysis."""
        return Look(delta=self.delta, p=self.p, falling=self.falling, fixed=self.fixed)

    def half(self, level: float = 0.95) -> FloatArray:
        """Return half the width of the mean's confidence interval in F1 points; 100 if the variance is unknown."""
        from scipy.special import stdtrit

        known = self.dof > 0
        width: FloatArray = self.se * stdtrit(np.where(known, self.dof, 1.0), (1 + level) / 2)
        return np.where(known, width, 100.0)


def fixed_effects(delta: FloatArray, falling: FloatArray, fixed: FloatArray, dof: FloatArray) -> Mean:
    """Return the mean over these corpora. Arguments: `(corpora, ...)`."""
    n, each = len(delta), falling + fixed
    # Satterthwaite, with the degrees of freedom of each corpus. If one variance is unknown, so is that of the mean.
    doubt = (each**2 / np.where(dof > 0, dof, 1.0)).sum(axis=0)
    known, sure = (dof > 0).all(axis=0), doubt == 0
    together = np.where(sure, SURE, each.sum(axis=0) ** 2 / np.where(sure, 1.0, doubt))
    return Mean(
        delta=delta.mean(axis=0),
        falling=falling.sum(axis=0) / n**2,
        fixed=fixed.sum(axis=0) / n**2,
        dof=np.where(known, together, 0.0),
    )


def random_effects(delta: FloatArray) -> Mean:
    """Return the mean over all corpora of which these, `(corpora, ...)` and at least two, are a sample.

    The variance between corpora includes true differences and chance, so the two need not be known separately.
    """
    n = len(delta)
    spread = delta.var(axis=0, ddof=1) / n
    return Mean(
        delta=delta.mean(axis=0),
        falling=np.zeros_like(spread),
        fixed=spread,
        dof=np.full(np.shape(spread), float(n - 1)),
    )


def between(estimates: Sequence[Estimate]) -> float:
    """Return the sd of the true differences between corpora, points: the spread beyond chance, at least 0."""
    spread = float(np.var([each.delta for each in estimates], ddof=1))
    return sqrt(max(spread - float(np.mean([each.falling + each.fixed for each in estimates])), 0.0))


def pooled(estimates: Sequence[Estimate]) -> Mean:
    """Return the mean over corpora, one estimate each."""
    columns = ("delta", "falling", "fixed", "dof")
    return fixed_effects(*(np.array([getattr(each, name) for each in estimates]) for name in columns))


def corpora_needed(delta: float, variance: float, power: float = 0.8) -> int:
    """Return how many corpora are needed to detect a mean of `delta` over similar corpora; at most 1000.

    variance: variance of the difference between corpora. n corpora have n - 1 degrees of freedom (Student's t). Errors:
    ZeroDivisionError for a delta of 0.
    """
    from scipy.special import stdtrit

    ratio = variance / delta**2
    n = 2
    # Limited, because a delta near 0 would need any number of corpora.
    while n < 1000 and n < ratio * float(stdtrit(n - 1, 0.975) + stdtrit(n - 1, power)) ** 2:
        n += 1
    return n
