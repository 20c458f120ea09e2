"""Numbers and samples that are drawn by seed alone, the same in every chunk and after every resume."""

import numpy as np

from core.results import FloatArray, IntArray


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
