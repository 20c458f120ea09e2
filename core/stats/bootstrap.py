"""Compare two variants by their correct spans, sentence by sentence, over several seeds (SOURCES.md, Verdict).

A hierarchical bootstrap resamples seeds, then test sentences, the same ones for both variants. With few seeds, the
spread of these bootstrap samples is biased in two ways:

- it divides the squared deviations of n seeds by n, not by n - 1 (too narrow);
- it counts the chance interaction of a seed and a sentence three times (too wide; Owen 2007).

In simulations, a plain percentile interval over 3 seeds covers the truth in 83% of cases if seeds differ much, and in
99% if they do not. Therefore the samples are stretched around the estimate in two ways:

- Their standard error is made unbiased: the variance of test sentences + that of seeds - the part counted in both.
- Normal tails are replaced by those of Student's t, with Satterthwaite's degrees of freedom (as Hesterberg 2015 does).

The same simulations then give a coverage of 93% to 98%.

Variants of an experiment share the seeds of their taggers. A seed sets the order of the data and the initial weights of
new layers. With four seeds or more, variants are compared seed by seed, as pairs (`PAIRED_FROM`). Pairs remove noise
that a seed adds to both variants, but cost degrees of freedom. With four replicates, pairs made the variance of the
difference 17% smaller on bc5cdr and 65% smaller on conll2003. With two or three seeds, the lost degrees of freedom cost
more than pairs save, so the seeds of each variant are resampled separately. If a variant has only one selection and one
pre-training, the interval does not include their random variation.

With swapped halves, each replicate has its own labels and test sentences, the same in both variants. Variants are then
compared within replicates (SOURCES.md, Halves swapped). A replicate trains on one half and is tested on the other; the
next replicate swaps them. The variance of the mean difference has two parts:

- between replicates: pre-trainings, taggers, and which labels were drawn;
- between test sentences, which all pairs of replicates share.

The variance between replicates also includes the difference of the two halves, which cancels in the mean of a pair.
With more than two replicates, this part is kept on purpose. It makes up for a variance that cannot be estimated: all
replicates share the task corpus and the labels of the pool. With two replicates, no sentence is tested twice. The
whole variance of the sentences is then subtracted from the variance between replicates, so that it is counted once.

A reference variant trains nothing, so it has one evaluation and no seeds. `compare_line` compares it with `none`, the
baseline without pre-training, and repeats its evaluation for every seed of `none`. The variance of the difference then
has two parts: the variance between the seeds of `none`, and the variance of the test sentences. Test sentences are
resampled for both variants at once, so that sentences that are hard for both cancel out. All variance between seeds is
estimated from `none` alone. If its few seeds score nearly the same by chance, Satterthwaite's formula gives too many
degrees of freedom. In simulations of three seeds with a large spread, the interval covered the truth in 91% of cases,
and in 93% with the limit `LINE_DOF`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from core.errors import CorpusError
from core.results import BoolArray, Evaluation, FloatArray

DRAWS = 10_000
# Variants with at least this many common seeds are compared seed by seed, as pairs (SOURCES.md, Verdict).
PAIRED_FROM = 4
# Maximum degrees of freedom if a variant has two seeds, or if two replicates are compared.
PAIR_DOF = 4.0
# For a reference variant, the degrees of freedom are at most this many times those of the seeds of `none`.
LINE_DOF = 4.0
# Maximum number of cells of a table (bootstrap samples x test sentences) in memory at once.
_CELLS = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean F1 of one variant minus mean F1 of another variant, in points.

    lo, hi: confidence interval at `level`. above: share of the bootstrap samples above 0. p: two-sided p-value. system,
    other: F1 of each seed of the two variants, percent. se_seeds, se_sentences: standard errors in points due to the
    choice of seeds, and due to the choice of `n_sentences` test sentences. se_both: the part of `se_sentences` that
    differs between seeds, so that more seeds average it out. dof: degrees of freedom of the whole standard error; 0 if
    the spread is unknown. paired: True if evaluations were compared as pairs.
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
        """Sign of the interval: 1 if it is above 0, -1 if it is below 0, and 0 if it includes 0."""
        return int(self.lo > 0) - int(self.hi < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """Bootstrap samples of the difference of two variants, with its variances.

    draws: `(d,)` bootstrap samples minus their mean. system, other: F1 of each seed, percent. var_seeds, var_sentences,
    var_both: unbiased variances, the squares of the standard errors in `Difference`.
    """

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
        """Mean F1 of `system` minus mean F1 of `other`, points."""
        return float(self.system.mean() - self.other.mean())

    @property
    def p(self) -> float:
        """Two-sided p-value by Student's t; 1 if the spread is unknown."""
        se = sqrt(self.var_seeds + self.var_sentences)
        return float(two_sided(np.array(self.delta), np.array(se), np.array(self.dof)))

    def difference(self, level: float) -> Difference:
        """Return the difference with its confidence interval at `level`."""
        from scipy.special import ndtri, stdtrit

        se = sqrt(self.var_seeds + self.var_sentences)
        tail, known = (1 + level) / 2, self.dof > 0
        lo = hi = self.delta
        above = float(self.delta > 0)
        if se and known:
            stretched = self.delta + self.draws * (se * stdtrit(self.dof, tail) / ndtri(tail) / self.draws.std())
            lo, hi = np.quantile(stretched, [1 - tail, tail])
            above = float((stretched > 0).mean())
        elif not known:  # With one seed or one sentence, any difference is possible.
            lo, hi, above = -100.0, 100.0, 0.5
        return Difference(
            delta=self.delta,
            # F1 is between 0 and 100, so a difference is between -100 and 100.
            lo=max(float(lo), -100.0),
            hi=min(float(hi), 100.0),
            level=level,
            above=above,
            # Use Student's t: counting bootstrap samples gives no p below 1 / samples, but Holm's method may need one.
            p=self.p,
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
    same_seeds: bool = False,
) -> Difference:
    """Return the difference between two variants with its confidence interval.

    system, other: one evaluation per seed of each variant, all on the same test sentences. draws: number of bootstrap
    samples. same_seeds: True if evaluations at the same index have the same seed, so that they may be compared as
    pairs. With a single seed or a single sentence, the interval is [-100, 100]. Errors: CorpusError without
    evaluations, or if they are of different sentences.
    """
    return resample(system, other, draws, seed, same_seeds=same_seeds).difference(level)


