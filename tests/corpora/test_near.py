"""The set join against the definition: every pair, counted one by one."""

from collections.abc import Iterable
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpora import near
from core.corpora.edit_similarity import near_texts
from core.corpora.grams import HASH_BITS, Lookup, Ragged, WordHasher
from core.corpora.near import near_sets, overlaps, slots
from core.errors import Cancelled
from core.reporter import Silent
from tests.corpora.test_edit_similarity import stored as texts_of
from tests.reporters import Canceller


def stored(rows: list[set[int]]) -> Ragged:
    sets = Ragged(np.uint64)
    values = [value for row in rows for value in sorted(row)]
    sets.append(np.array(values, np.uint64), np.array([len(row) for row in rows], np.int64))
    sets.seal()
    return sets


def found(rows: list[set[int]], threshold: float = 0.8) -> set[tuple[int, int]]:
    pairs = near_sets(stored(rows), np.arange(len(rows)), threshold, Silent())
    return {pair for i, j in pairs for pair in zip(i.tolist(), j.tolist(), strict=True)}


def expected(rows: list[set[int]], threshold: float = 0.8) -> set[tuple[int, int]]:
    return {
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(rows), 2)
        if (a | b) and len(a & b) >= threshold * len(a | b) - 1e-12
    }


def family(rng: Random, n: int, kept: float) -> list[set[int]]:
    """Make n variants of one random set of 30 members; each member is kept with probability `kept`, else replaced."""
    base = [rng.getrandbits(HASH_BITS) for _ in range(30)]
    return [{m if rng.random() < kept else rng.getrandbits(HASH_BITS) for m in base} for _ in range(n)]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sets(st.integers(0, 12), max_size=10), max_size=14), st.sampled_from([0.5, 0.6, 0.75, 0.8, 1.0]))
def test_finds_exactly_the_near_pairs(rows: list[set[int]], threshold: float) -> None:
    assert found(rows, threshold) == expected(rows, threshold)


def test_near_pairs_are_exact_on_families_of_variants() -> None:
    assert found([]) == found([set()]) == found([set(), set()]) == set()
    rng = Random(3)
    rows = [row for _ in range(25) for row in family(rng, 20, rng.choice([0.9, 0.95, 0.99]))]
    rng.shuffle(rows)
    assert len(expected(rows)) > 1000
    assert found(rows) == expected(rows)
    rows = [{1, 2, 3}, {1, 2, 3}, {4}, {1, 2, 3}]  # only live rows take part
    pairs = list(near_sets(stored(rows), np.array([0, 2, 3]), 0.8, Silent()))
    assert [(i.tolist(), j.tolist()) for i, j in pairs if len(i)] == [([0], [3])]


