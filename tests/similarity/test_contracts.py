"""The promises that every similarity measure keeps."""

import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import pytest

from core.errors import Cancelled, CorpusError
from core.reporter import Silent
from core.similarity.base import Measure, Sample
from core.similarity.measures import MEASURES, MeasureName, make_measure
from tests.reporters import Canceller
from tests.similarity.conftest import sample

ROOT = Path(__file__).resolve().parents[2]
SIZE = 2000  # words that all samples together have at most
FRUIT = [f"fruit{i}" for i in range(60)]
METAL = [f"metal{i}" for i in range(60)]
EVERY = pytest.mark.parametrize("name", MEASURES)


def chained(words: Sequence[str], n: int, seed: int, jumps: float = 0.1) -> list[list[str]]:
    """Sentences in which a word is followed by its neighbour in `words`, so that order and contexts tell a source."""
    lots = random.Random(seed)
    found = []
    for _ in range(n):
        at = lots.randrange(len(words))
        sentence = []
        for _ in range(10):
            sentence.append(words[at % len(words)])
            at = lots.randrange(len(words)) if lots.random() < jumps else at + 1
        found.append(sentence)
    return found


def shuffled(words: Sequence[str], seed: int) -> list[str]:
    return random.Random(seed).sample(list(words), len(words))


TARGET = sample(chained(FRUIT, 150, 1), "target")
NEAR = sample(chained(FRUIT, 600, 2), "near")
FAR = sample(chained(shuffled([*FRUIT[:30], *METAL], 3), 600, 4), "far")


def measure(name: str, seed: int = 0, **options: object) -> Measure:
    return make_measure(name, {"tagger": "built-in", **options}, seed=seed, vocabulary_size=SIZE)


def value(name: str, source: Sample, target: Sample = TARGET, seed: int = 0) -> float:
    each = measure(name, seed)
    return each.compare(each.fit(source, Silent()), target, Silent()).value


@EVERY
def test_measurement_is_labelled_and_prefers_the_close_source(name: str) -> None:
    each = measure(name)
    learnt = each.fit(NEAR, Silent())
    with pytest.raises(Cancelled):
        each.fit(NEAR, Canceller())
    with pytest.raises(Cancelled):
        each.compare(learnt, TARGET, Canceller())
    found = each.compare(learnt, TARGET, Silent())
    assert (found.name, found.unit, found.prefer) == (name, MEASURES[name].unit, MEASURES[name].prefer)
    assert math.isfinite(found.value)
    assert found.convention
    assert set(found.columns) == set(MEASURES[name].columns)
    json.dumps(asdict(found), allow_nan=False)
    far = value(name, FAR)
    assert (found.value > far) if found.prefer == "high" else (found.value < far)


@EVERY
def test_comparing_does_not_change_a_fitted_source(name: str) -> None:
    each = measure(name)
    learnt = each.fit(NEAR, Silent())
    other = sample(chained(METAL, 20, 5), "other")
    first = each.compare(learnt, TARGET, Silent()).value
    try:
        each.compare(learnt, other, Silent())
    except CorpusError:
        assert name == "wvv"  # no word in both
    assert each.compare(learnt, TARGET, Silent()).value == first


@EVERY
@pytest.mark.parametrize(
    "source",
    [["one"], ["a b"], ["слово за словом " * 3], ["x " * 30]],
    ids=["one word", "shorter than the order", "another script", "one word again and again"],
)
def test_poor_text_gives_a_finite_number_or_an_error(name: str, source: list[str]) -> None:
    each = measure(name)
    with suppress(CorpusError):  # its sentence is the other good answer
        found = each.compare(each.fit(sample(source, "poor"), Silent()), TARGET, Silent())
        assert math.isfinite(found.value)
        json.dumps(asdict(found), allow_nan=False)


PROGRAM = """
import json
from tests.similarity.test_contracts import MEASURES, NEAR, value
print(json.dumps({name: repr(value(name, NEAR, seed=7)) for name in MEASURES}))
"""


def test_same_seed_gives_the_same_digits_in_two_processes() -> None:
    assert get_args(MeasureName) == tuple(MEASURES)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {name: repr(value(name, NEAR, seed=7)) for name in MEASURES}
