"""Power by simulated experiments: the gain that a plan can detect, and the chance that it detects a given gain.

Forecasts and verdicts both use this module, so that they cannot contradict each other.

A simulated experiment draws random effects of pre-trainings, taggers and test sentences with the variances in `Spread`.
Its analysis is that of a real one: the same standard error, degrees of freedom, bounds, and rule to stop for futility.
A simulated study consists of one such experiment per corpus, and one test over all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from core.results import BoolArray, FloatArray, IntArray
from core.stats import sequential
from core.stats.bootstrap import PAIRED_FROM, replicates_part, seeds_part
from core.stats.pooled import Mean, fixed_effects, random_effects
from core.stats.spread import Spread
from core.stats.verdict import POWER

EXPERIMENTS = 4000  # number of simulated experiments, enough to estimate a chance of 50% to within 1.6 points


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Results of d simulated experiments or studies, arrays `(d,)`.

    sign: 1 for a detected gain, -1 for a detected loss, else 0. replicates: number of replicates at the end. delta, se,
    dof: difference, standard error and degrees of freedom at the end. truth: true mean difference over the corpora of
    each study. others: standard error of the mean difference for all similar corpora, with `corpora` - 1 degrees of
    freedom. corpora: number of corpora per study.
    """

    sign: FloatArray
    replicates: IntArray
    delta: FloatArray
    se: FloatArray
    dof: FloatArray
    truth: FloatArray
    others: FloatArray
    corpora: int

    def covers(self, effect: float, level: float = 0.95) -> BoolArray:
        """Return True, `(d,)`, for each confidence interval that includes the true difference.

        effect: true difference in experiments on one corpus. Studies of several corpora use `truth` instead.
        """
        from scipy.special import stdtrit

        true = self.truth if self.corpora > 1 else effect
        held: BoolArray = np.abs(self.delta - true) <= self.se * stdtrit(self.dof, (1 + level) / 2)
        return held

    def covers_others(self, effect: float, level: float = 0.95) -> BoolArray:
        """Return True, `(d,)`, for each interval of the mean over all similar corpora that includes this mean.

        effect: true mean difference over all similar corpora.
        """
        from scipy.special import stdtrit

        held: BoolArray = np.abs(self.delta - effect) <= self.others * stdtrit(self.corpora - 1, (1 + level) / 2)
        return held


