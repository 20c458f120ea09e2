"""Measure or assume the random variation of F1, from which `power` forecasts what an experiment can detect.

The standard error of a difference has two parts. One comes from seeds, and more seeds reduce it. The other comes from
test sentences, and more seeds do not reduce it. Both are measured on earlier trainings on the same labels, or else
assumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import hypot, sqrt

import numpy as np

from core.results import Evaluation, FloatArray
from core.stats.bootstrap import Resampled
from core.stats.pooled import Estimate

# Assumed number of test sentences behind an `Estimate`. It is large, so that their variance counts as well known.
MANY = 1000
# Usual number of test sentences, for which `ASSUMED_SD` and `ASSUMED_SHARE` hold.
USUAL = 300
# Standard deviation (sd) of F1 between seeds, in points, for a small encoder, a few hundred labelled sentences, and
# `USUAL` test sentences.
ASSUMED_SD = 2.0
# Share of the variance between seeds that comes from the test set, for `USUAL` test sentences. It falls as 1 / number
# of test sentences.
ASSUMED_SHARE = 0.5
# Sd of F1, in points, that repeated selections and pre-trainings of one variant add to the sd between seeds.
ASSUMED_PRETRAINING = 0.5
# Sd of a difference, in points, that sampling the labels causes.
ASSUMED_LABELS = 0.3
# Sd of a difference, in points, that a test set of one sentence would cause. For n sentences, divide by sqrt(n).
ASSUMED_SENTENCE = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Random variation of F1, in points.

    seeds: standard deviation (sd) of one variant's F1 between seeds. pretrainings: sd that selection and pre-training
    add if each replicate repeats them. both: part of `seeds` that the interaction of seeds and test sentences causes.
    sentences: sd that the choice of test sentences causes in a difference; more seeds do not reduce it. trainings:
    number of measured runs; 0 if the spread is assumed. taggers: number of taggers in these runs. repeated: number of
    variants with replicates on which `pretrainings` was measured; 0 if it is assumed or not needed. n_sentences: number
    of test sentences, or of the sentences of both halves together if `swapped`. swapped: True if each replicate has its
    own labels and is tested on one half. labels: sd that the sampling of these labels causes in a difference.
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
        """Standard deviation of one variant's F1 between its replicates, in points."""
        return hypot(self.seeds, self.pretrainings)

    def of_several(self, taggers: int) -> "Spread":
        """Return the spread if each replicate has one pre-training and pools the span counts of `taggers` taggers."""
        return replace(self, seeds=self.seeds / sqrt(taggers), both=self.both / sqrt(taggers))

    def by_halves(self, pool: int) -> "Spread":
        """Return the spread if each replicate is tested on one half of `pool` sentences, and the next on the other."""
        # Variance that is added because half of the pool may be fewer test sentences than `n_sentences`.
        extra = self.both**2 * (2 * self.n_sentences / pool - 1)
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
    """Return the spread to assume before any training. n_sentences: number of test sentences."""
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
    """Measure the spread of F1 on finished trainings; None if no training has two seeds.

    arms: for each training, one evaluation per seed, all on the same test sentences. replicates: for each variant that
    repeated selection and pre-training, one evaluation per replicate. Their variance beyond that of `arms` comes from
    pre-trainings. The variance of test sentences is the mean over pairs of trainings; for a single training it is
    assumed.
    """
    arms, lines = [arm for arm in arms if len(arm) > 1], [line for line in replicates if len(line) > 1]
    spread = _measured(arms or lines)
    if spread:
        spread = replace(spread, taggers=sum(map(len, (*arms, *lines))))
    if spread is None or not arms or not lines:
        # If only replicates were measured, `seeds` includes the variance of pre-trainings.
        return replace(spread, repeated=len(lines)) if spread else None
    whole = _measured(lines)
    assert whole
    # By chance, the variance of replicates may be less than that of seeds, so the difference may be negative.
    beyond = sqrt(max(whole.seeds**2 - spread.seeds**2, 0.0))
    # Prefer the variance of test sentences that was measured on replicates. Taggers of a single pre-training share its
    # errors, so their variance of sentences includes the variance of this pre-training.
    persistent = whole.sentences if len(lines) > 1 else spread.sentences
    return replace(spread, pretrainings=beyond, repeated=len(lines), sentences=persistent)


def of_swapped(gaps: Sequence[Resampled]) -> Spread | None:
    """Measure the spread on comparisons with swapped halves; None if no comparison has four or more replicates.

    With two replicates, no sentence is tested twice, so the parts of the variance cannot be separated.
    """
    gaps = [gap for gap in gaps if len(gap.system) > 3]
    if not gaps:
        return None
    n = np.array([len(gap.system) for gap in gaps])
    falling = np.array([gap.var_seeds + gap.var_both for gap in gaps])
    both, fixed = np.array([[gap.var_both, gap.var_sentences - gap.var_both] for gap in gaps]).T
    # Replicates are tested on two different halves; subtract the variance that this adds.
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
    """Return the spread that explains the variance of an estimated difference.

    n: number of replicates of each variant. swapped: True if halves were swapped.
    """
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
    # Subtract the noise of each training, which a squared difference of two means includes.
    pairs = [
        float(((means[i] - means[j]) ** 2).sum()) - both[i] / len(arms[i]) - both[j] / len(arms[j])
        for i, j in combinations(range(len(arms)), 2)
    ]
    return Spread(
        # Weight by degrees of freedom, because five seeds estimate a variance better than two.
        seeds=sqrt(np.average(noise, weights=dof)),
        both=sqrt(np.average(both, weights=dof)),
        sentences=sqrt(max(float(np.mean(pairs)), 0.0)) if pairs else assumed(m).sentences,
        trainings=len(arms),
        n_sentences=m,
    )


def _moves(evaluation: Evaluation) -> FloatArray:
    """Return by how many points each test sentence changes F1, `(m,)`, in a linear approximation."""
    tp, spans = evaluation.tp.sum(axis=1), (evaluation.predicted + evaluation.gold).sum(axis=1)
    moves: FloatArray = (200 * tp - evaluation.f1() * spans) / max(float(spans.sum()), 1.0)
    return moves
