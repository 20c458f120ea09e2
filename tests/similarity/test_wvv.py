"""WVV: the formula by loops, which vectors move, seeds, and being stopped."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Cancelled, CorpusError
from core.reporter import Silent
from core.similarity.measures import make_measure
from core.similarity.wvv import Wvv, distances
from tests.reporters import Canceller, Recorder
from tests.similarity.conftest import sample
from tests.similarity.test_contracts import FRUIT, METAL, NEAR, TARGET, chained


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**16))
def test_wvv_equals_its_formula_in_loops(v: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.normal(size=(2, v, d)).astype(np.float32)
    shared = np.flatnonzero(rng.random(v) < 0.7)
    if not len(shared):
        return
    every = mean = length = 0.0
    for i in range(v):
        moved = 0.0
        for j in range(d):
            moved += (float(before[i, j]) - float(after[i, j])) ** 2
        every += moved / v / d
        if i in shared:
            mean += moved / len(shared)
            length += math.sqrt(moved) / len(shared)
    found = distances(before, after, shared)
    assert found["wvv_eq"] == pytest.approx(every, rel=1e-5)
    assert found["wvv"] == pytest.approx(mean, rel=1e-5)
    assert found["wvv_l2"] == pytest.approx(length, rel=1e-5)


def measure(seed: int = 0, **options: object) -> Wvv:
    found = make_measure("wvv", options, seed=seed, vocabulary_size=0)
    assert isinstance(found, Wvv)
    return found


def test_words_missing_in_the_target_do_not_move() -> None:
    """So dividing by the source's vocabulary mostly measures its size (SOURCES.md, Word vector variance)."""
    source = sample([*chained(FRUIT, 200, 1), *chained(METAL, 200, 2)], "source")
    each = measure()
    found = each.compare(each.fit(source, Silent()), TARGET, Silent())
    assert found.columns["shared"] == len(FRUIT)
    words = len(FRUIT) + len(METAL)
    assert found.columns["wvv_eq"] == pytest.approx(found.value * len(FRUIT) / words / 100, rel=1e-6)


def test_vectors_continue_from_the_source_and_depend_on_the_seed() -> None:
    """A target that is the source moves them less than one with other contexts for the same words."""
    each, other_seed, several = measure(), measure(1), measure(workers=2)
    learnt = each.fit(NEAR, Silent())
    same = each.compare(learnt, TARGET, Silent())
    other = each.compare(learnt, sample(chained(FRUIT[::7] * 7, 150, 1), "other"), Silent()).value
    assert same.value < other
    assert same.value != other_seed.compare(other_seed.fit(NEAR, Silent()), TARGET, Silent()).value
    assert "not repeatable" not in same.convention
    found = several.compare(several.fit(NEAR, Silent()), TARGET, Silent())
    assert "2 workers, so not repeatable" in found.convention


def test_missing_frequent_or_shared_words_are_refused() -> None:
    with pytest.raises(CorpusError, match="rare: no word occurs 5 times in its 4 tokens"):
        measure().fit(sample(["a b c d"], "rare"), Silent())
    each = measure()
    learnt = each.fit(NEAR, Silent())
    with pytest.raises(CorpusError, match="other: shares no word"):
        each.compare(learnt, sample(["слово за словом"], "other"), Silent())


def test_progress_counts_tokens_of_all_epochs_and_cancel_stops_at_once() -> None:
    ear, stop = Recorder(), Canceller(3)
    measure().fit(NEAR, ear)
    done = [first for first, _, _ in ear.told]
    assert done == sorted(done)
    assert {(total, unit) for _, total, unit in ear.told} == {(5 * NEAR.n_tokens, "tokens")}
    assert done[-1] > 4 * NEAR.n_tokens
    with pytest.raises(Cancelled):
        measure(skipgram_epochs=50).fit(NEAR, stop)
    assert stop.checks == 3
