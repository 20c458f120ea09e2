"""Interim analyses of an experiment: bounds that limit false claims to 5% in all, and stopping for futility.

The bounds are those of O'Brien and Fleming (1979), by the recursion of Armitage, McPherson and Rowe (1969). The sum of
the differences has the same bound at each analysis, so early analyses use little of the 5%. With few replicates the
test is Student's, so its p is compared with the level of the normal bound (Pocock 1977; Jennison and Turnbull 2000,
significance-level approach). Stopping for futility adds no error, because it only removes claims (SOURCES.md, Looks).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from core.results import BoolArray, FloatArray

ALPHA = 0.05
FUTILE = 0.1  # conditional power below which an experiment stops
KNOWN = 3  # fewest replicates to stop at; the spread of two is so uncertain that stopping by it would bias the interval
_NODES = 400

Ending = Literal["shown", "worse", "futile", "complete"]


def looks_of(replicates: int) -> tuple[int, ...]:
    """Return the analyses of a plan: after 1/3, 2/3 and all replicates; with fewer than 6, only at the end."""
    if replicates < 2 * KNOWN:
        return (replicates,)
    return (round(replicates / 3), round(2 * replicates / 3), replicates)


@lru_cache(1024)
def bounds(looks: tuple[int, ...], alpha: float = ALPHA) -> tuple[float, ...]:
    """Return the two-sided significance level of each analysis.

    looks: replicates at each analysis, ascending; the last one ends the experiment.
    """
    if len(looks) == 1:
        return (alpha,)
    from scipy.optimize import brentq
    from scipy.special import ndtr

    shares = np.asarray(looks, dtype=np.float64) / looks[-1]
    # At 5%, the height is between 1.96 (a single analysis) and 2.24 (continuous analysis).
    height = brentq(lambda height: _crossed(height, shares) - alpha, 1.0, 6.0, xtol=1e-8)
    return tuple((2 * ndtr(-height / np.sqrt(shares))).tolist())


@lru_cache(1)
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights; computing them takes a second on a busy machine."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def _crossed(height: float, shares: FloatArray) -> float:
    """Return the probability that a standard Brownian motion exceeds +-height at any of these times."""
    nodes, weights = _quadrature()
    nodes, weights = nodes * height, weights * height
    density = _normal(nodes, shares[0])
    for step in np.diff(shares):
        density = _normal(nodes[:, None] - nodes[None, :], step) @ (weights * density)
    return 1 - float(weights @ density)


def _normal(x: FloatArray, variance: float) -> FloatArray:
    """Return the density of N(0, variance)."""
    density: FloatArray = np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return density


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The data of one comparison at an analysis (numbers), or of many comparisons (arrays of one shape).

    delta: points. p: two-sided. falling: part of delta's variance that more replicates reduce. fixed: the rest.
    """

    delta: FloatArray
    p: FloatArray
    falling: FloatArray
    fixed: FloatArray


def conditional_power(look: Look, looks: tuple[int, ...], number: int, effect: float) -> FloatArray:
    """Return the chance that the last analysis detects a gain if the truth is `effect`.

    number: this analysis, from 0.
    """
    from scipy.special import ndtr, ndtri

    now, end = looks[number], looks[-1]
    information = 1 / np.maximum(look.falling + look.fixed, 1e-12)
    final = 1 / np.maximum(look.falling * now / end + look.fixed, 1e-12)
    # Without a falling part, no information is added; avoid a division by 0.
    more = np.maximum(final - information, 1e-12)
    # Convert Student's p to a normal z, because with few replicates delta / se is too large.
    z = np.sign(look.delta) * -ndtri(np.clip(look.p, 1e-300, 1) / 2)
    bound = -ndtri(bounds(looks)[-1] / 2)
    mean = z * np.sqrt(information) + effect * more
    power: FloatArray = ndtr((mean - bound * np.sqrt(final)) / np.sqrt(more))
    return power


def shown(look: Look, looks: tuple[int, ...], number: int) -> FloatArray:
    """Return 1 if a gain is detected at this analysis, -1 if a loss is, else 0."""
    signs: FloatArray = np.where(np.asarray(look.p) <= bounds(looks)[number], np.sign(look.delta), 0.0)
    return signs


def futile(look: Look, looks: tuple[int, ...], number: int, effect: float) -> BoolArray:
    """Return True if the last analysis is unlikely to detect `effect`. Always False at the last analysis."""
    if number == len(looks) - 1 or looks[number] < KNOWN:
        return np.zeros(np.shape(look.p), dtype=bool)
    hopeless: BoolArray = np.asarray(conditional_power(look, looks, number, effect) < FUTILE)
    return hopeless


def adjusted_interval(look: Look, looks: tuple[int, ...], number: int, dof: float) -> tuple[float, float] | None:
    """Return the interval of a difference, corrected for several analyses (Jennison and Turnbull 1989).

    Return None at the last analysis or without degrees of freedom. In 95 of 100 experiments, the intervals of all
    analyses include the truth. look: the data of this analysis, with numbers in place of arrays. looks: replicates at
    each analysis. number: this analysis, from 0. dof: degrees of freedom of the difference.
    """
    from scipy.special import stdtrit

    if number == len(looks) - 1 or dof <= 0:
        return None
    half = float(np.sqrt(look.falling + look.fixed) * stdtrit(dof, 1 - bounds(looks)[number] / 2))
    return max(float(look.delta) - half, -100.0), min(float(look.delta) + half, 100.0)


def ending(look: Look, looks: Sequence[int], number: int, effect: float, *, side: int | None = None) -> Ending | None:
    """Return why the experiment stops at this analysis; None if it continues.

    side: sign of the displayed interval, 0 if it includes 0; an effect only counts if it has the same sign. None: do
    not check, because the interval and p both come from Student's t and so always agree.
    """
    at = tuple(looks)
    sign = int(shown(look, at, number))
    if sign and side in (sign, None):
        return "shown" if sign > 0 else "worse"
    if number == len(at) - 1:
        return "complete"
    return "futile" if futile(look, at, number, effect) else None