def compare_line(line: Sequence[Evaluation], other: Sequence[Evaluation], *, seed: int = 0) -> Difference:
    """Return the difference between a reference variant, which trains nothing, and `other`, with its 95% interval.

    line: the only evaluation of the reference variant; with swapped halves, one evaluation per replicate. other: as for
    `compare`. Errors: CorpusError without evaluations, or if they are of different sentences.
    """
    often = list(line) * len(other) if len(line) == 1 else line
    found = resample(often, other, DRAWS, seed, same_seeds=True)
    return replace(found, dof=min(found.dof, LINE_DOF * (len(other) - 1))).difference(0.95)


def resample(
    system: Sequence[Evaluation], other: Sequence[Evaluation], draws: int, seed: int, *, same_seeds: bool = False
) -> Resampled:
    """Return bootstrap samples and variances of a difference, from which intervals at any level follow.

    Arguments and errors: as for `compare`.
    """
    if not (system and other):
        raise CorpusError("verdict: a variant has no evaluation; fine-tune it with at least one seed and a test set.")
    tables = tables_of([*system, *other], len(system) if system[0].tested is not None else 1)
    m, rng = tables.shape[1], np.random.default_rng(seed)
    whole, resampled = _f1(np.ones((1, m)), tables)[0], _resampled_f1(tables, draws, rng)
    moved = resampled - whole  # Effect of the resampled test sentences on the F1 of each seed.
    if tested := [one.tested for one in system if one.tested is not None]:
        return _by_replicate(whole, resampled, tables, np.stack(tested), rng)
    if same_seeds and len(system) == len(other) >= PAIRED_FROM:
        return _by_replicate(whole, resampled, tables, np.ones((len(system), m), dtype=np.bool_), rng)
    arms = (slice(0, len(system)), slice(len(system), None))
    weighted = [resampled[:, arm] * _picks(len(whole[arm]), draws, rng) for arm in arms]
    # Sentences are drawn once for both variants, so that the effect of a hard sentence on both cancels out.
    spread = weighted[0].sum(axis=1) - weighted[1].sum(axis=1)
    shift = moved[:, arms[0]].mean(axis=1) - moved[:, arms[1]].mean(axis=1)
    # The bootstrap underestimates the variance of m sentences by the factor (m - 1) / m. Seeds are corrected below.
    sentences, seeds, both, dof = float(np.var(shift)) * m / max(m - 1, 1), 0.0, 0.0, 0.0
    if m > 1 and min(len(system), len(other)) > 1:
        noise = [float(np.var(whole[arm], ddof=1)) / len(whole[arm]) for arm in arms]
        # Variants with the same seeds share a part of the interaction, which cancels in the difference, so `sentences`
        # has less of it than the two variants have apart.
        apart = sum(float(np.var(moved[:, arm], axis=1, ddof=1).mean()) / len(whole[arm]) for arm in arms)
        both = min(apart, sentences)
        counts = (len(system), len(other))
        seeds, dof = map(float, seeds_part(np.array(noise), np.array(both), np.array(sentences), counts, m))
    return Resampled(
        draws=spread - spread.mean(),
        system=whole[arms[0]],
        other=whole[arms[1]],
        var_seeds=seeds,
        var_sentences=sentences,
        var_both=both,
        dof=dof,
        n_sentences=m,
    )


