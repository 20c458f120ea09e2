"""The four similarity measures: properties that all share, and each against a slow implementation of its formula."""

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Cancelled, ConfigError, CorpusError
from core.reporter import Silent
from core.results import Measurement
from core.similarity.base import Measure, Sample
from core.similarity.measures import MEASURES, MeasureName, make_measure
from core.similarity.parts_of_speech import load_word_tagger, settle
from core.similarity.wvv import distances
from core.text.content import content_words
from tests.models.test_ngram import TEST, TRAIN, SlowKneserNey
from tests.reporters import Canceller, Recorder
from tests.similarity.conftest import sample

ROOT = Path(__file__).resolve().parents[2]
SIZE = 2000  # largest number of words in all samples together
FRUIT = [f"fruit{i}" for i in range(60)]
METAL = [f"metal{i}" for i in range(60)]
EVERY = pytest.mark.parametrize("name", MEASURES)
CORPORA = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=7), min_size=1, max_size=25)
ENGLISH = st.lists(
    st.lists(st.sampled_from(("The", "the", "cat", "dog", "Dog", "sat", "12", "quickly", ",", ".")), min_size=1),
    min_size=1,
)
Text = list[list[str]]


def chained(words: Sequence[str], n: int, seed: int, jumps: float = 0.1) -> list[list[str]]:
    """Return sentences in which each word is followed by its neighbour in `words`, except at random jumps."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        at = rng.randrange(len(words))
        sentence = []
        for _ in range(10):
            sentence.append(words[at % len(words)])
            at = rng.randrange(len(words)) if rng.random() < jumps else at + 1
        found.append(sentence)
    return found


def shuffled(words: Sequence[str], seed: int) -> list[str]:
    return random.Random(seed).sample(list(words), len(words))


TARGET = sample(chained(FRUIT, 150, 1), "target")
NEAR = sample(chained(FRUIT, 600, 2), "near")
FAR = sample(chained(shuffled([*FRUIT[:30], *METAL], 3), 600, 4), "far")


def measure(name: str, seed: int = 0, size: int = SIZE, **options: Any) -> Measure:
    return make_measure(name, {"tagger": "built-in", **options}, seed=seed, vocabulary_size=size)


def compared(each: Measure, source: Sample, target: Sample = TARGET) -> Measurement:
    return each.compare(each.fit(source, Silent()), target, Silent())


def measured(name: str, source: list[Any], target: list[Any], size: int = SIZE, **options: Any) -> Measurement:
    return compared(measure(name, size=size, **options), sample(source), sample(target, "target"))


def vocabulary(*texts: Text) -> set[str]:
    return {word for text in texts for sentence in text for word in sentence}


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
    far = compared(measure(name), FAR).value
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
    with suppress(CorpusError):
        found = compared(each, sample(source, "poor"))
        assert math.isfinite(found.value)
        json.dumps(asdict(found), allow_nan=False)


PROGRAM = """
import json
from tests.similarity.test_measures import values
print(json.dumps(values()))
"""


def values() -> dict[str, str]:
    return {name: repr(compared(measure(name, seed=7), NEAR).value) for name in MEASURES}


def test_same_seed_gives_the_same_digits_in_two_processes() -> None:
    assert get_args(MeasureName) == tuple(MEASURES)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == values()


@settings(max_examples=200, deadline=None)
@given(CORPORA, CORPORA, st.integers(1, 5), st.booleans())
def test_perplexity_equals_a_slow_implementation(source: Text, target: Text, order: int, count_end: bool) -> None:
    size = len(vocabulary(source, target))
    slow = SlowKneserNey(source, order, size + 2)
    try:
        log10 = np.array([slow.log10(line) for line in target])
    except ValueError:  # a discount of 0 leaves no probability for an unknown word
        with pytest.raises(CorpusError, match="probability 0"):
            measured("ppl", source, target, size, order=order)
        return
    lengths = np.array([len(line) + count_end for line in target])
    each = 10 ** (-log10 / lengths)
    found = measured("ppl", source, target, size, order=order, skip_end=not count_end)
    assert found.value == pytest.approx(each.mean(), rel=1e-4)
    columns = found.columns
    assert columns["sum"] == pytest.approx(each.sum(), rel=1e-4)
    assert columns["median"] == pytest.approx(np.median(each), rel=1e-4)
    assert columns["corpus"] == pytest.approx(10 ** (-log10.sum() / lengths.sum()), rel=1e-4)
    known, tokens = vocabulary(source), [word for line in target for word in line]
    assert columns["oov"] == pytest.approx(100 * sum(word not in known for word in tokens) / len(tokens))


def test_perplexity_of_the_toy_corpus_is_the_golden_number() -> None:
    """SOURCES.md, Golden numbers: the vocabulary is that of the training text alone, as in lmplz."""
    found = measured("ppl", TRAIN, TEST, size=10)
    assert found.value == pytest.approx(6.9680, abs=5e-5)
    assert found.columns["sum"] == pytest.approx(13.9361, abs=5e-5)
    assert found.columns["corpus"] == pytest.approx(6.8866, abs=5e-5)
    assert "fallback discounts of order 2, 3, 4, 5" in found.convention


def test_shared_vocabulary_size_removes_the_advantage_of_small_sources() -> None:
    """With its own vocabulary size, a source of one word gives unknown words a higher probability."""
    small, large = [["a"] * 6] * 20, [[f"w{i}" for i in range(j, j + 6)] for j in range(40)]
    target = [["x", "y", "z"]]
    alone = [measured("ppl", source, target, size=len(vocabulary(source))).value for source in (small, large)]
    shared = [measured("ppl", source, target, size=500).value for source in (small, large)]
    assert alone[0] < alone[1] / 3
    assert shared[0] > shared[1]


def test_source_without_any_target_word_is_noted() -> None:
    each, recorder = measure("ppl", size=50), Recorder()
    found = each.compare(each.fit(sample(["слово за слово"] * 5), Silent()), sample(["a b c"], "latin"), recorder)
    assert found.columns["oov"] == 100
    assert np.isfinite(found.value)
    assert recorder.notes == ["perplexity: the source contains no word of latin, so the value is meaningless."]


@given(ENGLISH, ENGLISH)
def test_tvc_equals_the_share_of_the_target_vocabulary(source: Text, target: Text) -> None:
    ours, theirs = vocabulary(source), vocabulary(target)
    assert measured("tvc", source, target).value == pytest.approx(100 * len(ours & theirs) / len(theirs))


def test_tvc_is_asymmetric_and_case_sensitive() -> None:
    assert measured("tvc", ["the cat sat"], ["the The"]).value == 50
    assert measured("tvc", ["the The"], ["the cat sat"]).value == pytest.approx(100 / 3)
    source, target = ["the Court rules ,"] * 3 + ["a judge rules"] * 2, ["the court sits"] * 3
    overlap = measured("tvc", source, target).columns["overlap"]  # the Jaccard index of frequent content words
    assert overlap == pytest.approx(100 / 3)  # {court, rules} and {court, sits}; "judge" is in two sentences


@given(ENGLISH, ENGLISH)
def test_tvcc_equals_tvc_of_content_words(source: Text, target: Text) -> None:
    ours, theirs = content_words(vocabulary(source)), content_words(vocabulary(target))
    if theirs:
        expected = 100 * len(ours & theirs) / len(theirs)
        assert measured("tvcc", source, target).value == pytest.approx(expected)
    else:
        with pytest.raises(CorpusError, match="no content word"):
            measured("tvcc", source, target)


def test_built_in_word_list_notes_that_it_is_english() -> None:
    text = "In 1999 the early family quickly moved to Oslo , where they didn t ever reply : 3rd try ."
    assert content_words(text.split()) == {"early", "family", "moved", "Oslo", "reply", "3rd", "try"}
    recorder, each = Recorder(), measure("tvcc")
    german = sample(["Der Hund schläft auf dem Sofa", "Die Katze jagt eine Maus"], "deutsch")
    each.compare(each.fit(german, Silent()), german, recorder)
    assert "deutsch are English function words" in recorder.notes[0]


def install_spacy(monkeypatch: pytest.MonkeyPatch, models: list[str]) -> None:
    """Install a stub of spaCy that tags words in capitals as proper nouns, all others as adpositions."""

    def pipe(documents: Iterator[list[str]]) -> Iterator[list[SimpleNamespace]]:
        for words in documents:
            yield [SimpleNamespace(text=word, pos_="PROPN" if word.isupper() else "ADP") for word in words]

    spacy, tokens = ModuleType("spacy"), ModuleType("spacy.tokens")
    spacy.util = SimpleNamespace(get_installed_models=lambda: models)  # type: ignore[attr-defined]
    spacy.load = lambda name, disable: SimpleNamespace(vocab=None, pipe=pipe)  # type: ignore[attr-defined]
    tokens.Doc = lambda vocab, words: words  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", tokens)


def install_nltk(monkeypatch: pytest.MonkeyPatch, *, data: bool) -> None:
    """Install a stub of NLTK that tags words of more than four letters as verbs."""

    def find(path: str) -> None:
        if not data:
            raise LookupError(path)

    nltk = ModuleType("nltk")
    nltk.data = SimpleNamespace(find=find)  # type: ignore[attr-defined]
    nltk.pos_tag_sents = lambda sentences: [  # type: ignore[attr-defined]
        [(word, "VBD" if len(word) > 4 else "IN") for word in words] for words in sentences
    ]
    monkeypatch.setitem(sys.modules, "nltk", nltk)


def test_first_installed_tagger_is_used_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (["NASA", "went", "upwards"],)
    for name in ("spacy", "nltk"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it raises ImportError
        with pytest.raises(ConfigError, match=f"{name} or its English data is not installed"):
            settle(name)
    assert settle("auto") == "built-in"
    assert load_word_tagger().name == "built-in list of function words"
    install_nltk(monkeypatch, data=False)
    assert settle("auto") == "built-in"
    install_nltk(monkeypatch, data=True)
    install_spacy(monkeypatch, [])  # without a model
    assert settle("auto") == "nltk"
    tagger = load_word_tagger()
    assert (tagger.name, tagger.content(text, Silent())) == ("NLTK perceptron tagger", frozenset({"upwards"}))
    install_spacy(monkeypatch, ["de_core_news_sm", "en_core_web_sm"])
    assert settle("auto") == "spacy"
    tagger = load_word_tagger()
    assert (tagger.name, tagger.content(text, Silent())) == ("spaCy en_core_web_sm", frozenset({"NASA"}))
    found = measured("tvcc", ["NASA ESA"], ["NASA JAXA up"], tagger="auto")
    assert found.value == 50
    assert "spaCy en_core_web_sm" in found.convention


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


def test_words_missing_in_the_target_do_not_move() -> None:
    """Therefore division by the source's vocabulary mostly measures its size (SOURCES.md, Word vector variance)."""
    source = sample([*chained(FRUIT, 200, 1), *chained(METAL, 200, 2)], "source")
    found = compared(measure("wvv"), source)
    assert found.columns["shared"] == len(FRUIT)
    words = len(FRUIT) + len(METAL)
    assert found.columns["wvv_eq"] == pytest.approx(found.value * len(FRUIT) / words / 100, rel=1e-6)


