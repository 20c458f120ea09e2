"""TVC and TVcC by sets; the chain of taggers."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigError, CorpusError
from core.reporter import Silent
from core.results import Measurement
from core.similarity.measures import make_measure
from core.similarity.parts_of_speech import load_word_tagger, settle
from core.text.content import content_words
from tests.reporters import Recorder
from tests.similarity.conftest import sample

WORDS = ("The", "the", "cat", "dog", "Dog", "sat", "12", "quickly", ",", ".")
corpora = st.lists(st.lists(st.sampled_from(WORDS), min_size=1), min_size=1)


def measured(name: str, source: list[Any], target: list[Any], **options: object) -> Measurement:
    measure = make_measure(name, {"tagger": "built-in", **options}, seed=0, vocabulary_size=0)
    return measure.compare(measure.fit(sample(source), Silent()), sample(target, "target"), Silent())


@given(corpora, corpora)
def test_tvc_equals_the_share_of_the_target_vocabulary(source: list[list[str]], target: list[list[str]]) -> None:
    ours, theirs = ({word for sentence in text for word in sentence} for text in (source, target))
    assert measured("tvc", source, target).value == pytest.approx(100 * len(ours & theirs) / len(theirs))


def test_tvc_is_asymmetric_and_case_sensitive() -> None:
    assert measured("tvc", ["the cat sat"], ["the The"]).value == 50
    assert measured("tvc", ["the The"], ["the cat sat"]).value == pytest.approx(100 / 3)
    source, target = ["the Court rules ,"] * 3 + ["a judge rules"] * 2, ["the court sits"] * 3
    overlap = measured("tvc", source, target).columns["overlap"]  # the Jaccard index of frequent content words
    assert overlap == pytest.approx(100 / 3)  # {court, rules} and {court, sits}; "judge" is in two sentences


@given(corpora, corpora)
def test_tvcc_equals_tvc_of_content_words(source: list[list[str]], target: list[list[str]]) -> None:
    ours, theirs = (content_words({word for sentence in text for word in sentence}) for text in (source, target))
    if theirs:
        expected = 100 * len(ours & theirs) / len(theirs)
        assert measured("tvcc", source, target).value == pytest.approx(expected)
    else:
        with pytest.raises(CorpusError, match="no content word"):
            measured("tvcc", source, target)


def test_built_in_word_list_notes_that_it_is_english() -> None:
    text = "In 1999 the early family quickly moved to Oslo , where they didn t ever reply : 3rd try ."
    assert content_words(text.split()) == {"early", "family", "moved", "Oslo", "reply", "3rd", "try"}
    ear, measure = Recorder(), make_measure("tvcc", {"tagger": "built-in"}, seed=0, vocabulary_size=0)
    german = sample(["Der Hund schläft auf dem Sofa", "Die Katze jagt eine Maus"], "deutsch")
    measure.compare(measure.fit(german, Silent()), german, ear)
    assert "deutsch are English function words" in ear.notes[0]


def install_spacy(monkeypatch: pytest.MonkeyPatch, models: list[str]) -> None:
    """A spaCy that calls every word in capitals a proper noun, all others adpositions."""

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
    """An NLTK that calls every word of more than four letters a verb."""

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
