"""PPL against a slow second implementation on random corpora, and its other readings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import CorpusError
from core.reporter import Silent
from core.results import Measurement
from core.similarity.measures import make_measure
from tests.models.test_ngram import TEST, TRAIN, SlowKneserNey
from tests.reporters import Recorder
from tests.similarity.conftest import sample

sentences = st.lists(st.sampled_from("abcde"), min_size=1, max_size=7)
corpora = st.lists(sentences, min_size=1, max_size=25)
Text = list[list[str]]


def measured(source: Text, target: Text, words: int | None = None, **options: object) -> Measurement:
    size = len({word for text in (source, target) for line in text for word in line}) if words is None else words
    measure = make_measure("ppl", options, seed=0, vocabulary_size=size)
    return measure.compare(measure.fit(sample(source), Silent()), sample(target, "target"), Silent())


@settings(max_examples=200, deadline=None)
@given(corpora, corpora, st.integers(1, 5), st.booleans())
def test_perplexity_equals_a_slow_implementation(source: Text, target: Text, order: int, count_end: bool) -> None:
    size = len({word for text in (source, target) for line in text for word in line}) + 2
    slow = SlowKneserNey(source, order, size)
    try:
        log10 = np.array([slow.log10(line) for line in target])
    except ValueError:  # a discount of nothing leaves nothing to an unknown word
        with pytest.raises(CorpusError, match="probability 0"):
            measured(source, target, order=order)
        return
    lengths = np.array([len(line) + count_end for line in target])
    each = 10 ** (-log10 / lengths)
    found = measured(source, target, order=order, skip_end=not count_end)
    assert found.value == pytest.approx(each.mean(), rel=1e-4)
    columns = found.columns
    assert columns["sum"] == pytest.approx(each.sum(), rel=1e-4)
    assert columns["median"] == pytest.approx(np.median(each), rel=1e-4)
    assert columns["corpus"] == pytest.approx(10 ** (-log10.sum() / lengths.sum()), rel=1e-4)
    known = {word for line in source for word in line}
    tokens = [word for line in target for word in line]
    assert columns["oov"] == pytest.approx(100 * sum(word not in known for word in tokens) / len(tokens))


def test_perplexity_of_the_toy_corpus_is_the_golden_number() -> None:
    """SOURCES.md, Golden numbers: V of the training text alone, as lmplz takes it."""
    found = measured(TRAIN, TEST, words=10)
    assert found.value == pytest.approx(6.9680, abs=5e-5)
    assert found.columns["sum"] == pytest.approx(13.9361, abs=5e-5)
    assert found.columns["corpus"] == pytest.approx(6.8866, abs=5e-5)
    assert "fallback discounts of order 2, 3, 4, 5" in found.convention


def test_shared_vocabulary_size_removes_the_advantage_of_small_sources() -> None:
    """Alone, a source of one word gives unknown words more than a source of many does; a shared V ends that."""
    small, large = [["a"] * 6] * 20, [[f"w{i}" for i in range(j, j + 6)] for j in range(40)]
    target = [["x", "y", "z"]]
    alone = [
        measured(source, target, words=len({w for line in source for w in line})).value for source in (small, large)
    ]
    shared = [measured(source, target, words=500).value for source in (small, large)]
    assert alone[0] < alone[1] / 3
    assert shared[0] > shared[1]


def test_source_without_any_target_word_is_noted() -> None:
    measure, ear = make_measure("ppl", {}, seed=0, vocabulary_size=50), Recorder()
    found = measure.compare(measure.fit(sample(["слово за слово"] * 5), Silent()), sample(["a b c"], "latin"), ear)
    assert found.columns["oov"] == 100
    assert np.isfinite(found.value)
    assert ear.notes == ["perplexity: the source knows no word of latin, so the value means nothing else."]
