"""Expected F1 with more labels: the interval contains what a repetition with these labels reaches, or there is none."""

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from core.errors import CorpusError
from core.results import Evaluation, FloatArray
from core.stats.more_labels import LEAST, expected, lacking, parts
from core.stats.power_law import Forecast, forecast
from tests.stats.test_verdict import SPURIOUS, evaluation

Curve = Callable[[float], float]
CURVES: dict[str, Curve] = {  # expected F1 by number of labels
    "power law": lambda n: 75 - 180 * n**-0.45,
    "steep law": lambda n: 62 - 800 / n,
    "logarithm": lambda n: 10 + 9 * np.log(n),
    "flat": lambda n: 55.0,
    "bend": lambda n: 70 / (1 + np.exp(-0.9 * (np.log2(n) - 5.5))),
}


class Labelled:
    """A user's `n` labels and test set. Taggers differ by their seed, their labels, and by test sentence.

    A mention is found with probability Phi(skill + effects). Each label has an effect of its own, so that a part of the
    labels, and further labels, move the skill as their mean does. Each doubling of labels changes which sentences are
    hard, by `drift`.
    """

    HARDNESS, BOTH, DRIFT = 0.5, 0.3, 0.15

    def __init__(self, rng: np.random.Generator, curve: Curve, n: int, m: int, *, seed: float, draw: float) -> None:
        """m: number of test sentences. seed, draw: sd of the skill by seed, and by the draw of n labels."""
        self.rng, self.curve, self.n, self.seed, self.draw = rng, curve, n, seed, draw
        self.gold = rng.poisson(2.0, size=m)
        drifts = self.DRIFT * rng.normal(size=(2, m))
        hard = self.HARDNESS * rng.normal(size=m)
        self.hard = {n: hard, n // 2: hard + drifts[0], n // 4: hard + drifts.sum(axis=0)}
        self.labels = draw * sqrt(n) * rng.normal(size=2 * n)

    def _skill(self, labels: FloatArray) -> tuple[float, float]:
        """Return the mean skill of taggers on these labels, and the sd over all effects of a mention."""
        f1, size = self.curve(len(labels)), len(labels)
        share = (1 + SPURIOUS) * f1 / (200 - (1 - SPURIOUS) * f1)
        sd = sqrt(1 + self.HARDNESS**2 + self.BOTH**2 + self.DRIFT**2 * abs(np.log2(size / self.n)))
        return float(ndtri(share) * sd + labels.mean()), sd

    def _tagger(self, labels: FloatArray) -> Evaluation:
        hard = self.hard[len(labels)]
        own = self.seed * self.rng.normal() + self.BOTH * self.rng.normal(size=len(hard))
        share = ndtr(self._skill(labels)[0] + hard + own)
        tp = self.rng.binomial(self.gold, share)
        return evaluation(tp, tp + self.rng.binomial(self.gold, SPURIOUS * (1 - share)), self.gold)

    def tables(self, seeds: int) -> dict[int, list[Evaluation]]:
        """Return evaluations of taggers on a quarter, half and all of the labels; each seed draws its own parts."""
        found: dict[int, list[Evaluation]] = {size: [] for size in (*parts(self.n), self.n)}
        for _ in range(seeds):
            order = self.rng.permutation(self.n)
            for size, each in found.items():
                each.append(self._tagger(self.labels[order[:size]]))
        return found

    def reached(self, more: int, seeds: int) -> float:
        """Return the mean F1 of new taggers with `more` further labels, over all test sentences that there could be."""
        skill, sd = self._skill(self.labels[: self.n + more])
        share = ndtr((skill + self.seed * self.rng.normal(size=seeds)) / sd)
        return float(np.mean(200 * share / (share + SPURIOUS * (1 - share) + 1)))


def covered(curve: Curve, seeds: int, cases: int, rng: np.random.Generator) -> list[tuple[bool, bool]]:
    """Return for each case whether the interval of F1, and that of the gain, contain the truth."""
    found = []
    for case in range(cases):
        n, more, m, seed, draw = [(100, 100, 500, 0.04, 0.06), (100, 25, 300, 0.05, 0.0), (200, 100, 1000, 0.03, 0.05)][
            case % 3
        ]
        world = Labelled(rng, curve, n, m, seed=seed, draw=draw)
        drawn = expected(world.tables(seeds), more)
        if isinstance(drawn, Forecast):
            reached, now = world.reached(more, seeds), world.reached(0, 10_000)
            (lo, hi), (low, high) = drawn.interval(0.95), drawn.gain_interval(0.95)
            found.append((lo <= reached <= hi, low <= world.reached(more, 10_000) - now <= high))
    assert len(found) > 0.9 * cases  # F1 that never falls is rarely taken for falling
    return found


def test_intervals_contain_the_truth_in_93_to_99_percent() -> None:
    """Over curves of five shapes, two to five seeds, and all that varies if a user repeats the work."""
    rng, found = np.random.default_rng(2), dict[str, list[tuple[bool, bool]]]()
    for name, curve in CURVES.items():
        found[name] = [each for seeds in (2, 3, 5) for each in covered(curve, seeds, 21, rng)]
    f1, gain = np.mean([each for cases in found.values() for each in cases], axis=0)
    assert 0.93 <= f1 <= 0.99
    assert 0.93 <= gain <= 0.99
    assert all(np.mean(cases, axis=0).min() > 0.84 for cases in found.values())  # no shape is missed much more often


def test_interval_is_not_wider_than_it_needs_to_be() -> None:
    """With many seeds and test sentences, an hour of labelling is worth a few points more or less."""
    world = Labelled(np.random.default_rng(0), CURVES["power law"], 200, 2000, seed=0.02, draw=0.02)
    drawn = expected(world.tables(5), 100)
    assert isinstance(drawn, Forecast)
    lo, hi = drawn.gain_interval(0.95)
    assert hi - lo < 5
    assert lo > 0


def test_forecast_follows_the_curve_and_widens_with_distance() -> None:
    """Sizes 50, 100, 200 with 40, 50, 60: a logarithm, of which a doubling brings half to all, in the middle +7.5."""
    f1 = np.array([[40.0], [50.0], [60.0]]) + np.array([-0.1, 0.0, 0.1])
    near, far = forecast((50, 100, 200), f1, 225), forecast((50, 100, 200), f1, 400)
    assert np.median(far.gain) == pytest.approx(7.5, abs=0.4)
    assert far.interval(0.95) == pytest.approx((65.1, 69.9), abs=0.6)
    assert np.median(near.gain) == pytest.approx(1.7 * (1 - (1 - 0.75) * np.log2(225 / 200)), abs=0.3)
    assert far.interval(0.99)[1] > far.interval(0.95)[1]
    wide = forecast((50, 100, 200), f1, 400, common=4.0)
    assert np.subtract(*wide.interval(0.95)[::-1]) > 7.8  # two sd of 2 points in each direction
    assert wide.gain_interval(0.95) == far.gain_interval(0.95)  # test sentences that are hard stay hard
    with pytest.raises(CorpusError, match="2 sizes with 3 runs are too few"):
        forecast((50, 100), f1[:2], 400)


def same(counts: Sequence[int]) -> list[Evaluation]:
    """Return taggers that find this many of 200 mentions, one each in the first sentences."""
    found = (np.arange(200) < tp for tp in counts)
    return [evaluation(tp.astype(int), np.ones(200, dtype=int), np.ones(200, dtype=int)) for tp in found]


def test_what_the_labels_cannot_carry_is_not_estimated() -> None:
    assert lacking(LEAST, LEAST, 2) == ""
    assert lacking(LEAST - 1, 5, 3) == "the training set has 39 sentences; an estimate needs 40"
    assert lacking(100, 101, 3).startswith("101 more sentences are more than the training set has (100)")
    assert lacking(100, 100, 1) == "one seed does not show the spread between seeds; give three"
    falls = expected({25: same([60, 61, 62]), 50: same([120, 121, 122]), 100: same([80, 81, 82])}, 50)
    # F1 = 100 * tp / 200, because 200 mentions are found and 200 are true.
    assert falls == "test F1 falls from 60.5 with 50 sentences to 40.5 with 100, by more than chance"
    by_chance = expected({25: same([60, 80, 100]), 50: same([90, 110, 130]), 100: same([90, 100, 120])}, 50)
    assert isinstance(by_chance, Forecast)
