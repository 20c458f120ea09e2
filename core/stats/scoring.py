"""Predicted entities against gold ones: what every F1 and test is computed from (SOURCES.md, Span scoring)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.results import Evaluation
from core.text.schemes import encode
from core.text.sentence import Entity, Prediction, Sentence

SEQEVAL: Final = "bioes"  # the scheme that seqeval calls IOBES
MICRO = "micro avg"  # seqeval's name of the line over all types
AVERAGES = (MICRO, "macro avg", "weighted avg")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeReport:
    """One line of seqeval's classification report; type: the entity type, or `micro avg`. Scores in percent.

    support: gold entities.
    """

    type: str
    precision: float
    recall: float
    f1: float
    support: int


def seqeval_report(gold: Sequence[Sentence], predictions: Sequence[Prediction]) -> list[TypeReport]:
    """Return seqeval's strict IOBES report (Nakayama, 2018): a line for each type, by name, then `micro avg`.

    Empty if neither side holds an entity, because seqeval then has nothing to report.
    """
    from seqeval.metrics import classification_report
    from seqeval.scheme import IOBES

    pairs = list(zip(gold, predictions, strict=True))
    if not any(sentence.entities or prediction.entities for sentence, prediction in pairs):
        return []
    truth = [encode(sentence.entities or (), len(sentence.tokens), SEQEVAL) for sentence, _ in pairs]
    guess = [encode(prediction.entities, len(sentence.tokens), SEQEVAL) for sentence, prediction in pairs]
    report = classification_report(truth, guess, mode="strict", scheme=IOBES, output_dict=True, zero_division=0)
    types = sorted(name for name in report if name not in AVERAGES)
    return [_line(name, report[name]) for name in (*types, MICRO)]


def _line(name: str, scores: Mapping[str, float]) -> TypeReport:
    return TypeReport(
        type=name,
        precision=100 * float(scores["precision"]),
        recall=100 * float(scores["recall"]),
        f1=100 * float(scores["f1-score"]),
        support=int(scores["support"]),
    )


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
