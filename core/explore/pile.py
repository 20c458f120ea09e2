"""What a map is made of: sentences of T_C and D_C with their vectors, classes and scores."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.corpora.corpus import BLOCK, Corpus
from core.explore.distinctive_words import count_words, topic_words
from core.explore.result import Topic
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Pile:
    """Everything that may be on the map: T_C's sentences, then D_C's.

    rows: `(n,)` rows of the points; the first `n_task` are T_C's. vectors: float16 of T_C and D_C. chosen: `(|D_C|,)`.
    """

    task: Corpus
    domain: Corpus
    vectors: tuple[Rows, Rows]
    chosen: BoolArray
    scores: FloatArray
    rows: IntArray
    n_task: int

    def kinds(self) -> IntArray:
        """`(n,)` indices into `CLASSES`."""
        kinds = np.zeros(len(self.rows), dtype=np.int64)
        kinds[self.n_task :] = 2 - self.chosen[self.rows[self.n_task :]]
        return kinds

    def vectors_at(self, points: IntArray) -> FloatArray:
        """points: ascending, so that T_C's come first."""
        split = int(np.searchsorted(points, self.n_task))
        task, domain = self.rows[points[:split]], self.rows[points[split:]]
        return np.concatenate([self.vectors[0][task], self.vectors[1][domain]])

    def blocks(self) -> Iterator[tuple[Corpus, IntArray, FloatArray | None]]:
        """All points in order, in pieces of one corpus: its rows, and their scores, which T_C has none of."""
        for corpus, rows in ((self.task, self.rows[: self.n_task]), (self.domain, self.rows[self.n_task :])):
            for start in range(0, len(rows), BLOCK):
                here = rows[start : start + BLOCK]
                yield corpus, here, self.scores[here] if corpus is self.domain else None


def name_topics(pile: Pile, points: IntArray, cluster: IntArray, report: Reporter) -> list[Topic]:
    """Each topic's size on the map and the words that tell it from the others, counted in the fitted sentences."""
    kinds = cluster[points]
    holding: list[Counter[str]] = [Counter() for _ in range(int(cluster.max()) + 1)]
    split = int(np.searchsorted(points, pile.n_task))
    for corpus, part, kind in (
        (pile.task, pile.rows[points[:split]], kinds[:split]),
        (pile.domain, pile.rows[points[split:]], kinds[split:]),
    ):
        for start in range(0, len(part), BLOCK):
            report.check()
            sentences = corpus.take(part[start : start + BLOCK])
            for topic, sentence in zip(kind[start : start + BLOCK].tolist(), sentences, strict=True):
                holding[topic].update(count_words([sentence.text]).keys())
    counted, sizes = (np.bincount(part, minlength=len(holding)).tolist() for part in (kinds, cluster))
    words = topic_words(holding, counted)
    return [Topic(name=", ".join(name) or "mixed", size=size) for name, size in zip(words, sizes, strict=True)]
