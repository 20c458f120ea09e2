"""The table of closeness (targets x sources x measures), on which all conclusions rest, and tests of leads in it.

A measure ranks the sources of a target. Its lead is the difference between the value of the source that it ranks first
and the value of the second. `leads` tests if a lead is larger than chance explains.

For the test, the target and the sources are cut into the same number of disjoint parts. The measure is computed on the
first part of each, on the second part of each, and so on. Each part is another target and another pair of sources, so
the differences vary as they would between repetitions. This also holds for a source that is used whole. It is the
method of batch means (Schmeiser 1982; SOURCES.md, Leads).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.results import FloatArray, Prefer

FEWEST = 4  # a lead is tested only if its two sources both have a value on at least this many parts
LEVEL = 0.05  # family-wise error rate of the leads of a target, by Holm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Values of t targets, s sources and m measures.

    values: `(t, s, m)`, NaN if a pair could not be measured. prefer: per measure, the end that means "closer". spread:
    `(t, s, m)`, range over the random samples; None for a single sample and for a pasted table.
    """

    targets: tuple[str, ...]
    sources: tuple[str, ...]
    measures: tuple[str, ...]
    prefer: tuple[Prefer, ...]
    values: FloatArray
    spread: FloatArray | None = None

    def closeness(self) -> FloatArray:
        """Return `values` with signs flipped so that high is close; the only place where directions matter."""
        return self.values * np.where(np.array(self.prefer) == "low", -1.0, 1.0)

    def closest(self, target: int) -> dict[str, str]:
        """Return {measure: the source closest by it}, without measures that have no value or a tie for first place."""
        closest = {}
        for name, column in zip(self.measures, self.closeness()[target].T, strict=True):
            # fmax ignores NaN, so a pair that could not be measured does not hide the others.
            best = np.flatnonzero(column == np.fmax.reduce(column))
            if len(best) == 1:
                closest[name] = self.sources[best[0]]
        return closest

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield (target, a, b): every two sources of every target, a before b in the listed order."""
        for target in range(len(self.targets)):
            for a, b in combinations(range(len(self.sources)), 2):
                yield target, a, b

    def voters(self) -> tuple[str, ...]:
        """Return the measures that vote. TVC, if present, also votes for TVcC, which compares the same words."""
        return tuple(name for name in self.measures if not (name == "tvcc" and "tvc" in self.measures))

    def only(self, measures: Sequence[str]) -> "Grid":
        """Return the grid of some of the measures."""
        at = [self.measures.index(name) for name in measures]
        return Grid(
            targets=self.targets,
            sources=self.sources,
            measures=tuple(measures),
            prefer=tuple(self.prefer[i] for i in at),
            values=self.values[..., at],
            spread=None if self.spread is None else self.spread[..., at],
        )


def number(value: float) -> str:
    """Return a measure's value with four significant digits, as tables and sentences show it."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Lead of the source that a measure ranks first over the source that it ranks second, in the measure's unit.

    A lead is positive if the first source is closer. whole: lead in the table. on_parts: mean lead over the parts,
    which are smaller samples. low, high: 95% interval of on_parts. p: two-sided p-value of the smaller of `whole` and
    `on_parts`, from the standard error over the parts. parts: number of parts with a value of both sources. If there
    are too few, on_parts, low, high and p are None. holds: True if the lead is beyond chance, with Holm's correction
    over the target's measures.
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
    """For each measure that has a vote and one best source, test if that source is really ahead.

    by_part: `(p, s, m)` values of the target by part, NaN if missing; sources and measures as in `grid`.
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
    """Return the two closest sources by closeness `(s,)`, closest first; None below two values, or if both tie."""
    finite = np.flatnonzero(np.isfinite(column))
    if len(finite) < 2:
        return None
    # Of three or more sources, only the first two can change the advice.
    second, first = finite[np.argsort(column[finite], kind="stable")][-2:]
    return None if column[first] == column[second] else (int(first), int(second))


def batch_means(differences: FloatArray, whole: float) -> tuple[float, float, float, float] | None:
    """Return the mean over parts `(p,)`, its 95% interval (low, high), and the p-value of the lead.

    Return None below `FEWEST` parts. whole: the lead on all text, above 0. The smaller of `whole` and the mean over
    parts is tested. A lead is thus significant only if both the whole text and its parts show it.
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
    """Return True per test that Holm's procedure rejects at `LEVEL`."""
    kept = [False] * len(p)
    for place, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        # Holm steps down: the first test that fails ends it, also if a later p is small.
        if p[at] > LEVEL / (len(p) - place):
            break
        kept[at] = True
    return kept
