"""H-score and LogME against a second, direct reading of the papers, and on features whose worth is known."""

import numpy as np
import pytest
from scipy.optimize import minimize

from core.encoders.transfer import h_score, log_me
from core.results import FloatArray, IntArray


def planted(signal: float, seed: int = 0, n: int = 240, d: int = 12, k: int = 4) -> tuple[FloatArray, IntArray]:
    """Features with noise of spread 1 and class means of spread `signal`, and the classes, which are not balanced."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, size=n, p=np.arange(1, k + 1) / sum(range(1, k + 1)))
    return (rng.normal(size=(n, d)) + signal * rng.normal(size=(k, d))[labels]).astype(np.float32), labels


def ledoit_wolf(rows: FloatArray) -> float:
    """The shrinkage of Ledoit and Wolf 2004, term by term."""
    n, d = rows.shape
    sample = sum(np.outer(row, row) for row in rows) / n
    mu = np.trace(sample) / d
    distance = ((sample - mu * np.eye(d)) ** 2).sum() / d
    error = sum(((np.outer(row, row) - sample) ** 2).sum() for row in rows) / n**2 / d
    return float(min(error, distance) / distance)


def direct_h_score(features: FloatArray, labels: IntArray) -> float:
    """Ibrahim et al. 2022: trace of the inverse of the shrunk covariance times that of each row's class mean."""
    rows = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    n, d = rows.shape
    alpha, sample = ledoit_wolf(rows), rows.T @ rows / n
    of_class = np.stack([rows[labels == label].mean(0) for label in labels])
    shrunk = (1 - alpha) * sample + alpha * np.trace(sample) / d * np.eye(d)
    return float((1 - alpha) * np.trace(np.linalg.inv(shrunk) @ (of_class.T @ of_class / n)))


def direct_log_me(features: FloatArray, labels: IntArray) -> float:
    """You et al. 2021: the evidence as it is printed, its two precisions sought by a general optimiser."""
    rows = features.astype(np.float64)
    n, d = rows.shape

    def loss(logs: FloatArray, y: FloatArray) -> float:
        alpha, beta = np.exp(logs)
        a = alpha * np.eye(d) + beta * rows.T @ rows
        m = beta * np.linalg.solve(a, rows.T @ y)
        fit = beta / 2 * ((rows @ m - y) ** 2).sum() + alpha / 2 * m @ m
        log_det = np.linalg.slogdet(a)[1]
        evidence = n / 2 * np.log(beta) + d / 2 * np.log(alpha) - n / 2 * np.log(2 * np.pi) - fit - log_det / 2
        return float(-evidence / n)

    best = [
        minimize(loss, np.zeros(2), (1.0 * (labels == label),), method="Nelder-Mead", options={"xatol": 1e-8}).fun
        for label in np.unique(labels)
    ]
    return -float(np.mean(best))


@pytest.mark.parametrize("signal", [0.0, 0.5, 2.0])
def test_scores_equal_direct_implementations_of_the_papers(signal: float) -> None:
    features, labels = planted(signal)
    assert h_score(features, labels) == pytest.approx(direct_h_score(features, labels), rel=1e-9)
    assert log_me(features, labels) == pytest.approx(direct_log_me(features, labels), abs=1e-4)
    wide, labels = planted(1.0, n=30, d=50)  # more columns than rows
    assert h_score(wide, labels) == pytest.approx(direct_h_score(wide, labels), rel=1e-6)
    if signal == 0.0:
        assert log_me(wide, labels) == pytest.approx(direct_log_me(wide, labels), abs=1e-3)


def test_informative_features_score_above_noise() -> None:
    """In every one of twenty draws, and the more it tells the further."""
    for seed in range(20):
        features = {signal: planted(signal, seed) for signal in (0.0, 0.5, 1.5)}
        for score in (h_score, log_me):
            values = [score(*features[signal]) for signal in (0.0, 0.5, 1.5)]
            assert values == sorted(values), (score.__name__, values)
    assert h_score(*planted(50.0)) == pytest.approx(3, abs=0.1)  # the number of classes - 1 is the most


def test_constant_columns_and_a_single_class_are_scored() -> None:
    features, labels = planted(1.0)
    still = np.hstack([features, np.ones((len(features), 1), dtype=np.float32)])
    assert np.isfinite([h_score(still, labels), log_me(still, labels)]).all()
    assert h_score(features, np.zeros(len(features), dtype=np.int64)) == pytest.approx(0, abs=1e-9)
