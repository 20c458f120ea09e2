"""Rows of a corpus dealt out to parts of given shares, what belongs together in one of them."""

from collections.abc import Sequence

import numpy as np

from core.results import FloatArray, IntArray


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
