"""Two embeddings joined: what each half is worth."""

import numpy as np
import pytest

from core.reporter import Silent
from core.results import FloatArray, Role, Rows
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.selection.strategies.cosine import Joined
from tests.conftest import Seal

RNG = np.random.default_rng(0)


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
    assert np.abs(raw - twice).max() > 1e-3  # so that the two are told apart


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
