"""Swapped halves: intervals that cover the result of a repetition with another pool, labels and pre-trainings."""

from dataclasses import replace

import numpy as np
import pytest

from core.errors import CorpusError
from core.results import Evaluation, FloatArray, IntArray
from core.stats.bootstrap import compare, resample
from core.stats.pooled import Estimate, pooled
from core.stats.power import detectable, simulate
from core.stats.sequential import ending
from core.stats.spread import Spread, measured

POINT = 0.027  # one point of F1, in standard deviations of a mention's difficulty
MENTIONS, SPURIOUS, LABELLED = 6, 0.3, 100


class World:
    """Simulate pools of `n` sentences, and the F1 of two equal arms.

    pretraining_sd: sd between pre-trainings, in points of F1.

    Beside pre-trainings and taggers, F1 depends on the labelled sentences (some help both arms, some only one), the
    text of T_C, the test sentences (some suit one arm), and chance.
    """

    def __init__(self, rng: np.random.Generator, n: int, pretraining_sd: float) -> None:
        self.rng, self.n, self.sd = rng, n, np.hypot(pretraining_sd, 0.45)
        self.gold = np.minimum(rng.poisson(2.0, n), MENTIONS)
        self.there = np.arange(MENTIONS) < self.gold[:, None]
        self.hard, self.lure = rng.normal(size=(2, n, MENTIONS))
        self.invites = self.there & (rng.random((n, MENTIONS)) < SPURIOUS)
        self.suits = 0.2 * rng.normal(size=(2, n, 1))
        self.helps, self.helps_all, self.text = rng.normal(size=(2, n)), rng.normal(size=n), rng.normal(size=(2, n))

    def replicates(self, times: int) -> tuple[list[Evaluation], list[Evaluation]]:
        arms: tuple[list[Evaluation], list[Evaluation]] = ([], [])
        own = other = np.arange(0)
        for number in range(times):
            own, other = (other, own) if number % 2 else np.split(self.rng.permutation(self.n), [self.n // 2])
            labelled = self.rng.permutation(own)[:LABELLED]
            common = self.helps_all[labelled].sum() / np.sqrt(LABELLED)
            for arm, tables in enumerate(arms):
                labels = 0.2 * self.helps[arm, labelled].sum() / np.sqrt(LABELLED)
                text = 0.2 * self.text[arm, own].sum() / np.sqrt(len(own))
                tables.append(self.tested(self.skill(common, labels, text, arm), arm, other))
        return arms

    def skill(self, common: float, labels: float, text: float, arm: int) -> float:
        """Return the skill of a replicate, from effects of its labels on both arms and on this one, and of its T_C."""
        return float(0.2 + POINT * (common + labels + text + self.sd * self.rng.normal()))

    def on_one_split(self, times: int) -> tuple[list[Evaluation], list[Evaluation]]:
        """Return replicates with fixed labels and a fixed test set, as before halves were swapped."""
        own, other = np.split(self.rng.permutation(self.n), [self.n // 2])
        labelled = self.rng.permutation(own)[:LABELLED]
        common = self.helps_all[labelled].sum() / np.sqrt(LABELLED)
        arms: tuple[list[Evaluation], list[Evaluation]] = ([], [])
        for arm, tables in enumerate(arms):
            for effect in self.sd * self.rng.normal(size=times):
                whole = self.tested(0.2 + POINT * (common + effect), arm, other)
                tables.append(replace(whole.of(np.isin(np.arange(self.n), other)), tested=None))
        return arms

    def tested(self, skill: float, arm: int, rows: np.ndarray) -> Evaluation:
        reach = skill + self.suits[arm, rows]
        noise = self.noise(arm, rows)
        right = (self.there[rows] & (self.hard[rows] + noise[0] < reach)).sum(axis=1)
        wrong = (self.invites[rows] & (self.lure[rows] + noise[1] > reach)).sum(axis=1)
        tables = (right, right + wrong, self.gold[rows])
        tp, predicted, gold = (table[:, None].astype(np.int32) for table in tables)
        return Evaluation(types=("X",), tp=tp, predicted=predicted, gold=gold).among(rows, self.n)

    def noise(self, arm: int, rows: IntArray) -> FloatArray:
        """Return the effect of a tagger on each mention of the sentences."""
        return 0.12 * self.rng.normal(size=(2, len(rows), MENTIONS))


def test_interval_of_swapped_halves_covers_repetitions_in_95_percent() -> None:
    """Each repetition draws another pool, halves, labels and pre-trainings. Intervals come from tables per sentence."""
    rng, held = np.random.default_rng(0), []
    for times, pretraining_sd in ((2, 0.8), (4, 0.0), (6, 0.4), (10, 0.8)):
        gaps = [
            resample(*World(rng, 600, pretraining_sd).replicates(times), 100, i).difference(0.95) for i in range(100)
        ]
        held += [gap.lo <= 0 <= gap.hi for gap in gaps]
        estimated = np.mean([gap.se_seeds**2 + gap.se_sentences**2 for gap in gaps])
        assert 0.7 <= estimated / np.var([gap.delta for gap in gaps]) <= 1.6, (times, pretraining_sd)
    assert 0.93 <= np.mean(held) <= 0.97


@pytest.mark.parametrize("pretraining_sd", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("looks", [(2,), (4,), (6,), (10,), (2, 4), (2, 4, 6), (2, 4, 6, 8, 10)])
def test_swapped_halves_keep_coverage_and_error_rate(looks: tuple[int, ...], pretraining_sd: float) -> None:
    one = Spread(
        seeds=0.45, pretrainings=pretraining_sd, both=0.36, sentences=0.5, trainings=0, n_sentences=465
    ).by_halves(930)
    no_gain = simulate(one, looks, 0.0, planned=1.0, experiments=8000)
    assert (no_gain.sign > 0).mean() <= 0.03  # one side of a two-sided test
    assert (no_gain.sign != 0).mean() <= 0.06
    for effect, ended in ((0.0, no_gain), (1.0, simulate(one, looks, 1.0, planned=1.0, experiments=8000))):
        # Two replicates estimate their spread poorly, so their interval is too wide if the spread is small.
        assert 0.93 <= ended.covers(effect).mean() <= (0.99 if looks == (2,) else 0.97)


def test_effect_of_labels_on_both_variants_cancels_in_the_difference() -> None:
    world = World(np.random.default_rng(1), 600, 0.3)
    plain = resample(*world.replicates(6), 300, 0)
    world.helps_all = 3 * world.helps_all
    moved = resample(*world.replicates(6), 300, 0)
    assert moved.system.std() > 1.5 * plain.system.std()
    assert np.sqrt(moved.var_seeds + moved.var_sentences) < 1.3 * np.sqrt(plain.var_seeds + plain.var_sentences)


def test_variants_tested_on_different_halves_are_not_compared() -> None:
    system, other = World(np.random.default_rng(2), 60, 0.3).replicates(2)
    for wrong in (other[::-1], other[:1]):
        with pytest.raises(CorpusError, match="differ in their test sentences"):
            compare(system, wrong)


@pytest.mark.full
def test_power_forecast_for_swapped_halves_matches_simulation() -> None:
    """The forecast uses the spread of replicates on one split of 600 sentences, and includes interim analyses.

    Power with swapped halves is larger than on one split.
    """
    looks, rng, effect = (2, 4, 6), np.random.default_rng(3), 1.6
    spreads, deltas, shown, experiments = list[Spread](), list[float](), 0, 300
    for number in range(experiments):
        world = World(rng, 600, 0.3)
        world.suits[0] += POINT * effect
        if number < 150 and (before := measured([], world.on_one_split(6))):
            spreads.append(before)
        system, other = world.replicates(6)
        deltas.append(float(np.mean([a.f1() - b.f1() for a, b in zip(system, other, strict=True)])))
        for at, n in enumerate(looks):
            gap = resample(system[:n], other[:n], 150, number).difference(0.95)
            if gap.p <= 0.1:  # a small p needs many draws
                gap = resample(system[:n], other[:n], 2000, number).difference(0.95)
            if why := ending(pooled([Estimate.of(gap)]).look, looks, at, effect, side=gap.sign):
                shown += why == "shown"
                break
    squares = [np.mean([getattr(one, name) ** 2 for one in spreads]) for name in ("seeds", "both", "sentences")]
    seeds, both, sentences = map(float, np.sqrt(squares))
    spread = replace(spreads[0], seeds=seeds, both=both, sentences=sentences)
    true = float(np.mean(deltas))
    forecast = (simulate(spread.by_halves(600), looks, true, planned=effect).sign > 0).mean()
    assert forecast == pytest.approx(shown / experiments, abs=0.05)
    assert forecast > (simulate(spread, looks, true, planned=effect).sign > 0).mean() + 0.05
    assert detectable(spread.by_halves(600), (6,)) < detectable(spread, (6,))
