"""Linear probes on states whose content is planted: what they find, within train and on another split."""

from collections.abc import Sequence

import numpy as np
import pytest

from core.encoders.transfer import probe_gain, probed, tag_codes, within
from core.models.crf import bioes_tags
from core.results import Evaluation, FloatArray
from core.stats.scoring import count, evaluate
from core.text.schemes import encode
from core.text.sentence import Sentence
from tests.conftest import sentence

TYPES = ("LOC", "PER")


def sentences(n: int, seed: int) -> list[Sentence]:
    """Of eight words, an entity of one and one of two or three in each."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        end = int(rng.integers(5, 8))
        spans = [(1, 2, TYPES[rng.integers(2)]), (end - 2, end, TYPES[rng.integers(2)])]
        rows.append(sentence(" ".join(f"w{seed}n{i}x{j}" for j in range(8)), spans))
    return rows


def states(rows: Sequence[Sentence], signal: float, seed: int) -> FloatArray:
    """Noise, and of every word's tag a direction of its own."""
    codes = tag_codes(rows, TYPES)
    of_tag = signal * np.random.default_rng(99).normal(size=(9, 16))
    return (np.random.default_rng(seed).normal(size=(len(codes), 16)) + of_tag[codes]).astype(np.float32)


@pytest.mark.parametrize(("signal", "least", "most"), [(0.0, 0.0, 25.0), (3.0, 95.0, 100.0)])
def test_probe_f1_follows_the_planted_signal(signal: float, least: float, most: float) -> None:
    train, dev = sentences(60, 1), sentences(40, 2)
    predictions = probed(states(train, signal, 3), train, states(dev, signal, 4), dev, TYPES)
    assert least <= evaluate(dev, predictions, TYPES).f1() <= most


def test_cross_validated_probe_does_not_memorise_words() -> None:
    """States that are each word's own number tell the tags of the words that were seen, and no others."""
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
    """Two readers of equal skill: their difference is 0, and an interval of 90% misses it in about a tenth."""
    gold = sentences(60, 9)

    def read(skill: float, seed: int) -> Evaluation:
        rng, spans = np.random.default_rng(seed), [row.entities or () for row in gold]
        return count(spans, [[one for one in each if rng.random() < skill] for each in spans], TYPES)

    intervals = [probe_gain(read(0.6, 2 * i), read(0.6, 2 * i + 1), 0.9) for i in range(200)]
    missed = sum(not each.lo <= 0 <= each.hi for each in intervals)
    assert 8 <= missed <= 36
    sure = probe_gain(read(0.9, 1), read(0.4, 2), 0.99)
    assert 0 < sure.lo < sure.delta < sure.hi
