"""Re-orders the head of a ranking so that similar sentences do not follow each other (SOURCES.md, Diversity).

Both orders are nested: a smaller budget selects the first sentences of a larger budget's selection.
"""

import numpy as np

from core.errors import ConfigError
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Prefer

POOL = 5  # the re-ordered head of the ranking is this many times the budget
MOST = 20_000  # most sentences that mmr takes, because each step compares with the whole pool
_FITTED = 20_000  # rows that k-means is fitted on


def mmr(
    vectors: FloatArray, scores: FloatArray, prefer: Prefer, n: int, *, trade: float = 0.7, report: Reporter
) -> IntArray:
    """Return the first `n` indices by maximal marginal relevance (Carbonell and Goldstein 1998), then all others.

    Each step takes the row with the largest `trade * relevance - (1 - trade) * largest cosine to a taken row`.
    vectors: `(m, d)` unit rows, best score first. scores: `(m,)`; relevance is the score scaled to the pool's range.
    Ties go to the better score. The cost is n x m x d products: 5,000 of 25,000 rows take about half a minute.
    Errors: ConfigError for more than `MOST`.
    """
    if n > MOST:
        raise ConfigError(
            f"diversity: mmr takes sentences one by one, {n:,} are too many (at most {MOST:,}); use quota."
        )
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    keys = np.asarray(scores if prefer == "high" else -scores, dtype=np.float64)
    spread = float(keys.max() - keys.min()) if len(keys) else 0.0
    # Scaled to 0..1, so that `trade` has the same meaning for every unit. With equal scores only diversity counts.
    gain = trade * (keys - keys.min()) / spread if spread else np.zeros(len(keys))
    nearest = np.zeros(len(rows), dtype=np.float32)
    free = np.ones(len(rows), dtype=bool)
    taken = np.empty(min(n, len(rows)), dtype=np.int64)
    for i in range(len(taken)):
        report.check()
        report.progress(i, len(taken), "sentences")
        # argmax returns the first of equals, which has the better score.
        best = int(np.argmax(np.where(free, gain - (1 - trade) * nearest, -np.inf)))
        taken[i], free[best] = best, False
        near = rows @ rows[best]
        # The first row sets the values, so that a negative cosine to it does not count as 0.
        nearest = near if i == 0 else np.maximum(nearest, near)
    return np.concatenate([taken, np.flatnonzero(free)])


def quota(vectors: FloatArray, n: int, *, seed: int = 0) -> IntArray:
    """Return all `m` indices, interleaved so that each cluster appears in proportion to its size, best first.

    k-means gives about sqrt(`n`) clusters. The j-th best of a cluster of size s is sorted by (j - 1/2) / s, so every
    prefix holds each cluster's share to within one sentence. vectors: `(m, d)` unit rows, best score first.
    """
    from sklearn.cluster import MiniBatchKMeans

    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    # Fit on rows spaced evenly through the ranking, because its head alone would miss topics further down.
    fitted = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _FITTED)).astype(np.int64))]
    # At most as many clusters as distinct rows, because k-means would warn and leave some empty.
    k = max(min(round(n**0.5), len(np.unique(fitted, axis=0))), 1)
    label = MiniBatchKMeans(k, n_init=1, batch_size=4096, random_state=seed).fit(fitted).predict(rows)
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=k)
    rank_in_cluster = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(rows))
    place[order] = (rank_in_cluster + 0.5) / np.repeat(sizes, sizes)
    return np.argsort(place, kind="stable")
