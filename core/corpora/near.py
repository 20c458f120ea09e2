"""Find pairs of rows whose sets of word 5-grams have a Jaccard similarity of at least `threshold`.

All pairs are found, except in large buckets. Prefix filtering (Chaudhuri 2006; Bayardo 2007) sorts every set in one
common order, rarest members first. Let two sets have n and m members and a Jaccard >= t. They share a member that is
among the first n - ceil(t n) + 1 members of one set and the first m - ceil(t m) + 1 of the other set. Few candidates
remain, because the first 5-grams of most sentences occur in no other sentence. The exact Jaccard of each candidate pair
is then computed. MinHash bands would miss pairs: at a Jaccard of .8, 14 bands of 8 hashes find 92% of the pairs and
compute 112 hashes per 5-gram (SOURCES.md, Near duplicates).

A bucket is the set of rows that share a rare 5-gram. Buckets of more than `BUCKET` rows (for example a thousand
variants of a template) are divided into new buckets by two MinHashes, six times. In a bucket that is still large, each
row is compared only with the first row and with its neighbours. All variants of a template then form one cluster, and
the time stays linear in the number of rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from core.corpora.grams import HASH_BITS, Gathered, UIntArray, mix
from core.reporter import Reporter
from core.results import IntArray

# In a bucket of more than 64 rows, not all pairs are compared.
BUCKET = 64
# Number of following rows with which each row of a large bucket is compared.
_NEIGHBOURS = 4
# Number of rows, or of pairs of rows, processed at a time.
_ROWS = 1 << 14
# Number of candidate pairs yielded at a time.
_PAIRS = 1 << 17

Pairs = tuple[IntArray, IntArray]
# Number of rows per block. Hashes are divided into as many ranges as there are blocks, and compared range by range.
RANGE = 1 << 16
# Large buckets are divided six times. Of pairs with Jaccard .8, one in 460 never shares a key: (1 - .8**2)**6.
_SPLITS = 6


@dataclass(frozen=True, slots=True)
class Bucketed:
    """Rows in buckets.

    packed: entries `hash << row_bits | place`, ascending; entries with equal hashes form a bucket. A place is an index
    into `rows` (row numbers) and `sets` (hashes of the rows' 5-grams).
    """

    packed: UIntArray
    rows: IntArray
    sets: Gathered


def find_pairs(
    bucketed: Bucketed, threshold: float, row_bits: int, report: Reporter, *, all_large: bool
) -> tuple[Pairs, IntArray]:
    """Return the near duplicates within buckets, each pair once, and the rows of large buckets.

    all_large: True to compare some pairs within large buckets too.
    """
    candidates = _candidates(bucketed.packed, row_bits, all_large=all_large)
    near = [np.stack(each) for each in _weigh(bucketed.sets, candidates, threshold, report)]
    large = bucketed.packed[run_sizes(bucketed.packed >> np.uint64(row_bits)) > BUCKET]
    places = np.unique(large & np.uint64((1 << row_bits) - 1)).astype(np.int64)
    low, high = bucketed.rows[np.unique(np.concatenate([np.zeros((2, 0), np.int64), *near], axis=1), axis=1)]
    return (low, high), bucketed.rows[places]


def overlaps(sets: Gathered, i: IntArray, j: IntArray) -> IntArray:
    """Return the number of members that rows `i` and `j` share, shape (pairs,)."""
    assert len(i) < 1 << (64 - HASH_BITS)
    left, n_left = sets.gather(i)
    right, n_right = sets.gather(j)
    # Put the number of a pair into the upper bits of its members. The members of all pairs then form one ascending
    # array, which a single call of `searchsorted` can search.
    number = np.arange(len(i), dtype=np.uint64) << np.uint64(HASH_BITS)
    haystack, needles = left + np.repeat(number, n_left), right + np.repeat(number, n_right)
    # If no row of `i` has members, the index below would be -1.
    if not len(haystack):
        return np.zeros(len(i), np.int64)
    at = np.minimum(np.searchsorted(haystack, needles), len(haystack) - 1)
    return np.bincount(np.repeat(np.arange(len(i)), n_right)[haystack[at] == needles], minlength=len(i))


def _candidates(packed: UIntArray, row_bits: int, *, all_large: bool) -> Iterator[Pairs]:
    """Yield candidate pairs: all pairs of each small bucket and, if `all_large`, some pairs of each large bucket.

    In a large bucket, each row is paired with the first row and with the next `_NEIGHBOURS` rows.
    packed: see `Bucketed`.
    """
    key = packed >> np.uint64(row_bits)
    rows = (packed & np.uint64((1 << row_bits) - 1)).astype(np.int64)
    sizes, starts = run_sizes(key), run_starts(key)
    # Each row is paired only with later rows of its bucket, so that no pair occurs twice in a bucket.
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
    """Yield the near duplicates among the candidates, as pairs (i, j), i < j.

    A pair is yielded only once per batch of candidates.
    """
    sizes = sets.counts
    for i, j in candidates:
        report.check()
        low, high = np.minimum(i, j), np.maximum(i, j)
        smaller, larger = np.minimum(sizes[i], sizes[j]), np.maximum(sizes[i], sizes[j])
        # The Jaccard of two sets is at most smaller / larger, so other pairs need no comparison.
        fits = (low < high) & (smaller >= threshold * larger - 1e-9)
        both = np.unique(low[fits].astype(np.uint64) << np.uint64(32) | high[fits].astype(np.uint64))
        for done in range(0, len(both), _ROWS):
            report.check()
            part = both[done : done + _ROWS]
            low, high = (part >> np.uint64(32)).astype(np.int64), (part & np.uint64(0xFFFFFFFF)).astype(np.int64)
            shared = overlaps(sets, low, high)
            near = shared >= threshold * (sizes[low] + sizes[high] - shared) - 1e-9  # 1e-9 allows for rounding errors
            yield low[near], high[near]


def run_starts(key: UIntArray) -> IntArray:
    """Return, for each position, the start of its run of equal keys, shape (n,)."""
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    return np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))


def run_sizes(key: UIntArray) -> IntArray:
    """Return, for each position, the length of its run of equal keys, shape (n,)."""
    starts = run_starts(key)
    return np.bincount(starts, minlength=len(key))[starts] if len(key) else starts


def near_sets(sets: Gathered, live: IntArray, threshold: float, report: Reporter) -> Iterator[Pairs]:
    """Yield pairs `(i, j)`, i < j, of rows in `live` with Jaccard >= threshold; a pair may be yielded more than once.

    sets: distinct hashes below `2**HASH_BITS` per row, ascending. An empty row has no near duplicates. live: numbers of
    the rows to compare.
    """
    if not len(live):
        return
    row_bits = max(len(sets.starts) - 1, 1).bit_length()
    report.stage("counting runs of words")
    order = _Order(threshold, row_bits, _rarity(sets, live, report))
    entries = list[UIntArray]()
    for start in range(0, len(live), RANGE):
        report.progress(start, len(live), "sentences")
        entries.append(_prefixes(sets, live[start : start + RANGE], order, report))
    report.stage("comparing runs of words")
    # First compare all rows of each small bucket. Then divide the rows of large buckets into new buckets.
    crowded: list[IntArray] = [np.zeros(0, np.int64)]
    bounds = _bounds(entries, row_bits)
    for part, (low, high) in enumerate(pairwise(bounds)):
        report.check()
        report.progress(part, len(bounds) - 1, "parts")
        bucketed = _bucketed(entries, low, high, sets, row_bits)
        pairs, rows = find_pairs(bucketed, threshold, row_bits, report, all_large=False)
        crowded.append(rows)
        yield pairs
    rows = np.unique(np.concatenate(crowded))
    width = -(-(1 << (64 - row_bits)) // max(-(-len(rows) // RANGE), 1))
    bounds = [*range(0, 1 << (64 - row_bits), width), 1 << (64 - row_bits)]
    for salt in range(_SPLITS if len(rows) else 0):
        report.progress(salt, _SPLITS, "parts")
        dealt = [_split(sets, rows[i : i + RANGE], row_bits, salt, report) for i in range(0, len(rows), RANGE)]
        for low, high in pairwise(bounds):
            bucketed = _bucketed(dealt, low, high, sets, row_bits)
            yield find_pairs(bucketed, threshold, row_bits, report, all_large=True)[0]


@dataclass(frozen=True, slots=True)
class _Order:
    """Settings for `_prefixes`. threshold: minimum Jaccard. seen: counts to sort members by, see `_rarity`."""

    threshold: float
    row_bits: int
    seen: npt.NDArray[np.uint8]


def _bounds(entries: Sequence[UIntArray], row_bits: int) -> list[int]:
    """Divide the hashes into ranges. Return the start of each range, followed by the end of the last range.

    Ranges have different widths, so that each has about the same number of entries of the largest block. With equal
    widths, low ranges would have more entries, because a prefix prefers low hashes among equally rare members.
    """
    hashes = max(entries, key=len) >> np.uint64(row_bits)
    inner = hashes[np.arange(1, len(entries)) * len(hashes) // len(entries)] if len(hashes) else hashes
    return [0, *(bound for bound in np.unique(inner).tolist() if bound), 1 << (64 - row_bits)]


def _bucketed(entries: Sequence[UIntArray], low: int, high: int, sets: Gathered, row_bits: int) -> Bucketed:
    """Return the rows that share a hash between `low` and `high`. entries: sorted entries of each block."""
    packed = np.sort(_between(entries, low, high, row_bits))
    # Drop hashes with a single entry, which give no pair.
    packed = packed[run_sizes(packed >> np.uint64(row_bits)) > 1]
    own = packed & np.uint64((1 << row_bits) - 1)
    rows, place = np.unique(own.astype(np.int64), return_inverse=True)
    return Bucketed(packed - own + place.astype(np.uint64), rows, sets.some(rows))


def _between(entries: Sequence[UIntArray], low: int, high: int, row_bits: int) -> UIntArray:
    """Return the entries of all blocks with a hash from `low` to below `high`."""
    parts = [np.zeros(0, np.uint64)]
    for entry in entries:
        start = np.searchsorted(entry, np.uint64(low << row_bits))
        stop = len(entry) if high >> (64 - row_bits) else np.searchsorted(entry, np.uint64(high << row_bits))
        parts.append(entry[start:stop])
    return np.concatenate(parts)


def _prefixes(sets: Gathered, live: IntArray, order: _Order, report: Reporter) -> UIntArray:
    """Return sorted entries `hash << row_bits | row` for the members in each row's prefix that other rows have too."""
    row_bits, low_bits = order.row_bits, np.uint64(len(order.seen) - 1)
    # A hash and a row number share 64 bits. If row numbers need more than 24 bits, the hash loses its lowest bits.
    # Collisions of shortened hashes cost comparisons, but no pair is lost.
    drop = np.uint64(max(0, HASH_BITS + row_bits - 64))
    packed = []
    for done in range(0, len(live), _ROWS):
        report.check()
        rows = live[done : done + _ROWS]
        values, counts = sets.gather(rows)
        row = np.repeat(np.arange(len(rows), dtype=np.uint64), counts)
        rarity = order.seen[values & low_bits].astype(np.uint64)
        # Sort each row's members by rarity, then by hash. The filter needs this order to be the same for all rows.
        key = np.sort(row << np.uint64(HASH_BITS + 8) | rarity << np.uint64(HASH_BITS) | values)
        rank = np.arange(len(key)) - np.repeat(np.cumsum(counts) - counts, counts)
        # Prefix filter: two sets with Jaccard >= t share a member that is among the (1 - t) n + 1 rarest of each set.
        # 1e-9 is subtracted before rounding up, because .55 * 100 is slightly above 55, and 56 would lose a member.
        kept = rank < np.repeat(counts - np.ceil(order.threshold * counts - 1e-9).astype(np.int64) + 1, counts)
        # Drop members that occur once, because no other row has them.
        kept &= (key >> np.uint64(HASH_BITS)) & np.uint64(255) != 1
        key, row = key[kept] & np.uint64((1 << HASH_BITS) - 1), row[kept]
        packed.append((key >> drop) << np.uint64(row_bits) | rows[row].astype(np.uint64))
    return np.sort(np.concatenate(packed))


def _rarity(sets: Gathered, live: IntArray, report: Reporter) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return a table with `2**k` counts of members, at most 255 each. The low bits of a member are its slot (index).

    If two members share a slot, they seem more frequent than they are. This costs time but loses no pair.
    """
    seen = np.zeros(slots(int(sets.starts[-1])), np.uint8)
    for done in range(0, len(live), _ROWS):
        report.check()
        values = np.sort(sets.gather(live[done : done + _ROWS])[0] & np.uint64(len(seen) - 1))
        # 2**63 is not a slot, so the first value begins a run too.
        first = np.flatnonzero(np.diff(values, prepend=np.uint64(1 << 63)))
        slot, count = values[first], np.diff(first, append=len(values))
        seen[slot] = np.minimum(seen[slot] + count, 255)
    return seen


def slots(members: int) -> int:
    """Return the number of slots (bytes) of the rarity table: one to two per member, so that few members share a slot.

    If 44 members shared each slot, for example, no member would count as rare, and four times as many pairs would be
    compared. The maximum is 2**32 slots (4 GB), enough for 100 million sentences with 29 members each.
    """
    return 1 << min(max(members, 1).bit_length(), 32)


def _split(sets: Gathered, rows: IntArray, row_bits: int, salt: int, report: Reporter) -> UIntArray:
    """Divide rows into buckets of equal keys. Return sorted entries `key << row_bits | row`.

    A key combines two MinHashes, so two rows with Jaccard J have the same key with probability J**2. salt: number of
    the division; each division has different keys.
    """
    packed = np.zeros(len(rows), np.uint64)
    for done in range(0, len(rows), _ROWS):
        report.check()
        values, counts = sets.gather(rows[done : done + _ROWS])
        for salted in mix(np.array([2 * salt + 1, 2 * salt + 2], np.uint64)):
            least = np.minimum.reduceat(mix(values + salted), np.cumsum(counts) - counts)
            packed[done : done + _ROWS] = mix(packed[done : done + _ROWS] + least)
    return np.sort(packed >> np.uint64(row_bits) << np.uint64(row_bits) | rows.astype(np.uint64))
