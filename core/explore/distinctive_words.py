"""Find the words that distinguish one set of sentences from another."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.text.words import fold, unspaced

# A word in more than this share of all sentences does not name a topic, unless most of its sentences are in the topic.
COMMON = 0.05
PRIOR = 1_000.0  # weight of the prior, in words; a larger prior requires more evidence for rare words


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """An over-represented word. z: log-odds ratio in standard deviations. inside, outside: occurrences in each set."""

    word: str
    z: float
    inside: int
    outside: int


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Return {word: number of occurrences} of the case-folded words."""
    return Counter(word for text in texts for word in fold(text).split())


def topic_words(holding: Sequence[Counter[str]], sizes: Sequence[int], n: int = 3) -> list[list[str]]:
    """Return the `n` words that name each topic, best first.

    A word's weight is c-TF-IDF by sentences (Grootendorst 2022) times the share of its sentences that are in the topic.
    A common word that is mostly in other topics counts as a stop word, so no list of stop words is needed.
    holding: for each topic, {word: number of sentences with the word}. sizes: number of sentences per topic.
    """
    everywhere, total = Counter[str](), sum(sizes)
    for words in holding:
        everywhere.update(words)  # not `sum`, which would copy the growing total for each topic

    def weight(word: str, inside: int, size: int) -> float:
        share = inside / everywhere[word]
        # A frequent word that is mostly in this topic describes it and is not a stop word.
        common = everywhere[word] > COMMON * total and share < 0.5
        return 0.0 if common else inside / size * np.log(total / everywhere[word]) * share

    def best(words: Counter[str], size: int) -> list[str]:
        weights = {word: weight(word, inside, size) for word, inside in words.items() if _is_word(word)}
        return sorted((word for word in weights if weights[word] > 0), key=lambda word: (-weights[word], word))[:n]

    return [best(words, size) for words, size in zip(holding, sizes, strict=True)]


def _is_word(text: str) -> bool:
    # In scripts without spaces a single letter counts as a word.
    return (len(text) > 1 or unspaced(text)) and any(letter.isalpha() for letter in text)


def telling_words(inside: Counter[str], outside: Counter[str], n: int = 30, *, prior: float = PRIOR) -> list[Telling]:
    """Return the `n` words most over-represented in `inside`, highest z first.

    z is the log-odds ratio with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008, 3.5.1), divided by its
    standard deviation. The prior is the frequency of each word in both sets together, scaled to `prior` words. In
    scripts with spaces, words of one letter are left out.
    """
    words = sorted(word for word in inside if inside[word])
    if len(inside.keys() | outside.keys()) < 2:
        return []  # with a single different word, the odds are undefined
    a, b = (np.array([side[word] for word in words], dtype=np.float64) for side in (inside, outside))
    n_a, n_b = float(a.sum()), float(outside.total())
    alpha = prior * (a + b) / (n_a + n_b)
    ratio = np.log((a + alpha) / (n_a + prior - a - alpha)) - np.log((b + alpha) / (n_b + prior - b - alpha))
    z = ratio / np.sqrt(1 / (a + alpha) + 1 / (b + alpha))
    best = [i for i in np.argsort(-z, kind="stable").tolist() if z[i] > 0 and (len(words[i]) > 1 or unspaced(words[i]))]
    return [Telling(word=words[i], z=float(z[i]), inside=int(a[i]), outside=int(b[i])) for i in best[:n]]
