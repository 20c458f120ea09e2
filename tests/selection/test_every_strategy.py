"""Behaviour that every selection strategy must have."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.errors import Cancelled
from core.reporter import Silent
from core.results import FloatArray, Role
from core.selection import STRATEGIES, make_strategy
from core.selection.base import Batch, Source, Strategy
from core.selection.evidence import Spans
from core.selection.score import ScoreWork
from core.text.sentence import Sentence
from tests.conftest import Seal, sentence
from tests.fake_models import found_by_list, spans, unigram_mlm
from tests.planted import bag_vectors, contracts, kitchen

OPTIONS = [
    *((name, {}) for name in STRATEGIES),
    *(("cos-pretrained", {"query": query}) for query in ("unit-mean", "k-means", "contrastive")),
    *(("cos-pretrained", {"query": query, "whiten": True}) for query in ("raw-mean", "contrastive")),
    ("knn", {"query": "round-robin"}),
    *(("ner-selected", {"rank": rank}) for rank in ("density", "type-balanced", "rarity")),
    *(("pseudo-perplexity", {"method": method}) for method in ("sampled", "one-pass")),
]
TERMS = dict.fromkeys(("supplier", "buyer", "party", "lessee", "guarantor", "harlow"), "PARTY")
TERMS |= dict.fromkeys(("agreement", "goods", "price", "notices", "premises", "ripe"), "THING")
SEED = 20261129113000  # a date and time, which scikit-learn refuses as a seed
TASK, WANTED, UNWANTED = contracts(60, seed=1), contracts(150, seed=2), kitchen(150)


@pytest.fixture(autouse=True)
def full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute without bf16, which keeps only three digits."""
    monkeypatch.setattr("core.models.devices._has_bf16", lambda device: False)


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unigram_mlm(tmp_path_factory.mktemp("B1"), TASK, [*WANTED, *UNWANTED])


@pytest.fixture(scope="session")
def any_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unigram_mlm(tmp_path_factory.mktemp("prior"), [*WANTED, *UNWANTED], TASK)


def tagged(texts: list[str]) -> tuple[Spans]:
    return (spans(found_by_list([sentence(text) for text in texts], TERMS), ("PARTY", "THING")),)


def source(corpus: Corpus, texts: list[str], model: Path | None = None) -> Source:
    vectors, norms = bag_vectors(texts)
    return Source(corpus=corpus, vectors=vectors, norms=norms, spans=tagged(texts), model=model)


def names() -> list[Sentence]:
    """Return labelled sentences whose entities are words of contracts."""
    words = ("supplier", "buyer", "party", "lessee", "guarantor", "agreement", "goods", "price", "notices", "premises")
    return [sentence(f"the {word} ends", [(1, 2, "TERM")]) for word in words]


@pytest.fixture
def sources(seal: Seal, language_model: Path, any_text: Path) -> dict[Role, Source]:
    domain = [*WANTED, *UNWANTED]
    return {
        Role.TASK: source(seal(TASK, "task"), TASK, language_model),
        Role.DOMAIN: source(seal(domain, "domain"), domain, any_text),
        Role.LABELLED: Source(corpus=seal(names(), "names", labelled=True)),
    }


def batch(texts: list[str]) -> Batch:
    sentences = [sentence(text) for text in texts]
    ids = np.array([int(s.id, 16) for s in sentences], dtype=np.uint64)
    return Batch(ids=ids, sentences=sentences, vectors=bag_vectors(texts)[0], spans=tagged(texts), ranks=ranked(texts))


def ranked(texts: list[str]) -> FloatArray:
    """Return ranks by two other strategies that know the contracts: their places in the list, and in reverse."""
    known = {text: rank for rank, text in enumerate([*WANTED, *UNWANTED], 1)}
    places = np.array([known.get(text, 150) for text in texts], dtype=np.float64)
    return np.stack([places, np.where(places > 150, places, 151 - places)], axis=1)


def prepared(name: str, options: dict[str, object], sources: dict[Role, Source], seed: int = SEED) -> Strategy:
    strategy = make_strategy(name, options, seed)
    strategy.prepare(sources, Silent())
    return strategy


