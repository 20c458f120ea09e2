"""The join in parts against the join in one piece: whatever the parts, whoever computes them, in whatever order."""

import pickle
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpora import candidate_pairs, edit_similarity, hygiene, near
from core.corpora.candidate_pairs import BUCKET, run_sizes
from core.corpora.grams import HASH_BITS, Gathered
from core.corpora.hygiene import audit
from core.corpora.near import near_sets
from core.corpora.phases import Array, Phase, Phases, pack, unpack
from core.reporter import Silent
from core.results import IntArray
from tests.conftest import Seal
from tests.corpora.test_hygiene import sentences, variants
from tests.corpora.test_near import family, stored

Found = set[tuple[int, int]]


def elsewhere(seed: int) -> Phases:
    """Each chunk in a process of its own, as far as can be seen, one begun before another by lot, and some twice."""

    def computed(phase: Phase) -> Iterator[Array]:
        starts = [start for start in range(0, phase.n, phase.size) for _ in range(2)]
        made: dict[int, bytes] = {}
        for start in Random(seed).sample(starts, len(starts)):
            given, compute = phase.read(start, min(start + phase.size, phase.n)), phase.compute
            if phase.sent:
                given, compute = pickle.loads(pickle.dumps((given, compute)))  # noqa: S301  (just written)
            array = compute(given, Silent())
            assert made.setdefault(start, array.tobytes()) == array.tobytes()
            chunks[phase.name, start] = array
        return iter([chunks[phase.name, start] for start in range(0, phase.n, phase.size)])

    chunks: dict[tuple[str, int], Array] = {}
    return computed


def in_one_piece(sets: Gathered, live: IntArray, threshold: float) -> Found:
    """All prefixes in one sorted list, its buckets one after the other; then those of large ones, six times."""
    row_bits = max(len(sets.starts) - 1, 1).bit_length()
    order = near._Order(threshold, row_bits, near._rarity(sets, live, Silent()))
    packed = near._prefixes(sets, live, order, Silent())
    packed = packed[run_sizes(packed >> np.uint64(row_bits)) > 1]
    found = weighed(sets, packed, row_bits, threshold, all_large=False)
    large = packed[run_sizes(packed >> np.uint64(row_bits)) > BUCKET] & np.uint64((1 << row_bits) - 1)
    rows = np.unique(large).astype(np.int64)
    for salt in range(near._SPLITS if len(rows) else 0):
        split = near._split(sets, rows, row_bits, salt, Silent())
        found |= weighed(sets, split, row_bits, threshold, all_large=True)
    return found


def weighed(sets: Gathered, packed: Array, row_bits: int, threshold: float, *, all_large: bool) -> Found:
    candidates = candidate_pairs._candidates(packed, row_bits, all_large=all_large)
    pairs = candidate_pairs._weigh(sets, candidates, threshold, Silent())
    return {pair for i, j in pairs for pair in zip(i.tolist(), j.tolist(), strict=True)}


def in_parts(sets: Gathered, live: IntArray, threshold: float, phases: Phases) -> Found:
    pairs = near_sets(sets, live, threshold, phases)
    return {pair for i, j in pairs for pair in zip(i.tolist(), j.tolist(), strict=True)}


@pytest.mark.parametrize("parts", [1, 4, 7])
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.sets(st.integers(0, 12), max_size=10), min_size=1, max_size=20),
    threshold=st.sampled_from([0.5, 0.75, 0.8, 1.0]),
    seed=st.integers(0, 9),
)
def test_as_many_parts_as_one_likes_come_to_the_same(
    parts: int, rows: list[set[int]], threshold: float, seed: int
) -> None:
    sets, live = stored(rows), np.arange(len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near, "RANGE", -(-len(rows) // parts))
        assert in_parts(sets, live, threshold, elsewhere(seed)) == in_one_piece(sets, live, threshold)


@pytest.mark.parametrize("parts", [1, 4, 7])
def test_crowds_are_bound_alike_too(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all pairs are compared, it must be the same ones."""
    rng = Random(5)
    common = {rng.getrandbits(HASH_BITS) for _ in range(15)}
    rows = [row | common for _ in range(4) for row in family(rng, 150, 0.97)]
    rows += [row for _ in range(40) for row in family(rng, 9, 0.97)]
    rng.shuffle(rows)
    sets, live = stored(rows), np.arange(len(rows))
    whole = in_one_piece(sets, live, 0.8)
    monkeypatch.setattr(near, "RANGE", -(-len(rows) // parts))
    assert len(whole) > 2000
    assert in_parts(sets, live, 0.8, elsewhere(parts)) == whole


@pytest.mark.parametrize("parts", [1, 4, 7])
def test_flags_and_clusters_do_not_depend_on_parts(seal: Seal, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(parts)
    held = sentences(rng, 10)
    texts = variants(rng, [*held, *sentences(rng, 60), *sentences(rng, 20, 3, 9)], 200)
    texts += [f"note {i:03d} continued" for i in range(150)]  # a crowd of short ones
    corpus, split = seal(texts), seal(held, "held")
    one = audit(corpus, [split], Silent())
    monkeypatch.setattr(near, "RANGE", -(-len(texts) // parts))
    monkeypatch.setattr(hygiene, "SIZE", -(-len(texts) // parts))
    monkeypatch.setattr(edit_similarity, "ROWS", -(-len(texts) // parts))
    other = audit(corpus, [split], Silent(), phases=elsewhere(parts))
    assert one.mask.tolist() == other.mask.tolist()
    assert one.cluster.tolist() == other.cluster.tolist()
    assert (one.leak_rules, one.near_rules) == (other.leak_rules, other.near_rules)
    assert min(one.counts["near_duplicate"], one.counts["exact_duplicate"], one.counts["leak"]) > 10


@given(st.lists(st.lists(st.integers(0, 255), max_size=9), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_packed_arrays_come_apart_again(lists: list[list[int]]) -> None:
    kinds = [(np.uint8, np.int32, np.uint64, np.bool_)[i % 4] for i in range(len(lists))]
    arrays = [np.array(values, np.int64).astype(kind) for values, kind in zip(lists, kinds, strict=True)]
    for array, again in zip(arrays, unpack(pack(*arrays), *kinds), strict=True):
        assert array.dtype == again.dtype
        assert array.tolist() == again.tolist()
