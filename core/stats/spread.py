"""Random variation of F1, from which `power` forecasts what an experiment can detect.

The standard error of a difference has two parts: seeds, which more seeds average out, and test sentences, which they do
not. Both are measured on earlier trainings on the same labels, or else assumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import hypot, sqrt

import numpy as np

from core.results import Evaluation, FloatArray
from core.stats.bootstrap import Resampled
from core.stats.pooled import Estimate

MANY = 1000  # assumed number of test sentences behind an `Estimate`, large enough to make their variance well known
USUAL = 300  # test sentences
# Standard deviation (sd) of F1 between seeds, points, for a small encoder, a few hundred labelled sentences, and USUAL
# test sentences.
ASSUMED_SD = 2.0
# Share of the variance between seeds that comes from the test set, if it has `USUAL` sentences. It falls as 1 / number
# of sentences.
ASSUMED_SHARE = 0.5
ASSUMED_PRETRAINING = 0.5  # sd of F1 between selections and pre-trainings of one variant, in addition to taggers
ASSUMED_LABELS = 0.3  # sd of a difference between samples of labels, points
ASSUMED_SENTENCE = 12.0  # sd of a difference from one test sentence, points; for n sentences, divide by sqrt(n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Random variation of F1, in points.

    seeds: sd of one variant's F1 between seeds. pretrainings: sd added by selection and pre-training if each replicate
    has its own. both: part of `seeds` caused by the interaction of a seed with these sentences. sentences: sd of a
    difference caused by the choice of test sentences; more seeds do not reduce it. trainings: number of runs that were
    measured; 0: the spread is assumed. taggers: number of taggers in these runs. repeated: number of variants with
    replicates on which `pretrainings` was measured; 0: it is assumed or not needed. n_sentences: size of the test set,
    or of both halves together if they are swapped. swapped: True if each replicate has its own labels and is tested on
    one half. labels: sd of a difference caused by sampling these labels.
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
        """Sd of one variant's F1 between its replicates."""
        return hypot(self.seeds, self.pretrainings)

    def of_several(self, taggers: int) -> "Spread":
        """Return the spread of replicates that pool the counts of `taggers` taggers of one pre-training."""
        return replace(self, seeds=self.seeds / sqrt(taggers), both=self.both / sqrt(taggers))

    def by_halves(self, pool: int) -> "Spread":
        """Return the spread for swapped halves of `pool` sentences, where each replicate is tested on one half."""
        extra = self.both**2 * (2 * self.n_sentences / pool - 1)  # variance added by fewer test sentences
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
    """Return the assumed spread, before any training."""
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
    """Measure the spread of trainings; None if no training has two seeds.

    arms: one evaluation per seed, all on the same test sentences. The variance due to test sentences is the mean over
    pairs of trainings; for one training it is assumed. replicates: evaluations of variants that repeated selection and
    pre-training; the variance that they add to `arms` is that of pre-trainings.
    """
    arms, lines = [arm for arm in arms if len(arm) > 1], [line for line in replicates if len(line) > 1]
    spread = _measured(arms or lines)
    if spread:
        spread = replace(spread, taggers=sum(map(len, (*arms, *lines))))
    if spread is None or not arms or not lines:
        # If there are only replicates, `seeds` includes all variance.
        return replace(spread, repeated=len(lines)) if spread else None
    whole = _measured(lines)
    assert whole
    # By chance, the variance of replicates may be less than that of seeds, so the difference may be negative.
    beyond = sqrt(max(whole.seeds**2 - spread.seeds**2, 0.0))
    # Prefer the variance between test sentences that was measured on replicates. Taggers of a single pre-training share
    # its errors, so their variance between sentences includes that of this pre-training.
    persistent = whole.sentences if len(lines) > 1 else spread.sentences
    return replace(spread, pretrainings=beyond, repeated=len(lines), sentences=persistent)


def of_swapped(gaps: Sequence[Resampled]) -> Spread | None:
    """Measure the spread from comparisons with swapped halves; None if none has four or more replicates.

    With two replicates, no sentence is tested twice.
    """
    gaps = [gap for gap in gaps if len(gap.system) > 3]
    if not gaps:
        return None
    n = np.array([len(gap.system) for gap in gaps])
    falling = np.array([gap.var_seeds + gap.var_both for gap in gaps])
    both, fixed = np.array([[gap.var_both, gap.var_sentences - gap.var_both] for gap in gaps]).T
    # Subtract the variance that is added because replicates are tested on two different halves.
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
    """Return the spread behind a difference of two variants with n replicates each.

    swapped: True for swapped halves.
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
    # A squared difference of means includes the noise of each variant, which is subtracted.
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
    """Return the points by which each test sentence moves F1 (linear part), `(m,)`."""
    tp, spans = evaluation.tp.sum(axis=1), (evaluation.predicted + evaluation.gold).sum(axis=1)
    moves: FloatArray = (200 * tp - evaluation.f1() * spans) / max(float(spans.sum()), 1.0)
    return moves
