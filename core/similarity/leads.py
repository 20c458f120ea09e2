"""Leads: is the source that a measure puts first ahead by more than chance?

T_C and the sources are cut into as many disjoint parts, and the measure is taken anew on the first part of each, on the
second, and so on. Every part is another T_C and another pair of sources, so the differences vary as they would between
repetitions, of a source that is taken whole too: the method of batch means (Schmeiser 1982; SOURCES.md, Leads).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.results import FloatArray
from core.similarity.grid import Grid

FEWEST = 4  # parts with a value of both sources
LEVEL = 0.05  # chance of a false lead among all of a target, by Holm


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Lead of the source that a measure puts first over the next, in the measure's unit, above 0 where it is.

    whole: in the table. on_parts: mean over the parts, smaller samples, with the ends of its 95% interval, low and
    high. p: two-sided, of the smaller lead of the two in units of the error over the parts. parts: how many had a value
    of both; with too few the numbers are None. holds: beyond chance, by Holm over the target's measures.
    """

    target: str
    measure: str
    first: str
    second: str
    whole: float
    on_parts: float | None
    low: float | None
    high: float | None
    p: float | None
    parts: int
    holds: bool


def leads(grid: Grid, target: int, by_part: FloatArray) -> list[Lead]:
    """One of each measure that has a vote and puts one source first.

    by_part: `(p, s, m)` values of the target, NaN where there is none; sources and measures as in `grid`.
    """
    sign = np.where(np.array(grid.prefer) == "low", -1.0, 1.0)
    drafts = []
    for name in grid.voters():
        m = grid.measures.index(name)
        column = grid.closeness()[target, :, m]
        if front := in_front(column):
            ahead, behind = front
            differences = sign[m] * (by_part[:, ahead, m] - by_part[:, behind, m])
            drafts.append((name, front, float(column[ahead] - column[behind]), differences[np.isfinite(differences)]))
    tests = [batch_means(differences, whole) for *_, whole, differences in drafts]
    kept = _holm([1.0 if test is None else test[3] for test in tests])
    return [
        Lead(
            target=grid.targets[target],
            measure=name,
            first=grid.sources[ahead],
            second=grid.sources[behind],
            whole=whole,
            on_parts=test[0] if test else None,
            low=test[1] if test else None,
            high=test[2] if test else None,
            p=test[3] if test else None,
            parts=len(differences),
            holds=holds,
        )
        for (name, (ahead, behind), whole, differences), test, holds in zip(drafts, tests, kept, strict=True)
    ]


def in_front(column: FloatArray) -> tuple[int, int] | None:
    """The closest source and the next, of `(s,)` closeness; None where fewer than two have a value, or they tie."""
    finite = np.flatnonzero(np.isfinite(column))
    if len(finite) < 2:
        return None
    # Of three or more sources only the two in front can change the advice.
    second, first = finite[np.argsort(column[finite], kind="stable")][-2:]
    return None if column[first] == column[second] else (int(first), int(second))


def batch_means(differences: FloatArray, whole: float) -> tuple[float, float, float, float] | None:
    """Mean over `(p,)` parts, the ends of its 95% interval, and p of the lead; None below `FEWEST` parts.

    whole: the lead on all of the text, above 0. The smaller lead is tested: one that parts have and the whole has not
    says nothing of the table, one that the whole has and parts have not may be chance.
    """
    from scipy.special import stdtr, stdtrit

    n = len(differences)
    if n < FEWEST:
        return None
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / n**0.5
    reach, smaller = float(stdtrit(n - 1, 0.975)) * error, min(mean, whole)
    if smaller <= 0:
        return mean, mean - reach, mean + reach, 1.0
    return mean, mean - reach, mean + reach, 2 * float(stdtr(n - 1, -smaller / error)) if error else 0.0


def _holm(p: Sequence[float]) -> list[bool]:
    """Whether Holm's procedure keeps each test at `LEVEL`."""
    kept = [False] * len(p)
    for place, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        # It steps down: the first that fails takes all behind it along, whatever their own p.
        if p[at] > LEVEL / (len(p) - place):
            break
        kept[at] = True
    return kept
