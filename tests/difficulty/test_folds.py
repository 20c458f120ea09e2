"""Folds: nobody is on both sides, every type is spread; who goes with whom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.difficulty.folds import folds
from core.difficulty.instances import Instance, groups, instances, sampled
from core.text.sentence import Entity, Sentence

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=2, max_size=80)


def numbered(values: list[int]) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def mentions(*documents: str | None, per: int = 1, copies: int = 1) -> list[Instance]:
    """`per` mentions in each of `copies` sentences of one text a document."""
    entities = tuple(Entity(start=i, end=i + 1, type="T") for i in range(per))
    return instances(
        Sentence(id=f"{i:016x}", tokens=("w",) * per, text=f"{i}", entities=entities, doc=document)
        for i, document in enumerate(documents)
        for _ in range(copies)
    )


@given(PAIRS, st.integers(2, 6), st.integers(0, 3))
def test_a_group_is_on_one_side_and_no_fold_is_left_empty(pairs: list[tuple[int, int]], n: int, seed: int) -> None:
    number, types = numbered([group for group, _ in pairs]), numbered([kind for _, kind in pairs])
    found = folds(number, types, n, seed)
    assert all(len(set(found[number == group])) == 1 for group in set(number))
    assert len(set(found)) == min(n, len(set(number)))
    assert (found == folds(number, types, n, seed)).all()


@given(st.lists(st.integers(0, 4), min_size=2, max_size=80), st.integers(2, 6), st.integers(0, 3))
def test_mentions_that_stand_alone_are_spread_evenly_by_type_and_in_all(labels: list[int], n: int, seed: int) -> None:
    types = numbered(labels)
    table = np.zeros((n, types.max() + 1), dtype=int)
    np.add.at(table, (folds(np.arange(len(types)), types, n, seed), types), 1)
    assert (np.ptp(table, axis=0) <= 1).all()
    assert np.ptp(table.sum(1)) <= 1 + (types.max() + 1) // 2
    number = np.arange(60)
    assert (folds(number, number % 3, 5, 1) != folds(number, number % 3, 5, 2)).any()


@pytest.mark.parametrize(
    ("by", "documents", "expected", "n"),
    [
        ("", "aabbc", "document", 3),
        ("", "aabb", "sentence", 4),
        ("sentence", "aabbc", "sentence", 5),
        ("document", "aabb", "document", 2),
    ],
)
def test_documents_are_taken_where_there_are_enough(by: str, documents: str, expected: str, n: int) -> None:
    number, chosen = groups(mentions(*documents, per=2), by, folds=3)  # type: ignore[arg-type]
    assert (chosen, len(set(number.tolist()))) == (expected, n)
    number, chosen = groups(mentions(None, "a", per=2, copies=3), "", folds=2)
    assert (chosen, number.tolist()) == ("sentence", [0] * 6 + [1] * 6)  # copies of a sentence go together


@given(st.integers(0, 40), st.integers(0, 3))
def test_a_sample_is_of_whole_sentences_and_hardly_more_than_asked(n: int, seed: int) -> None:
    every = mentions(*[None] * 10, per=3)
    kept = sampled(every, n, seed)
    assert len(kept) == (30 if n == 0 else min(30, -(-n // 3) * 3))
    assert [one.row for one in kept] == sorted(one.row for one in kept)
    assert kept == sampled(every, n, seed)
