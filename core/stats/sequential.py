"""Interim analyses of an experiment: bounds that limit false claims to 5% in all, and stopping for futility.

The bounds are those of O'Brien and Fleming (1979), by the recursion of Armitage, McPherson and Rowe (1969). The sum of
the differences has the same bound at each analysis, so early analyses use little of the 5%. The bounds assume a normal
distribution, but the test is Student's, because there are few replicates. Its p-value is therefore compared with the
significance level of the bound (Pocock 1977; Jennison and Turnbull 2000, significance-level approach). Stopping for
futility adds no error, because it only removes claims (SOURCES.md, Looks).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from core.results import BoolArray, FloatArray

ALPHA = 0.05
# An experiment stops for futility if its conditional power is below this value.
FUTILE = 0.1
# Minimum number of replicates to stop at. The spread of two is so uncertain that stopping would bias the interval.
KNOWN = 3
_NODES = 400

Ending = Literal["shown", "worse", "futile", "complete"]


def looks_of(replicates: int) -> tuple[int, ...]:
    """Return the numbers of replicates at which a plan is analysed: 1/3, 2/3 and all; if fewer than 6, only all."""
    if replicates < 2 * KNOWN:
        return (replicates,)
    return (round(replicates / 3), round(2 * replicates / 3), replicates)


@lru_cache(1024)
def bounds(looks: tuple[int, ...], alpha: float = ALPHA) -> tuple[float, ...]:
    """Return the two-sided significance level of each analysis.

    looks: number of replicates at each analysis, ascending; the last analysis ends the experiment. alpha: significance
    level of all analyses together.
    """
    if len(looks) == 1:
        return (alpha,)
    from scipy.optimize import brentq
    from scipy.special import ndtr

    shares = np.asarray(looks, dtype=np.float64) / looks[-1]
    # The height is the bound in standard deviations. At 5%, it is between 1.96 (one analysis) and 2.24 (continuous).
    height = brentq(lambda height: _crossed(height, shares) - alpha, 1.0, 6.0, xtol=1e-8)
    return tuple((2 * ndtr(-height / np.sqrt(shares))).tolist())


@lru_cache(1)
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights, cached because computing them takes a second on a busy machine."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def _crossed(height: float, shares: FloatArray) -> float:
    """Return the probability that a standard Brownian motion exceeds `height` or falls below `-height`.

    shares: times at which it is observed, ascending up to 1.
    """
    nodes, weights = _quadrature()
    nodes, weights = nodes * height, weights * height
    density = _normal(nodes, shares[0])
    for step in np.diff(shares):
        density = _normal(nodes[:, None] - nodes[None, :], step) @ (weights * density)
    return 1 - float(weights @ density)


def _normal(x: FloatArray, variance: float) -> FloatArray:
    """Return the density of the normal distribution N(0, variance) at each x."""
    density: FloatArray = np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return density


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The data of one comparison at an analysis, or of many comparisons, as arrays of one shape.

    delta: difference in points. p: two-sided p-value. falling: part of the variance of `delta` that more replicates
    reduce. fixed: the other part.
    """

    delta: FloatArray
    p: FloatArray
    falling: FloatArray
    fixed: FloatArray


def conditional_power(look: Look, looks: tuple[int, ...], number: int, effect: float) -> FloatArray:
    """Return the chance that the last analysis detects a gain, given the data so far and a true gain of `effect`.

    look: data of this analysis. looks: number of replicates at each analysis. number: index of this analysis, from 0.
    """
    from scipy.special import ndtr, ndtri

    now, end = looks[number], looks[-1]
    information = 1 / np.maximum(look.falling + look.fixed, 1e-12)
    final = 1 / np.maximum(look.falling * now / end + look.fixed, 1e-12)
    # If more replicates reduce no variance, they add no information. Avoid a division by 0 in this case.
    more = np.maximum(final - information, 1e-12)
    # Convert Student's p-value to a normal z, because with few replicates delta / se would be too large.
    z = np.sign(look.delta) * -ndtri(np.clip(look.p, 1e-300, 1) / 2)
    bound = -ndtri(bounds(looks)[-1] / 2)
    mean = z * np.sqrt(information) + effect * more
    power: FloatArray = ndtr((mean - bound * np.sqrt(final)) / np.sqrt(more))
    return power


def shown(look: Look, looks: tuple[int, ...], number: int) -> FloatArray:
    """Return 1 if this analysis detects a gain, -1 if it detects a loss, else 0."""
    signs: FloatArray = np.where(np.asarray(look.p) <= bounds(looks)[number], np.sign(look.delta), 0.0)
    return signs


def futile(look: Look, looks: tuple[int, ...], number: int, effect: float) -> BoolArray:
    """Return True if the last analysis is unlikely to detect a true gain of `effect`; False at the last analysis.

    Also return False below `KNOWN` replicates. Arguments: as for `conditional_power`.
    """
    if number == len(looks) - 1 or looks[number] < KNOWN:
        return np.zeros(np.shape(look.p), dtype=bool)
    hopeless: BoolArray = np.asarray(conditional_power(look, looks, number, effect) < FUTILE)
    return hopeless


def adjusted_interval(look: Look, looks: tuple[int, ...], number: int, dof: float) -> tuple[float, float] | None:
    """Return the interval of a difference, corrected for several analyses (Jennison and Turnbull 1989).

    In 95 of 100 experiments, the intervals of all analyses include the true difference. Return None at the last
    analysis, or without degrees of freedom. look: data of this analysis for one comparison. looks: number of replicates
    at each analysis. number: index of this analysis, from 0. dof: degrees of freedom of the difference.
    """
    from scipy.special import stdtrit

    if number == len(looks) - 1 or dof <= 0:
        return None
    half = float(np.sqrt(look.falling + look.fixed) * stdtrit(dof, 1 - bounds(looks)[number] / 2))
    return max(float(look.delta) - half, -100.0), min(float(look.delta) + half, 100.0)


def ending(look: Look, looks: Sequence[int], number: int, effect: float, *, side: int | None = None) -> Ending | None:
    """Return why the experiment stops at this analysis; None if it continues.

    side: sign of the displayed interval, 0 if it includes 0. An effect only counts if it has the same sign. If `side`
    is None, this is not checked, because interval and p-value both come from Student's t and always agree. Other
    arguments: as for `conditional_power`.
    """
    at = tuple(looks)
    sign = int(shown(look, at, number))
    if sign and side in (sign, None):
        return "shown" if sign > 0 else "worse"
    if number == len(at) - 1:
        return "complete"
    return "futile" if futile(look, at, number, effect) else None
