"""Looks at an experiment before its end: bounds that hold a false claim to 5% in all, and an end where none can come.

Bounds of O'Brien and Fleming (1979) by the recursion of Armitage, McPherson and Rowe (1969): the same height on the
scale of the sum at every look, so hardly anything is spent early. With few replicates the test is Student's, so its p
is held against the level that the normal bound has (Pocock 1977; Jennison and Turnbull 2000, the significance-level
approach). Ending for futility costs no error: it only takes claims away (SOURCES.md, Looks).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from core.results import BoolArray, FloatArray

ALPHA = 0.05
FUTILE = 0.1  # conditional power below which an experiment ends
KNOWN = 3  # replicates; two know their spread so badly that ending by it bends the interval
_NODES = 400

Ending = Literal["shown", "worse", "futile", "complete"]


def looks_of(replicates: int) -> tuple[int, ...]:
    """Looks of a plan: after a third, after two thirds and at the end; below 6 replicates at the end alone."""
    if replicates < 2 * KNOWN:
        return (replicates,)
    return (round(replicates / 3), round(2 * replicates / 3), replicates)


@lru_cache(1024)
def bounds(looks: tuple[int, ...], alpha: float = ALPHA) -> tuple[float, ...]:
    """The two-sided p that each look asks for. looks: replicates at each, ascending, the last is the end."""
    if len(looks) == 1:
        return (alpha,)
    from scipy.optimize import brentq
    from scipy.special import ndtr

    shares = np.asarray(looks, dtype=np.float64) / looks[-1]
    # At 5% between 1.96, for a single look, and 2.24, for looking all the time.
    height = brentq(lambda height: _crossed(height, shares) - alpha, 1.0, 6.0, xtol=1e-8)
    return tuple((2 * ndtr(-height / np.sqrt(shares))).tolist())


@lru_cache(1)
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss and Legendre. Finding them takes a second on a busy machine."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def _crossed(height: float, shares: FloatArray) -> float:
    """The probability that a standard Brownian motion is beyond +-height at one of these times or more."""
    nodes, weights = _quadrature()
    nodes, weights = nodes * height, weights * height
    density = _normal(nodes, shares[0])
    for step in np.diff(shares):
        density = _normal(nodes[:, None] - nodes[None, :], step) @ (weights * density)
    return 1 - float(weights @ density)


def _normal(x: FloatArray, variance: float) -> FloatArray:
    """Density of N(0, variance)."""
    density: FloatArray = np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return density


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Standing of one comparison at a look, or of many at once: arrays of one shape, or numbers.

    delta: points. p: two-sided. falling: the part of delta's variance that more replicates would lessen. fixed: the
    part that they would not.
    """

    delta: FloatArray
    p: FloatArray
    falling: FloatArray
    fixed: FloatArray


def conditional_power(look: Look, looks: tuple[int, ...], number: int, effect: float) -> FloatArray:
    """The probability that the last look shows an effect above 0, were it `effect`. number: of this look, from 0."""
    from scipy.special import ndtr, ndtri

    now, end = looks[number], looks[-1]
    information = 1 / np.maximum(look.falling + look.fixed, 1e-12)
    final = 1 / np.maximum(look.falling * now / end + look.fixed, 1e-12)
    # Where no replicate lessens anything no information is to come: it must not be divided by.
    more = np.maximum(final - information, 1e-12)
    # Student's p as the normal's z: with few replicates the difference over its error says too much.
    z = np.sign(look.delta) * -ndtri(np.clip(look.p, 1e-300, 1) / 2)
    bound = -ndtri(bounds(looks)[-1] / 2)
    mean = z * np.sqrt(information) + effect * more
    power: FloatArray = ndtr((mean - bound * np.sqrt(final)) / np.sqrt(more))
    return power


def shown(look: Look, looks: tuple[int, ...], number: int) -> FloatArray:
    """1 where an effect above 0 is shown at this look, -1 where one below 0 is, else 0."""
    signs: FloatArray = np.where(np.asarray(look.p) <= bounds(looks)[number], np.sign(look.delta), 0.0)
    return signs


def futile(look: Look, looks: tuple[int, ...], number: int, effect: float) -> BoolArray:
    """Whether the last look could hardly show `effect` any more. False at the last look, which is the end anyway."""
    if number == len(looks) - 1 or looks[number] < KNOWN:
        return np.zeros(np.shape(look.p), dtype=bool)
    hopeless: BoolArray = np.asarray(conditional_power(look, looks, number, effect) < FUTILE)
    return hopeless


def ending(look: Look, looks: Sequence[int], number: int, effect: float, *, side: int | None = None) -> Ending | None:
    """Reason that the experiment ends at this look; None: it goes on.

    side: of 0 that the shown interval is on, 1 or -1; 0 where it holds 0, beside which nothing may be called shown.
    None where it is Student's, as p is, so that the two agree.
    """
    at = tuple(looks)
    sign = int(shown(look, at, number))
    if sign and side in (sign, None):
        return "shown" if sign > 0 else "worse"
    if number == len(at) - 1:
        return "complete"
    return "futile" if futile(look, at, number, effect) else None
