"""Several corpora, one claim: intervals of simulated studies cover the truth, on these corpora and on others."""

import numpy as np
import pytest
from scipy import stats

from core.stats.pooled import Estimate, between, corpora_needed, pooled, random_effects
from core.stats.power import simulate
from core.stats.spread import Spread

PLANS = ((2,), (3,), (6,), (10,), (2, 4, 6))


def worlds(corpora: int, pretraining_sd: float) -> tuple[Spread, ...]:
    """Return spreads as those of CrossNER's corpora, which differ in size.

    pretraining_sd: sd between pre-trainings, in points of F1.
    """
    sizes, seeds = (465, 430, 416, 600, 250), (0.45, 0.6, 0.4, 0.3, 0.7)
    return tuple(
        Spread(seeds=sd, pretrainings=pretraining_sd, both=0.36, sentences=11 / n**0.5, trainings=0, n_sentences=n)
        for n, sd in list(zip(sizes, seeds, strict=True))[:corpora]
    )


@pytest.mark.parametrize("corpora", [1, 2, 3, 4, 5])
def test_pooled_interval_covers_the_mean_and_has_few_false_positives(corpora: int) -> None:
    for looks in PLANS:
        for pretraining_sd in (0.0, 0.8):
            no_gain, true = (
                simulate(worlds(corpora, pretraining_sd), looks, effect, planned=1.0, experiments=4000)
                for effect in (0.0, 1.0)
            )
            assert (no_gain.sign > 0).mean() <= 0.035, (looks, pretraining_sd)
            for ended, effect in ((no_gain, 0.0), (true, 1.0)):
                # Intervals of two seeds are wider than necessary if seeds differ little.
                most = 0.995 if looks == (2,) else 0.97
                assert 0.93 <= ended.covers(effect).mean() <= most, (looks, pretraining_sd, effect)


@pytest.mark.parametrize("corpora", [2, 3, 4, 5])
@pytest.mark.parametrize("pretraining_sd", [0.0, 0.4, 0.8])
def test_pooled_interval_of_swapped_halves_covers_the_mean(corpora: int, pretraining_sd: float) -> None:
    swapped = tuple(one.by_halves(2 * one.n_sentences) for one in worlds(corpora, pretraining_sd))
    for effect in (0.0, 1.0):
        ended = simulate(swapped, (2, 4, 6), effect, planned=1.0, experiments=4000)
        assert 0.93 <= ended.covers(effect).mean() <= 0.97, effect
        assert effect or (ended.sign > 0).mean() <= 0.035


@pytest.mark.parametrize("apart", [0.3, 0.6])
def test_interval_for_other_corpora_covers_with_two_or_more_corpora(apart: float) -> None:
    for corpora in (2, 3, 5):
        for looks in ((2,), (10,), (2, 4, 6)):
            for effect in (0.0, 1.0):
                ended = simulate(worlds(corpora, 0.8), looks, effect, planned=1.0, between=apart, experiments=4000)
                assert 0.93 <= ended.covers_others(effect).mean() <= 0.97, (corpora, looks, effect)
                assert 0.93 <= ended.covers(effect).mean() <= 0.97, (corpora, looks, effect)


def test_more_corpora_raise_power_and_interim_analyses_save_replicates() -> None:
    one, three = (simulate(worlds(n, 0.4), (2, 4, 6), 1.0, planned=1.0, experiments=2000) for n in (1, 3))
    assert (three.sign > 0).mean() > (one.sign > 0).mean() + 0.25
    assert three.replicates.mean() < 5.5


def estimate(delta: float, variance: float, dof: float) -> Estimate:
    return Estimate(delta=delta, falling=variance * 0.75, fixed=variance * 0.25, dof=dof)


def test_pooled_variances_add_with_satterthwaite_degrees_of_freedom() -> None:
    """The mean of two corpora with the same variance has half of it, and twice the degrees of freedom."""
    mean = pooled([estimate(1.0, 0.4, 5), estimate(2.0, 0.4, 5)])
    assert (float(mean.delta), float(mean.se) ** 2, float(mean.dof)) == pytest.approx((1.5, 0.2, 10))
    assert float(mean.falling) == pytest.approx(0.15)
    assert float(mean.p) == pytest.approx(2 * stats.t.sf(1.5 / 0.2**0.5, 10))
    assert float(mean.half()) == pytest.approx(stats.t.ppf(0.975, 10) * 0.2**0.5)
    single = pooled([estimate(1.0, 0.4, 5), estimate(2.0, 0.0, 0)])  # a single replicate has no spread
    assert (float(single.p), float(single.half())) == (1.0, 100.0)


def test_random_effects_equal_a_one_sample_t_test() -> None:
    """Compare with the t-test of one sample."""
    deltas = [0.4, 1.3, 0.9]
    mean = random_effects(np.array(deltas))
    assert float(mean.p) == pytest.approx(stats.ttest_1samp(deltas, 0).pvalue)
    low, high = stats.ttest_1samp(deltas, 0).confidence_interval()
    assert float(mean.delta - mean.half()) == pytest.approx(low)
    assert float(mean.delta + mean.half()) == pytest.approx(high)
    alike = [estimate(delta, 0.5, 5) for delta in deltas]
    assert between(alike) == 0.0
    assert between([estimate(delta, 0.05, 5) for delta in deltas]) == pytest.approx(
        (np.var(deltas, ddof=1) - 0.05) ** 0.5
    )


def test_corpora_needed_detect_the_effect_in_80_percent() -> None:
    n = corpora_needed(1.0, 1.5)
    draws = np.random.default_rng(0).normal(1.0, 1.5**0.5, size=(n, 20_000))
    assert (random_effects(draws).p < 0.05).mean() == pytest.approx(0.8, abs=0.04)
