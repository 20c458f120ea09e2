"""Cosine strategies: blockwise products, joined embeddings, and k-means queries with quotas."""

import numpy as np
import pytest
import torch

from core.errors import Cancelled
from core.reporter import Silent
from core.results import FloatArray, Role, Rows
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.selection.strategies import cosine as strategy
from core.selection.strategies.cosine import Joined, best_k
from tests.conftest import Seal
from tests.reporters import Canceller

RNG = np.random.default_rng(0)
TOPICS = np.eye(3, 16, dtype=np.float32)


def unit(rows: FloatArray) -> FloatArray:
    scaled: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def rows(n: int, d: int = 16, seed: int = 0) -> FloatArray:
    return unit(np.random.default_rng(seed).normal(size=(n, d))).astype(np.float16)


@pytest.mark.parametrize(("t", "k"), [(30, 5), (3, 5), (8, 1), (9, 9)])
def test_blockwise_cosines_equal_numpy(t: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "BLOCK", 8)
    vectors, queries = rows(37), np.vstack([rows(3, seed=1) * 7, np.zeros((1, 16))])
    expected = vectors.astype(float) @ (queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-9)).T
    got = strategy.cosine(vectors, queries)
    assert got.dtype == np.float32
    assert np.allclose(got, expected, atol=2e-3)
    assert strategy.cosine(vectors[:0], queries).shape == (0, 4)
    targets = rows(t, seed=1)
    expected = np.sort(vectors.astype(float) @ targets.astype(float).T, axis=1)[:, -k:].mean(1)
    assert np.allclose(strategy.top_k_mean(vectors, targets, k), expected, atol=2e-3)


def test_threads_score_the_same_bytes_and_stop_when_cancelled() -> None:
    vectors, targets = rows(20_000, 32), rows(50, 32, seed=1)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = strategy.cosine(vectors, targets), strategy.top_k_mean(vectors, targets, 5)
        torch.set_num_threads(3)
        together = strategy.cosine(vectors, targets), strategy.top_k_mean(vectors, targets, 5)
        with pytest.raises(Cancelled):
            strategy.cosine(vectors, targets, Canceller(2))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert [part.tobytes() for part in alone] == [part.tobytes() for part in together]


def half(n: int, d: int, scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    raw = RNG.normal(size=(n, d)) + 0.5
    norms = np.linalg.norm(raw, axis=1)
    return (raw / norms[:, None]).astype(np.float16), (norms * scale).astype(np.float32)


def scored(
    task: tuple[Rows, FloatArray], domain: tuple[Rows, FloatArray], name: str, seal: Seal, **options: object
) -> FloatArray:
    n_task, n = len(task[1]), len(domain[1])
    sources = {
        Role.TASK: Source(corpus=seal([f"t {i}" for i in range(n_task)], "t"), vectors=task[0], norms=task[1]),
        Role.DOMAIN: Source(corpus=seal([f"d {i}" for i in range(n)], "d"), vectors=domain[0], norms=domain[1]),
    }
    strategy = make_strategy(name, options, 0)
    strategy.prepare(sources, Silent())
    return strategy.score(Batch(ids=np.arange(n, dtype=np.uint64), vectors=domain[0][np.arange(n)]))


def joined(*halves: tuple[FloatArray, FloatArray], raw: bool = False) -> tuple[Joined, FloatArray]:
    both = Joined(halves, raw=raw)
    return both, both.norms


def test_joining_a_vector_with_itself_keeps_the_ranking(seal: Seal) -> None:
    task, domain = half(20, 16), half(200, 16)
    twice = scored(joined(task, task), joined(domain, domain), "cos-mlm-ner", seal)
    once = scored(task, domain, "cos-pretrained", seal, query="unit-mean")
    np.testing.assert_allclose(twice, once, atol=1e-5)
    raw = scored(joined(task, task, raw=True), joined(domain, domain, raw=True), "cos-mlm-ner", seal)
    np.testing.assert_allclose(raw, scored(task, domain, "cos-pretrained", seal), atol=1e-5)
    assert np.abs(raw - twice).max() > 1e-3  # otherwise the test could not distinguish the two


@pytest.mark.parametrize("raw", [False, True])
def test_joined_rows_equal_concatenated_vectors(raw: bool) -> None:
    first, second = half(9, 3), half(9, 5, 3.0)
    for vectors, norms in (first, second):
        vectors[4], norms[4] = 0, 0  # an empty sentence
    both = Joined([first, second], raw=raw)
    parts = [v.astype(float) * (n[:, None] if raw else (n > 0)[:, None]) for v, n in (first, second)]
    whole = np.concatenate(parts, axis=1)
    np.testing.assert_allclose(both.norms, np.sqrt(sum((p**2).sum(1) for p in parts)), rtol=2e-3)
    np.testing.assert_allclose(both[np.arange(9)] * both.norms[:, None], whole, rtol=1e-3, atol=1e-3)
    assert len(both) == 9
    assert not both[4].any()
    for rows in (slice(2, 6), np.array([7, 1, 1]), np.array([True] * 3 + [False] * 6)):
        np.testing.assert_array_equal(both[rows], both[np.arange(9)[rows]])


def test_joined_vectors_work_with_whitening_contrast_and_k_means(seal: Seal) -> None:
    task, domain = joined(half(40, 4), half(40, 4)), joined(half(80, 4), half(80, 4))
    ways: list[dict[str, object]] = [{"whiten": True}, {"query": "contrastive"}, {"query": "k-means", "centroids": 3}]
    for options in ways:
        assert np.isfinite(scored(task, domain, "cos-mlm-ner", seal, **options)).all()


def around(counts: tuple[int, ...], seed: int) -> FloatArray:
    """Return unit vectors around the topics; counts: number per topic."""
    noise = np.random.default_rng(seed).normal(scale=0.05, size=(sum(counts), 16))
    return unit(np.repeat(TOPICS[: len(counts)], counts, axis=0) + noise).astype(np.float32)


def test_silhouette_finds_the_number_of_topics() -> None:
    assert best_k(around((30, 30, 30), 1), 0) == 3
    assert best_k(around((1,), 1), 0) == 1


@pytest.mark.parametrize("quota", [False, True])
def test_quota_gives_every_topic_its_share(quota: bool, seal: Seal) -> None:
    """T_C has 60, 30, and 10 sentences per topic, D_C 100, 100, and 800: without a quota, the last topic dominates."""
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
