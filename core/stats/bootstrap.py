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

Where every replicate has labels and test sentences of its own, the same in both arms, halves swapped, arms are compared
replicate by replicate (`crossed`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from core.errors import CorpusError
from core.results import BoolArray, Evaluation, FloatArray
from core.stats import crossed

DRAWS = 10_000
PAIR_DOF = 4.0  # at most, of two replicates
_CELLS = 4_000_000  # sentences x draws held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean F1 of one arm minus that of another, in points.

    lo, hi: where the true difference lies, at `level`. above: share of the draws above 0. p: two-sided.
    system, other: F1 of every seed, percent. se_seeds, se_sentences: by how much other seeds, and another test set of
    `n_sentences`, would move the difference (standard errors, points). se_both: the part of the latter that is the luck
    of a seed with these very sentences, which more seeds average out. dof: degrees of freedom of both together; 0:
    nothing is known. paired: the arms' evaluations belong together, one by one.
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
    se_both: float
    n_sentences: int
    dof: float = 0.0
    paired: bool = False

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
    var_both: float
    dof: float
    n_sentences: int
    paired: bool = False

    @property
    def delta(self) -> float:
        """Points."""
        return float(self.system.mean() - self.other.mean())

    @property
    def p(self) -> float:
        """The two-sided p by Student's t; 1 where nothing is known."""
        se = sqrt(self.var_seeds + self.var_sentences)
        return float(two_sided(np.array(self.delta), np.array(se), np.array(self.dof)))

    def difference(self, level: float) -> Difference:
        """The difference with its interval at `level`."""
        from scipy.special import ndtri, stdtrit

        se = sqrt(self.var_seeds + self.var_sentences)
        tail, known = (1 + level) / 2, self.dof > 0
        lo = hi = self.delta
        above = float(self.delta > 0)
        if se and known:
            stretched = self.delta + self.draws * (se * stdtrit(self.dof, tail) / ndtri(tail) / self.draws.std())
            lo, hi = np.quantile(stretched, [1 - tail, tail])
            above = float((stretched > 0).mean())
        elif not known:  # one seed or one sentence: nothing is ruled out
            lo, hi, above = -100.0, 100.0, 0.5
        return Difference(
            delta=self.delta,
            # F1 ends at 0 and 100, and so does a difference.
            lo=max(float(lo), -100.0),
            hi=min(float(hi), 100.0),
            level=level,
            above=above,
            p=self.p,  # by t, not counted: draws know none below 1 / draws, and Holm's order hangs on the smallest
            system=tuple(self.system.tolist()),
            other=tuple(self.other.tolist()),
            se_seeds=sqrt(self.var_seeds),
            se_sentences=sqrt(self.var_sentences),
            se_both=sqrt(self.var_both),
            n_sentences=self.n_sentences,
            dof=self.dof,
            paired=self.paired,
        )


def compare(
    system: Sequence[Evaluation],
    other: Sequence[Evaluation],
    *,
    draws: int = DRAWS,
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
        raise CorpusError("verdict: a variant has no evaluation; fine-tune it with at least one seed and a test set.")
    tables = tables_of([*system, *other], len(system) if system[0].tested is not None else 1)
    m, rng = tables.shape[1], np.random.default_rng(seed)
    whole, resampled = _f1(np.ones((1, m)), tables)[0], _resampled_f1(tables, draws, rng)
    moved = resampled - whole  # what another test set does to each seed
    if tested := [one.tested for one in system if one.tested is not None]:
        return _by_replicate(whole, resampled, tables, np.stack(tested), rng)
    # Each arm picks its own seeds: equal numbers do not pair runs that start from different weights.
    arms = (slice(0, len(system)), slice(len(system), None))
    weighted = [resampled[:, arm] * _picks(len(whole[arm]), draws, rng) for arm in arms]
    # Sentences are drawn once for both arms, seeds for each: what a hard sentence does to both cancels out.
    spread = weighted[0].sum(axis=1) - weighted[1].sum(axis=1)
    shift = moved[:, arms[0]].mean(axis=1) - moved[:, arms[1]].mean(axis=1)
    # m / (m - 1): the bootstrap takes the deviations of m sentences for all there is; seeds are set right below.
    sentences, seeds, both, dof = float(np.var(shift)) * m / max(m - 1, 1), 0.0, 0.0, 0.0
    if m > 1 and min(len(system), len(other)) > 1:
        noise = [float(np.var(whole[arm], ddof=1)) / len(whole[arm]) for arm in arms]
        both = sum(float(np.var(moved[:, arm], axis=1, ddof=1).mean()) / len(whole[arm]) for arm in arms)
        counts = (len(system), len(other))
        seeds, dof = map(float, seeds_part(np.array(noise), np.array(both), np.array(sentences), counts, m))
    return Resampled(
        draws=spread - spread.mean(),
        system=whole[arms[0]],
        other=whole[arms[1]],
        var_seeds=seeds,
        var_sentences=sentences,
        var_both=min(both, sentences),
        dof=dof,
        n_sentences=m,
    )


def _by_replicate(
    whole: FloatArray, resampled: FloatArray, tables: FloatArray, tested: BoolArray, rng: np.random.Generator
) -> Resampled:
    """Draws and spread as `resample` has them, of replicates that both arms share: an arm's first, then the other's."""
    n, m = tested.shape
    moved = resampled - whole
    gaps, drawn, moves = (table[..., :n] - table[..., n:] for table in (whole, resampled, moved))
    spread = (drawn * _picks(n, len(drawn), rng)).sum(axis=1)
    sentences = float(np.var(moves.mean(axis=1))) * m / max(m - 1, 1)
    seeds = both = dof = 0.0
    if min(n, m) > 1:
        _, by_sentence = crossed.f1_and_moves(tables)
        both = min(crossed.interaction_variance(by_sentence[:n] - by_sentence[n:], tested), sentences)
        noise = np.var(gaps, ddof=1) / n
        seeds, dof = map(float, replicates_part(np.array(noise), np.array(both), np.array(sentences), n, m))
    return Resampled(
        draws=spread - spread.mean(),
        system=whole[:n],
        other=whole[n:],
        var_seeds=seeds,
        var_sentences=sentences,
        var_both=both,
        dof=dof,
        n_sentences=m,
        paired=True,
    )


def seeds_part(
    noise: FloatArray, both: FloatArray, sentences: FloatArray, counts: tuple[int, int], m: int
) -> tuple[FloatArray, FloatArray]:
    """The seeds' part of a difference's variance, and its degrees of freedom, for one experiment or for many at once.

    noise: `(2, ...)` of each arm's mean between its seeds. both: `(...)` what sentences do to each seed, which stands
    in noise and in `sentences` `(...)`. counts: seeds of each arm. m: test sentences.
    """
    # What sentences do to each seed is taken off once; by chance it may exceed the noise.
    seeds = np.maximum(noise.sum(axis=0) - both, 0.0)
    doubt = noise[0] ** 2 / (counts[0] - 1) + noise[1] ** 2 / (counts[1] - 1) + sentences**2 / max(m - 1, 1)
    # Satterthwaite: each part by its own degrees of freedom; without any doubt Student's t is the normal.
    sure = doubt == 0
    return seeds, np.where(sure, inf, (seeds + sentences) ** 2 / np.where(sure, 1.0, doubt))


def replicates_part(
    noise: FloatArray, both: FloatArray, sentences: FloatArray, n: int, m: int
) -> tuple[FloatArray, FloatArray]:
    """The same where both arms share replicates, and `n` differences say how far these differ. noise: `(...)`."""
    seeds, dof = seeds_part(np.stack([noise, np.zeros_like(noise)]), both, sentences, (n, n), m)
    # Two differences that happen to be alike would pass for sure (in simulations 90 of 95 intervals hold the truth).
    return seeds, np.minimum(dof, PAIR_DOF) if n == 2 else dof


def two_sided(delta: FloatArray, se: FloatArray, dof: FloatArray) -> FloatArray:
    """Student's two-sided p; 1 where there are no degrees of freedom, and of two numbers that do not differ at all."""
    from scipy.special import stdtr

    known = (se > 0) & (dof > 0)
    p: FloatArray = 2 * stdtr(np.where(dof > 0, dof, 1.0), -np.abs(delta) / np.where(known, se, 1.0))
    return np.where(known, p, np.where((delta == 0) | (dof <= 0), 1.0, 0.0))


def intervals_by_type(evaluations: Sequence[Evaluation], *, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Interval of the F1 of each type that gold holds, percent; evaluations: one a seed.

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


def tables_of(evaluations: Sequence[Evaluation], replicates: int = 1) -> FloatArray:
    """`(s, m, 2)`: of each evaluation and sentence its true positives and its predicted + gold spans.

    replicates: after so many evaluations come those of the next arm, and only those in the same place are of the same
    sentences; 1: all are. Errors: CorpusError where they are not.
    """
    gold = [evaluation.gold.sum(axis=1) for evaluation in evaluations]
    alike = (np.array_equal(gold[i % replicates], other) for i, other in enumerate(gold))
    if not len(gold[0]) or len(gold) % replicates or not all(alike):
        sizes = " and ".join(sorted({f"{len(counts):,}" for counts in gold}))
        raise CorpusError(
            f"verdict: the evaluations ({sizes} sentences) differ in their test sentences; test both variants on one "
            "set."
        )
    spans = [e.predicted.sum(axis=1) + own for e, own in zip(evaluations, gold, strict=True)]
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
