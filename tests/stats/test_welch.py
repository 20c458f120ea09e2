"""Welch's test: the golden numbers from Dai et al. 2019, Table 3, and scipy's own test."""

import numpy as np
import pytest
from scipy import stats

from core.stats.welch import from_moments, welch

GOLDEN = pytest.mark.parametrize(
    ("a", "b", "t", "p"),
    [
        ((42.07, 0.03), (40.39, 0.05), 64.425, 1.99e-10),
        ((69.44, 0.52), (69.65, 0.43), -0.6959, 0.5069),
        ((75.45, 0.09), (72.75, 0.26), 21.943, 4.05e-6),
    ],
)


@GOLDEN
def test_welch_from_moments_equals_golden_numbers_and_scipy(
    a: tuple[float, float], b: tuple[float, float], t: float, p: float
) -> None:
    first, second = ((mean, sd**2, 5) for mean, sd in (a, b))
    found = from_moments(first, second)
    assert found[0] == pytest.approx(t, rel=1e-4)
    assert found[1] == pytest.approx(p, rel=5e-3)
    scipys = stats.ttest_ind_from_stats(*a, 5, *b, 5, equal_var=False)
    assert found == pytest.approx(tuple(scipys), rel=1e-12)


@GOLDEN
def test_welch_from_seeds_equals_golden_numbers_and_scipy(
    a: tuple[float, float], b: tuple[float, float], t: float, p: float
) -> None:
    first, second = (five(*moments) for moments in (a, b))
    found = welch(first, second)
    assert found is not None
    assert (found.t, found.p) == pytest.approx((t, p), rel=2e-3)
    assert (found.t, found.p) == pytest.approx(tuple(stats.ttest_ind(first, second, equal_var=False)))
    assert found.delta == pytest.approx(a[0] - b[0])
    assert found.dagger == (t > 1)


def test_samples_without_spread_are_not_tested() -> None:
    assert from_moments((1.0, 0.0, 2), (2.0, 0.0, 2)) == (0.0, 1.0)
    assert welch([1.0, 1.0], [2.0, 2.0]) is None
    assert welch([1.0], [2.0, 3.0]) is None


def five(mean: float, sd: float) -> list[float]:
    """Return five numbers with this mean and standard deviation."""
    shape = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    return [mean + sd * float(x) for x in shape / shape.std(ddof=1)]
