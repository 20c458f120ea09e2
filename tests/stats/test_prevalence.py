"""The range of a count: exact bounds, and that it covers what was planted."""

import numpy as np
import pytest
from scipy.stats import binomtest

from core.results import FloatArray
from core.stats.prevalence import clopper_pearson, prevalence


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 40_000), (225, 300)])
def test_clopper_pearson_is_scipys(k: int, n: int) -> None:
    interval = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert clopper_pearson(k, n) == pytest.approx((interval.low, interval.high))


def drawn(rng: np.random.Generator, task: int, planted: int, others: int = 20_000) -> tuple[FloatArray, FloatArray]:
    """T_C's scores, and D_C's: `planted` of the same kind, and others five deviations below."""
    return rng.normal(5, 1, task), np.concatenate([rng.normal(5, 1, planted), rng.normal(-1, 1, others)])


@pytest.mark.parametrize("task", [100, 500, 2000])
@pytest.mark.parametrize("planted", [50, 200, 1000, 4000])
def test_the_range_covers_what_is_planted(task: int, planted: int) -> None:
    rng = np.random.default_rng(task + planted)
    ranges = [prevalence(*drawn(rng, task, planted)) for _ in range(200)]
    assert np.mean([each.low <= planted <= each.high for each in ranges]) >= 0.95
    assert np.mean([each.about for each in ranges]) == pytest.approx(planted, rel=0.03)
    assert all(each.low <= each.about <= each.high for each in ranges)


def test_the_range_is_no_wider_than_the_counts_make_it() -> None:
    found = prevalence(*drawn(np.random.default_rng(0), 2000, 1000))
    assert found.high - found.low < 0.3 * 1000


def test_where_nothing_is_planted_next_to_nothing_is_counted() -> None:
    rng = np.random.default_rng(0)
    ranges = [prevalence(*drawn(rng, 500, 0)) for _ in range(100)]
    assert max(each.about for each in ranges) <= 3
    assert max(each.high for each in ranges) <= 20


def test_a_count_is_no_larger_than_the_corpus() -> None:
    scores = np.arange(100.0)
    found = prevalence(scores, scores + 1000)
    assert found.high == found.about == 100


def test_equal_scores_count_by_their_own_share() -> None:
    task = np.repeat([0.0, 1.0], [10, 90])  # nine tenths stand at the quantile
    found = prevalence(task, np.repeat([0.0, 1.0], [1000, 90]))
    assert found.about == pytest.approx(100)
