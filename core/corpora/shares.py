"""Rows of a corpus dealt out to parts of given shares, what belongs together in one of them."""

from collections.abc import Sequence

import numpy as np

from core.results import BoolArray, FloatArray, IntArray


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
