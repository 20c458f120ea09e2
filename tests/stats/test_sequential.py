"""Interim analyses: published bounds, and simulated experiments that stop at them."""

import numpy as np
import pytest
from scipy.special import ndtri

from core.stats.bootstrap import PAIRED_FROM
from core.stats.power import simulate
from core.stats.sequential import Look, adjusted_interval, bounds, conditional_power, ending
from core.stats.spread import Spread


def spread(pretraining_sd: float, seeds: float = 0.45, sentences: float = 0.5) -> Spread:
    """Return a spread in points of F1, about as measured on 465 sentences of CrossNER.

    pretraining_sd: sd between pre-trainings.
    """
    return Spread(
        seeds=seeds, pretrainings=pretraining_sd, both=0.36, sentences=sentences, trainings=0, n_sentences=465
    )


@pytest.mark.parametrize(
    ("looks", "height"), [((6,), 1.960), ((2, 4, 6), 2.004), ((1, 2, 3, 4, 5), 2.040), ((2, 4, 6, 8, 10), 2.040)]
)
def test_bounds_equal_the_published_tables(looks: tuple[int, ...], height: float) -> None:
    """Jennison and Turnbull 2000, Table 2.3: C_B(K, .05)."""
    heights = -ndtri(np.array(bounds(looks)) / 2)
    assert heights[-1] == pytest.approx(height, abs=6e-4)
    assert heights * np.sqrt(np.array(looks) / looks[-1]) == pytest.approx(np.full(len(looks), heights[-1]))


def test_bounds_of_uneven_analyses_are_crossed_in_5_percent() -> None:
    looks = (3, 4, 9)
    steps = np.diff((0, *looks))[:, None] ** 0.5 * np.random.default_rng(0).normal(size=(3, 200_000))
    z = steps.cumsum(axis=0) / np.sqrt(looks)[:, None]
    crossed = (np.abs(z) > -ndtri(np.array(bounds(looks)) / 2)[:, None]).any(axis=0)
    assert crossed.mean() == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("looks", [(2,), (3,), (6,), (10,), (2, 4), (2, 4, 6), (3, 6), (2, 4, 6, 8, 10)])
@pytest.mark.parametrize("pretraining_sd", [0.0, 0.4, 0.8])
def test_simulated_intervals_have_their_coverage_and_few_false_positives(
    looks: tuple[int, ...], pretraining_sd: float
) -> None:
    """This holds for any spread between pre-trainings, with and without interim analyses."""
    no_gain = simulate(spread(pretraining_sd), looks, 0.0, planned=1.0, experiments=8000)
    assert (no_gain.sign > 0).mean() <= 0.035  # one side of a two-sided test
    assert (no_gain.sign != 0).mean() <= 0.065
    for effect, ended in (
        (0.0, no_gain),
        (1.0, simulate(spread(pretraining_sd), looks, 1.0, planned=1.0, experiments=8000)),
    ):
        # Two seeds estimate their spread poorly, so their interval is too wide if seeds differ little.
        assert 0.93 <= ended.covers(effect).mean() <= (0.995 if looks == (2,) else 0.97)


@pytest.mark.parametrize("looks", [(2,), (3,), (4,), (6,), (2, 4, 6), (3, 6)])
def test_intervals_include_the_truth_if_seeds_affect_both_variants_alike(looks: tuple[int, ...]) -> None:
    """Half of the variance between replicates is common to both variants."""
    for effect in (0.0, 1.0):
        ended = simulate(spread(0.8), looks, effect, planned=1.0, shared=0.5, experiments=8000)
        # From four replicates on they are compared as pairs. Fewer stay unpaired, so their interval is too wide.
        assert 0.93 <= ended.covers(effect).mean() <= (0.97 if looks[0] >= PAIRED_FROM else 0.995)
        assert effect or (ended.sign > 0).mean() <= 0.035
    alone, alike = (simulate(spread(0.8), (6,), 0.0, planned=1.0, shared=shared) for shared in (0.0, 0.5))
    assert alike.se.mean() < 0.9 * alone.se.mean()


