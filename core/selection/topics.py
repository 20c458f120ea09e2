"""Topics of T_C: their number, and the share of S_C for each (SOURCES.md, Cosine to T_C)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from core.results import FloatArray, IntArray

MOST = 20  # largest number of topics that is tried
_SAMPLE = 2_000  # sentences of T_C for a silhouette, which needs all pairwise distances


def best_k(task: FloatArray, seed: int) -> int:
    """Return the number of clusters, 2 to `MOST`, with the best silhouette; 1 if there are too few sentences."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rows = np.unique(np.linspace(0, len(task) - 1, min(len(task), _SAMPLE)).astype(np.int64))
    sample = np.asarray(task[rows], dtype=np.float32)
    # A silhouette needs more distinct rows than clusters.
    most = min(MOST, len(np.unique(sample, axis=0)) - 1)
    scores = {
        k: float(silhouette_score(sample, KMeans(k, n_init=4, random_state=seed).fit_predict(sample)))
        for k in range(2, most + 1)
    }
    # Ties go to the fewest topics, because max returns the first.
    return max(scores, key=scores.__getitem__, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Correction of a cosine so that every topic has its share of S_C for every budget.

    If w is a topic's share of T_C, its i-th nearest sentence should have rank i / w among all. It therefore gets the
    cosine of the sentence at that rank. Ranks are those in a sample of D_C, interpolated by cosine, so a score depends
    only on its own sentence.

    shares: `(k,)`, share of T_C that is nearest to each topic. sample: `(n,)`, cosines of D_C's sentences to their
    nearest topic, grouped by topic, descending. counts: `(k,)`, number of sentences per topic.
    """

    shares: FloatArray
    sample: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, task: FloatArray, domain: FloatArray) -> Self:
        """Make a quota from the cosines `(n, k)` of T_C and of a sample of D_C to every topic."""
        k, nearest = task.shape[1], domain.argmax(axis=1)
        largest = domain.max(axis=1).astype(np.float64)
        order = np.lexsort((-largest, nearest))
        return cls(
            shares=np.bincount(task.argmax(axis=1), minlength=k) / len(task),
            sample=largest[order],
            counts=np.bincount(nearest, minlength=k),
        )

    @classmethod
    def read(cls, arrays: Mapping[str, FloatArray]) -> Self:
        """Restore a quota from its `arrays`."""
        return cls(shares=arrays["shares"], sample=arrays["sample"], counts=arrays["counts"].astype(np.int64))

    def arrays(self) -> dict[str, FloatArray]:
        """Return the quota as arrays to store."""
        return {"shares": self.shares, "sample": self.sample, "counts": self.counts.astype(np.float64)}

    def moved(self, topic: IntArray, cosines: FloatArray) -> FloatArray:
        """Return the corrected cosines, `(m,)`. topic, cosines: nearest topic and cosine of each sentence, `(m,)`."""
        moved = np.array(cosines, dtype=np.float64)
        falling, ends = np.sort(self.sample)[::-1], np.cumsum(self.counts)
        for number in np.unique(topic):
            own, inside = self.sample[ends[number] - self.counts[number] : ends[number]], topic == number
            # Ranks continue beyond the sample's ends, so that different cosines keep different scores.
            place = _beyond(cosines[inside], own)
            share = max(float(self.shares[number]), 0.5 / len(self.sample))  # a topic that T_C lacks ranks last
            moved[inside] = _at(place / share, falling)
        return moved


def _beyond(cosines: FloatArray, own: FloatArray) -> FloatArray:
    """Return the rank of each cosine in the descending `own`, `(m,)`. Cosines above the first get negative ranks."""
    if not len(own):
        return -np.asarray(cosines, dtype=np.float64)
    places: FloatArray = np.interp(-cosines, -own, np.arange(len(own), dtype=np.float64))
    places += np.maximum(own[-1] - cosines, 0) - np.maximum(cosines - own[0], 0)
    return places


def _at(places: FloatArray, falling: FloatArray) -> FloatArray:
    """Return the cosines at ranks in `falling`, `(m,)`. Ranks beyond its ends are extrapolated by less than 1."""
    last = len(falling) - 1
    inside: FloatArray = np.interp(places, np.arange(len(falling)), falling)
    beyond = (np.maximum(-places, 0) - np.maximum(places - last, 0)) / len(falling)
    inside += beyond / (1 + np.abs(beyond))
    return inside
