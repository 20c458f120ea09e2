"""Spread of F1 by chance, by which `power` foretells what an experiment can detect.

The standard error of a difference has two parts: seeds, which more seeds average out, and what the test sentences do to
the two arms, which they do not. Both are measured on what was trained before on the same labels, else assumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import hypot, sqrt

import numpy as np

from core.results import Evaluation, FloatArray
from core.stats.bootstrap import Resampled
from core.stats.pooled import Estimate

MANY = 1000  # test sentences of an estimate, which does not say: their part is then known well
ASSUMED_SD = 2.0  # F1 points between seeds, of a small encoder on a few hundred labelled sentences, tested on USUAL
USUAL = 300  # test sentences
ASSUMED_SHARE = (
    0.5  # of the variance between seeds on USUAL sentences: what the test sentences add; falls as 1 / number
)
ASSUMED_PRETRAINING = 0.5  # F1 points between S_Cs and pre-trainings of one arm, beside what taggers differ by
ASSUMED_LABELS = 0.3  # F1 points that a draw of labelled sentences does more to one arm than to another
ASSUMED_SENTENCE = 12.0  # points that one test sentence moves a difference by; / sqrt(sentences) for a whole test set


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Spread of F1 by chance, in points.

    seeds: sd of one arm's F1 between seeds. pretrainings: sd that S_C and pre-training add, where each replicate
    has its own. both: the part of it that is a seed's extra with these very sentences.
    sentences: sd of a difference of two arms that other test sentences would make, however many seeds there are.
    trainings: number of runs that it was measured on; 0: assumed. taggers: number of taggers in them. repeated: on how
    many lines of replicates `pretrainings` was; 0: none, and it is assumed or does not matter. n_sentences: of the test
    set.
    swapped: replicates are tested on halves of `n_sentences`, each after labels of its own; labels: the sd that these
    give to a difference.
    """

    seeds: float
    pretrainings: float = 0.0
    both: float
    sentences: float
    trainings: int
    n_sentences: int
    taggers: int = 0
    repeated: int = 0
    labels: float = 0.0
    swapped: bool = False

    @property
    def each(self) -> float:
        """The sd of one arm's F1 between its replicates."""
        return hypot(self.seeds, self.pretrainings)

    def by_halves(self, pool: int) -> "Spread":
        """The same where halves of `pool` sentences are swapped: a replicate is tested on half of them, all on all."""
        extra = self.both**2 * (2 * self.n_sentences / pool - 1)  # that fewer test sentences add
        return replace(
            self,
            seeds=sqrt(max(self.seeds**2 + extra, 0.0)),
            both=self.both * sqrt(2 * self.n_sentences / pool),
            sentences=self.sentences * sqrt(self.n_sentences / pool),
            n_sentences=pool,
            labels=ASSUMED_LABELS,
            swapped=True,
        )


def assumed(n_sentences: int) -> Spread:
    """The spread before anything was trained."""
    sentences = ASSUMED_SENTENCE / sqrt(max(n_sentences, 1))
    both = sqrt(ASSUMED_SHARE * USUAL / max(n_sentences, 1)) * ASSUMED_SD
    return Spread(
        seeds=hypot(sqrt(1 - ASSUMED_SHARE) * ASSUMED_SD, both),
        both=both,
        sentences=sentences,
        trainings=0,
        n_sentences=n_sentences,
    )


