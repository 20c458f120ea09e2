"""Linear probes, H-score, and LogME: planted states, and direct implementations of the papers."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.optimize import minimize

from core.encoders.transfer import h_score, log_me, probe_gain, probed, tag_codes, within
from core.models.crf import bioes_tags
from core.results import Evaluation, FloatArray, IntArray
from core.stats.scoring import count, evaluate
from core.text.schemes import encode
from core.text.sentence import Sentence
from tests.conftest import sentence


def planted(signal: float, seed: int = 0, n: int = 240, d: int = 12, k: int = 4) -> tuple[FloatArray, IntArray]:
    """Return features and unbalanced classes: noise with sd 1 around class means with sd `signal`."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, size=n, p=np.arange(1, k + 1) / sum(range(1, k + 1)))
    return (rng.normal(size=(n, d)) + signal * rng.normal(size=(k, d))[labels]).astype(np.float32), labels


def ledoit_wolf(rows: FloatArray) -> float:
    """Return the shrinkage of Ledoit and Wolf 2004, term by term."""
    n, d = rows.shape
    sample = sum(np.outer(row, row) for row in rows) / n
    mu = np.trace(sample) / d
    distance = ((sample - mu * np.eye(d)) ** 2).sum() / d
    error = sum(((np.outer(row, row) - sample) ** 2).sum() for row in rows) / n**2 / d
    return float(min(error, distance) / distance)


def direct_h_score(features: FloatArray, labels: IntArray) -> float:
    """Compute Ibrahim et al. 2022: trace of the inverse of the shrunk covariance times that of the rows' class means."""
    rows = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    n, d = rows.shape
    alpha, sample = ledoit_wolf(rows), rows.T @ rows / n
    of_class = np.stack([rows[labels == label].mean(0) for label in labels])
    shrunk = (1 - alpha) * sample + alpha * np.trace(sample) / d * np.eye(d)
    return float((1 - alpha) * np.trace(np.linalg.inv(shrunk) @ (of_class.T @ of_class / n)))


def direct_log_me(features: FloatArray, labels: IntArray) -> float:
    """Compute You et al. 2021: the printed evidence, maximised over its two precisions by a general optimiser."""
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
    """Scores grow with the signal in each of 20 draws."""
    for seed in range(20):
        features = {signal: planted(signal, seed) for signal in (0.0, 0.5, 1.5)}
        for score in (h_score, log_me):
            values = [score(*features[signal]) for signal in (0.0, 0.5, 1.5)]
            assert values == sorted(values), (score.__name__, values)
    assert h_score(*planted(50.0)) == pytest.approx(3, abs=0.1)  # the maximum: number of classes - 1


def test_constant_columns_and_a_single_class_are_scored() -> None:
    features, labels = planted(1.0)
    still = np.hstack([features, np.ones((len(features), 1), dtype=np.float32)])
    assert np.isfinite([h_score(still, labels), log_me(still, labels)]).all()
    assert h_score(features, np.zeros(len(features), dtype=np.int64)) == pytest.approx(0, abs=1e-9)


TYPES = ("LOC", "PER")


def sentences(n: int, seed: int) -> list[Sentence]:
    """Return sentences of eight words with one entity of one word and one of two or three words."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        end = int(rng.integers(5, 8))
        spans = [(1, 2, TYPES[rng.integers(2)]), (end - 2, end, TYPES[rng.integers(2)])]
        rows.append(sentence(" ".join(f"w{seed}n{i}x{j}" for j in range(8)), spans))
    return rows


def states(rows: Sequence[Sentence], signal: float, seed: int) -> FloatArray:
    """Return noise plus `signal` times a direction per tag."""
    codes = tag_codes(rows, TYPES)
    of_tag = signal * np.random.default_rng(99).normal(size=(9, 16))
    return (np.random.default_rng(seed).normal(size=(len(codes), 16)) + of_tag[codes]).astype(np.float32)


@pytest.mark.parametrize(("signal", "least", "most"), [(0.0, 0.0, 25.0), (3.0, 95.0, 100.0)])
def test_probe_f1_follows_the_planted_signal(signal: float, least: float, most: float) -> None:
    train, dev = sentences(60, 1), sentences(40, 2)
    predictions = probed(states(train, signal, 3), train, states(dev, signal, 4), dev, TYPES)
    assert least <= evaluate(dev, predictions, TYPES).f1() <= most


def test_cross_validated_probe_does_not_memorise_words() -> None:
    """One-hot states identify each word, so they predict only tags of words in the probe's training data."""
    train = sentences(30, 5)
    n = sum(len(row.tokens) for row in train)
    own = np.eye(n, dtype=np.float32)
    assert evaluate(train, probed(own, train, own, train, TYPES), TYPES).f1() > 99
    assert within(own, train, TYPES, 3).f1() < 20
    assert within(states(train, 3.0, 6), train, TYPES, 3).f1() > 90


def test_tag_codes_follow_bioes_and_empty_sentences_get_no_entities() -> None:
    train = sentences(20, 7)
    tags = [bioes_tags(TYPES)[i] for i in tag_codes(train[:1], TYPES)]
    assert tags == list(encode(train[0].entities or (), 8, "bioes"))
    dev, known = [train[0], sentence(""), train[1]], states(train, 3.0, 8)
    predictions = probed(known, train, known[:16], dev, TYPES)
    assert [bool(each.entities) for each in predictions] == [True, False, True]


def test_probe_gain_interval_has_its_nominal_coverage() -> None:
    """Two taggers of equal skill differ by 0, and a 90% interval misses 0 in about 10% of cases."""
    gold = sentences(60, 9)

    def read(skill: float, seed: int) -> Evaluation:
        rng, spans = np.random.default_rng(seed), [row.entities or () for row in gold]
        return count(spans, [[one for one in each if rng.random() < skill] for each in spans], TYPES)

    intervals = [probe_gain(read(0.6, 2 * i), read(0.6, 2 * i + 1), 0.9) for i in range(200)]
    missed = sum(not each.lo <= 0 <= each.hi for each in intervals)
    assert 8 <= missed <= 36
    sure = probe_gain(read(0.9, 1), read(0.4, 2), 0.99)
    assert 0 < sure.lo < sure.delta < sure.hi