def _by_replicate(
    whole: FloatArray, resampled: FloatArray, tables: FloatArray, tested: BoolArray, rng: np.random.Generator
) -> Resampled:
    """Return bootstrap samples and variances of a difference, comparing the two variants within each replicate.

    whole, resampled: F1 of each evaluation, `(2 r,)` and `(draws, 2 r)`: the r replicates of one variant, then the same
    replicates of the other variant. tables: see `tables_of`. tested: `(r, sentences)`, True if the replicate was tested
    on the sentence.
    """
    n, m = tested.shape
    moved = resampled - whole
    gaps, drawn, moves = (table[..., :n] - table[..., n:] for table in (whole, resampled, moved))
    spread = (drawn * _picks(n, len(drawn), rng)).sum(axis=1)
    sentences = float(np.var(moves.mean(axis=1))) * m / max(m - 1, 1)
    seeds = both = dof = 0.0
    if min(n, m) > 1:
        _, by_sentence = f1_and_moves(tables)
        both = min(interaction_variance(by_sentence[:n] - by_sentence[n:], tested), sentences)
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
    """Return the part of a difference's variance that seeds cause, and the degrees of freedom of the whole variance.

    Arrays have the shape `(...)` of one or many experiments. noise: `(2, ...)` variance of each variant's mean,
    estimated between its seeds. sentences: variance that the test sentences cause. both: variance that `noise` and
    `sentences` both include. counts: number of seeds of each variant. m: number of test sentences.
    """
    # Subtract `both` once, because `noise` and `sentences` both include it. By chance, `both` may exceed the noise.
    seeds = np.maximum(noise.sum(axis=0) - both, 0.0)
    doubt = noise[0] ** 2 / (counts[0] - 1) + noise[1] ** 2 / (counts[1] - 1) + sentences**2 / max(m - 1, 1)
    # Satterthwaite's formula, because each part has its own degrees of freedom. Without variance, use infinity.
    sure = doubt == 0
    dof = np.where(sure, inf, (seeds + sentences) ** 2 / np.where(sure, 1.0, doubt))
    # If a variant's two seeds score the same by chance, their variance seems to be 0. We simulated a variant with two
    # seeds (sd 1.2 points) and one with five (sd 0.5). The coverage of the interval was 91%, and 95% with this limit.
    return seeds, np.minimum(dof, PAIR_DOF) if min(counts) == 2 else dof


def replicates_part(
    noise: FloatArray, both: FloatArray, sentences: FloatArray, n: int, m: int
) -> tuple[FloatArray, FloatArray]:
    """Return the same two values as `seeds_part`, for two variants that are compared within `n` replicates.

    noise: `(...)` variance of the mean of the n differences. Other arguments: as for `seeds_part`.
    """
    return seeds_part(np.stack([noise, np.zeros_like(noise)]), both, sentences, (n, n), m)


def two_sided(delta: FloatArray, se: FloatArray, dof: FloatArray) -> FloatArray:
    """Return the two-sided p-value of Student's t; 1 without degrees of freedom, or if the difference is 0."""
    from scipy.special import stdtr

    known = (se > 0) & (dof > 0)
    p: FloatArray = 2 * stdtr(np.where(dof > 0, dof, 1.0), -np.abs(delta) / np.where(known, se, 1.0))
    return np.where(known, p, np.where((delta == 0) | (dof <= 0), 1.0, 0.0))