@pytest.mark.parametrize("parts", [4, 7])
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.sets(st.integers(0, 12), max_size=10), min_size=1, max_size=20),
    threshold=st.sampled_from([0.5, 0.75, 0.8, 1.0]),
)
def test_pairs_do_not_depend_on_the_size_of_a_block(parts: int, rows: list[set[int]], threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near, "RANGE", -(-len(rows) // parts))
        assert found(rows, threshold) == expected(rows, threshold)


@pytest.mark.parametrize("parts", [4, 7])
def test_pairs_of_large_buckets_do_not_depend_on_the_size_of_a_block(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large buckets are compared in part only; the pairs must be the same."""
    rng = Random(5)
    common = {rng.getrandbits(HASH_BITS) for _ in range(15)}
    rows = [row | common for _ in range(4) for row in family(rng, 150, 0.97)]
    rows += [row for _ in range(40) for row in family(rng, 9, 0.97)]
    rng.shuffle(rows)
    whole = found(rows)
    assert len(whole) > 2000
    monkeypatch.setattr(near, "RANGE", -(-len(rows) // parts))
    assert found(rows) == whole


def test_a_full_rarity_table_and_several_passes_lose_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_ROWS", 7)
    monkeypatch.setattr(near, "_PAIRS", 5)
    rng = Random(4)
    rows = [row for _ in range(6) for row in family(rng, 12, 0.97)]
    assert found(rows) == expected(rows)


def test_the_rarity_table_has_a_slot_per_member_up_to_its_limit() -> None:
    """In a table that is too small every member counts as common, so prefixes no longer separate rows."""
    assert [slots(members) >= members for members in (0, 1, 1000, 2**28, 29 * 10**8)] == [True] * 5
    assert slots(29 * 10**8) == slots(29 * 10**9) == 2**32  # 4 GB, and no more


def clusters(n: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first member of each row's cluster."""
    head = list(range(n))

    def top(i: int) -> int:
        while head[i] != i:
            i = head[i]
        return i

    for i, j in pairs:
        a, b = top(i), top(j)
        head[max(a, b)] = min(a, b)
    return [top(i) for i in range(n)]


def test_large_buckets_join_exactly_their_clusters() -> None:
    """Four families of 150 that share a third of their members meet in buckets beyond the limit."""
    rng = Random(5)
    common = {rng.getrandbits(HASH_BITS) for _ in range(15)}
    rows = [row | common for _ in range(4) for row in family(rng, 150, 0.97)]
    rng.shuffle(rows)
    pairs = found(rows)
    assert pairs <= expected(rows)
    assert clusters(len(rows), pairs) == clusters(len(rows), expected(rows))


def test_thousands_of_rows_of_one_template_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = 0

    def counting(sets: Ragged, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        nonlocal weighed
        weighed += len(i)
        return overlaps(sets, i, j)

    monkeypatch.setattr(near, "overlaps", counting)
    base = set(range(30))
    rows = [base | {1000 + i} for i in range(3000)]
    assert clusters(len(rows), found(rows)) == [0] * len(rows)
    assert weighed < 60 * len(rows)  # all pairs would be 1,500 per row


def test_a_template_is_near_each_variant_even_if_variants_are_not_near() -> None:
    """A held-out sentence is such a template: it comes first in every bucket. Variants share 27 of its 30 members."""
    rng = Random(6)
    base = [rng.getrandbits(HASH_BITS) for _ in range(30)]
    rows = [set(base), *({*rng.sample(base, 27), *(rng.getrandbits(HASH_BITS) for _ in range(3))} for _ in range(500))]
    pairs = found(rows)
    assert pairs <= expected(rows)
    assert sum((0, row) in pairs for row in range(1, 501)) >= 490


def test_both_joins_can_be_cancelled() -> None:
    with pytest.raises(Cancelled):
        list(near_sets(stored([{1, 2}, {1, 2}]), np.arange(2), 0.8, Canceller()))
    with pytest.raises(Cancelled):
        list(near_texts(texts_of(["abcdefghij", "abcdefghiX"]), np.arange(2), "letters", Canceller()))


def test_grams_never_cross_sentences() -> None:
    words = WordHasher()(["a b c d", "", "b c", "a b c"])
    grams, rows = words.grams(2)
    assert rows.tolist() == [0, 0, 0, 2, 3, 3]
    ab, bc, cd, bc2, ab3, bc3 = grams.tolist()
    assert (bc, ab, bc) == (bc2, ab3, bc3)
    assert len({ab, bc, cd}) == 3
    assert words.grams(4)[1].tolist() == [0]
    assert words.grams(9)[0].tolist() == []
    assert WordHasher()(["b a"]).grams(2)[0][0] != ab


def test_forgetting_words_changes_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = WordHasher()
    first = hasher(["one two three"]).hashes
    monkeypatch.setattr("core.corpora.grams._KNOWN_WORDS", 1)
    assert hasher(["one two three"]).hashes.tolist() == first.tolist()
    assert len(hasher._known) == 3


@given(st.sets(st.integers(0, 2**64 - 1)), st.lists(st.integers(0, 2**64 - 1)))
@settings(max_examples=30, deadline=None)
def test_lookup_is_set_membership(members: set[int], others: list[int]) -> None:
    values = [*others, *members]
    holds = Lookup(np.array(sorted(members), np.uint64)).holds(np.array(values, np.uint64))
    assert holds.tolist() == [value in members for value in values]


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=8), st.data())
@settings(max_examples=50, deadline=None)
def test_ragged_returns_any_rows(rows: list[list[int]], data: st.DataObject) -> None:
    store = Ragged(np.uint32)
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        flat = [value for row in part for value in row]
        store.append(np.array(flat, np.uint32), np.array([len(row) for row in part], np.int64))
    store.seal()
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    values, counts = store.gather(np.array(wanted, np.int64))
    assert values.tolist() == [value for row in wanted for value in rows[row]]
    assert counts.tolist() == [len(rows[row]) for row in wanted]
    store.close()
