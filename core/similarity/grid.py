"""The table of closeness (targets x sources x measures), from which all conclusions are drawn, and tests of leads.

A measure ranks the sources of a target. Its lead is the difference between the values of the sources that it ranks
first and second. `leads` tests if a lead is larger than chance explains.

For the test, the target and the sources are cut into the same number of disjoint parts. The measure is computed on the
first part of each, on the second part of each, and so on. These parts are different texts, so the differences vary as
they would between repetitions, even for a source that is used whole. This is the method of batch means (Schmeiser 1982;
SOURCES.md, Leads).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.results import FloatArray, Prefer

# A lead is tested only if both of its sources have a value on at least this many parts.
FEWEST = 4
# Family-wise error rate of the tests of a target's leads (Holm).
LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Values of t targets, s sources and m measures.

    values: `(t, s, m)`, NaN if a pair could not be measured. prefer: for each measure, "low" if low values mean
    "closer", else "high". spread: `(t, s, m)`, range over the random samples; None for a single sample, or for a pasted
    table.
    """

    targets: tuple[str, ...]
    sources: tuple[str, ...]
    measures: tuple[str, ...]
    prefer: tuple[Prefer, ...]
    values: FloatArray
    spread: FloatArray | None = None

    def closeness(self) -> FloatArray:
        """Return `values`, with the sign of some measures flipped, so that high values always mean "closer"."""
        return self.values * np.where(np.array(self.prefer) == "low", -1.0, 1.0)

    def closest(self, target: int) -> dict[str, str]:
        """Return {measure: closest source} for a target, without measures that have no single closest source."""
        closest = {}
        for name, column in zip(self.measures, self.closeness()[target].T, strict=True):
            # fmax ignores NaN, so a pair that could not be measured does not hide the others.
            best = np.flatnonzero(column == np.fmax.reduce(column))
            if len(best) == 1:
                closest[name] = self.sources[best[0]]
        return closest

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield the indices (target, a, b) of every pair of sources of every target, with a < b."""
        for target in range(len(self.targets)):
            for a, b in combinations(range(len(self.sources)), 2):
                yield target, a, b

    def voters(self) -> tuple[str, ...]:
        """Return the measures that vote on the closest source.

        All measures vote, except TVcC if TVC is also measured, because both compare the same words.
        """
        return tuple(name for name in self.measures if not (name == "tvcc" and "tvc" in self.measures))

    def only(self, measures: Sequence[str]) -> "Grid":
        """Return the grid with only these measures."""
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
    """Format a measure's value for tables and sentences, with four significant digits."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Lead of the source that a measure ranks first over the source that it ranks second, in the measure's unit.

    A lead is positive if the first source is closer. whole: lead in the table. on_parts: mean lead over the parts,
    which are smaller samples. low, high: 95% interval of on_parts. p: two-sided p-value of the smaller of `whole` and
    `on_parts`, with the standard error over the parts. parts: number of parts with values of both sources. With too few
    parts, on_parts, low, high and p are None. holds: True if the lead is significant, with Holm's correction over the
    measures of the target.
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
    """Test, for each measure in `Grid.voters` with a single closest source, if this source's lead is beyond chance.

    target: index of the target. by_part: `(p, s, m)` values on each part, NaN if missing; sources and measures as in
    `grid`.
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
    """Return the indices of the closest and the second closest source; None if they tie, or below two values.

    column: closeness of each source, `(s,)`, NaN if missing.
    """
    finite = np.flatnonzero(np.isfinite(column))
    if len(finite) < 2:
        return None
    # With three or more sources, only the first two can change the recommendation.
    second, first = finite[np.argsort(column[finite], kind="stable")][-2:]
    return None if column[first] == column[second] else (int(first), int(second))


def batch_means(differences: FloatArray, whole: float) -> tuple[float, float, float, float] | None:
    """Return the mean of a lead over parts, the low and high end of its 95% interval, and its p-value.

    Return None below `FEWEST` parts. differences: lead on each part, `(p,)`. whole: lead on all text, above 0. The
    smaller of `whole` and the mean over parts is tested. A lead is thus significant only if both the whole text and its
    parts show it.
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
    """Return True for each p-value that is significant by Holm's procedure at `LEVEL`."""
    kept = [False] * len(p)
    for place, at in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        # Holm's procedure ends at the first test that is not significant, even if a later p-value is small.
        if p[at] > LEVEL / (len(p) - place):
            break
        kept[at] = True
    return kept
