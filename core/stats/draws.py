"""Numbers and samples that are drawn by seed alone, the same in every chunk and after every resume."""

from collections.abc import Sequence

import numpy as np

from core.results import BoolArray, FloatArray, IntArray


def uniform(ids: IntArray, seed: int) -> FloatArray:
    """`(n,)` numbers in (0, 1) that depend on id and seed alone, so that chunks and resumes cannot change them.

    splitmix64's finaliser (Steele et al. 2014) over id + seed.
    """
    x = ids.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    # Half a step up: neither 0 nor 1 comes out, of which a Gumbel draw has no logarithm.
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def stratified(strata: IntArray, n: int, seed: int) -> IntArray:
    """Up to `n` indices, ascending, seeded: equal shares of the strata as far as they go, so that none is lost.

    strata: `(m,)` small numbers from 0. A larger `n` only adds indices.
    """
    sizes = np.bincount(strata, minlength=1)
    keys = uniform(np.arange(len(strata), dtype=np.uint64), seed)
    # Within a stratum by a key of the index alone, so that a larger `n` takes the same ones and more.
    order = np.lexsort((keys, strata))
    starts = np.cumsum(sizes) - sizes
    shares = _shares(sizes, n)
    return np.sort(np.concatenate([order[s : s + k] for s, k in zip(starts, shares, strict=True)]).astype(np.int64))


def _shares(sizes: IntArray, n: int) -> IntArray:
    """Indices to take of each stratum: water filled into vessels of these sizes."""
    shares = np.zeros_like(sizes)
    left = min(n, int(sizes.sum()))
    while left:
        open_ = np.flatnonzero(shares < sizes)
        # Less than one for each: the first strata take it, so that the same `n` always gives the same shares.
        if left < len(open_):
            shares[open_[:left]] += 1
            break
        # As much for each as goes round evenly; what a small stratum cannot hold is poured on in the next round.
        step = np.minimum(sizes[open_] - shares[open_], left // len(open_))
        shares[open_] += step
        left -= int(step.sum())
    return shares


def dealt(groups: IntArray, shares: Sequence[float], seed: int) -> list[IntArray]:
    """The rows of every part, those of a group side by side, the groups in an order drawn by `seed`.

    groups: `(n,)` the number of the group that a row belongs to, which no part divides: copies of a sentence, or a
    document. Parts differ from their shares by less than the largest group where there are others to make up for it.
    """
    names, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    lacking: FloatArray = np.asarray(shares, dtype=np.float64) / sum(shares) * len(groups)
    part = np.empty(len(names), dtype=np.int64)
    for one in order[np.argsort(-sizes[order], kind="stable")]:  # the largest first: the others even it out
        part[one] = lacking.argmax()
        lacking[part[one]] -= sizes[one]
    drawn = np.argsort(np.argsort(order)[group], kind="stable")  # rows, group by group as they were drawn
    return [drawn[part[group[drawn]] == k] for k in range(len(shares))]


def kept_in_smallest(part: IntArray, copies: IntArray) -> tuple[BoolArray, int]:
    """Rows that stay where they are when copies of a sentence may be in one part alone, and how many groups of copies
    stood in several.

    part: `(n,)` the part of a row, from 0. copies: `(n,)` the number of the group of copies that a row belongs to. They
    stay in the smallest of their parts, which can spare them least; of equal ones in the last.
    """
    sizes = np.bincount(part)
    order = np.lexsort((-np.arange(len(sizes)), sizes))  # the smallest first, the last of equals before the others
    rank = np.argsort(order)[part]
    _, group = np.unique(copies, return_inverse=True)
    first = np.full(group.max() + 1, len(sizes))
    np.minimum.at(first, group, rank)
    last = np.full(group.max() + 1, -1)
    np.maximum.at(last, group, rank)
    kept: BoolArray = rank == first[group]
    return kept, int((first < last).sum())
