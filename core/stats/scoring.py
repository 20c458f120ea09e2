"""Count exact matches of predicted and gold entities, for all F1 scores and tests (SOURCES.md, Span scoring)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from core.results import Evaluation, percent_f1
from core.text.schemes import encode
from core.text.sentence import Entity, Prediction, Sentence

# Tag scheme for seqeval, which calls it IOBES.
SEQEVAL: Final = "bioes"
# Name of the row over all types in seqeval's report.
MICRO = "micro avg"
AVERAGES = (MICRO, "macro avg", "weighted avg")
# Minimum F1, in percent, of a tagger that learnt something: one entity in a hundred found, and none invented.
LEAST = 2.0


def evaluate(
    gold: Sequence[Sentence], predictions: Sequence[Prediction], types: Sequence[str] | None = None
) -> Evaluation:
    """Count the exact matches of predictions with the gold entities of sentences. types, errors: as for `count`."""
    return count([s.entities or () for s in gold], [p.entities for p in predictions], types)


def count(
    gold: Sequence[Iterable[Entity]], predicted: Sequence[Iterable[Entity]], types: Sequence[str] | None = None
) -> Evaluation:
    """Count gold, predicted and exactly matching spans per sentence and type, like seqeval's strict mode.

    A match has the same start, end and type. types: types to count, for example of all splits; None: all types that
    occur. Errors: ValueError if a type occurs that is not in `types`.
    """
    # In a set, a span that was predicted twice counts once.
    spans = [(set(truth), set(guess)) for truth, guess in zip(gold, predicted, strict=True)]
    occurring = {entity.type for pair in spans for side in pair for entity in side}
    names = tuple(sorted(occurring if types is None else types))
    # Raise an error, because ignoring spans of other types would silently change the score.
    if unknown := occurring - set(names):
        raise ValueError(f"types {sorted(unknown)} occur, but are not among the types to count, {names}")
    column = {name: i for i, name in enumerate(names)}
    tables = np.zeros((3, len(spans), len(names)), dtype=np.int32)
    for row, (truth, guess) in enumerate(spans):
        for table, entities in zip(tables, (truth & guess, guess, truth), strict=True):
            for entity in entities:
                table[row, column[entity.type]] += 1
    return Evaluation(types=names, tp=tables[0], predicted=tables[1], gold=tables[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeReport:
    """A row of seqeval's classification report, with scores in percent.

    type: entity type, or `micro avg`. support: number of gold entities.
    """

    type: str
    precision: float
    recall: float
    f1: float
    support: int


def seqeval_report(gold: Sequence[Sentence], predictions: Sequence[Prediction]) -> list[TypeReport]:
    """Return seqeval's strict IOBES report (Nakayama 2018): a row per type, sorted by name, then `micro avg`.

    Return [] without any gold or predicted entity, because seqeval fails then.
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
    """Return the spans of BIOES tags, as the code that Mahapatra et al. 2022 cite extracts them.

    Every E ends a span, which begins at the last B before it and has the type of E. I is ignored. An E without a B
    before it ends a span that begins at -1; this span counts as predicted but never matches.
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


def chance_f1(gold: Sequence[Sentence], predictions: Sequence[Prediction]) -> float:
    """Return the micro F1, percent, that randomly placed spans exceed in about one of 40 cases.

    Each predicted span keeps its type and length, and is placed at random in any sentence of the same length as its
    own. A tagger that gives every word the same label has exactly the mean score of these random placements.
    """
    lengths = [len(sentence.tokens) for sentence in gold]
    labelled = _kinds(lengths, (sentence.entities or () for sentence in gold))
    predicted = _kinds(lengths, (prediction.entities for prediction in predictions))
    sentences = Counter(lengths)
    right = 0.0
    for (length, kind, words), n in predicted.items():
        # Divide by the number of positions of such a span in all sentences of this length.
        right += n * labelled[length, kind, words] / (sentences[length] * (length - words + 1))
    # The number of matches varies at most as a Poisson variable does. Add two standard deviations to its mean.
    return min(percent_f1(right + 2 * sqrt(right), predicted.total(), labelled.total()), 100.0)


def learnt(f1: float, lot: float) -> bool:
    """Return True if a tagger with this F1 learnt something. lot: result of `chance_f1`. Both are in percent."""
    return f1 >= LEAST and f1 > lot


def _kinds(lengths: Sequence[int], sentences: Iterable[Iterable[Entity]]) -> Counter[tuple[int, str, int]]:
    """Count spans by (sentence length, type, span length)."""
    return Counter(
        (length, entity.type, entity.end - entity.start)
        for length, entities in zip(lengths, sentences, strict=True)
        for entity in set(entities)
    )
