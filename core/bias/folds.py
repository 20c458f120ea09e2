"""Folds of a cross-validation: whole groups, every type spread evenly."""

import numpy as np

from core.results import IntArray


def folds(groups: IntArray, types: IntArray, n: int, seed: int) -> IntArray:
    """`(m,)` the fold of each mention, 0 to n - 1. groups, types: `(m,)`, numbered from 0.

    Group by group, the large ones first and equals by lot, into the fold that holds least of the types it brings,
    each by its share of all of that type: the greedy step down the chi-square of types over folds.
    """
    counts = np.zeros((int(groups.max()) + 1, int(types.max()) + 1))
    np.add.at(counts, (groups, types), 1)
    # Shuffled first, then sorted stably: equals stand in random order, the same one for a seed.
    shuffled = np.random.default_rng(seed).permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(1), kind="stable")]
    share = counts / np.maximum(counts.sum(0), 1)
    fold_counts = np.zeros((n, counts.shape[1]))
    fold_of = np.zeros(len(counts), dtype=np.int64)
    for group in order.tolist():
        cost = fold_counts @ share[group]
        # Costs that differ in rounding alone are equal; then the smallest fold, so that sizes stay even.
        cheapest = np.flatnonzero(cost <= cost.min() + 1e-12)
        fold_of[group] = fold = cheapest[fold_counts[cheapest].sum(1).argmin()]
        fold_counts[fold] += counts[group]
    return fold_of[groups]
