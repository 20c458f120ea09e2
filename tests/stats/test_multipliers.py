"""Multipliers: simulated experiments in which an arm truly equals a multiple of the text or of the labels."""

import numpy as np
import pytest

from core.errors import CorpusError
from core.results import Evaluation
from core.stats.multipliers import Multiples, contrasts, multiples, worth

SIZES, TEST = (1.0, 2.0, 4.0), 465
REPLICATES = (2, 3, 6, 10)


def experiments(
    n: int, times: float, pretraining_sd: float, *, seed: int, slope: float = 1.5, sentences: float = 0.3, d: int = 2000
) -> Multiples:
    """Simulate `d` experiments with new pre-trainings, taggers and labels, and test sentences that suit some arms.

    pretraining_sd: sd between pre-trainings, in points. slope: F1 points for twice the size. A draw of labels moves all
    arms of a replicate together (sd 1.5) and each arm separately (sd 0.3).
    """
    rng = np.random.default_rng([seed, n])
    ratios, weights = contrasts(SIZES)
    truth = slope * np.log2([times, *SIZES])
    own = np.sqrt(pretraining_sd**2 + 0.45**2 + 0.3**2) * rng.normal(size=(len(truth), n, d))
    f1 = truth[:, None, None] + 1.5 * rng.normal(size=(n, d)) + own
    f1 += sentences * rng.normal(size=(len(truth), 1, d))
    known = sentences**2 * rng.chisquare(TEST - 1, size=d) / (TEST - 1)
    return multiples(ratios, np.tensordot(weights, f1, axes=1), (weights**2).sum(axis=1)[:, None] * known, 0.0, TEST)


@pytest.mark.parametrize("n", [REPLICATES[-1], *(pytest.param(n, marks=pytest.mark.full) for n in REPLICATES[:-1])])
def test_interval_of_a_multiple_has_95_percent_coverage(n: int) -> None:
    for seed, (pretraining_sd, sentences) in enumerate(((0.0, 0.0), (0.4, 0.3), (0.8, 0.3))):
        for times in (1.4, 2.0, 3.2):
            found = experiments(n, times, pretraining_sd, seed=seed, sentences=sentences)
            held = ((found.lo <= times) & (times <= found.hi)).mean()
            # 2,000 experiments estimate the share to within 0.01.
            assert 0.93 - 0.015 <= held <= 0.97 + 0.015, (pretraining_sd, times)
        for times in (0.5, 8.0):
            found = experiments(n, times, pretraining_sd, seed=seed, sentences=sentences)
            assert ((found.lo <= times) & (times <= found.hi)).mean() >= 0.95


@pytest.mark.parametrize("n", [REPLICATES[-1], *(pytest.param(n, marks=pytest.mark.full) for n in REPLICATES[:-1])])
def test_ineffective_selection_is_rated_above_1_in_at_most_5_percent(n: int) -> None:
    for pretraining_sd in (0.0, 0.8):
        found = experiments(n, 1.0, pretraining_sd, seed=9)
        assert (found.lo >= 1).mean() <= 0.05
        assert ((found.lo >= 1) | (found.hi <= 1)).mean() <= 0.07


def test_planted_multiple_is_estimated_and_bounds_outside_sizes_are_open() -> None:
    def medians(found: Multiples) -> list[float]:
        return [float(np.median(values)) for values in (found.times, found.lo, found.hi)]

    times, lo, hi = medians(experiments(10, 2.0, 0.2, seed=3, slope=4.0))
    assert times == pytest.approx(2.0, rel=0.03)
    assert 1.4 < lo < hi < 2.9
    assert medians(experiments(10, 0.5, 0.2, seed=3, slope=4.0)) == [0, 0, 1]
    assert medians(experiments(10, 8.0, 0.2, seed=3, slope=4.0)) == [np.inf, 4, np.inf]
    assert medians(experiments(3, 1.0, 0.8, seed=4, slope=0.0))[1:] == [0, np.inf]


def arm(rng: np.random.Generator, skill: float, n: int, tested: np.ndarray | None = None) -> list[Evaluation]:
    """Return n replicates on 200 sentences of four mentions. skill: share of mentions found. tested: rows of each."""
    found = []
    for number in range(n):
        gold = np.full((200, 1), 4, dtype=np.int32)
        right = rng.binomial(4, skill + 0.005 * rng.normal(), size=(200, 1)).astype(np.int32)
        one = Evaluation(types=("X",), tp=right, predicted=gold, gold=gold)
        found.append(one if tested is None else one.of(tested[number]).among(np.flatnonzero(tested[number]), 200))
    return found


def test_worth_estimates_the_multiple_from_tables_of_replicates() -> None:
    rng = np.random.default_rng(0)
    others = {1000.0 * 2**i: arm(rng, 0.5 + 0.05 * i, 6) for i in range(3)}
    found = worth(arm(rng, 0.55, 6), others)
    assert found is not None
    assert found.lo is not None
    assert found.hi is not None
    assert (found.size, found.most, found.replicates) == (1000, 4, 6)
    assert 1 < found.lo < found.times < found.hi < 4
    assert found.times == pytest.approx(2, rel=0.2)
    above, below = worth(arm(rng, 0.8, 6), others), worth(arm(rng, 0.3, 6), others)
    assert above is not None
    assert below is not None
    assert (above.beyond, above.lo, above.hi) == (True, 4, None)
    assert (below.below, below.lo, below.hi, below.times) == (True, None, 1, 1)
    two = worth(arm(rng, 0.52, 2), {size: table[:2] for size, table in others.items()})
    assert two is not None
    assert two.hi is None or two.hi > 2
    assert worth(arm(rng, 0.5, 1), others) is None  # one replicate has no spread
    assert worth(arm(rng, 0.5, 6), {1000.0: others[1000.0]}) is None


def test_worth_of_swapped_halves_needs_equal_test_sentences() -> None:
    rng = np.random.default_rng(1)
    first = np.arange(200) < 100
    tested = np.stack([first, ~first] * 3)
    others = {2.0**i: arm(rng, 0.5 + 0.08 * i, 6, tested) for i in range(3)}
    found = worth(arm(rng, 0.58, 6, tested), others)
    assert found is not None
    assert found.times == pytest.approx(2, rel=0.35)
    assert found.hi is not None
    with pytest.raises(CorpusError, match="differ in their test sentences"):
        worth(arm(rng, 0.58, 6, tested), others | {2.0: others[2.0][::-1]})
