"""Predicted entities against gold ones: what every F1 and test is computed from (SOURCES.md, Span scoring)."""

from collections.abc import Iterable, Sequence

import numpy as np

from core.results import Evaluation
from core.text.sentence import Entity, Prediction, Sentence


def evaluate(
    gold: Sequence[Sentence], predictions: Sequence[Prediction], types: Sequence[str] | None = None
) -> Evaluation:
    """`count` of labelled sentences against predictions of them."""
    return count([s.entities or () for s in gold], [p.entities for p in predictions], types)


def count(
    gold: Sequence[Iterable[Entity]], predicted: Sequence[Iterable[Entity]], types: Sequence[str] | None = None
) -> Evaluation:
    """Count exact matches of (start, end, type), a sentence a row: seqeval's strict mode on well-formed tags.

    types: those that count, e.g. of all splits; None: all that occur. A span of any other type raises ValueError.
    """
    # Sets: a span predicted twice is one prediction.
    spans = [(set(truth), set(guess)) for truth, guess in zip(gold, predicted, strict=True)]
    occurring = {entity.type for pair in spans for side in pair for entity in side}
    names = tuple(sorted(occurring if types is None else types))
    # Dropped in silence, it would take a mistake, or a hit, out of the score.
    if unknown := occurring - set(names):
        raise ValueError(f"types {sorted(unknown)} occur and are not among {names}")
    column = {name: i for i, name in enumerate(names)}
    tables = np.zeros((3, len(spans), len(names)), dtype=np.int32)
    for row, (truth, guess) in enumerate(spans):
        for table, entities in zip(tables, (truth & guess, guess, truth), strict=True):
            for entity in entities:
                table[row, column[entity.type]] += 1
    return Evaluation(types=names, tp=tables[0], predicted=tables[1], gold=tables[2])


def cited_spans(tags: Sequence[str]) -> Prediction:
    """Spans of BIOES tags as the code that Mahapatra et al. 2022 cite reads them.

    From the last B to any E, with E's type; I is never read.
    An E without a B before it is a span from -1: predicted, and never right.
    """
    start, spans = -1, []
    for i, tag in enumerate(tags):
        letter, kind = tag[:1], tag[2:]
        if letter == "B":
            start = i
        elif letter == "E":
            spans.append(Entity(start=start, end=i + 1, type=kind))
        elif letter == "S":
            spans.append(Entity(start=i, end=i + 1, type=kind))
    return Prediction(entities=tuple(sorted(set(spans))), confidence=())