def test_vectors_continue_from_the_source_and_depend_on_the_seed() -> None:
    """A target like the source moves vectors less than a target with other contexts for the same words."""
    each = measure("wvv")
    learnt = each.fit(NEAR, Silent())
    same = each.compare(learnt, TARGET, Silent())
    other = each.compare(learnt, sample(chained(FRUIT[::7] * 7, 150, 1), "other"), Silent()).value
    assert same.value < other
    assert same.value != compared(measure("wvv", seed=1), NEAR).value
    assert same.value != compared(measure("wvv", seed=20261129113000), NEAR).value  # a date and time
    assert "not repeatable" not in same.convention
    assert "2 workers, so not repeatable" in compared(measure("wvv", workers=2), NEAR).convention


def test_missing_frequent_or_shared_words_are_refused() -> None:
    with pytest.raises(CorpusError, match="rare: no word occurs 5 times in its 4 tokens"):
        measure("wvv").fit(sample(["a b c d"], "rare"), Silent())
    with pytest.raises(CorpusError, match="other: shares no word"):
        compared(measure("wvv"), NEAR, sample(["слово за словом"], "other"))


def test_progress_counts_tokens_of_all_epochs_and_cancel_stops_at_once() -> None:
    recorder, stop = Recorder(), Canceller(3)
    measure("wvv").fit(NEAR, recorder)
    done = [first for first, _, _ in recorder.progressed]
    assert done == sorted(done)
    assert {(total, unit) for _, total, unit in recorder.progressed} == {(5 * NEAR.n_tokens, "tokens")}
    assert done[-1] > 4 * NEAR.n_tokens
    with pytest.raises(Cancelled):
        measure("wvv", skipgram_epochs=50).fit(NEAR, stop)
    assert stop.checks == 3
