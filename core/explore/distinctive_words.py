"""Distinctive words of a set of sentences against another."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.text.words import fold, unspaced

COMMON = 0.05  # of all sentences; a word in more of them tells nothing, unless most of those lie in one topic
PRIOR = 1_000.0  # words that the prior is worth: rare words need as much evidence before they count


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A word. z: how sure it is more frequent inside, in standard deviations; inside, outside: how often it occurs."""

    word: str
    z: float
    inside: int
    outside: int


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Occurrences of each folded word."""
    return Counter(word for text in texts for word in fold(text).split())


def topic_words(holding: Sequence[Counter[str]], sizes: Sequence[int], n: int = 3) -> list[list[str]]:
    """The `n` words that name each topic, best first. holding: sentences of a topic that hold a word; sizes: of all.

    c-TF-IDF (Grootendorst 2022) by sentences, times the share of the word's sentences that lie in the topic. What is
    common and lies mostly elsewhere is a stop word in whatever language, and no list of them is needed.
    """
    everywhere, total = sum(holding, Counter[str]()), sum(sizes)

    def weight(word: str, inside: int, size: int) -> float:
        share = inside / everywhere[word]
        # Mostly in this topic: then a frequent word is its subject, not a stop word.
        common = everywhere[word] > COMMON * total and share < 0.5
        return 0.0 if common else inside / size * np.log(total / everywhere[word]) * share

    def best(words: Counter[str], size: int) -> list[str]:
        weights = {word: weight(word, inside, size) for word, inside in words.items() if _is_word(word)}
        return sorted((word for word in weights if weights[word] > 0), key=lambda word: (-weights[word], word))[:n]

    return [best(words, size) for words, size in zip(holding, sizes, strict=True)]


def _is_word(text: str) -> bool:
    # A letter of a script without blanks is the word that it is counted as.
    return (len(text) > 1 or unspaced(text)) and any(letter.isalpha() for letter in text)


def telling_words(inside: Counter[str], outside: Counter[str], n: int = 30, *, prior: float = PRIOR) -> list[Telling]:
    """The `n` words most typical of `inside`, most telling first; words of one letter left out where blanks part words.

    Log-odds ratio with an informative Dirichlet prior: all words' frequencies together, worth `prior` words
    (Monroe, Colaresi and Quinn 2008, 3.5.1); ranked by z, the ratio over its standard deviation.
    """
    words = sorted(word for word in inside if inside[word])
    if len(inside.keys() | outside.keys()) < 2:
        return []  # of a single word nothing can be said
    a, b = (np.array([side[word] for word in words], dtype=np.float64) for side in (inside, outside))
    n_a, n_b = float(a.sum()), float(outside.total())
    alpha = prior * (a + b) / (n_a + n_b)
    ratio = np.log((a + alpha) / (n_a + prior - a - alpha)) - np.log((b + alpha) / (n_b + prior - b - alpha))
    z = ratio / np.sqrt(1 / (a + alpha) + 1 / (b + alpha))
    best = [i for i in np.argsort(-z, kind="stable").tolist() if z[i] > 0 and (len(words[i]) > 1 or unspaced(words[i]))]
    return [Telling(word=words[i], z=float(z[i]), inside=int(a[i]), outside=int(b[i])) for i in best[:n]]