def interval(evaluations: Sequence[Evaluation], *, level: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of mean micro F1, percent. evaluations: one per seed.

    The interval is that of `compare` against a variant that finds nothing. For a single tagger, only sentences are
    resampled.
    """
    # Repeat a single tagger three times, so that seeds have no spread and the limit for two seeds does not apply.
    arm = list(evaluations) * 3 if len(evaluations) == 1 else evaluations
    nothing = [replace(one, tp=0 * one.tp, predicted=0 * one.predicted) for one in arm]
    difference = compare(arm, nothing, draws=1000, level=level)
    return max(difference.lo, 0.0), difference.hi


def intervals_by_type(evaluations: Sequence[Evaluation], *, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Return {entity type: confidence interval of F1, percent} for all gold types. Arguments: as for `interval`."""
    return {
        name: interval([_of_type(evaluation, column) for evaluation in evaluations], level=level)
        for column, name in enumerate(evaluations[0].types)
        if evaluations[0].gold[:, column].any()
    }


def _of_type(evaluation: Evaluation, column: int) -> Evaluation:
    one = slice(column, column + 1)
    tables = (evaluation.tp[:, one], evaluation.predicted[:, one], evaluation.gold[:, one])
    return Evaluation(types=evaluation.types[one], tp=tables[0], predicted=tables[1], gold=tables[2])


def tables_of(evaluations: Sequence[Evaluation], replicates: int = 1) -> FloatArray:
    """Return counts `(s, m, 2)` for s evaluations of m sentences: true positives, and predicted plus gold spans.

    replicates: 1 if all evaluations must have the same test sentences. Otherwise, number of evaluations per variant;
    only the i-th evaluations of all variants must then have the same test sentences. Errors: CorpusError if test
    sentences differ.
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
    """Resample n seeds with replacement, and return the weight of each seed, shape (draws, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), size=draws) / n


def _f1(counts: FloatArray, tables: FloatArray) -> FloatArray:
    """Return micro F1 in percent, shape (d, s), for samples in which sentence j occurs `counts[d, j]` times."""
    tp, spans = counts @ tables[:, :, 0].T, counts @ tables[:, :, 1].T
    return 200 * tp / np.maximum(spans, 1)


def _resampled_f1(tables: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return the F1 of each evaluation on resampled test sentences, shape (draws, s). All share the same samples."""
    m, parts = tables.shape[1], []
    # Work in blocks, because 10,000 samples of 100,000 sentences at once would take 8 GB.
    for first in range(0, draws, step := max(_CELLS // m, 1)):
        d = min(step, draws - first)
        picks = rng.integers(m, size=(d, m)) + m * np.arange(d)[:, None]
        parts.append(_f1(np.bincount(picks.ravel(), minlength=d * m).reshape(d, m).astype(np.float64), tables))
    return np.concatenate(parts)


def f1_and_moves(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each evaluation's F1 in percent, `(s,)`, and the effect of each sentence on this F1 in points, `(s, m)`.

    The effect of a sentence is linearised: it is the derivative of F1 with respect to the sentence's weight. tables:
    see `tables_of`.
    """
    tp, spans = tables[..., 0], tables[..., 1]
    whole = np.maximum(spans.sum(axis=1), 1)[:, None]
    f1 = 200 * tp.sum(axis=1)[:, None] / whole
    return f1[:, 0], (200 * tp - f1 * spans) / whole


def interaction_variance(gaps: FloatArray, tested: BoolArray) -> float:
    """Return the part of the mean difference's variance that the interaction of replicates and sentences causes.

    Return infinity if no sentence was tested twice; the caller then uses the whole variance of the sentences. gaps:
    `(r, m)` points by which each sentence moves the difference of each replicate. tested: `(r, m)`, True if the
    replicate was tested on the sentence.
    """
    n, times = len(tested), tested.sum(axis=0)
    again = times > 1
    if not again.any():
        return np.inf
    gaps = np.where(tested, gaps, 0.0)
    means = gaps.sum(axis=0) / np.maximum(times, 1)
    squares = np.where(tested, (gaps - means) ** 2, 0.0).sum(axis=0)
    # Scale up to all sentences, assuming that those tested once behave like the others.
    share = times.sum() / times[again].sum()
    return float((times * squares / np.maximum(times - 1, 1))[again].sum() * share) / n**2
