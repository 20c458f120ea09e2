"""The range of an estimated count: exact bounds, and coverage of planted counts."""

import numpy as np
import pytest
from scipy.stats import binomtest

from core.results import FloatArray
from core.stats.prevalence import clopper_pearson, prevalence


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 40_000), (225, 300)])
def test_clopper_pearson_equals_scipy(k: int, n: int) -> None:
    interval = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert clopper_pearson(k, n) == pytest.approx((interval.low, interval.high))


def drawn(rng: np.random.Generator, task: int, planted: int, others: int = 20_000) -> tuple[FloatArray, FloatArray]:
    """Return scores of T_C and of D_C: `planted` from the same distribution, the others six standard deviations below."""
    return rng.normal(5, 1, task), np.concatenate([rng.normal(5, 1, planted), rng.normal(-1, 1, others)])


@pytest.mark.parametrize("task", [100, 500, 2000])
@pytest.mark.parametrize("planted", [50, 200, 1000, 4000])
def test_range_covers_the_planted_count_in_95_percent(task: int, planted: int) -> None:
    rng = np.random.default_rng(task + planted)
    ranges = [prevalence(*drawn(rng, task, planted)) for _ in range(200)]
    assert np.mean([each.low <= planted <= each.high for each in ranges]) >= 0.95
    assert np.mean([each.about for each in ranges]) == pytest.approx(planted, rel=0.03)
    assert all(each.low <= each.about <= each.high for each in ranges)


def test_range_is_narrow_capped_at_the_corpus_and_low_if_none_is_planted() -> None:
    found = prevalence(*drawn(np.random.default_rng(0), 2000, 1000))
    assert found.high - found.low < 0.3 * 1000
    rng = np.random.default_rng(0)
    ranges = [prevalence(*drawn(rng, 500, 0)) for _ in range(100)]
    assert max(each.about for each in ranges) <= 3
    assert max(each.high for each in ranges) <= 20
    found = prevalence(scores := np.arange(100.0), scores + 1000)
    assert found.high == found.about == 100
    task = np.repeat([0.0, 1.0], [10, 90])  # nine tenths have the score of the quantile
    found = prevalence(task, np.repeat([0.0, 1.0], [1000, 90]))
    assert found.about == pytest.approx(100)  # ties count: 90 of D_C divided by 90% of T_C
