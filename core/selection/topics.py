"""Topics of T_C: how many there are, and what part of S_C each is to have (SOURCES.md, Cosine to T_C)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from core.results import FloatArray, IntArray

MOST = 20  # topics that are tried
_SAMPLE = 2_000  # sentences of T_C that a silhouette is of: it asks for the distance of each to each


def best_k(task: FloatArray, seed: int) -> int:
    """The number of clusters, 2 to `MOST`, of the best silhouette; 1 where there are too few sentences to tell."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rows = np.unique(np.linspace(0, len(task) - 1, min(len(task), _SAMPLE)).astype(np.int64))
    sample = np.asarray(task[rows], dtype=np.float32)
    # A silhouette needs one row more than there are clusters, and equal rows are one.
    most = min(MOST, len(np.unique(sample, axis=0)) - 1)
    scores = {
        k: float(silhouette_score(sample, KMeans(k, n_init=4, random_state=seed).fit_predict(sample)))
        for k in range(2, most + 1)
    }
    # Of equal silhouettes the fewest topics: max keeps the first.
    return max(scores, key=scores.__getitem__, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Correction of a cosine so that every topic has its share of S_C, whatever the budget.

    A sentence that is the i-th of those nearest to its topic, whose share of T_C is w, is to stand at place i / w of
    all: it is given the cosine of the sentence at that place. Places are those in a sample of D_C, and between two of
    it by their cosines, so a score depends on its own sentence alone.

    shares: `(k,)` of T_C nearest to each topic. sample: `(n,)` cosines of D_C's sentences to their nearest, those of
    one topic side by side, each falling. counts: `(k,)` how many of them each topic has.
    """

    shares: FloatArray
    sample: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, task: FloatArray, domain: FloatArray) -> Self:
        """task, domain: `(n, k)` cosines of T_C and of a sample of D_C to every topic."""
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
        """Quota that `arrays` were kept of."""
        return cls(shares=arrays["shares"], sample=arrays["sample"], counts=arrays["counts"].astype(np.int64))

    def arrays(self) -> dict[str, FloatArray]:
        """All that it knows."""
        return {"shares": self.shares, "sample": self.sample, "counts": self.counts.astype(np.float64)}

    def moved(self, topic: IntArray, cosines: FloatArray) -> FloatArray:
        """`(m,)` the cosines by which sentences nearest to these topics are ranked."""
        moved = np.array(cosines, dtype=np.float64)
        falling, ends = np.sort(self.sample)[::-1], np.cumsum(self.counts)
        for number in np.unique(topic):
            own, inside = self.sample[ends[number] - self.counts[number] : ends[number]], topic == number
            # Past the sample's ends on by the cosine itself, so that no two sentences are made equal.
            place = _beyond(cosines[inside], own)
            share = max(float(self.shares[number]), 0.5 / len(self.sample))  # of no sentence of T_C: last of all
            moved[inside] = _at(place / share, falling)
        return moved


def _beyond(cosines: FloatArray, own: FloatArray) -> FloatArray:
    """`(m,)` places among `own`, which falls: from 0 on, below 0 before the first."""
    if not len(own):
        return -np.asarray(cosines, dtype=np.float64)
    places: FloatArray = np.interp(-cosines, -own, np.arange(len(own), dtype=np.float64))
    places += np.maximum(own[-1] - cosines, 0) - np.maximum(cosines - own[0], 0)
    return places


def _at(places: FloatArray, falling: FloatArray) -> FloatArray:
    """`(m,)` the cosines at places of `falling`; beyond its ends they go on, by less than 1."""
    last = len(falling) - 1
    inside: FloatArray = np.interp(places, np.arange(len(falling)), falling)
    beyond = (np.maximum(-places, 0) - np.maximum(places - last, 0)) / len(falling)
    inside += beyond / (1 + np.abs(beyond))
    return inside
