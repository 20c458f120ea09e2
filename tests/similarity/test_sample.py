"""Samples of corpora: capped, seeded, nested, and tokenised alike."""

from typing import Any

import pytest

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.reporter import Reporter, Silent
from core.similarity.base import Sample, draw
from tests.conftest import Seal, sentence
from tests.reporters import Recorder


def drawn(*corpora: Corpus, report: Reporter | None = None, **options: Any) -> Sample:
    usual: dict[str, Any] = {"name": "s", "cap": None, "seed": 0, "tokens": "words", "lowercase": False}
    return draw(corpora, report=report or Silent(), **(usual | options))


@pytest.fixture
def corpus(seal: Seal) -> Corpus:
    return seal([f"Sentence number {i} has words ." for i in range(300)])


def test_sample_fills_the_cap_without_exceeding_it(corpus: Corpus) -> None:
    found = drawn(corpus, cap=100)
    assert 100 - 6 < found.n_tokens <= 100
    assert found.n_tokens == sum(map(len, found.sentences))
    assert not found.whole
    assert drawn(corpus).whole
    assert drawn(corpus, cap=corpus.n_tokens).whole
    assert drawn(corpus, cap=10**9).n_tokens == corpus.n_tokens
    assert drawn(corpus, lowercase=True).sentences[0][0] == "sentence"


def test_smaller_cap_is_a_subset_of_the_same_seed(corpus: Corpus) -> None:
    large, again, small, other = (
        {tuple(words) for words in drawn(corpus, cap=cap, seed=seed).sentences}
        for cap, seed in ((600, 0), (600, 0), (150, 0), (600, 1))
    )
    assert large == again
    assert small < large
    assert large != other


def test_several_corpora_are_sampled_as_one_source(corpus: Corpus, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, recorder = seal(["apples are red"] * 3, "first"), seal(["pears are green"] * 3, "second"), Recorder()
    found = drawn(first, second)
    assert found.n_tokens == 18
    assert {words[0] for words in drawn(first, second, cap=9, seed=3).sentences} == {"apples", "pears"}
    monkeypatch.setattr("core.similarity.base.BLOCK", 100)
    drawn(corpus, seal(["pears are green"]), report=recorder)
    assert [(done, total) for done, total, _ in recorder.progressed] == [(0, 301), (100, 301), (200, 301), (300, 301)]
    assert drawn(seal(["one two", sentence(""), "three"])).sentences == [("one", "two"), ("three",)]
    with pytest.raises(CorpusError, match="blank: no sentence contains a token"):
        drawn(seal([sentence(" ")]), name="blank")


def test_labelled_and_plain_text_are_tokenised_alike(seal: Seal) -> None:
    """Labelled data keeps its own tokens for tagging, but not in a comparison (SOURCES.md, Words)."""
    tokens = ("U.S.-based", "Smith", "&", "Co.")
    labelled = seal([sentence(" ".join(tokens), [(1, 2, "PER")])], labelled=True)
    assert drawn(labelled).sentences == [("U", ".", "S", ".", "-", "based", "Smith", "&", "Co", ".")]
    assert drawn(labelled, tokens="blanks").sentences == [tokens]
