"""One question on several corpora: what holds on these on average, and what would on others like them.

On these: the mean of the corpora's differences; their variances add (Satterthwaite 1946). On others: corpora are a
sample too, so the differences themselves say how far corpora differ: Student's t with one degree of freedom fewer than
there are corpora, as Hartung and Knapp (2001) have it where each counts alike (SOURCES.md, Several corpora).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from core.results import FloatArray
from core.stats.bootstrap import Difference, two_sided
from core.stats.sequential import Look

SURE = 1e9  # degrees of freedom at most, so that they can be written down


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A difference of two arms on one corpus, and how sure it is.

    delta: points. falling: the part of its variance that more replicates would lessen; fixed: the part that they would
    not. dof: degrees of freedom of both together; 0: nothing is known, having one replicate or one sentence.
    """

    delta: float
    falling: float
    fixed: float
    dof: float

    @classmethod
    def of(cls, gap: Difference) -> "Estimate":
        """An estimate from a comparison of two arms."""
        falling = gap.se_seeds**2 + gap.se_both**2
        fixed = max(gap.se_sentences**2 - gap.se_both**2, 0.0)
        return cls(delta=gap.delta, falling=falling, fixed=fixed, dof=min(gap.dof, SURE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over corpora, `(...)`: points, its variance by parts as in `Estimate`, degrees of freedom."""

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
        """Two-sided, by Student's t; 1 where nothing is known."""
        return two_sided(self.delta, self.se, self.dof)

    @property
    def look(self) -> Look:
        """Its standing at a look."""
        return Look(delta=self.delta, p=self.p, falling=self.falling, fixed=self.fixed)

    def half(self, level: float = 0.95) -> FloatArray:
        """Half the width of its interval, points; 100 where nothing is known."""
        from scipy.special import stdtrit

        known = self.dof > 0
        width: FloatArray = self.se * stdtrit(np.where(known, self.dof, 1.0), (1 + level) / 2)
        return np.where(known, width, 100.0)


def fixed_effects(delta: FloatArray, falling: FloatArray, fixed: FloatArray, dof: FloatArray) -> Mean:
    """The mean over these very corpora. All `(corpora, ...)`."""
    n, each = len(delta), falling + fixed
    # Satterthwaite: every corpus's variance is known by its own degrees of freedom; one that is not known spoils all.
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
    """The mean over all corpora of which these, `(corpora, ...)` and two at least, are a sample.

    How far differences vary between corpora holds both what corpora make of the arms and what chance does, so no part
    of it need be known beforehand.
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
    """The sd of the true differences between corpora, points: what they vary by beyond their own chance; 0 at least."""
    spread = float(np.var([each.delta for each in estimates], ddof=1))
    return sqrt(max(spread - float(np.mean([each.falling + each.fixed for each in estimates])), 0.0))


def pooled(estimates: Sequence[Estimate]) -> Mean:
    """The mean over the corpora that these estimates are of, one each."""
    columns = ("delta", "falling", "fixed", "dof")
    return fixed_effects(*(np.array([getattr(each, name) for each in estimates]) for name in columns))


def corpora_needed(delta: float, variance: float, power: float = 0.8) -> int:
    """Corpora to show a mean of `delta` on others like these, where one corpus's difference varies by `variance`.

    By Student's t, whose degrees of freedom come with the corpora. Errors: ZeroDivisionError for a delta of 0.
    """
    from scipy.special import stdtrit

    ratio = variance / delta**2
    n = 2
    # Bounded, for a delta next to 0 asks for corpora without end.
    while n < 1000 and n < ratio * float(stdtrit(n - 1, 0.975) + stdtrit(n - 1, power)) ** 2:
        n += 1
    return n
