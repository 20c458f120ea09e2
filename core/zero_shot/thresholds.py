"""Choose the minimum confidence of each type on a dev set, and apply it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.stats.calibration import abstaining
from core.text.sentence import Entity, Prediction, Sentence


def renamed(prediction: Prediction, types: Mapping[str, str]) -> Prediction:
    """Return a prediction with types renamed by `types`, without entities whose type maps to ""."""
    kept = [
        (replace(entity, type=types[entity.type]), sure)
        for entity, sure in zip(prediction.entities, prediction.confidence, strict=True)
        if types[entity.type]
    ]
    return _prediction(kept)


def surer_than(prediction: Prediction, thresholds: Mapping[str, float]) -> Prediction:
    """Return a prediction without entities whose confidence is below the threshold of their type."""
    pairs = zip(prediction.entities, prediction.confidence, strict=True)
    return _prediction([(entity, sure) for entity, sure in pairs if sure >= thresholds[entity.type]])


def _prediction(pairs: Sequence[tuple[Entity, float]]) -> Prediction:
    return Prediction(entities=tuple(entity for entity, _ in pairs), confidence=tuple(sure for _, sure in pairs))


def best_thresholds(
    gold: Sequence[Sentence], predictions: Sequence[Prediction], types: Collection[str]
) -> dict[str, float]:
    """Return {type: threshold with the highest F1}. In a tie, the lowest threshold is used.

    For each type, 0 and the confidence of each predicted entity are compared. A type without labelled entities is left
    out, because its F1 is 0 at every threshold.
    """
    found: dict[str, list[tuple[float, bool]]] = {type: [] for type in types}
    labelled = dict.fromkeys(types, 0)
    for sentence, prediction in zip(gold, predictions, strict=True):
        truth = set(sentence.entities or ())
        for entity in truth:
            if entity.type in labelled:
                labelled[entity.type] += 1
        for entity, sure in zip(prediction.entities, prediction.confidence, strict=True):
            found[entity.type].append((sure, entity in truth))
    return {type: _best(found[type], n) for type, n in labelled.items() if n}


def _best(found: Sequence[tuple[float, bool]], labelled: int) -> float:
    confidence = np.array([sure for sure, _ in found], dtype=np.float64)
    right = np.array([good for _, good in found], dtype=np.bool_)
    steps = [0.0, *np.unique(confidence).tolist()]
    return max(abstaining(confidence, right, labelled, steps), key=lambda row: row.f1).least
