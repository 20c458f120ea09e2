"""Compare confidences with outcomes: calibration error, best temperature, and scores above a confidence threshold.

A confidence is the probability, 0 to 1, that an entity has the right start, end and type (SOURCES.md, Confidences).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.results import BoolArray, FloatArray, percent_f1
from core.text.sentence import Prediction, Sentence

# Number of bins of equal width for the calibration error, as in Guo et al. 2017.
BINS = 15
# A temperature is fitted only if at least this many entities are right and as many are wrong, to avoid fitting noise.
FEWEST = 20
# Temperatures to try, from 0.41 to 14.6.
TEMPERATURES = tuple(1.25**k for k in range(-4, 13))
_EDGE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Calibration of a tagger's confidences on one split. Shares, confidences and errors are between 0 and 1.

    temperature: divisor of the CRF's scores. entities: number of predicted entities. right: share of correct entities.
    confidence: mean confidence with the temperature. before, after: expected calibration error without and with the
    temperature.
    """

    temperature: float
    entities: int
    right: float
    confidence: float
    before: float
    after: float

    @property
    def fitted(self) -> bool:
        """True if the temperature was fitted. With too few entities (`FEWEST`), it is exactly 1."""
        return self.temperature != 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstaining:
    """Scores of a tagger if entities with a confidence below `least` are left out.

    entities: number of entities that are kept. precision, recall, f1: percent.
    """

    least: float
    entities: int
    precision: float
    recall: float
    f1: float


def confidences(gold: Sequence[Sentence], predictions: Sequence[Sequence[Prediction]]) -> tuple[FloatArray, BoolArray]:
    """Return the confidences of m predicted entities at t temperatures, `(m, t)`, and a mask of correct ones, `(m,)`.

    predictions: the same entities for each of the t temperatures.
    """
    right = [
        entity in (sentence.entities or ())
        for sentence, prediction in zip(gold, predictions[0], strict=True)
        for entity in prediction.entities
    ]
    sure = [[value for one in column for value in one.confidence] for column in predictions]
    return np.array(sure, dtype=np.float64).reshape(len(predictions), -1).T, np.array(right, dtype=np.bool_)


def calibration_error(confidence: FloatArray, right: BoolArray) -> float:
    """Return the expected calibration error: |mean confidence - share correct| per bin, weighted by bin size.

    Return 0 without entities. confidence: `(m,)` of each entity. right: `(m,)`, True for correct entities.
    """
    place = np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)
    gaps = np.bincount(place, confidence - right, minlength=BINS)
    return float(np.abs(gaps).sum() / max(len(confidence), 1))


def best_temperature(confidence: FloatArray, right: BoolArray) -> float:
    """Return the temperature with the least log loss; 1 if there are too few entities.

    confidence: `(m, t)`, one column for each of TEMPERATURES. right: `(m,)`, True for correct entities.
    """
    if min(right.sum(), (~right).sum()) < FEWEST:
        return 1.0
    # Clip, because a wrong prediction with confidence 1 would have an infinite loss.
    sure = np.clip(confidence, _EDGE, 1 - _EDGE)
    loss = -np.where(right[:, None], np.log(sure), np.log1p(-sure)).mean(axis=0)
    best = int(loss.argmin())
    # A parabola needs a neighbour on both sides.
    if best in (0, len(TEMPERATURES) - 1):
        return TEMPERATURES[best]
    # The grid is coarse, so take the vertex of a parabola through the lowest point and its two neighbours, on
    # a log scale.
    low, mid, high = loss[best - 1 : best + 2]
    shift = (low - high) / max(2 * (low - 2 * mid + high), _EDGE)
    # Stay between the two neighbours, because for nearly equal losses the vertex may be far away.
    return float(TEMPERATURES[best] * 1.25 ** np.clip(shift, -1, 1))


def calibration(confidence: FloatArray, right: BoolArray, temperature: float) -> Calibration:
    """Return the calibration without and with a temperature.

    confidence: `(m, 2)` confidences of the entities, without and with the temperature. right: `(m,)`, True for correct
    entities.
    """
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
    """Return the scores at each confidence threshold.

    confidence, right: `(m,)` confidence of each entity, and True if it is correct. labelled: number of gold entities.
    steps: thresholds; by default 0, .05, ... .95.
    """
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
