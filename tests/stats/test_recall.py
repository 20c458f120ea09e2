"""Recall of hidden sentences: intervals by hand, their coverage, and equal strategies without a winner."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t

from core.results import BoolArray
from core.stats.recall import Hidden, best, compare


def test_interval_is_that_of_students_t_over_blocks_or_draws() -> None:
    """Six sentences in three blocks and two draws; the sums of residuals are computed by hand."""
    hidden = Hidden(block=np.array([0, 0, 1, 1, 2, 2]), draw=np.array([0, 0, 1, 1, 0, 0]))
    mean = hidden.mean(np.array([1.0, 1, 0, 0, 0, 1]))  # mean 1/2; blocks +1, -1, 0; draws +1, -1
    between_blocks, between_draws = (2 * 3 / 2 + 2) / 36, (2 * 2 / 1 + 2) / 36
    assert between_draws > between_blocks
    half = between_draws**0.5 * t.ppf(0.975, 1)
    assert (mean.value, mean.low, mean.high) == (0.5, max(0.5 - half, -1), min(0.5 + half, 1))
    mean = hidden.mean(np.array([1.0, 0, 1, 0, 1, 1]), level=0.5)  # mean 2/3; blocks -1/3, -1/3, 2/3; draws 1/3, -1/3
    variance = (6 / 9 * 3 / 2 + 2) / 36
    assert mean.high - mean.low == pytest.approx(2 * variance**0.5 * t.ppf(0.75, 2))


def test_differences_are_paired_corrected_for_their_number_and_leave_out_controls() -> None:
    hidden = Hidden(block=np.arange(200), draw=np.arange(200) % 10)
    usual = np.arange(200) < 100
    better = usual | (np.arange(200) % 10 < 2)  # 20 sentences more
    found = {"usual": usual, "better": better, "worse": ~usual & better, "chance": ~usual}
    compared = compare(found, hidden, "usual", frozenset({"chance"}))
    assert (compared["usual"].difference, compared["chance"].difference) == (None, None)
    difference = compared["better"].difference
    assert difference is not None
    gain = (better & ~usual).astype(float)
    between = ((gain - gain.mean()) ** 2).sum() * 200 / 199
    sums = np.bincount(hidden.draw, weights=gain - gain.mean())
    draws = (sums**2).sum() * 10 / 9
    variance, groups = max(((between + 2) / 200**2, 200), ((draws + 2) / 200**2, 10))
    half = variance**0.5 * t.ppf(0.9875, groups - 1)  # two comparisons, so 97.5% each
    assert (difference.value, difference.low) == pytest.approx((0.1, 0.1 - half))
    assert compared["chance"].recall.value == 0.5
    assert best(compared, "usual") == ("better" if 0.1 - half > 0 else "usual")


def drawn(
    rng: np.random.Generator, n: int, size: int, threshold: float, between_draws: float, gain: float, rivals: int
) -> tuple[dict[str, BoolArray], Hidden, float]:
    """Return which sentences a default and its rivals find, where they are hidden, and the rivals' true difference.

    A sentence is found if a score exceeds `threshold`. Half of the score's variance is shared by all strategies. Each
    strategy has its own noise per sentence, per block of `size` sentences, and per draw. gain: added to rivals' scores.
    """
    block = np.arange(n) // size
    draw = (rng.permutation(block[-1] + 1) % 10)[block]
    shared = rng.normal(size=n)

    def found(shift: float) -> BoolArray:
        own = (
            0.84**0.5 * rng.normal(size=n) + 0.4 * rng.normal(size=n)[block] + between_draws * rng.normal(size=10)[draw]
        )
        scores: BoolArray = shared + own + shift > threshold
        return scores

    masks = {"default": found(0), **{f"rival {i}": found(gain) for i in range(rivals)}}
    spread = (2 + between_draws**2) ** 0.5
    truth = float(ndtr((gain - threshold) / spread) - ndtr(-threshold / spread))
    return masks, Hidden(block=block, draw=draw), truth


SIZES = [(50, 1), (300, 7), (300, 30), (2000, 1), (2000, 50)]  # hidden sentences, and those of a block


@pytest.mark.parametrize(("n", "size"), SIZES)
@pytest.mark.parametrize("threshold", [0.0, 2.0, -2.0])
@pytest.mark.parametrize("between_draws", [0.0, 0.2])
def test_equal_strategies_have_a_winner_in_at_most_5_percent(
    n: int, size: int, threshold: float, between_draws: float
) -> None:
    rng = np.random.default_rng(n)
    winners = 0
    for _ in range(400):
        masks, hidden, _ = drawn(rng, n, size, threshold, between_draws, 0.0, 6)
        winners += best(compare(masks, hidden, "default", frozenset()), "default") != "default"
    assert winners / 400 <= 0.05


@pytest.mark.parametrize(("n", "size"), SIZES)
@pytest.mark.parametrize("gain", [0.0, 0.4])
@pytest.mark.parametrize("threshold", [0.5, -2.0])
def test_intervals_cover_the_truth_together(n: int, size: int, gain: float, threshold: float) -> None:
    """Draws differ by 0.2 standard deviations of the score, which is the hardest case here."""
    rng = np.random.default_rng(n)
    covered = own = 0
    for _ in range(400):
        masks, hidden, truth = drawn(rng, n, size, threshold, 0.2, gain, 6)
        compared = compare(masks, hidden, "default", frozenset())
        intervals = [one.difference for one in compared.values() if one.difference]
        covered += all(each.low <= truth <= each.high for each in intervals)
        recall = compared["default"].recall
        own += recall.low <= float(ndtr(-threshold / (2 + 0.04) ** 0.5)) <= recall.high
    assert covered / 400 >= 0.93
    assert own / 400 >= 0.91


def test_a_better_strategy_is_found_and_the_largest_recall_is_proposed() -> None:
    rng, found = np.random.default_rng(0), 0
    for _ in range(50):
        masks, hidden, _ = drawn(rng, 600, 10, 0.5, 0.1, 0.6, 3)
        name = best(compared := compare(masks, hidden, "default", frozenset()), "default")
        found += name != "default"
        assert name == "default" or compared[name].recall.value == max(one.recall.value for one in compared.values())
    assert found >= 45
