"""The rule "close source: its language model, distant source: its word vectors", against F1 (Dai et al. 2019, 7.2).

They say it of single pairs and not where closeness ends (SOURCES.md, Close source, language model). So here sources of
one target are ordered by their mean rank over the measures: of the closer half the language model should do better, of
the farther half the word vectors, and the one in the middle is given no advice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Literal

import numpy as np

from core.similarity.grid import Grid
from core.similarity.predictive import Outcomes
from core.stats.welch import interval

Kind = Literal["language model", "word vectors"]
ENOUGH = 4  # sources with advice; below, even a rule that is always right may be luck in one case of six


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """A source of a target, begun from in both ways.

    place: its place by closeness, 1 the closest, of so many; ties share their mean. advice: what the rule says, None of
    the middle. better: what had the higher F1, None where both are level. f1: percent, (language model, word vectors).
    interval: 95% of the first less the second over runs on this test set; None where there is one run, or no spread.
    """

    target: str
    source: str
    place: float
    of: int
    advice: Kind | None
    better: Kind | None
    f1: tuple[float, float]
    interval: tuple[float, float] | None

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and self.interval[0] * self.interval[1] > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The rule on all sources. right: of `advised`, by means. chance: what advice given by lot within each target would
    be right in. p: of as many by such a lot; None below ENOUGH. clear_right, clear: of those whose interval leaves 0
    out. sentence: for people."""

    rows: Sequence[Advised]
    right: int
    advised: int
    chance: float
    p: float | None
    clear_right: int
    clear: int
    sentence: str


def rule(grid: Grid, outcomes: Sequence[Outcomes]) -> Rule | None:
    """The rule on every source that was begun from in both ways; None where there is none."""
    lm, vectors = _of(outcomes, ("language model", "lm")), _of(outcomes, ("word vectors", "vectors"))
    if lm is None or vectors is None:
        return None
    rows = [row for target in range(len(grid.targets)) for row in _of_target(grid, target, lm, vectors)]
    return _judged(rows) if rows else None


def _of(outcomes: Sequence[Outcomes], names: tuple[str, ...]) -> Outcomes | None:
    return next((each for each in outcomes if each.name.lower().replace("_", " ").startswith(names)), None)


def _of_target(grid: Grid, target: int, lm: Outcomes, vectors: Outcomes) -> list[Advised]:
    from scipy.stats import rankdata  # a second to load

    both = np.flatnonzero(np.isfinite(lm.mean[target]) & np.isfinite(vectors.mean[target]))
    closeness = grid.only(grid.voters()).closeness()[target, both]
    known = np.where(np.isnan(closeness), -np.inf, closeness)
    places = rankdata(rankdata(-known, axis=0).mean(axis=1))
    rows = []
    for source, place in zip(both.tolist(), places.tolist(), strict=True):
        moments = [_moments(each, target, source) for each in (lm, vectors)]
        (high, _, runs), (low, _, others) = moments
        middle = (len(both) + 1) / 2
        rows.append(
            Advised(
                target=grid.targets[target],
                source=grid.sources[source],
                place=place,
                of=len(both),
                advice=_kind(middle - place),
                better=_kind(high - low),
                f1=(high, low),
                interval=interval(*moments) if min(runs, others) > 1 else None,
            )
        )
    return sorted(rows, key=lambda row: row.place)


def _kind(lead: float) -> Kind | None:
    return None if lead == 0 else "language model" if lead > 0 else "word vectors"


def _moments(outcomes: Outcomes, target: int, source: int) -> tuple[float, float, int]:
    """Mean, variance over n - 1, and n."""
    n = int(outcomes.runs[target, source])
    return float(outcomes.mean[target, source]), float(outcomes.sd[target, source] ** 2) * n / max(n - 1, 1), n


def _judged(rows: Sequence[Advised]) -> Rule:
    advised = [row for row in rows if row.advice and row.better]
    right = sum(row.advice == row.better for row in advised)
    clear = [row for row in advised if row.clear]
    by_target = [_right_by_chance(list(group)) for _, group in groupby(advised, key=lambda row: row.target)]
    # What is right of one target says nothing of another, so the laws convolve.
    law = reduce(np.convolve, by_target, np.ones(1))
    chance = float(law @ np.arange(len(law)))
    # Summed probabilities may end a hair above 1.
    p = min(float(law[right:].sum()), 1.0) if len(advised) >= ENOUGH else None
    clear_right = sum(row.advice == row.better for row in clear)
    sentence = (
        "By the rule (close source: its language model, distant source: its word vectors) the better of the two was "
        f"foretold for {right} of {len(advised)} sources (chance {chance:.3g}"
    )
    if p is None:
        sentence += f"); below {ENOUGH} sources nothing can be told."
    else:
        sentence += f", p = {p:.2g})" + ("." if p <= 0.05 else ", which may well be chance.")
        sentence += f" Where the scores of the two are clearly apart: {clear_right} of {len(clear)}."
    return Rule(
        rows=rows,
        right=right,
        advised=len(advised),
        chance=chance,
        p=p,
        clear_right=clear_right,
        clear=len(clear),
        sentence=sentence,
    )


def _right_by_chance(rows: Sequence[Advised]) -> np.ndarray:
    """`(m + 1,)` chances of 0 to m right answers for one target, were its advice dealt out to its sources by lot."""
    from scipy.stats import hypergeom

    m = len(rows)
    by_rule, better = (
        sum(kind == "language model" for kind in kinds)
        for kinds in zip(*((row.advice, row.better) for row in rows), strict=True)
    )
    law = np.zeros(m + 1)
    for both in range(min(by_rule, better) + 1):
        if (right := m - by_rule - better + 2 * both) >= 0:
            law[right] = hypergeom.pmf(both, m, better, by_rule)
    return law
