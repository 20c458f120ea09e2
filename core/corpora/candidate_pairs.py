"""Compare rows that share a key: which pairs meet, and by how much their sets overlap (see `near`)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.corpora.grams import HASH_BITS, Gathered, UIntArray
from core.reporter import Reporter
from core.results import BoolArray, IntArray

BUCKET = 64  # rows that share a rare 5-gram and are compared all with all
_NEIGHBOURS = 4
_ROWS = 1 << 14  # pairs of one pass
_PAIRS = 1 << 17  # candidates weighed at a time

Pairs = tuple[IntArray, IntArray]


@dataclass(frozen=True, slots=True)
class Bucketed:
    """Entries `hash << row_bits | place`, and the row number and set at each place."""

    packed: UIntArray
    rows: IntArray
    sets: Gathered


def find_pairs(
    bucketed: Bucketed, threshold: float, row_bits: int, report: Reporter, *, all_large: bool
) -> tuple[Pairs, IntArray]:
    """Return the near pairs in buckets, each once, and the rows of large buckets.

    all_large: compare some pairs of large buckets, too.
    """
    candidates = _candidates(bucketed.packed, row_bits, all_large=all_large)
    near = [np.stack(each) for each in _weigh(bucketed.sets, candidates, threshold, report)]
    large = bucketed.packed[run_sizes(bucketed.packed >> np.uint64(row_bits)) > BUCKET]
    places = np.unique(large & np.uint64((1 << row_bits) - 1)).astype(np.int64)
    low, high = bucketed.rows[np.unique(np.concatenate([np.zeros((2, 0), np.int64), *near], axis=1), axis=1)]
    return (low, high), bucketed.rows[places]


def overlaps(sets: Gathered, i: IntArray, j: IntArray) -> IntArray:
    """`(pairs,)` members that rows `i` and `j` share."""
    assert len(i) < 1 << (64 - HASH_BITS)
    left, n_left = sets.gather(i)
    right, n_right = sets.gather(j)
    # The pair's number above each member makes one ascending list of all pairs: one binary search serves them together.
    number = np.arange(len(i), dtype=np.uint64) << np.uint64(HASH_BITS)
    haystack, needles = left + np.repeat(number, n_left), right + np.repeat(number, n_right)
    # Every row on the left is empty; without this the place to look would be -1.
    if not len(haystack):
        return np.zeros(len(i), np.int64)
    at = np.minimum(np.searchsorted(haystack, needles), len(haystack) - 1)
    return np.bincount(np.repeat(np.arange(len(i)), n_right)[haystack[at] == needles], minlength=len(i))


def _candidates(packed: UIntArray, row_bits: int, *, all_large: bool) -> Iterator[Pairs]:
    """Candidate pairs out of buckets: all of a small one; of a large one none, or its star and neighbours."""
    key = packed >> np.uint64(row_bits)
    rows = (packed & np.uint64((1 << row_bits) - 1)).astype(np.int64)
    sizes, starts = run_sizes(key), run_starts(key)
    # Each row meets those behind it in its bucket, so no pair is met twice there.
    behind = starts + sizes - 1 - np.arange(len(key))
    large = sizes > BUCKET
    follow = np.where(large, np.minimum(behind, _NEIGHBOURS) if all_large else 0, behind)
    ends = np.cumsum(follow)
    begin = 0
    while begin < len(key):
        stop = max(int(np.searchsorted(ends, (ends[begin - 1] if begin else 0) + _PAIRS, "right")), begin + 1)
        n = follow[begin:stop]
        left = np.repeat(np.arange(begin, stop), n)
        step = np.arange(len(left)) - np.repeat(np.cumsum(n) - n, n)
        yield rows[left], rows[left + 1 + step]
        begin = stop
    star = np.flatnonzero(large & (starts != np.arange(len(key)))) if all_large else np.zeros(0, np.int64)
    for done in range(0, len(star), _PAIRS):
        members = star[done : done + _PAIRS]
        yield rows[starts[members]], rows[members]


def _weigh(sets: Gathered, candidates: Iterator[Pairs], threshold: float, report: Reporter) -> Iterator[Pairs]:
    """Candidates that are near indeed, each once in its batch."""
    sizes = sets.counts
    for i, j in candidates:
        report.check()
        low, high = np.minimum(i, j), np.maximum(i, j)
        smaller, larger = np.minimum(sizes[i], sizes[j]), np.maximum(sizes[i], sizes[j])
        # Sizes alone bound the Jaccard: smaller / larger at best.
        fits = (low < high) & (smaller >= threshold * larger - 1e-9)
        both = np.unique(low[fits].astype(np.uint64) << np.uint64(32) | high[fits].astype(np.uint64))
        for done in range(0, len(both), _ROWS):
            report.check()
            low, high = _unpack(both[done : done + _ROWS])
            near = _reaches(overlaps(sets, low, high), sizes[low] + sizes[high], threshold)
            yield low[near], high[near]


def _unpack(both: UIntArray) -> Pairs:
    return (both >> np.uint64(32)).astype(np.int64), (both & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _reaches(shared: IntArray, sizes: IntArray, threshold: float) -> BoolArray:
    """Jaccard >= threshold, from members shared and the sum of both sizes; a hair of slack for rounding."""
    return shared >= threshold * (sizes - shared) - 1e-9


def run_starts(key: UIntArray) -> IntArray:
    """`(n,)` where the run of equal keys begins that each position lies in."""
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    return np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))


def run_sizes(key: UIntArray) -> IntArray:
    """`(n,)` the length of that run."""
    starts = run_starts(key)
    return np.bincount(starts, minlength=len(key))[starts] if len(key) else starts
