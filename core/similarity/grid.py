"""The table that all conclusions are drawn from: how close each source is to each target by each measure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.results import FloatArray, Prefer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """values: `(t, s, m)` float, NaN where a pair could not be measured; t targets, s sources, m measures.

    prefer: which end means "closer", one a measure. spread: `(t, s, m)` largest less smallest value over the draws,
    None where there was one draw or the table was pasted.
    """

    targets: tuple[str, ...]
    sources: tuple[str, ...]
    measures: tuple[str, ...]
    prefer: tuple[Prefer, ...]
    values: FloatArray
    spread: FloatArray | None = None

    def closeness(self) -> FloatArray:
        """`values` with signs turned, so that high is close: the one place where directions matter."""
        return self.values * np.where(np.array(self.prefer) == "low", -1.0, 1.0)

    def closest(self, target: int) -> dict[str, str]:
        """{measure: the source it puts first}; a measure that ties for first place, or has no value, is left out."""
        closest = {}
        for name, column in zip(self.measures, self.closeness()[target].T, strict=True):
            # fmax passes NaN over, so a pair that could not be measured does not hide the others.
            best = np.flatnonzero(column == np.fmax.reduce(column))
            if len(best) == 1:
                closest[name] = self.sources[best[0]]
        return closest

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """(target, a, b): every two sources of every target, a before b in the listed order."""
        for target in range(len(self.targets)):
            for a, b in combinations(range(len(self.sources)), 2):
                yield target, a, b

    def voters(self) -> tuple[str, ...]:
        """The measures that have a vote: where both are there, TVC speaks for TVcC too, which reads the same words."""
        return tuple(name for name in self.measures if not (name == "tvcc" and "tvc" in self.measures))

    def only(self, measures: Sequence[str]) -> "Grid":
        """The same with some of the measures."""
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
    """Four digits that count, as tables and sentences show a measure."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def by_choice(closest: Mapping[str, str]) -> dict[str, list[str]]:
    """{source: the measures that put it first}, the most first."""
    measures_by_source: dict[str, list[str]] = {}
    for measure, source in closest.items():
        measures_by_source.setdefault(source, []).append(measure)
    return dict(sorted(measures_by_source.items(), key=lambda item: -len(item[1])))
