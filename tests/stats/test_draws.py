"""Samples are stratified, seeded and nested."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.stats.draws import stratified


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 70), st.integers(0, 5))
def test_strata_get_equal_shares_until_exhausted(strata: list[int], n: int, seed: int) -> None:
    kinds = np.array(strata, dtype=np.int64)
    found = stratified(kinds, n, seed)
    assert len(found) == min(n, len(kinds))
    assert (np.diff(found) > 0).all()
    sizes, taken = np.bincount(kinds, minlength=4), np.bincount(kinds[found], minlength=4)
    full = taken == sizes
    if not full.all():
        most = taken[~full].max()
        assert taken[~full].min() >= most - 1  # open strata differ by at most one sentence
        assert (taken[full] <= most + 1).all() or not full.any()


def test_samples_are_seeded_and_nested() -> None:
    kinds = np.random.default_rng(0).integers(0, 3, 500)
    np.testing.assert_array_equal(stratified(kinds, 50, 1), stratified(kinds, 50, 1))
    assert set(stratified(kinds, 50, 1)) <= set(stratified(kinds, 60, 1))
    assert set(stratified(kinds, 50, 1)) != set(stratified(kinds, 50, 2))
    for n in (0, 7):
        assert not len(stratified(np.empty(0, dtype=np.int64), n, 0))
