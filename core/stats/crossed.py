"""Replicates that are tested on halves of a pool of labelled sentences, each on its own (SOURCES.md, Halves swapped).

A replicate learns from one half and is tested on the other, the next one the other way round; two arms are compared
within each, where labels and sentences are the same. The mean of the differences then varies by

- what replicates have: pre-trainings, taggers, the draw of labels. It is between replicates;
- what the pool's test sentences have, which every pair of replicates shares, since each pair tests them all once. It is
  between sentences. Between replicates stands too how far one half is apart from the other, which goes in the mean of a
  pair. It is left in for more than two: as much may come of the pool's text as T_C and of its labels, which all
  replicates share as well, and no table tells that. Of two replicates it is that and no more, so it is counted once.
"""

import numpy as np

from core.results import BoolArray, FloatArray


def f1_and_moves(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`(s,)` F1 in percent, and `(s, m)` by how many points each test sentence moves it (its linear part).

    tables: `(s, m, 2)` true positives and predicted + gold spans.
    """
    tp, spans = tables[..., 0], tables[..., 1]
    whole = np.maximum(spans.sum(axis=1), 1)[:, None]
    f1 = 200 * tp.sum(axis=1)[:, None] / whole
    return f1[:, 0], (200 * tp - f1 * spans) / whole


def interaction_variance(gaps: FloatArray, tested: BoolArray) -> float:
    """The variance of the mean difference by what single replicates make of single sentences. Infinite where no
    sentence was tested twice: then all that sentences do stands between replicates.

    gaps: `(r, m)` what each sentence moves the difference of each replicate by. tested: `(r, m)`.
    """
    n, times = len(tested), tested.sum(axis=0)
    again = times > 1
    if not again.any():
        return np.inf
    gaps = np.where(tested, gaps, 0.0)
    means = gaps.sum(axis=0) / np.maximum(times, 1)
    squares = np.where(tested, (gaps - means) ** 2, 0.0).sum(axis=0)
    share = times.sum() / times[again].sum()  # those tested once are taken to be like the others
    return float((times * squares / np.maximum(times - 1, 1))[again].sum() * share) / n**2
