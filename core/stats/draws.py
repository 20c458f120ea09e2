"""Random numbers and samples that depend on the seed only, so that chunks and resuming do not change them."""

from collections.abc import Sequence

import numpy as np

from core.results import BoolArray, FloatArray, IntArray


def uniform(ids: IntArray, seed: int) -> FloatArray:
    """Return a random number in (0, 1) for each id, shape (n,). It depends only on the id and the seed.

    Each number is the finaliser of splitmix64 (Steele et al. 2014), applied to id + seed.
    """
    x = ids.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    # Add half a step to exclude 0 and 1, which would make a Gumbel draw infinite.
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def short_seed(seed: int) -> int:
    """Return a seed below 2**32, because scikit-learn, UMAP, gensim and trainings refuse larger ones."""
    return seed % 2**32


def sample(ids: IntArray, n: int, seed: int) -> IntArray:
    """Draw up to `n` rows at random, and return their indices, ascending.

    ids: id of each row, from which its random number is computed. With a larger `n`, the same rows are drawn, and more.
    """
    return np.sort(np.argsort(uniform(ids, seed), kind="stable")[:n])


def stratified(strata: IntArray, n: int, seed: int) -> IntArray:
    """Draw up to `n` rows and return their indices, ascending: equally many per stratum, unless a stratum has too few.

    strata: `(m,)` stratum of each row, from 0. With a larger `n`, the same rows are drawn, and more.
    """
    sizes = np.bincount(strata, minlength=1)
    keys = uniform(np.arange(len(strata), dtype=np.uint64), seed)
    # Within a stratum, order by a random key that depends on the index only, so that a larger `n` only adds rows.
    order = np.lexsort((keys, strata))
    starts = np.cumsum(sizes) - sizes
    shares = _shares(sizes, n)
    return np.sort(np.concatenate([order[s : s + k] for s, k in zip(starts, shares, strict=True)]).astype(np.int64))


def _shares(sizes: IntArray, n: int) -> IntArray:
    """Return how many rows to take from each stratum: equal shares of `n`, limited by the strata's sizes."""
    shares = np.zeros_like(sizes)
    left = min(n, int(sizes.sum()))
    while left:
        open_ = np.flatnonzero(shares < sizes)
        # If fewer rows are left than strata, the first strata get one each, so that shares depend only on sizes and n.
        if left < len(open_):
            shares[open_[:left]] += 1
            break
        # Give every stratum the same number of rows. The next round divides the rows that small strata cannot take.
        step = np.minimum(sizes[open_] - shares[open_], left // len(open_))
        shares[open_] += step
        left -= int(step.sum())
    return shares


def dealt(groups: IntArray, shares: Sequence[float], seed: int) -> list[IntArray]:
    """Divide rows into parts and return the rows of each part, in random order. No group of rows is divided.

    groups: `(n,)` group of each row, such as its document, or the duplicates of its sentence. shares: relative size of
    each part. Parts differ from their shares by less than the largest group, if there are enough smaller groups.
    """
    names, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    lacking: FloatArray = np.asarray(shares, dtype=np.float64) / sum(shares) * len(groups)
    part = np.empty(len(names), dtype=np.int64)
    # Place the largest groups first. The smaller groups then even out the parts.
    for one in order[np.argsort(-sizes[order], kind="stable")]:
        part[one] = lacking.argmax()
        lacking[part[one]] -= sizes[one]
    drawn = np.argsort(np.argsort(order)[group], kind="stable")  # All rows, with groups in random order.
    return [drawn[part[group[drawn]] == k] for k in range(len(shares))]


def kept_in_smallest(part: IntArray, copies: IntArray) -> tuple[BoolArray, int]:
    """Choose rows to keep, so that duplicates are in one part only: the smallest, or the last of equally small ones.

    Return True for each row to keep, `(n,)`, and the number of duplicate groups that were in several parts. part:
    `(n,)` part of each row, from 0. copies: `(n,)` duplicate group of each row.
    """
    sizes = np.bincount(part)
    # Sort parts by size, ascending; of equally large parts, the last comes first.
    order = np.lexsort((-np.arange(len(sizes)), sizes))
    rank = np.argsort(order)[part]
    _, group = np.unique(copies, return_inverse=True)
    first = np.full(group.max() + 1, len(sizes))
    np.minimum.at(first, group, rank)
    last = np.full(group.max() + 1, -1)
    np.maximum.at(last, group, rank)
    kept: BoolArray = rank == first[group]
    return kept, int((first < last).sum())
