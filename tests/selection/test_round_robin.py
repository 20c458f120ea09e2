"""`knn` with `query=round-robin`: rounds against a plain implementation, for every block size and cut."""

import numpy as np
import pytest

from core.errors import Cancelled
from core.reporter import Silent
from core.results import FloatArray, Role
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.selection.choose import ranking
from core.selection.strategies import round_robin
from core.selection.strategies.round_robin import Turns
from tests.conftest import Seal


def directions(n: int, seed: int) -> FloatArray:
    rows = np.random.default_rng(seed).standard_normal((n, 6)).astype(np.float32)
    unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def in_turn(task: FloatArray, domain: FloatArray, depth: int) -> dict[int, tuple[int, int]]:
    """Return {row of D_C: (round, row of T_C)}, by lists that are walked round by round."""
    lists = [[row for _, row in sorted((-float(t @ vector), row) for row, vector in enumerate(domain))] for t in task]
    taken: dict[int, tuple[int, int]] = {}
    for number in range(depth):
        for taker, rows in enumerate(lists):
            taken.setdefault(rows[number], (number + 1, taker))
    return taken


@pytest.mark.parametrize(("block", "depth"), [(4096, 4), (7, 4), (16, 1), (1, 2)])
def test_turns_equal_lists_that_are_walked_in_turn(block: int, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_robin, "BLOCK", block)
    monkeypatch.setattr(round_robin, "_DEPTH", depth)
    task, domain = directions(9, 1), directions(600, 2)
    turns = Turns.of(task, domain, np.arange(1000, 1600, dtype=np.uint64), Silent())
    assert turns.last == -(-depth * 600 // 9)
    expected = in_turn(task, domain, turns.last)
    assert (turns.ids - 1000).tolist() == sorted(expected)
    found = zip(turns.rounds.tolist(), turns.takers.tolist(), strict=True)
    assert dict(zip((turns.ids - 1000).tolist(), found, strict=True)) == expected


def test_scores_follow_the_rounds_by_hand(seal: Seal) -> None:
    """Two sentences of T_C: along x, and along y. D_C: three near x, one near y, one empty.

    Round 1: x takes row 0, y takes row 3. Round 2: x takes row 1; y takes row 2, which leans towards y.
    """
    task = np.array([[1, 0], [0, 1]], dtype=np.float32)
    domain = np.array([[1, 0], [0.96, 0.28], [0.8, 0.6], [0.6, 0.8], [0, 0]], dtype=np.float32)
    texts = ["a a", "b b", "c c", "d d", ""]
    sources = {
        Role.TASK: Source(corpus=seal(["x", "y"], "t"), vectors=task, norms=np.ones(2)),
        Role.DOMAIN: Source(corpus=seal(texts, "d"), vectors=domain, norms=np.array([1.0, 1, 1, 1, 0])),
    }
    strategy = make_strategy("knn", {"query": "round-robin"}, 0)
    strategy.prepare(sources, Silent())
    (batch,) = sources[Role.DOMAIN].batches("vectors")
    scores = strategy.score(batch)
    np.testing.assert_allclose(scores, [-(2.0**-20), 0.98 - 2, 0.8 - 2, 0.9 - 1, np.nan], atol=1e-6)
    assert ranking(scores, "high").tolist() == [0, 3, 1, 2]
    nearest = make_strategy("knn", {"neighbours": 1}, 0)
    nearest.prepare(sources, Silent())
    assert ranking(nearest.score(batch), "high").tolist() == [0, 1, 2, 3]  # y's only neighbour comes last


def test_rows_in_no_list_rank_behind_by_their_largest_cosine(monkeypatch: pytest.MonkeyPatch, seal: Seal) -> None:
    monkeypatch.setattr(round_robin, "_DEPTH", 1)
    task, domain = directions(40, 3), directions(60, 4)
    sources = {
        Role.TASK: Source(corpus=seal([f"t {i}" for i in range(40)], "t"), vectors=task, norms=np.ones(40)),
        Role.DOMAIN: Source(corpus=seal([f"d {i}" for i in range(60)], "d"), vectors=domain, norms=np.ones(60)),
    }
    strategy = make_strategy("knn", {"query": "round-robin"}, 0)
    strategy.prepare(sources, Silent())
    (batch,) = sources[Role.DOMAIN].batches("vectors")
    scores = strategy.score(batch)
    taken = in_turn(task, domain, 2)
    others = [row for row in range(60) if row not in taken]
    assert others
    order = ranking(scores, "high")
    assert set(order[: len(taken)].tolist()) == set(taken)
    largest = (domain @ task.T).max(axis=1)
    assert order[len(taken) :].tolist() == sorted(others, key=lambda row: -largest[row])
    assert np.isfinite(strategy.score(Batch(ids=np.array([1], dtype=np.uint64), vectors=domain[:1]))).all()


def test_taking_turns_can_be_cancelled() -> None:
    class Stop(Silent):
        def check(self) -> None:
            raise Cancelled("stop")

    with pytest.raises(Cancelled):
        Turns.of(directions(2, 1), directions(5, 2), np.arange(5, dtype=np.uint64), Stop())
