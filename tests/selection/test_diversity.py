"""MMR against a direct greedy implementation, and quotas per cluster."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Cancelled, ConfigError
from core.reporter import Silent
from core.results import FloatArray
from core.selection.select import MOST_MMR, mmr, quota


def unit(n: int, d: int, seed: int) -> FloatArray:
    rows = np.random.default_rng(seed).normal(size=(n, d))
    vectors: FloatArray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def greedy(vectors: FloatArray, scores: FloatArray, high: bool, n: int, trade: float) -> list[int]:
    """Return the greedy order by the definition, one candidate and one pair at a time."""
    keys = [float(s) if high else -float(s) for s in scores]
    low, top = min(keys), max(keys)
    taken: list[int] = []
    while len(taken) < min(n, len(keys)):
        best, best_value = -1, -np.inf
        for i in set(range(len(keys))) - set(taken):
            same = max((float(vectors[i] @ vectors[j]) for j in taken), default=0.0)
            value = trade * (keys[i] - low) / (top - low) - (1 - trade) * same
            if value > best_value + 1e-9 or (abs(value - best_value) <= 1e-9 and i < best):
                best, best_value = i, value
        taken.append(best)
    return taken


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 14),
    st.integers(1, 14),
    st.sampled_from(["high", "low"]),
    st.sampled_from([0.0, 0.5, 0.7, 1.0]),
    st.integers(0, 99),
)
def test_mmr_equals_the_greedy_definition(m: int, n: int, prefer: str, trade: float, seed: int) -> None:
    vectors = unit(m, 5, seed)
    scores = np.sort(np.random.default_rng(seed + 1).normal(size=m))
    scores = scores[::-1] if prefer == "high" else scores
    found = mmr(vectors, scores, prefer, n, trade=trade, report=Silent())  # type: ignore[arg-type]
    assert sorted(found) == list(range(m))
    assert found[: min(n, m)].tolist() == greedy(vectors, scores, prefer == "high", n, trade)
    assert found[min(n, m) :].tolist() == sorted(found[min(n, m) :])  # the rest follows by score
    smaller = mmr(vectors, scores, prefer, max(n - 2, 1), trade=trade, report=Silent())  # type: ignore[arg-type]
    assert smaller[: min(max(n - 2, 1), m)].tolist() == found[: min(max(n - 2, 1), m)].tolist()


def test_mmr_can_be_cancelled_and_refuses_large_budgets() -> None:
    class Stop(Silent):
        def check(self) -> None:
            raise Cancelled("stop")

    with pytest.raises(Cancelled):
        mmr(unit(5, 3, 0), np.arange(5.0), "low", 3, report=Stop())
    with pytest.raises(ConfigError, match="quota"):
        mmr(unit(5, 3, 0), np.arange(5.0), "low", MOST_MMR + 1, report=Silent())


def test_every_prefix_has_the_quota_of_each_cluster() -> None:
    centres = np.eye(4)
    sizes = [60, 30, 8, 2]
    label = np.random.default_rng(3).permutation(np.repeat(range(4), sizes))
    vectors = (centres[label] + 0.01 * np.random.default_rng(4).normal(size=(100, 4))).astype(np.float32)
    order = quota(vectors, 16, seed=0)  # four clusters
    assert sorted(order) == list(range(100))
    for n in (5, 10, 25, 50, 80):
        taken = np.bincount(label[order[:n]], minlength=4)
        assert (np.abs(taken - n * np.array(sizes) / 100) <= 1.5).all()
    assert 15 < np.flatnonzero(label[order] == 3)[0] < 35  # 2 of 100: one in the first half, but not at the start
    for kind in range(4):
        mine = order[label[order] == kind]
        assert (np.diff(mine) > 0).all()  # the best of a cluster first
    np.testing.assert_array_equal(order, quota(vectors, 16, seed=0))
    assert sorted(quota(vectors, 16, seed=20261129113000)) == list(range(100))  # a date and time
