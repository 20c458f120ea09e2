"""Mean difference of two variants over several corpora: for these corpora only, or for all similar corpora.

For these corpora only (fixed effects), the variances of their differences add up (Satterthwaite 1946). For all similar
corpora (random effects), these corpora are a sample. The variance between their differences is then used, with
Student's t and one degree of freedom fewer than there are corpora (Hartung and Knapp 2001 with equal weights;
SOURCES.md, Several corpora).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.results import FloatArray
from core.stats.bootstrap import Difference, two_sided
from core.stats.sequential import Look

SURE = 1e9  # maximum degrees of freedom, because JSON cannot store infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Difference of two variants on one corpus, with its variance.

    delta: difference in F1 points. falling: part of its variance that more replicates reduce. fixed: the other part.
    dof: degrees of freedom of the whole variance; 0 if the variance is unknown (one replicate or one sentence).
    """

    delta: float
    falling: float
    fixed: float
    dof: float

    @classmethod
    def of(cls, gap: Difference) -> "Estimate":
        """Return the estimate that a comparison on one corpus gives."""
        falling = gap.se_seeds**2 + gap.se_both**2
        fixed = max(gap.se_sentences**2 - gap.se_both**2, 0.0)
        return cls(delta=gap.delta, falling=falling, fixed=fixed, dof=min(gap.dof, SURE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Mean difference over corpora. The attributes are those of `Estimate`, as arrays `(...)` of many studies."""

    delta: FloatArray
    falling: FloatArray
    fixed: FloatArray
    dof: FloatArray

    @property
    def se(self) -> FloatArray:
        """Standard error of the mean difference, points."""
        root: FloatArray = np.sqrt(self.falling + self.fixed)
        return root

    @property
    def p(self) -> FloatArray:
        """Two-sided p-value by Student's t; 1 if the variance is unknown."""
        return two_sided(self.delta, self.se, self.dof)

    @property
    def look(self) -> Look:
        """This mean as a `Look`, the input of an interim analysis."""
        return Look(delta=self.delta, p=self.p, falling=self.falling, fixed=self.fixed)

    def half(self, level: float = 0.95) -> FloatArray:
        """Return half the width of the confidence interval, in F1 points; 100 if the variance is unknown."""
        from scipy.special import stdtrit

        known = self.dof > 0
        width: FloatArray = self.se * stdtrit(np.where(known, self.dof, 1.0), (1 + level) / 2)
        return np.where(known, width, 100.0)


def fixed_effects(delta: FloatArray, falling: FloatArray, fixed: FloatArray, dof: FloatArray) -> Mean:
    """Return the mean difference for these corpora only. Arguments: arrays `(corpora, ...)`, see `Estimate`."""
    n, each = len(delta), falling + fixed
    # Satterthwaite's formula with the degrees of freedom of each corpus. If the variance of one corpus is unknown, the
    # variance of the mean is unknown, too.
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
    """Return the mean difference for all similar corpora, from a sample of at least two corpora.

    delta: difference on each corpus, `(corpora, ...)`. Its variance between corpora already includes the variation of
    the true difference and chance, so the variance on each corpus is not needed.
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
    """Return how much the true difference varies from corpus to corpus: its standard deviation, points."""
    spread = float(np.var([each.delta for each in estimates], ddof=1))
    return sqrt(max(spread - float(np.mean([each.falling + each.fixed for each in estimates])), 0.0))


def pooled(estimates: Sequence[Estimate]) -> Mean:
    """Return the mean difference for these corpora only. estimates: one per corpus."""
    columns = ("delta", "falling", "fixed", "dof")
    return fixed_effects(*(np.array([getattr(each, name) for each in estimates]) for name in columns))


def corpora_needed(delta: float, variance: float, power: float = 0.8) -> int:
    """Return how many corpora are needed to detect a mean difference of `delta` over similar corpora; at most 1000.

    variance: variance of the difference between corpora. The test is Student's, with one degree of freedom fewer than
    there are corpora. Errors: ZeroDivisionError for a delta of 0.
    """
    from scipy.special import stdtrit

    ratio = variance / delta**2
    n = 2
    # Stop at 1000, because a delta near 0 would need a huge number of corpora.
    while n < 1000 and n < ratio * float(stdtrit(n - 1, 0.975) + stdtrit(n - 1, power)) ** 2:
        n += 1
    return n
