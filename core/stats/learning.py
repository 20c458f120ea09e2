"""Whether a tagger learnt anything: it finds more than next to nothing, and more than spans laid by lot."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt

from core.results import percent_f1
from core.text.sentence import Entity, Prediction, Sentence

LEAST = 2.0  # F1, percent: what one entity of a hundred brings where none is invented


def chance_f1(gold: Sequence[Sentence], predictions: Sequence[Prediction]) -> float:
    """Micro F1, percent, that the predicted spans would exceed in about one of 40 cases, were they laid by lot.

    As many spans of the same types and lengths, each at any place that holds as many words in any sentence as long as
    its own. A tagger that calls every word the same gets just what the lot gives.
    """
    lengths = [len(sentence.tokens) for sentence in gold]
    labelled = _kinds(lengths, (sentence.entities or () for sentence in gold))
    predicted = _kinds(lengths, (prediction.entities for prediction in predictions))
    sentences = Counter(lengths)
    right = 0.0
    for (length, kind, words), n in predicted.items():
        # Places that a span of so many words has in all sentences of this length.
        right += n * labelled[length, kind, words] / (sentences[length] * (length - words + 1))
    # Hits of a lot spread as Poisson's law has it at most: two standard deviations above their mean.
    return min(percent_f1(right + 2 * sqrt(right), predicted.total(), labelled.total()), 100.0)


def learnt(f1: float, lot: float) -> bool:
    """Whether this F1 is that of a tagger that learnt something. lot: see `chance_f1`; both in percent."""
    return f1 >= LEAST and f1 > lot


def _kinds(lengths: Sequence[int], sentences: Iterable[Iterable[Entity]]) -> Counter[tuple[int, str, int]]:
    """Number of spans by their sentence's length, type and own length."""
    return Counter(
        (length, entity.type, entity.end - entity.start)
        for length, entities in zip(lengths, sentences, strict=True)
        for entity in set(entities)
    )
