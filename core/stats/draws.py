"""Random numbers and samples that depend on the seed only, so that chunks and resuming do not change them."""

from collections.abc import Sequence

import numpy as np

from core.results import BoolArray, FloatArray, IntArray


def uniform(ids: IntArray, seed: int) -> FloatArray:
    """Return numbers in (0, 1) that depend on id and seed only, shape (n,).

    Each number is the finaliser of splitmix64 (Steele et al. 2014), applied to id + seed.
    """
    x = ids.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    # Add half a step to exclude 0 and 1, which would make a Gumbel draw infinite.
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def sample(ids: IntArray, n: int, seed: int) -> IntArray:
    """Draw up to `n` of the rows with these ids, ascending. A larger `n` only adds rows."""
    return np.sort(np.argsort(uniform(ids, seed), kind="stable")[:n])


def stratified(strata: IntArray, n: int, seed: int) -> IntArray:
    """Draw up to `n` indices, ascending: equally many from each stratum, unless a stratum has too few.

    strata: `(m,)` small numbers from 0. A larger `n` only adds indices.
    """
    sizes = np.bincount(strata, minlength=1)
    keys = uniform(np.arange(len(strata), dtype=np.uint64), seed)
    # Within a stratum, order by a key of the index, so that a larger `n` only adds indices.
    order = np.lexsort((keys, strata))
    starts = np.cumsum(sizes) - sizes
    shares = _shares(sizes, n)
    return np.sort(np.concatenate([order[s : s + k] for s, k in zip(starts, shares, strict=True)]).astype(np.int64))


def _shares(sizes: IntArray, n: int) -> IntArray:
    """Return how many indices to take from each stratum: equal shares, limited by the sizes."""
    shares = np.zeros_like(sizes)
    left = min(n, int(sizes.sum()))
    while left:
        open_ = np.flatnonzero(shares < sizes)
        # If fewer are left than strata, the first strata get them, so that shares depend only on sizes and `n`.
        if left < len(open_):
            shares[open_[:left]] += 1
            break
        # Give equal amounts to all; the next round shares what a small stratum cannot take.
        step = np.minimum(sizes[open_] - shares[open_], left // len(open_))
        shares[open_] += step
        left -= int(step.sum())
    return shares


def dealt(groups: IntArray, shares: Sequence[float], seed: int) -> list[IntArray]:
    """Divide rows into parts of these shares, without dividing a group; groups are in random order by `seed`.

    groups: `(n,)` group of each row, such as duplicates of a sentence or a document. Parts differ from their shares by
    less than the largest group, if there are enough smaller groups.
    """
    names, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    lacking: FloatArray = np.asarray(shares, dtype=np.float64) / sum(shares) * len(groups)
    part = np.empty(len(names), dtype=np.int64)
    # The largest groups first, because smaller ones can then even out the parts.
    for one in order[np.argsort(-sizes[order], kind="stable")]:
        part[one] = lacking.argmax()
        lacking[part[one]] -= sizes[one]
    drawn = np.argsort(np.argsort(order)[group], kind="stable")  # rows by group, in drawn order
    return [drawn[part[group[drawn]] == k] for k in range(len(shares))]


def kept_in_smallest(part: IntArray, copies: IntArray) -> tuple[BoolArray, int]:
    """Keep duplicates of a sentence in one part only: the smallest one, or the last of equally small ones.

    part: `(n,)` part of each row, from 0. copies: `(n,)` duplicate group of each row. Return True for rows to keep,
    `(n,)`, and the number of duplicate groups that were in several parts.
    """
    sizes = np.bincount(part)
    order = np.lexsort((-np.arange(len(sizes)), sizes))  # ascending by size; of equally large parts, the last one first
    rank = np.argsort(order)[part]
    _, group = np.unique(copies, return_inverse=True)
    first = np.full(group.max() + 1, len(sizes))
    np.minimum.at(first, group, rank)
    last = np.full(group.max() + 1, -1)
    np.maximum.at(last, group, rank)
    kept: BoolArray = rank == first[group]
    return kept, int((first < last).sum())
