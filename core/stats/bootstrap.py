"""Two arms compared by what they got right, sentence by sentence, over several seeds (SOURCES.md, Verdict).

The draws are a hierarchical bootstrap: seeds are resampled, then test sentences, the same ones for both arms. Their
spread is then set right, since with a handful of seeds it errs twice. It takes the n - 1 deviations of n seeds for all
there is (too narrow), and it counts three times what a seed makes of a sentence by chance (too wide; Owen 2007): in
simulations a plain percentile interval over 3 seeds covers the truth in 83% where seeds differ much and in 99% where
they do not. So the draws are stretched about the estimate to a standard error of unbiased parts, test sentences +
seeds - what is counted in both, and from normal tails to those of Student's t with Satterthwaite's degrees of freedom
(Hesterberg 2015 expands percentile intervals so); the same simulations then give 93% to 98%.

Seeds are resampled for each arm by itself: a number that two arms share pairs nothing, since they start from different
weights. Where sharing it does make them alike, the interval is somewhat wider than it need be. What the interval does
not hold: another draw of S_C or another pre-training, where an arm has one of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from core.errors import CorpusError
from core.results import Evaluation, FloatArray

_CELLS = 4_000_000  # sentences x draws held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean F1 of one arm minus that of another, in points.

    lo, hi: where the true difference lies, at `level`. above: share of the draws above 0. p: two-sided.
    system, other: F1 of every seed, percent. se_seeds, se_sentences: by how much other seeds, and another test set of
    `n_sentences`, would move the difference (standard errors, points).
    """

    delta: float
    lo: float
    hi: float
    level: float
    above: float
    p: float
    system: tuple[float, ...]
    other: tuple[float, ...]
    se_seeds: float
    se_sentences: float
    n_sentences: int

    @property
    def sign(self) -> int:
        """1 where the interval is above 0, -1 where it is below, 0 where it holds 0."""
        return int(self.lo > 0) - int(self.hi < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """Draws `(d,)` of a difference about its estimate, and the spread they should have had."""

    draws: FloatArray
    system: FloatArray
    other: FloatArray
    var_seeds: float
    var_sentences: float
    dof: float
    n_sentences: int

    @property
    def delta(self) -> float:
        """Points."""
        return float(self.system.mean() - self.other.mean())

    def difference(self, level: float) -> Difference:
        """The difference with its interval at `level`."""
        from scipy.special import ndtri, stdtr, stdtrit

        se = sqrt(self.var_seeds + self.var_sentences)
        tail, known = (1 + level) / 2, self.dof > 0
        lo = hi = self.delta
        above, p = float(self.delta > 0), float(self.delta == 0)
        if se and known:
            stretched = self.delta + self.draws * (se * stdtrit(self.dof, tail) / ndtri(tail) / self.draws.std())
            lo, hi = np.quantile(stretched, [1 - tail, tail])
            # p by t, not counted: draws know none below 1 / draws, and Holm's order hangs on the smallest.
            above, p = float((stretched > 0).mean()), 2 * float(stdtr(self.dof, -abs(self.delta) / se))
        elif not known:  # one seed or one sentence: nothing is ruled out
            lo, hi, above, p = -100.0, 100.0, 0.5, 1.0
        return Difference(
            delta=self.delta,
            # F1 ends at 0 and 100, and so does a difference.
            lo=max(float(lo), -100.0),
            hi=min(float(hi), 100.0),
            level=level,
            above=above,
            p=p,
            system=tuple(self.system.tolist()),
            other=tuple(self.other.tolist()),
            se_seeds=sqrt(self.var_seeds),
            se_sentences=sqrt(self.var_sentences),
            n_sentences=self.n_sentences,
        )


def compare(
    system: Sequence[Evaluation],
    other: Sequence[Evaluation],
    *,
    draws: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Difference:
    """The difference of `system` over `other`; each is one evaluation a seed, all on the same test sentences.

    With a single seed, or a single sentence, the interval is [-100, 100]: nothing is ruled out.
    Errors: CorpusError where the evaluations are not of the same sentences or there are none.
    """
    return resample(system, other, draws, seed).difference(level)


def resample(system: Sequence[Evaluation], other: Sequence[Evaluation], draws: int, seed: int) -> Resampled:
    """Draws and spread for intervals at several levels; `compare` is one of them. Errors: as `compare`."""
    if not (system and other):
        raise CorpusError("verdict: an arm has no evaluation; fine-tune it with at least one seed and a test set.")
    tables = _tables([*system, *other])
    m, rng = tables.shape[1], np.random.default_rng(seed)
    whole, resampled = _f1(np.ones((1, m)), tables)[0], _resampled_f1(tables, draws, rng)
    moved = resampled - whole  # what another test set does to each seed
    # Each arm picks its own seeds: equal numbers do not pair runs that start from different weights.
    arms = (slice(0, len(system)), slice(len(system), None))
    weighted = [resampled[:, arm] * _picks(len(whole[arm]), draws, rng) for arm in arms]
    # Sentences are drawn once for both arms, seeds for each: what a hard sentence does to both cancels out.
    spread = weighted[0].sum(axis=1) - weighted[1].sum(axis=1)
    shift = moved[:, arms[0]].mean(axis=1) - moved[:, arms[1]].mean(axis=1)
    # m / (m - 1): the bootstrap takes the deviations of m sentences for all there is; seeds are set right below.
    sentences, seeds, dof = float(np.var(shift)) * m / max(m - 1, 1), 0.0, 0.0
    if m > 1 and min(len(system), len(other)) > 1:
        noise = [float(np.var(whole[arm], ddof=1)) / len(whole[arm]) for arm in arms]
        twice = [float(np.var(moved[:, arm], axis=1, ddof=1).mean()) / len(whole[arm]) for arm in arms]
        # What sentences do to each seed stands in both parts and is taken off once; by chance it may exceed the noise.
        seeds = max(sum(noise) - sum(twice), 0.0)
        doubt = sum(a**2 / (len(whole[arm]) - 1) for a, arm in zip(noise, arms, strict=True)) + sentences**2 / (m - 1)
        # Satterthwaite: each part by its own degrees of freedom; without any doubt Student's t is the normal.
        dof = (seeds + sentences) ** 2 / doubt if doubt else inf
    return Resampled(
        draws=spread - spread.mean(),
        system=whole[arms[0]],
        other=whole[arms[1]],
        var_seeds=seeds,
        var_sentences=sentences,
        dof=dof,
        n_sentences=m,
    )


def intervals_by_type(evaluations: Sequence[Evaluation], *, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Where the F1 of each type that gold holds lies, percent; evaluations: one a seed.

    As `compare` has it, against an arm that finds nothing. A single tagger is judged by its sentences alone.
    """
    arm = [*evaluations, *evaluations] if len(evaluations) == 1 else evaluations
    intervals = {}
    for column, name in enumerate(arm[0].types):
        if not arm[0].gold[:, column].any():
            continue
        own = [_of_type(evaluation, column) for evaluation in arm]
        nothing = [replace(one, tp=0 * one.tp, predicted=0 * one.predicted) for one in own]
        difference = compare(own, nothing, draws=1000, level=level)
        intervals[name] = (max(difference.lo, 0.0), difference.hi)
    return intervals


def _of_type(evaluation: Evaluation, column: int) -> Evaluation:
    one = slice(column, column + 1)
    tables = (evaluation.tp[:, one], evaluation.predicted[:, one], evaluation.gold[:, one])
    return Evaluation(types=evaluation.types[one], tp=tables[0], predicted=tables[1], gold=tables[2])


def _tables(evaluations: Sequence[Evaluation]) -> FloatArray:
    """`(s, m, 2)`: of each seed and sentence its true positives and its predicted + gold spans."""
    gold = [evaluation.gold.sum(axis=1) for evaluation in evaluations]
    if not len(gold[0]) or any(not np.array_equal(gold[0], other) for other in gold):
        sizes = " and ".join(sorted({f"{len(counts):,}" for counts in gold}))
        raise CorpusError(
            f"verdict: the evaluations ({sizes} sentences) differ in their test sentences; test both arms on one set."
        )
    spans = [e.predicted.sum(axis=1) + gold[0] for e in evaluations]
    return np.stack([[e.tp.sum(axis=1) for e in evaluations], spans], axis=-1).astype(np.float64)


def _picks(n: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """`(draws, n)` shares of n seeds drawn with replacement."""
    return rng.multinomial(n, np.full(n, 1 / n), size=draws) / n


def _f1(counts: FloatArray, tables: FloatArray) -> FloatArray:
    """`(d, s)` micro F1 in percent where sentence j occurs `counts[d, j]` times."""
    tp, spans = counts @ tables[:, :, 0].T, counts @ tables[:, :, 1].T
    return 200 * tp / np.maximum(spans, 1)


def _resampled_f1(tables: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """`(draws, s)` F1 of every seed on resampled test sentences, the same ones for all seeds of both arms."""
    m, parts = tables.shape[1], []
    # In blocks of draws: all at once, 10,000 draws of 100,000 sentences would be 8 GB.
    for first in range(0, draws, step := max(_CELLS // m, 1)):
        d = min(step, draws - first)
        picks = rng.integers(m, size=(d, m)) + m * np.arange(d)[:, None]
        parts.append(_f1(np.bincount(picks.ravel(), minlength=d * m).reshape(d, m).astype(np.float64), tables))
    return np.concatenate(parts)
