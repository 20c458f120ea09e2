"""Swapped halves: intervals that cover the result of a repetition with another pool, labels and pre-trainings."""

from dataclasses import replace

import numpy as np
import pytest

from core.errors import CorpusError
from core.results import Evaluation
from core.stats.bootstrap import compare, resample
from core.stats.pooled import Estimate, pooled
from core.stats.power import detectable, simulate
from core.stats.sequential import ending
from core.stats.spread import Spread, measured

POINT = 0.027  # one point of F1, in standard deviations of a mention's difficulty
MENTIONS, SPURIOUS, LABELLED = 6, 0.3, 100


class World:
    """Simulate pools of `n` sentences, and the F1 of two equal arms. lots: sd between pre-trainings, in points.

    Beside pre-trainings and taggers, F1 depends on the labelled sentences (some help both arms, some only one), the
    text of T_C, the test sentences (some suit one arm), and chance.
    """

    def __init__(self, rng: np.random.Generator, n: int, lots: float) -> None:
        self.rng, self.n, self.lots = rng, n, np.hypot(lots, 0.45)
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
                apart = 0.2 * self.helps[arm, labelled].sum() / np.sqrt(LABELLED)
                apart += 0.2 * self.text[arm, own].sum() / np.sqrt(len(own)) + self.lots * self.rng.normal()
                tables.append(self.tested(0.2 + POINT * (common + apart), arm, other))
        return arms

    def on_one_split(self, times: int) -> tuple[list[Evaluation], list[Evaluation]]:
        """Return replicates with fixed labels and a fixed test set, as before halves were swapped."""
        own, other = np.split(self.rng.permutation(self.n), [self.n // 2])
        labelled = self.rng.permutation(own)[:LABELLED]
        common = self.helps_all[labelled].sum() / np.sqrt(LABELLED)
        arms: tuple[list[Evaluation], list[Evaluation]] = ([], [])
        for arm, tables in enumerate(arms):
            for luck in self.lots * self.rng.normal(size=times):
                whole = self.tested(0.2 + POINT * (common + luck), arm, other)
                tables.append(replace(whole.of(np.isin(np.arange(self.n), other)), tested=None))
        return arms

    def tested(self, skill: float, arm: int, rows: np.ndarray) -> Evaluation:
        reach = skill + self.suits[arm, rows]
        luck = 0.12 * self.rng.normal(size=(2, len(rows), MENTIONS))
        right = (self.there[rows] & (self.hard[rows] + luck[0] < reach)).sum(axis=1)
        wrong = (self.invites[rows] & (self.lure[rows] + luck[1] > reach)).sum(axis=1)
        tables = (right, right + wrong, self.gold[rows])
        tp, predicted, gold = (table[:, None].astype(np.int32) for table in tables)
        return Evaluation(types=("X",), tp=tp, predicted=predicted, gold=gold).among(rows, self.n)


def test_the_interval_holds_what_a_repetition_would_come_to() -> None:
    """Each repetition draws another pool, halves, labels and pre-trainings. Intervals come from tables per sentence."""
    rng, held = np.random.default_rng(0), []
    for times, lots in ((2, 0.8), (4, 0.0), (6, 0.4), (10, 0.8)):
        gaps = [resample(*World(rng, 600, lots).replicates(times), 100, i).difference(0.95) for i in range(100)]
        held += [gap.lo <= 0 <= gap.hi for gap in gaps]
        estimated = np.mean([gap.se_seeds**2 + gap.se_sentences**2 for gap in gaps])
        assert 0.7 <= estimated / np.var([gap.delta for gap in gaps]) <= 1.6, (times, lots)
    assert 0.93 <= np.mean(held) <= 0.97


@pytest.mark.parametrize("lots", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("looks", [(2,), (4,), (6,), (10,), (2, 4), (2, 4, 6), (2, 4, 6, 8, 10)])
def test_choosing_is_rarely_called_helpful_where_it_is_not(looks: tuple[int, ...], lots: float) -> None:
    one = Spread(seeds=0.45, pretrainings=lots, both=0.36, sentences=0.5, trainings=0, n_sentences=465).by_halves(930)
    idle = simulate(one, looks, 0.0, planned=1.0, experiments=8000)
    assert (idle.sign > 0).mean() <= 0.03  # one side of a two-sided test
    assert (idle.sign != 0).mean() <= 0.06
    for effect, ended in ((0.0, idle), (1.0, simulate(one, looks, 1.0, planned=1.0, experiments=8000))):
        # Two replicates estimate their spread poorly, so their interval is too wide if the spread is small.
        assert 0.93 <= ended.covers(effect).mean() <= (0.99 if looks == (2,) else 0.97)


def test_what_labels_do_to_both_arms_is_in_no_difference() -> None:
    world = World(np.random.default_rng(1), 600, 0.3)
    plain = resample(*world.replicates(6), 300, 0)
    world.helps_all = 3 * world.helps_all
    moved = resample(*world.replicates(6), 300, 0)
    assert moved.system.std() > 1.5 * plain.system.std()
    assert np.sqrt(moved.var_seeds + moved.var_sentences) < 1.3 * np.sqrt(plain.var_seeds + plain.var_sentences)


def test_arms_of_other_halves_are_not_compared() -> None:
    system, other = World(np.random.default_rng(2), 60, 0.3).replicates(2)
    for wrong in (other[::-1], other[:1]):
        with pytest.raises(CorpusError, match="differ in their test sentences"):
            compare(system, wrong)


@pytest.mark.full
def test_the_power_that_is_foretold_is_that_of_the_tables() -> None:
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
    foretold = (simulate(spread.by_halves(600), looks, true, planned=effect).sign > 0).mean()
    assert foretold == pytest.approx(shown / experiments, abs=0.05)
    assert foretold > (simulate(spread, looks, true, planned=effect).sign > 0).mean() + 0.05
    assert detectable(spread.by_halves(600), (6,)) < detectable(spread, (6,))