def measured(arms: Sequence[Sequence[Evaluation]], replicates: Sequence[Sequence[Evaluation]] = ()) -> Spread | None:
    """The spread of trainings, one evaluation a seed, all on the same test sentences; None without two seeds of any.

    The sentences' part is the mean over pairs of trainings, as `assumed` where there is one training alone. replicates:
    the same of lines that were made anew from S_C on; what they differ by beyond `arms` is the pre-trainings'.
    """
    arms, lines = [arm for arm in arms if len(arm) > 1], [line for line in replicates if len(line) > 1]
    spread = _measured(arms or lines)
    if spread:
        spread = replace(spread, taggers=sum(map(len, (*arms, *lines))))
    if spread is None or not arms or not lines:
        # Of lines alone all that they differ by stands in `seeds`.
        return replace(spread, repeated=len(lines)) if spread else None
    whole = _measured(lines)
    assert whole
    # By chance less than the seeds' own, which is no variance.
    beyond = sqrt(max(whole.seeds**2 - spread.seeds**2, 0.0))
    # The persistent part too by replicates, where it can be: one pre-training's own goes with its arm.
    persistent = whole.sentences if len(lines) > 1 else spread.sentences
    return replace(spread, pretrainings=beyond, repeated=len(lines), sentences=persistent)


def of_swapped(gaps: Sequence[Resampled]) -> Spread | None:
    """The spread by comparisons of arms whose halves were swapped, of four replicates or more: of two, none tests a
    sentence twice. None without any."""
    gaps = [gap for gap in gaps if len(gap.system) > 3]
    if not gaps:
        return None
    n = np.array([len(gap.system) for gap in gaps])
    falling = np.array([gap.var_seeds + gap.var_both for gap in gaps])
    both, fixed = np.array([[gap.var_both, gap.var_sentences - gap.var_both] for gap in gaps]).T
    # Between replicates stands too how far one half is apart from the other.
    each = np.maximum(n * falling - fixed * n / (n - 1), 0.0)
    return Spread(
        seeds=sqrt(each.mean() / 2),
        both=sqrt((n * both).mean() / 2),
        sentences=sqrt(fixed.mean()),
        trainings=len(gaps),
        taggers=sum(len(gap.system) + len(gap.other) for gap in gaps),
        repeated=len(gaps),
        n_sentences=gaps[0].n_sentences,
        swapped=True,
    )


def of_estimate(estimate: Estimate, n: int, *, swapped: bool = False) -> Spread:
    """The spread behind a difference of two arms with n replicates each. swapped: whether they are tested by halves."""
    return Spread(
        seeds=sqrt(estimate.falling * n / 2),
        both=0.0,
        sentences=sqrt(estimate.fixed),
        trainings=2,
        taggers=2 * n,
        repeated=2,
        n_sentences=MANY,
        swapped=swapped,
    )


def _measured(arms: Sequence[Sequence[Evaluation]]) -> Spread | None:
    if not arms:
        return None
    m, dof = len(arms[0][0].gold), [len(arm) - 1 for arm in arms]
    noise = [float(np.var([evaluation.f1() for evaluation in arm], ddof=1)) for arm in arms]
    moves = [np.stack([_moves(evaluation) for evaluation in arm]) for arm in arms]
    both = [float(move.var(axis=0, ddof=1).sum()) for move in moves]
    means = [move.mean(axis=0) for move in moves]
    # A squared difference of means holds each arm's own noise too, which is taken off.
    pairs = [
        float(((means[i] - means[j]) ** 2).sum()) - both[i] / len(arms[i]) - both[j] / len(arms[j])
        for i, j in combinations(range(len(arms)), 2)
    ]
    return Spread(
        # Weighted by degrees of freedom: an arm of five seeds knows its variance better than one of two.
        seeds=sqrt(np.average(noise, weights=dof)),
        both=sqrt(np.average(both, weights=dof)),
        sentences=sqrt(max(float(np.mean(pairs)), 0.0)) if pairs else assumed(m).sentences,
        trainings=len(arms),
        n_sentences=m,
    )


def _moves(evaluation: Evaluation) -> FloatArray:
    """`(m,)`: by how many points each test sentence moves F1 (its linear part)."""
    tp, spans = evaluation.tp.sum(axis=1), (evaluation.predicted + evaluation.gold).sum(axis=1)
    moves: FloatArray = (200 * tp - evaluation.f1() * spans) / max(float(spans.sum()), 1.0)
    return moves
