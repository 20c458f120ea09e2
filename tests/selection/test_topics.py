"""k-means queries: how many topics T_C has, and that each has its share of S_C at every budget."""

import numpy as np
import pytest

from core.reporter import Silent
from core.results import FloatArray, Role
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.selection.strategies.cosine import best_k
from tests.conftest import Seal

TOPICS = np.eye(3, 16, dtype=np.float32)


def around(counts: tuple[int, ...], seed: int) -> FloatArray:
    """Unit vectors around the topics, so many of each."""
    noise = np.random.default_rng(seed).normal(scale=0.05, size=(sum(counts), 16))
    rows = np.repeat(TOPICS[: len(counts)], counts, axis=0) + noise
    unit: FloatArray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_silhouette_finds_the_number_of_topics() -> None:
    assert best_k(around((30, 30, 30), 1), 0) == 3
    assert best_k(around((1,), 1), 0) == 1


@pytest.mark.parametrize("quota", [False, True])
def test_quota_gives_every_topic_its_share(quota: bool, seal: Seal) -> None:
    """T_C: 60, 30 and 10 of 100. D_C: 100, 100 and 800, so that without a quota the small topic has most of S_C."""
    task, domain = around((60, 30, 10), 2), around((100, 100, 800), 3)
    strategy = make_strategy("cos-pretrained", {"query": "k-means", "centroids": 0, "quota": quota}, 0)
    sealed = seal(["a b"], "t")
    sources = {
        Role.TASK: Source(corpus=sealed, vectors=task, norms=np.ones(100, np.float32)),
        Role.DOMAIN: Source(corpus=sealed, vectors=domain, norms=np.ones(1000, np.float32)),
    }
    strategy.prepare(sources, Silent())
    batch = Batch(ids=np.arange(1000, dtype=np.uint64), sentences=[], vectors=domain, report=Silent())
    scores = strategy.score(batch)
    assert -2 < scores.min() < scores.max() < 2
    best = np.argsort(-scores)
    shares = [
        np.bincount((row >= 100).astype(int) + (row >= 200), minlength=3) / n for n in (50, 100) for row in [best[:n]]
    ]
    if quota:
        np.testing.assert_allclose(shares, [[0.6, 0.3, 0.1]] * 2, atol=0.05)
    else:
        assert shares[1][2] > 0.5
