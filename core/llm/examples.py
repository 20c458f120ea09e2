"""Choose training sentences that share words with a sentence, as examples in a prompt (SOURCES.md, Language models)."""

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from core.results import FloatArray, IntArray
from core.text.sentence import Sentence
from core.text.words import fold


class Nearest:
    """Finds the sentences that are nearest to a given sentence, by the cosine of binary TF-IDF vectors."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        rows = dict[str, list[int]]()
        for row, sentence in enumerate(sentences):
            for word in _words(sentence):
                rows.setdefault(word, []).append(row)
        n = len(sentences)
        self._rows: dict[str, IntArray] = {word: np.array(where) for word, where in rows.items()}
        self._idf = {word: log((1 + n) / (1 + len(where))) + 1 for word, where in rows.items()}
        squares = np.zeros(n)
        for word, where in self._rows.items():
            squares[where] += self._idf[word] ** 2
        self._length: FloatArray = np.sqrt(np.where(squares > 0, squares, 1.0))

    def of(self, sentence: Sentence, k: int) -> list[int]:
        """Return the rows of the k nearest sentences, nearest first. In a tie, the lower row comes first.

        Only words of `sentence` that occur in the other sentences count, because further words would not change the
        order.
        """
        dot = np.zeros(len(self._length))
        known = [word for word in _words(sentence) if word in self._rows]
        for word in known:
            dot[self._rows[word]] += self._idf[word] ** 2
        length = sqrt(sum(self._idf[word] ** 2 for word in known)) or 1.0
        # Round the cosines, so that equally near sentences tie on every processor.
        order = np.argsort(-np.round(dot / self._length / length, 9), kind="stable")
        return [int(row) for row in order[:k]]


def _words(sentence: Sentence) -> list[str]:
    """Return the distinct words of a sentence, normalised by `fold`."""
    return list(dict.fromkeys(fold(sentence.text).split()))