class _World:
    """Simulated random effects of replicates and test sentences on one corpus, in each of `d` studies."""

    def __init__(
        self, spread: Spread, effect: float, replicates: int, d: int, rng: np.random.Generator, *, shared: float = 0.0
    ) -> None:
        m, self.spread = spread.n_sentences, spread
        self.f1 = rng.normal(size=(2, replicates, d)) * spread.each
        if shared:
            common = rng.normal(size=(1, replicates, d)) * spread.each
            self.f1 = sqrt(1 - shared) * self.f1 + sqrt(shared) * common
        # Draw the effect of the test sentences on the difference, and its estimated variance. Both are the same at all
        # interim analyses.
        self.sample = effect + rng.normal(size=d) * spread.sentences
        self.fixed = spread.sentences**2 * rng.chisquare(max(m - 1, 1), size=d) / max(m - 1, 1)
        if spread.swapped:
            self.f1[0] += _of_halves(spread, replicates, d, rng)

    def after(self, n: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the difference after n replicates, two parts of its variance, and its degrees of freedom.

        More replicates reduce the first part of the variance, but not the second.
        """
        f1, both = self.f1[:, :n], np.full(len(self.sample), 2 * self.spread.both**2 / n)
        delta = self.sample + f1[0].mean(axis=0) - f1[1].mean(axis=0)
        sentences, m = self.fixed + both, self.spread.n_sentences
        if self.spread.swapped or n >= PAIRED_FROM:
            both = sentences if n == 2 else both  # As in `bootstrap`: with two replicates, no sentence is tested twice.
            gaps = (f1[0] - f1[1]).var(axis=0, ddof=1) / n
            seeds, dof = replicates_part(gaps, both, sentences, n, m)
        else:
            seeds, dof = seeds_part(f1.var(axis=1, ddof=1) / n, both, sentences, (n, n), m)
        return delta, seeds + both, sentences - both, dof


def _of_halves(spread: Spread, replicates: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return how much the sampled labels and the tested half change the difference of each replicate, (replicates, d).

    The effect of the half changes its sign in the next replicate. Its standard deviation is `Spread.sentences`.
    """
    halves = rng.normal(size=(-(-replicates // 2), 1, d))
    swapped: FloatArray = np.concatenate([halves, -halves], axis=1).reshape(-1, d)[:replicates]
    labels: FloatArray = rng.normal(size=(replicates, d)) * spread.labels
    return swapped * spread.sentences + labels


def simulate(
    spread: Spread | Sequence[Spread],
    looks: Sequence[int],
    effect: float,
    *,
    planned: float,
    between: float = 0.0,
    shared: float = 0.0,
    experiments: int = EXPERIMENTS,
    seed: int = 0,
) -> Simulated:
    """Simulate experiments on two variants whose true difference is `effect`.

    spread: spread of F1 on one corpus, or on each corpus of a study. looks: number of replicates at each analysis, at
    least 2. planned: effect that the rule to stop for futility assumes. between: standard deviation of the true effect
    between corpora. shared: share of the variance between replicates that both variants have in common, because they
    share seeds; forecasts assume 0, which is cautious.
    """
    at, rng, spreads = tuple(looks), np.random.default_rng(seed), (spread,) if isinstance(spread, Spread) else spread
    worlds = [_World(one, effect, at[-1], experiments, rng, shared=shared) for one in spreads]
    own = rng.normal(size=(len(worlds), experiments)) * between
    ended = _Ended(experiments)
    for number, n in enumerate(at):
        delta, *parts = map(np.stack, zip(*(world.after(n) for world in worlds), strict=True))
        these = fixed_effects(delta + own, *parts)
        others = random_effects(delta + own) if len(worlds) > 1 else these
        signs = sequential.shown(these.look, at, number)
        over = (signs != 0) | sequential.futile(these.look, at, number, planned) | (n == at[-1])
        ended.stop(over, signs, n, these, others)
    return Simulated(**ended.columns, replicates=ended.replicates, truth=effect + own.mean(axis=0), corpora=len(worlds))


class _Ended:
    """Results of d simulated studies; each study is recorded when it ends."""

    def __init__(self, d: int) -> None:
        self.columns = {name: np.zeros(d) for name in ("sign", "delta", "se", "dof", "others")}
        self.replicates, self._going = np.zeros(d, dtype=np.int64), np.ones(d, dtype=bool)

    def stop(self, over: BoolArray, signs: FloatArray, n: int, these: Mean, others: Mean) -> None:
        """Record the results of the studies that end at this analysis.

        over: True for studies that end. n: number of replicates. these, others: mean for the studied corpora, and for
        all similar corpora.
        """
        stops = self._going & over
        now = {"sign": signs, "delta": these.delta, "se": these.se, "dof": these.dof, "others": others.se}
        for name, values in now.items():
            self.columns[name][stops] = values[stops]
        self.replicates[stops] = n
        self._going &= ~stops


@lru_cache(4096)
def detectable(spread: Spread | tuple[Spread, ...], looks: tuple[int, ...]) -> float:
    """Return the smallest gain, in points, that a plan detects in 80 of 100 experiments (`POWER`); at most 100.

    A plan with one replicate detects nothing, which gives 100. Stopping for futility is ignored; it lowers the power by
    about one percentage point. looks: number of replicates at each analysis.
    """
    from scipy.special import stdtrit

    if looks[-1] < 2:
        return 100.0
    rng, spreads = np.random.default_rng(0), (spread,) if isinstance(spread, Spread) else spread
    worlds = [_World(one, 0.0, looks[-1], EXPERIMENTS, rng) for one in spreads]
    gains = np.full(EXPERIMENTS, np.inf)  # smallest true gain that each simulated experiment detects
    for n, bound in zip(looks, sequential.bounds(looks), strict=True):
        delta, *parts = map(np.stack, zip(*(world.after(n) for world in worlds), strict=True))
        mean = fixed_effects(delta, *parts)
        gains = np.minimum(gains, mean.se * stdtrit(mean.dof, 1 - bound / 2) - mean.delta)
    return min(float(np.quantile(gains, POWER)), 100.0)


def replicates_to_detect(spread: Spread | tuple[Spread, ...], gain: float, more_than: int, at_most: int) -> int | None:
    """Return the smallest number of replicates, above `more_than`, with which a plan detects `gain`.

    Return None if even `at_most` replicates are too few. Each plan has the analyses of `looks_of`.
    """
    if more_than >= at_most or detectable(spread, sequential.looks_of(at_most)) > gain:
        return None
    few, enough = more_than, at_most
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if detectable(spread, sequential.looks_of(middle)) <= gain else (middle, enough)
    return enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power of a plan.

    effect: true difference in points. chance: chance that the plan detects it, 0 to 1. share: mean share of the plan's
    replicates that are run, 0 to 1.
    """

    effect: float
    chance: float
    share: float


@lru_cache(4096)  # Cached because a page calls this function again after each input.
def power(spread: Spread | tuple[Spread, ...], looks: tuple[int, ...], effect: float) -> Power:
    """Return the power of a plan if the true difference of its variants is `effect`; 0 with a single replicate.

    spread: spread of F1 on one corpus, or on each corpus of a study. looks: number of replicates at each analysis.
    """
    if looks[-1] < 2:
        return Power(effect=effect, chance=0.0, share=1.0)
    ended = simulate(spread, looks, effect, planned=effect)
    return Power(
        effect=effect,
        chance=float((ended.sign > 0).mean()),
        share=float(ended.replicates.mean()) / looks[-1],
    )
