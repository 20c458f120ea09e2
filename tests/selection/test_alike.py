"""Tokenised and raw text are compared in the same words: names of the gazetteer, and n-gram perplexity."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.reporter import Silent
from core.results import FloatArray, Role
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.selection.evidence import Evidence, Parts
from core.selection.why import explain
from core.text.sentence import Entity, Sentence
from core.text.words import Tokens
from tests.conftest import sentence

TREEBANK = ["The U.S. buyer did n't pay Moody 's .", "The Essex-based seller did n't pay ."]
RAW = ["The U.S. buyer didn't pay Moody's.", "The Essex-based seller didn't pay."]
NAMES = (Entity(start=1, end=2, type="X"), Entity(start=6, end=8, type="X"))


def corpus(home: Path, texts: Sequence[str], tokens: Tokens, entities: Sequence[Entity] | None = None) -> Corpus:
    rows = [sentence(text) for text in texts]
    if tokens == "blanks":
        rows = [replace(row, tokens=tuple(row.text.split())) for row in rows]
    labelled = entities is not None
    if entities is not None:
        rows = [replace(row, entities=tuple(e for e in entities if e.end <= len(row.tokens))) for row in rows]
    return Library(home).seal(rows, name="c", origin={}, labelled=labelled, tokens=tokens)


def scored(name: str, task: Corpus, domain: Corpus, labelled: Corpus) -> tuple[FloatArray, list[Parts]]:
    """Return the scores of D_C and their explanations."""
    sources = {Role.TASK: task, Role.DOMAIN: domain, Role.LABELLED: labelled}
    strategy = make_strategy(name, {}, 0)
    strategy.prepare({role: Source(corpus=one) for role, one in sources.items()}, Silent())
    rows: list[Sentence] = next(domain.batches())
    scores = strategy.score(Batch(ids=domain.ids(), sentences=rows))
    given: dict[str, Any] = {
        "unit": "",
        "options": strategy.options.model_dump(),
        "seed": 0,
        "model": dict(strategy.learned()),
    }
    pairs = zip(rows, scores.tolist(), strict=True)
    evidence = (Evidence(sentence=row, score=score, labelled=labelled, **given) for row, score in pairs)
    return scores, [explain(name, one) for one in evidence]


@pytest.mark.parametrize("cut", ["words", "blanks"])
def test_gazetteer_matches_names_in_the_tokenisation_of_the_text(home: Path, cut: Tokens) -> None:
    """Our tokenisation splits U.S., Moody's, and Essex-based differently from the labels."""
    domain = corpus(home, RAW if cut == "words" else TREEBANK, cut)
    labels = corpus(home, TREEBANK, "blanks", NAMES)
    scores, parts = scored("gazetteer", domain, domain, labels)
    assert np.floor(scores).tolist() == [2, 1]
    assert [each.total for each in parts] == pytest.approx(scores.tolist())
    wanted = ["U . S .", "Moody ' s"] if cut == "words" else ["U.S.", "Moody 's"]
    assert [part.name for part in parts[0].parts[:2]] == wanted
    lines = corpus(home, ["Moody's", "U.S."], "words")  # a list of names that are not tokenised
    assert np.floor(scored("gazetteer", domain, domain, lines)[0]).tolist() == [2, 0]


@pytest.mark.parametrize("cut", ["words", "blanks"])
def test_perplexity_is_independent_of_tokenisation(home: Path, cut: Tokens) -> None:
    raw, labels = corpus(home, RAW, "words"), corpus(home, TREEBANK, "blanks", NAMES)
    domain = raw if cut == "words" else corpus(home, TREEBANK, "blanks")
    scores, parts = scored("ngram-perplexity", labels, domain, labels)
    of_raw, _ = scored("ngram-perplexity", corpus(home, TREEBANK, cut), domain, labels)
    assert scores.tolist() == of_raw.tolist()
    assert [10**each.total for each in parts] == pytest.approx(scores.tolist())
    mixed, of_mixed = scored("ngram-perplexity", raw, corpus(home, TREEBANK, "blanks"), labels)
    assert [10**each.total for each in of_mixed] == pytest.approx(mixed.tolist())


def test_lengths_are_counted_by_one_rule(home: Path) -> None:
    """The task corpus keeps its own tokens: 6 and 5 per sentence, where the domain corpus has 14 and 10."""
    labelled = corpus(home, RAW, "blanks", ())
    for domain in (corpus(home, RAW, "words"), labelled):
        strategy = make_strategy("length-matched-random", {}, 0)
        strategy.prepare({Role.TASK: Source(corpus=labelled), Role.DOMAIN: Source(corpus=domain)}, Silent())
        assert (strategy.learned()["log_weight"] == 0).all()
        _, explained = scored("length-matched-random", labelled, domain, labelled)
        lengths = [14, 10] if domain is not labelled else [6, 5]
        assert all(f"of about {n} tokens" in one.parts[0].name for one, n in zip(explained, lengths, strict=True))
    scores, explained = scored("length-matched-random", labelled, corpus(home, RAW, "words"), labelled)
    assert [parts.total for parts in explained] == pytest.approx(scores.tolist())