@pytest.fixture(params=OPTIONS, ids=lambda case: " ".join([case[0], *map(str, case[1].values())]))
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    chosen: tuple[str, dict[str, object]] = request.param
    return chosen


def test_scores_depend_on_the_sentence_alone_also_in_a_worker(
    case: tuple[str, dict[str, object]], sources: dict[Role, Source]
) -> None:
    """The same seed gives the same scores, and topical strategies find T_C.

    A worker gets a pickled strategy: prepared, or with its sources if its model is loaded in the worker.
    """
    strategy = prepared(*case, sources)
    a, b = WANTED[:5], UNWANTED[:9]
    together = strategy.score(batch([*a, *b]))
    assert together.shape == (14,)
    assert together.dtype == np.float64
    assert np.isfinite(together).all()
    apart = np.concatenate([strategy.score(batch(a)), strategy.score(batch(b))])
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)
    short = strategy.score(batch(["", "supplier", *WANTED[:2]]))
    assert short.shape == (4,)
    assert np.isfinite(short[1:]).all()  # an empty sentence may be NaN, because it has no score
    other = make_strategy(*case, SEED)
    slow = bool(other.models) and other.reads == "text"
    if not slow:
        other.prepare(sources, Silent())
    work = ScoreWork(strategy=other, domain=sources[Role.DOMAIN], sources=sources if slow else None)
    opened = pickle.loads(pickle.dumps(work)).open(Silent())  # noqa: S301 - pickled by this test
    batches = [batch(WANTED), batch(UNWANTED)]
    expected = np.concatenate([strategy.score(each) for each in batches])
    np.testing.assert_array_equal(opened.compute(batches, Silent()), expected)
    if strategy.topical:
        assert contracts_first(strategy) > 0.85


@pytest.mark.parametrize("name", ["random", "length-matched-random"])
def test_a_control_prefers_no_topic_and_depends_on_the_seed(name: str, sources: dict[Role, Source]) -> None:
    assert not STRATEGIES[name].topical
    first, second = (prepared(name, {}, sources, seed) for seed in (3, 1))
    assert 0.4 < contracts_first(first) < 0.6
    assert abs(np.corrcoef(first.score(batch(WANTED)), second.score(batch(WANTED)))[0, 1]) < 0.3


def contracts_first(strategy: Strategy) -> float:
    """Return the AUC of contracts against recipes."""
    wanted, unwanted = strategy.score(batch(WANTED)), strategy.score(batch(UNWANTED))
    better = (wanted[:, None] > unwanted) if strategy.prefer == "high" else (wanted[:, None] < unwanted)
    return float((better + 0.5 * (wanted[:, None] == unwanted)).mean())


def test_a_strategy_can_be_cancelled(case: tuple[str, dict[str, object]], sources: dict[Role, Source]) -> None:
    """Slow work calls check(); fast work need not."""

    class Stop(Silent):
        def check(self) -> None:
            raise Cancelled("stop")

    checking = ("classifier", "dsir", "moore-lewis", "ngram-perplexity")
    if case[0] in checking or {"rarity", "type-balanced", "round-robin"} & set(case[1].values()):
        with pytest.raises(Cancelled):
            make_strategy(*case, 0).prepare(sources, Stop())
        return
    strategy = make_strategy(*case, 0)
    strategy.prepare(sources, Stop())
    if case[0] in ("pseudo-perplexity", "loss-drop"):
        with pytest.raises(Cancelled):
            strategy.score(replace(batch(WANTED[:3]), report=Stop()))


def test_length_matched_random_follows_the_lengths_of_the_task_corpus(seal: Seal) -> None:
    task = [" ".join(["word"] * 12) + f" {i}" for i in range(40)]
    domain = [" ".join(["word"] * n) + f" {i}" for n in (4, 12, 30) for i in range(100)]
    sources = {Role.TASK: source(seal(task, "t"), task), Role.DOMAIN: source(seal(domain, "d"), domain)}
    scores: FloatArray = prepared("length-matched-random", {}, sources).score(batch(domain))
    best = np.argsort(-scores)[:60]
    assert ((best >= 100) & (best < 200)).mean() > 0.9
