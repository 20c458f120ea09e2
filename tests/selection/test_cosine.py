"""Products of stored vectors against numpy."""

import numpy as np
import pytest

from core.results import FloatArray
from core.selection.strategies import cosine as strategy


def rows(n: int, d: int = 16, seed: int = 0) -> FloatArray:
    made = np.random.default_rng(seed).normal(size=(n, d))
    unit: FloatArray = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)
    return unit


@pytest.mark.parametrize(("t", "k"), [(30, 5), (3, 5), (8, 1), (9, 9)])
def test_blockwise_cosines_equal_numpy(t: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "BLOCK", 8)
    unit, queries = rows(37), np.vstack([rows(3, seed=1) * 7, np.zeros((1, 16))])
    expected = unit.astype(float) @ (queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-9)).T
    got = strategy.cosine(unit, queries)
    assert got.dtype == np.float32
    assert np.allclose(got, expected, atol=2e-3)
    assert strategy.cosine(unit[:0], queries).shape == (0, 4)
    targets = rows(t, seed=1)
    expected = np.sort(unit.astype(float) @ targets.astype(float).T, axis=1)[:, -k:].mean(1)
    assert np.allclose(strategy.top_k_mean(unit, targets, k), expected, atol=2e-3)
