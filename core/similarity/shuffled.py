"""The chance that measures which have nothing to do with F1 would go with it as closely as these do.

Were a measure worthless, any order of a target's sources would be as likely as the one that is there. So the sources'
F1 are shuffled within each target, the same way for all measures, and the correlations made anew: in every order of
all targets where these are few, else in orders drawn by lot (SOURCES.md, Prediction of F1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial, prod

import numpy as np

from core.results import FloatArray, IntArray
from core.similarity.grid import Grid
from core.similarity.predictive import Outcomes

ORDERS = 20_000  # so many are gone through one by one, or drawn; a page waits for them
SAME = 1e-9  # r that differ by less are equal but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Shares of the orders in which r is at least as high, counted in the sense that closer is better.

    by_measure: of each measure alone. best: of whichever measure is the best in an order, against the one that is the
    best here. orders: how many there were, the one that is there among them; exact: whether these are all.
    """

    by_measure: Mapping[str, float]
    best: float
    orders: int
    exact: bool


def chance(grid: Grid, outcomes: Outcomes, *, seed: int = 0) -> Chance | None:
    """The chance of r as it is printed (convention `runs`); None where no measure has one."""
    trained = [np.flatnonzero(np.isfinite(row)) for row in outcomes.mean]
    targets = [at for at, sources in enumerate(trained) if len(sources) > 1]
    if not targets:
        return None
    counts = [len(trained[at]) for at in targets]
    exact = prod(map(factorial, counts)) <= ORDERS
    orders = _all_orders(counts) if exact else _some_orders(counts, np.random.default_rng(seed))
    close = grid.closeness()
    rs = [_rs(close[at, trained[at]], outcomes, at, order) for at, order in zip(targets, orders, strict=True)]
    there = np.isfinite(rs).sum(axis=0)  # targets that have a say
    r = np.divide(np.nansum(rs, axis=0), there, out=np.full(np.shape(there), -np.inf), where=there > 0)
    known = np.flatnonzero(np.isfinite(r[0]))
    if not len(known):
        return None
    # A hair of slack: the same numbers added up in another order differ in their last digits.
    at_least = (r >= r[0] - SAME).mean(axis=0)
    return Chance(
        by_measure={grid.measures[m]: float(at_least[m]) for m in known},
        best=float((r.max(axis=1) >= r[0].max() - SAME).mean()),
        orders=len(r),
        exact=exact,
    )


def _all_orders(counts: Sequence[int]) -> Iterator[IntArray]:
    """A target each: `(orders, sources)`, all combinations of the targets' orders row by row; the first is as it is."""
    places = np.unravel_index(np.arange(prod(map(factorial, counts))), [factorial(n) for n in counts])
    for n, at in zip(counts, places, strict=True):
        yield np.array(list(permutations(range(n))))[at]


def _some_orders(counts: Sequence[int], rng: np.random.Generator) -> Iterator[IntArray]:
    """The same, drawn; the first is as it is, so that no chance is ever 0."""
    for n in counts:
        orders = rng.permuted(np.tile(np.arange(n), (ORDERS, 1)), axis=1)
        orders[0] = np.arange(n)
        yield orders


def _rs(close: FloatArray, outcomes: Outcomes, target: int, orders: IntArray) -> FloatArray:
    """`(orders, m)` r over a target's single runs. close: `(s, m)` of its trained sources, NaN where unmeasured."""
    sources = np.isfinite(outcomes.mean[target])
    mean, sd, runs = (table[target, sources] for table in (outcomes.mean, outcomes.sd, outcomes.runs))
    # Scaled, so that what does not vary is told from what hardly does by one threshold.
    there, x, y = np.isfinite(close), _scaled(close), _scaled(mean[:, None])[:, 0]
    # In the unit of y, whose standard deviation is 1.
    spread = sd / max(float(mean.std()), SAME)
    w = np.maximum(runs, 1)
    weight, once, twice = (values[orders] for values in (w, w * y, w * (y * y + spread * spread)))
    n, sx, sxx = weight @ there, weight @ x, weight @ (x * x)
    sy, syy, sxy = once @ there, twice @ there, once @ x
    left, right = n * sxx - sx * sx, n * syy - sy * sy
    with np.errstate(divide="ignore", invalid="ignore"):
        r: FloatArray = np.where((left > SAME) & (right > SAME), (n * sxy - sx * sy) / np.sqrt(left * right), np.nan)
    return r


def _scaled(values: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1; 0 where one does not vary or has no value."""
    there = np.isfinite(values)
    n = np.maximum(there.sum(axis=0), 1)
    shifted = np.where(there, values - np.where(there, values, 0).sum(axis=0) / n, 0.0)
    sd = np.sqrt((shifted * shifted).sum(axis=0) / n)
    scaled: FloatArray = np.where(
        sd > SAME * np.abs(np.where(there, values, 0)).max(axis=0), shifted / np.maximum(sd, 1e-300), 0.0
    )
    return scaled
