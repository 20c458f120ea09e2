"""Confidences: a planted miscalibration is found and corrected, and a threshold keeps all entities that reach it."""

import numpy as np
import pytest

from core.results import BoolArray, FloatArray
from core.stats.calibration import (
    BINS,
    TEMPERATURES,
    abstaining,
    best_temperature,
    calibration,
    calibration_error,
    confidences,
)
from core.text.sentence import Entity, Prediction, Sentence

RIVALS = 8  # alternative readings of the same words, all equally likely


def tempered(truth: FloatArray, rivals: int, temperature: float) -> FloatArray:
    """Return the confidence of a reading with `rivals` equally likely others, with all scores divided by `temperature`."""
    score = np.log(truth) - np.log((1 - truth) / rivals)
    return 1 / (1 + rivals * np.exp(-score / temperature))


def drawn(n: int, seed: int) -> tuple[FloatArray, BoolArray]:
    """Draw the true probabilities of entities, and which of the entities are right."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 2, n)
    return truth, rng.random(n) < truth


def world(planted: float, n: int, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    """Return confidences, shape (n, t), at each of TEMPERATURES, and which entities are right.

    planted: factor by which the scores of the tagger are too large.
    """
    truth, right = drawn(n, seed)
    return np.stack([tempered(truth, RIVALS, heat / planted) for heat in TEMPERATURES], 1), right


@pytest.mark.parametrize("planted", [0.6, 1.0, 1.6, 2.5, 5.0])
def test_a_planted_temperature_is_recovered_and_the_error_falls(planted: float) -> None:
    """Fitted on 600 entities, the temperature leaves other entities hardly more calibration error than the true one."""
    found, errors = [], []
    for seed in range(30):
        found.append(best_temperature(*world(planted, 600, seed)))
        truth, right = drawn(4000, 1000 + seed)
        heats = (1 / planted, found[-1] / planted, 1.0)
        errors.append([calibration_error(tempered(truth, RIVALS, heat), right) for heat in heats])
    before, after, least = np.mean(errors, axis=0)
    assert np.median(found) == pytest.approx(planted, rel=0.06)
    assert np.quantile(found, 0.9) / np.quantile(found, 0.1) < 1.6
    assert after < least + 0.02
    assert after < before / 2 or planted == 1.0


def test_calibrated_or_scarce_data_keep_temperature_one() -> None:
    assert best_temperature(*world(1.0, 5000)) == pytest.approx(1.0, rel=0.1)
    assert best_temperature(*world(4.0, 30)) == 1.0
    every = np.ones(500, dtype=np.bool_)
    assert best_temperature(world(4.0, 500)[0], every) == 1.0  # nothing is wrong: higher confidence would be better
    nothing = np.zeros((0, len(TEMPERATURES))), np.zeros(0, dtype=np.bool_)
    assert best_temperature(*nothing) == 1.0


def test_calibration_error_equals_hand_computed_bins() -> None:
    """Two bins: four entities at confidence 0.9, of which half are right, and one at 0.1, which is wrong."""
    sure, right = np.array([0.9, 0.9, 0.9, 0.9, 0.1]), np.array([True, True, False, False, False])
    assert calibration_error(sure, right) == pytest.approx((4 * 0.4 + 0.1) / 5)
    assert calibration_error(np.array([]), np.array([], dtype=np.bool_)) == 0.0
    assert calibration_error(np.ones(3), np.ones(3, dtype=np.bool_)) == 0.0
    halves = np.full(2 * BINS, 0.5)
    assert calibration_error(halves, np.arange(2 * BINS) % 2 == 0) == pytest.approx(0)
    two = np.array([[0.9, 0.6], [0.8, 0.4]])
    found = calibration(two, np.array([True, False]), 2.0)
    assert (found.temperature, found.entities, found.right) == (2.0, 2, 0.5)
    assert (found.confidence, found.before, found.after) == pytest.approx((0.5, (0.1 + 0.8) / 2, (0.4 + 0.4) / 2))
    assert calibration(np.zeros((0, 2)), np.zeros(0, dtype=np.bool_), 1.0).entities == 0


def test_minimum_confidence_keeps_entities_that_reach_it() -> None:
    sure, right = np.array([0.2, 0.6, 0.6, 0.95]), np.array([False, True, False, True])
    rows = {row.least: row for row in abstaining(sure, right, labelled=5)}
    assert list(rows) == [round(0.05 * i, 2) for i in range(20)]
    assert (rows[0.0].entities, rows[0.0].precision, rows[0.0].recall) == (4, 50.0, 40.0)
    assert (rows[0.6].entities, rows[0.65].entities) == (3, 1)
    assert (rows[0.95].precision, rows[0.95].recall) == (100.0, 20.0)
    assert rows[0.95].f1 == pytest.approx(2 * 100 * 20 / 120)
    (none,) = abstaining(sure, right, labelled=5, steps=[0.99])
    assert (none.entities, none.precision, none.recall, none.f1) == (0, 0.0, 0.0, 0.0)


def test_entity_is_right_only_if_start_end_and_type_match() -> None:
    gold = [
        Sentence(id="0" * 16, tokens=("a", "b"), text="a b", entities=(Entity(start=0, end=1, type="X"),)),
        Sentence(id="1" * 16, tokens=("a",), text="a", entities=()),
    ]
    found = (Entity(start=0, end=1, type="X"), Entity(start=1, end=2, type="X")), (Entity(start=0, end=1, type="Y"),)
    columns = [
        [Prediction(entities=found[0], confidence=(a, b)), Prediction(entities=found[1], confidence=(c,))]
        for a, b, c in ((0.9, 0.8, 0.7), (0.6, 0.5, 0.4))
    ]
    sure, right = confidences(gold, columns)
    assert sure.tolist() == [[0.9, 0.6], [0.8, 0.5], [0.7, 0.4]]
    assert right.tolist() == [True, False, False]