def test_futility_stop_saves_replicates_and_costs_little_power() -> None:
    looks, world = (2, 4, 6), spread(0.3, sentences=0.2)
    no_gain = simulate(world, looks, 0.0, planned=1.2)
    assert no_gain.replicates.mean() < 4.9
    kept, never = (simulate(world, looks, 1.2, planned=planned) for planned in (1.2, 1e9))
    assert (never.sign > 0).mean() - (kept.sign > 0).mean() < 0.02
    assert (kept.sign > 0).mean() > 0.75
    assert set(kept.replicates) <= {2, 4, 6}
    assert kept.replicates.mean() < 5.5


def test_adjusted_intervals_of_all_analyses_cover_jointly_in_95_percent() -> None:
    looks, rng = (2, 4, 6), np.random.default_rng(3)
    draws = rng.normal(size=(4000, 6))
    wrong = 0
    for replicates in draws:
        held = []
        for number, n in enumerate(looks):
            mean, variance = np.array(replicates[:n].mean()), np.array(1 / n)
            now = Look(delta=mean, p=np.array(0.5), falling=variance, fixed=np.array(0.0))
            half = -ndtri(bounds(looks)[number] / 2) * variance**0.5
            low, high = adjusted_interval(now, looks, number, 1e9) or (mean - half, mean + half)
            held.append(low <= 0 <= high)
        wrong += not all(held)
    assert wrong / len(draws) == pytest.approx(0.05, abs=0.01)


def test_adjusted_interval_of_a_study_equals_the_recomputed_one() -> None:
    """Difference 1.26, standard error 0.274, 7.4 degrees of freedom; stopped at the second of three analyses."""
    ended = Look(delta=np.array(1.26), p=np.array(0.0021), falling=np.array(0.274**2), fixed=np.array(0.0))
    assert adjusted_interval(ended, (2, 4, 6), 1, 7.4) == pytest.approx((0.39, 2.13), abs=0.01)
    assert adjusted_interval(ended, (2, 4, 6), 2, 7.4) is None
    assert adjusted_interval(ended, (2, 4, 6), 1, 0.0) is None


def look(delta: float, p: float) -> Look:
    return Look(delta=np.array(delta), p=np.array(p), falling=np.array(0.2), fixed=np.array(0.05))


def test_conditional_power_equals_the_simulated_share() -> None:
    """The simulation draws the future replicates; the error due to the test sentences is fixed."""
    looks, effect, z = (4, 6), 1.0, 1.2
    now, final = 1 / 0.25, 1 / (0.2 * 4 / 6 + 0.05)
    more = effect * (final - now) + np.sqrt(final - now) * np.random.default_rng(1).normal(size=200_000)
    crossed = (z * np.sqrt(now) + more) / np.sqrt(final) > -ndtri(bounds(looks)[-1] / 2)
    p = 2 * (1 - 0.8849303)  # the p-value of z = 1.2
    assert conditional_power(look(0.6, p), looks, 0, effect) == pytest.approx(crossed.mean(), abs=0.004)


@pytest.mark.parametrize(
    ("delta", "p", "number", "why"),
    [
        (2.0, 1e-5, 0, "shown"),
        (-2.0, 1e-5, 0, "worse"),
        (-0.5, 0.3, 0, None),  # two replicates estimate their spread too poorly to stop for futility
        (-0.5, 0.3, 1, "futile"),
        (0.7, 0.1, 1, None),
        (0.7, 0.1, 2, "complete"),
        (0.7, 0.04, 1, None),  # sufficient for a single analysis, not for the second of three
        (0.7, 0.04, 2, "shown"),
    ],
)
def test_analysis_ends_when_shown_worse_futile_or_complete(
    delta: float, p: float, number: int, why: str | None
) -> None:
    looks, sure = (2, 4, 6), look(2.0, 1e-5)
    assert ending(look(delta, p), looks, number, 0.8) == why
    assert ending(sure, looks, number, 0.8, side=1) == "shown"
    # An interval that includes 0 shows nothing.
    assert ending(sure, looks, number, 0.8, side=0) == (None, None, "complete")[number]
    assert ending(look(-2.0, 1e-5), looks, 2, 0.8, side=0) == "complete"
