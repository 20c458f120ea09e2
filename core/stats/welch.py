"""Welch's two-sided t-test of two means with unequal variances (Welch 1947; SOURCES.md, Verdict)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

import numpy as np

Moments = tuple[float, float, int]  # mean, variance (divisor n - 1), and number of values n, at least 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Welch:
    """Result of Welch's test of two variants, a and b.

    delta: mean of a minus mean of b. t: test statistic. p: two-sided p-value. dagger: True if a is better with p below
    0.05; Murthy et al. 2018 mark such results with a dagger.
    """

    delta: float
    t: float
    p: float
    dagger: bool


def welch(a: Sequence[float], b: Sequence[float]) -> Welch | None:
    """Test if two variants differ in mean F1. Return None with a single seed, or if the F1 of neither varies.

    a, b: one F1 per seed.
    """
    if min(len(a), len(b)) < 2 or (stdev(a) == 0 and stdev(b) == 0):
        return None
    first, second = ((float(np.mean(x)), float(np.var(x, ddof=1)), len(x)) for x in (a, b))
    t, p = from_moments(first, second)
    return Welch(delta=mean(a) - mean(b), t=t, p=p, dagger=p < 0.05 and t > 0)


def from_moments(a: Moments, b: Moments) -> tuple[float, float]:
    """Return t and p from published means and variances; (0, 1) if neither varies. t is positive if `a` is higher."""
    from scipy.special import stdtr

    error, dof = _error(a, b)
    if not error:
        return 0.0, 1.0
    t = (a[0] - b[0]) / error
    return t, 2 * float(stdtr(dof, -abs(t)))


def interval(a: Moments, b: Moments) -> tuple[float, float] | None:
    """Return the 95% confidence interval of the mean of `a` minus the mean of `b`; None if neither varies."""
    from scipy.special import stdtrit

    error, dof = _error(a, b)
    half = error * float(stdtrit(dof, 0.975))
    return (a[0] - b[0] - half, a[0] - b[0] + half) if error else None


def _error(a: Moments, b: Moments) -> tuple[float, float]:
    """Return the standard error of the difference and its degrees of freedom; (0, 1) if neither varies."""
    (_, var_a, n_a), (_, var_b, n_b) = a, b
    # Welch-Satterthwaite degrees of freedom for unequal variances.
    var_a, var_b = var_a / n_a, var_b / n_b
    if not var_a + var_b:
        return 0.0, 1.0
    return sqrt(var_a + var_b), (var_a + var_b) ** 2 / (var_a**2 / (n_a - 1) + var_b**2 / (n_b - 1))
