"""Decide if a tagger learnt anything: it finds more than almost nothing, and more than randomly placed spans."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

from core.results import percent_f1
from core.text.sentence import Entity, Prediction, Sentence

LEAST = 2.0  # F1, percent: what one entity of a hundred brings where none is invented


def chance_f1(gold: Sequence[Sentence], predictions: Sequence[Prediction]) -> float:
    """Return the micro F1, percent, that randomly placed spans exceed in about one of 40 cases.

    There are as many of them as predicted spans, of the same types and lengths, each at a random place in a sentence as
    long as its own. A tagger that gives every word the same tag scores as many hits as they do.
    """
    lengths = [len(sentence.tokens) for sentence in gold]
    labelled = _kinds(lengths, (sentence.entities or () for sentence in gold))
    predicted = _kinds(lengths, (prediction.entities for prediction in predictions))
    sentences = Counter(lengths)
    right = 0.0
    for (length, kind, words), n in predicted.items():
        # The number of places for a span of this length in all sentences of this length.
        right += n * labelled[length, kind, words] / (sentences[length] * (length - words + 1))
    # Random hits vary at most like a Poisson count: two standard deviations above their mean.
    return min(percent_f1(right + 2 * sqrt(right), predicted.total(), labelled.total()), 100.0)


def learnt(f1: float, lot: float) -> bool:
    """Return True if this F1 is better than chance. lot: see `chance_f1`; both in percent."""
    return f1 >= LEAST and f1 > lot


def _kinds(lengths: Sequence[int], sentences: Iterable[Iterable[Entity]]) -> Counter[tuple[int, str, int]]:
    """Count spans by the length of their sentence, their type, and their own length."""
    return Counter(
        (length, entity.type, entity.end - entity.start)
        for length, entities in zip(lengths, sentences, strict=True)
        for entity in set(entities)
    )
