"""Text with a known distribution, for simulations: Zipf's law, topics and names by document, and pairs of words."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from core.results import IntArray

WORDS = 20_000
TOPICS, OF_TOPIC, NAMES = 12, 1_500, 30


@cache
def _laws() -> tuple[IntArray, IntArray, IntArray]:
    """Return words of each topic `(12, 1500)`, the usual successor of each word `(20000,)`, and the cumulative law."""
    rng = np.random.default_rng(0)
    zipf = 1 / np.arange(1, WORDS + 1) ** 1.05
    follows = rng.integers(0, WORDS, WORDS)
    topics = np.array([rng.permutation(np.arange(200, WORDS))[:OF_TOPIC] for _ in range(TOPICS)])
    return topics, follows, np.cumsum(zipf / zipf.sum())


def written(
    rng: np.random.Generator,
    *,
    tokens: int = 0,
    sentences: int = 0,
    topics: Sequence[int] = range(6),
    share: float = 0.3,
    document: int = 1,
) -> list[list[str]]:
    """Return sentences of 4 to 60 words: `sentences` of them, or as many as have `tokens` tokens.

    topics: topics of the documents. share: share of words from the document's topic. document: sentences per document;
    a document of several sentences also has 30 names of its own.
    """
    of_topic, follows, zipf = _laws()
    lengths = np.clip(rng.lognormal(2.9, 0.5, sentences or tokens // 10 + 20), 4, 60).astype(int)
    if tokens:
        lengths = lengths[: np.searchsorted(np.cumsum(lengths), tokens) + 1]
    belongs = np.repeat(np.arange(len(lengths)) // document, lengths)  # tokens to documents
    topic = rng.choice(list(topics), belongs[-1] + 1)
    names = of_topic[topic[:, None], rng.integers(0, OF_TOPIC, (len(topic), NAMES))]
    words = np.searchsorted(zipf, rng.random(len(belongs))).clip(0, WORDS - 1)
    rank = np.exp(rng.random(len(belongs)) * np.log(OF_TOPIC)).astype(int).clip(1, OF_TOPIC) - 1
    words = np.where(rng.random(len(words)) < share, of_topic[topic[belongs], rank], words)
    if document > 1:
        drawn = names[belongs, rng.integers(0, NAMES, len(words))]
        words = np.where(rng.random(len(words)) < 0.1, drawn, words)
    paired = np.flatnonzero(rng.random(len(words)) < 0.3)[1:]
    words[paired] = follows[words[paired - 1]]
    spelled = [f"w{word}" for word in words.tolist()]
    ends = np.cumsum(lengths).tolist()
    return [spelled[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
