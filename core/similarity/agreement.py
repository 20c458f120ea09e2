"""Test if the similarity measures agree on which of two sources is closer: Fleiss' kappa (Dai et al. 2019, 7.1).

An item is a target with two sources. Each measure is a rater, which answers "the first" or "the second". TVC and TVcC
compare the same vocabulary, so they count as one rater. Measures that compare similar things may agree and still be
wrong (SOURCES.md, Agreement of measures).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.results import IntArray
from core.shown import listed
from core.similarity.grid import Grid, number
from core.similarity.measures import title

NEAR = 0.02  # relative difference up to which two values count as nearly equal


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoMeasures:
    """Agreement of two measures. agree: number of items on which they agree. cohen_kappa: None if undefined."""

    measures: tuple[str, str]
    agree: int
    cohen_kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Two sources of a target that the measures order differently.

    first, second: measures by which the first source is closer, and measures by which the second is closer. why: the
    reason in a sentence.
    """

    target: str
    sources: tuple[str, str]
    first: tuple[str, ...]
    second: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of the measures. An item is a target with two sources; a measure answers which source is closer.

    measures: the measures that answer (`Grid.voters`). items: number of items that every measure answers. left_out:
    number of items with a tie or a missing value. unanimous: number of items on which all measures agree. first:
    {measure: number of answers "the first source"}. observed, expected: observed share of agreement, and the share
    expected by chance. fleiss_kappa, randolph_kappa: None if undefined. Fleiss' kappa depends on the listed order of
    the sources. Randolph's kappa does not, because it assumes that both answers are equally likely.
    """

    measures: tuple[str, ...]
    items: int
    left_out: int
    unanimous: int
    first: dict[str, int]
    observed: float | None
    expected: float | None
    fleiss_kappa: float | None
    randolph_kappa: float | None
    pairs: tuple[TwoMeasures, ...]
    splits: tuple[Split, ...]


def agreement(grid: Grid) -> Agreement:
    """Return the agreement of the measures in `Grid.voters`. Kappas are None below two measures or without items."""
    grid = grid.only(grid.voters())
    closeness = grid.closeness()
    items = list(grid.pairs())
    sides = np.array([np.sign(closeness[t, a] - closeness[t, b]) for t, a, b in items])
    # A tie or a missing value becomes 0, "no answer". Kappa needs an answer from every measure.
    sides = np.nan_to_num(sides.reshape(len(items), len(grid.measures))).astype(np.int64)
    answered = (sides != 0).all(axis=1)
    answers = (sides[answered] > 0).astype(np.int64)
    observed, expected = _fleiss(answers)
    splits = [
        _split(grid, item, row)
        for item, row, all_answer in zip(items, sides, answered, strict=True)
        if all_answer and abs(row.sum()) < len(row)
    ]
    return Agreement(
        measures=grid.measures,
        items=len(answers),
        left_out=len(items) - len(answers),
        unanimous=len(answers) - len(splits),
        first=dict(zip(grid.measures, answers.sum(axis=0).tolist(), strict=True)),
        observed=observed,
        expected=expected,
        fleiss_kappa=_kappa(observed, expected),
        randolph_kappa=_kappa(observed, 0.5),
        pairs=tuple(
            _two(grid.measures[a], grid.measures[b], answers[:, a], answers[:, b])
            for a, b in combinations(range(len(grid.measures)), 2)
        ),
        splits=tuple(splits),
    )


def _fleiss(answers: IntArray) -> tuple[float | None, float | None]:
    """Return the observed share of agreement, and the share expected by chance. answers: `(items, raters)`, 0 or 1."""
    items, raters = answers.shape
    if not items or raters < 2:
        return None, None
    ones = answers.sum(axis=1)
    # Count the ordered pairs of raters that agree (Fleiss 1971).
    agreeing = ones * (ones - 1) + (raters - ones) * (raters - ones - 1)
    share = ones.sum() / (items * raters)
    return float((agreeing / (raters * (raters - 1))).mean()), float(share**2 + (1 - share) ** 2)


def _kappa(observed: float | None, expected: float | None) -> float | None:
    # If the expected agreement is 1, all answers are the same, so no agreement beyond chance is possible.
    if observed is None or expected is None or expected == 1:
        return None
    return (observed - expected) / (1 - expected)


def _two(a: str, b: str, first: IntArray, second: IntArray) -> TwoMeasures:
    agree, n = int((first == second).sum()), len(first)
    if not n:
        return TwoMeasures(measures=(a, b), agree=0, cohen_kappa=None)
    p, q = first.mean(), second.mean()
    kappa = _kappa(agree / n, float(p * q + (1 - p) * (1 - q)))
    return TwoMeasures(measures=(a, b), agree=agree, cohen_kappa=kappa)


def _split(grid: Grid, item: tuple[int, int, int], sides: IntArray) -> Split:
    target, a, b = item
    first = [name for name, side in zip(grid.measures, sides.tolist(), strict=True) if side > 0]
    second = [name for name in grid.measures if name not in first]
    return Split(
        target=grid.targets[target],
        sources=(grid.sources[a], grid.sources[b]),
        first=tuple(first),
        second=tuple(second),
        why=_why(grid, item, (first, second)),
    )


def _why(grid: Grid, item: tuple[int, int, int], sides: Sequence[Sequence[str]]) -> str:
    """Return why the measures disagree on an item: one side's values are nearly equal, or the measures really differ.

    item: indices of target, first and second source. sides: measures that answer "the first" and "the second".
    """
    target, a, b = item
    readings, weak = [], []
    for measure in (name for side in sides for name in side):
        m = grid.measures.index(measure)
        x, y = (float(grid.values[target, source, m]) for source in (a, b))
        readings.append(f"{title(measure)} {number(x)} against {number(y)}")
        # A single sample has no spread. In this case, only the relative difference decides.
        noise = 0.0 if grid.spread is None else float(grid.spread[target, [a, b], m].mean())
        if abs(x - y) <= max(noise, NEAR * max(abs(x), abs(y))):
            weak.append(measure)
    # It is enough if all measures of one side have nearly equal values: reversed, they would agree with the other side.
    if any(set(side) <= set(weak) for side in sides):
        return f"{'; '.join(readings)}: nearly a tie by {listed([title(name) for name in weak])}."
    return f"{'; '.join(readings)}: the gaps are clear, so the measures react to different properties of the text."
