"""Confidences beside what came true: how far they are off, the temperature that mends them, what a threshold keeps.

SOURCES.md, Confidences. A confidence is an entity's probability, 0 to 1, of being right in start, end and type.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.results import BoolArray, FloatArray, percent_f1
from core.text.sentence import Prediction, Sentence

BINS = 15  # of equal width, as Guo et al. 2017
FEWEST = 20  # right entities, and wrong ones, below which a temperature would be fitted to chance
TEMPERATURES = tuple(1.25**k for k in range(-4, 13))  # .41 to 14.6
_EDGE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Confidences of a tagger's entities on one split. Shares, 0 to 1.

    temperature: that the chain's scores were divided by. entities: predicted. right: share of them that is right.
    confidence: their mean, tempered. before, after: expected calibration error without the temperature and with it.
    """

    temperature: float
    entities: int
    right: float
    confidence: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstaining:
    """Scores where entities below a confidence are dropped. precision, recall, f1: percent."""

    least: float
    entities: int
    precision: float
    recall: float
    f1: float


def confidences(gold: Sequence[Sentence], predictions: Sequence[Sequence[Prediction]]) -> tuple[FloatArray, BoolArray]:
    """`(m, t)` confidences of the m predicted entities under t temperatures, and `(m,)` whether each is right."""
    right = [
        entity in (sentence.entities or ())
        for sentence, prediction in zip(gold, predictions[0], strict=True)
        for entity in prediction.entities
    ]
    sure = [[value for one in column for value in one.confidence] for column in predictions]
    return np.array(sure, dtype=np.float64).reshape(len(predictions), -1).T, np.array(right, dtype=np.bool_)


def calibration_error(confidence: FloatArray, right: BoolArray) -> float:
    """Expected calibration error: mean confidence less share right, in bins of equal width by their sizes; 0 of none.

    confidence, right: `(m,)`.
    """
    place = np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)
    gaps = np.bincount(place, confidence - right, minlength=BINS)
    return float(np.abs(gaps).sum() / max(len(confidence), 1))


def best_temperature(confidence: FloatArray, right: BoolArray) -> float:
    """The temperature under which confidences explain best what was right: least log loss; 1 where too little is known.

    confidence: `(m, t)`, under each of TEMPERATURES. right: `(m,)`.
    """
    if min(right.sum(), (~right).sum()) < FEWEST:
        return 1.0
    # A certainty that turned out wrong has an infinite loss.
    sure = np.clip(confidence, _EDGE, 1 - _EDGE)
    loss = -np.where(right[:, None], np.log(sure), np.log1p(-sure)).mean(axis=0)
    best = int(loss.argmin())
    # At an end of the grid there is no third point for a parabola.
    if best in (0, len(TEMPERATURES) - 1):
        return TEMPERATURES[best]
    # A parabola through the three lowest points, in the logarithm: the grid is too coarse to be the answer.
    low, mid, high = loss[best - 1 : best + 2]
    shift = (low - high) / max(2 * (low - 2 * mid + high), _EDGE)
    # Not beyond the neighbours: where the bottom is flat, the vertex may lie anywhere.
    return float(TEMPERATURES[best] * 1.25 ** np.clip(shift, -1, 1))


def calibration(confidence: FloatArray, right: BoolArray, temperature: float) -> Calibration:
    """Confidences `(m, 2)`, without a temperature and with it, beside what was right."""
    return Calibration(
        temperature=temperature,
        entities=len(right),
        right=float(right.mean()) if len(right) else 0.0,
        confidence=float(confidence[:, 1].mean()) if len(right) else 0.0,
        before=calibration_error(confidence[:, 0], right),
        after=calibration_error(confidence[:, 1], right),
    )


def abstaining(
    confidence: FloatArray, right: BoolArray, labelled: int, steps: Sequence[float] | None = None
) -> list[Abstaining]:
    """Scores at each least confidence. labelled: gold entities. steps: default 0, .05, ... .95."""
    rows = []
    for least in steps or [round(0.05 * i, 2) for i in range(20)]:
        kept = confidence >= least
        n, good = int(kept.sum()), int(right[kept].sum())
        rows.append(
            Abstaining(
                least=least,
                entities=n,
                precision=100 * good / max(n, 1),
                recall=100 * good / max(labelled, 1),
                f1=percent_f1(good, n, labelled),
            )
        )
    return rows
