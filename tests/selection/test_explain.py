"""Explanations: for every strategy, the parts sum to the score."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.reporter import Silent
from core.results import Role
from core.selection import STRATEGIES, make_strategy, strategy_options
from core.selection.base import Batch, Source
from core.selection.evidence import SHOWN, Evidence, Part, Spans, top
from core.selection.near import cosines, nearest_rows
from core.selection.score import explanation_arrays
from core.selection.why import explain, neighbours
from tests.conftest import Seal, sentence
from tests.fake_models import found_by_list, spans, unigram_mlm
from tests.planted import bag_vectors, contracts, kitchen

QUERIES = ("raw-mean", "unit-mean", "k-means", "contrastive")
CASES = [
    *((name, {}) for name in STRATEGIES if name != "loss-drop"),
    *(("cos-pretrained", {"query": query, "whiten": whiten}) for query in QUERIES for whiten in (False, True)),
    ("cos-pretrained", {"query": "k-means", "centroids": 3, "quota": True}),
    ("knn", {"neighbours": 3}),
    ("knn", {"query": "round-robin"}),
    ("loss-drop", {"pool": 3}),
    ("ngram-perplexity", {"order": 2}),
    ("gazetteer", {"case_sensitive": True}),
    *(
        ("ner-selected", {"rank": rank, "folds": folds})
        for rank, folds in (("count", 3), ("density", 1), ("density", 2), ("rarity", 2), ("type-balanced", 1))
    ),
]
TASK, DOMAIN = contracts(60, seed=1), [*contracts(100, seed=2), *kitchen(100)]
COUNTS = ("gazetteer", "ner-selected")  # without a match, only the tie-break remains
TAGGERS = [
    {"goods": "THING", "party": "PARTY", "butter": "THING"},
    {"goods": "THING", "the": "PARTY"},
    {"ends": "THING"},
]
ASKED = ["the goods ends", "Either party shall pay the goods <s> in writing .", DOMAIN[0], DOMAIN[150], "word"]


def tagged(texts: list[str], folds: int) -> list[Spans]:
    sentences = [sentence(text) for text in texts]
    return [spans(found_by_list(sentences, names), ("PARTY", "THING")) for names in TAGGERS[:folds]]


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unigram_mlm(tmp_path_factory.mktemp("B1"), TASK, DOMAIN)


@pytest.fixture
def sources(seal: Seal, language_model: Path) -> dict[Role, Source]:
    keep = np.ones(len(TASK), dtype=bool)
    keep[::7] = False  # held-out sentences
    made = {}
    for role, texts in ((Role.TASK, TASK), (Role.DOMAIN, DOMAIN)):
        vectors, norms = bag_vectors(texts)
        made[role] = Source(corpus=seal(texts, role), vectors=vectors, norms=norms * 1.5)
    task = made[Role.TASK]
    made[Role.TASK] = Source(
        corpus=task.corpus, vectors=task.vectors, norms=task.norms, keep=keep, model=language_model
    )
    made[Role.DOMAIN] = replace(made[Role.DOMAIN], model=language_model)
    names = [sentence(f"the {w} ends", [(1, 2, "TERM")]) for w in ("goods", "party", "Either", "buyer", "tomatoes")]
    made[Role.LABELLED] = Source(corpus=seal(names, "names", labelled=True))
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join([case[0], *map(str, case[1].values())]))
def test_parts_of_an_explanation_sum_to_the_score(
    case: tuple[str, dict[str, object]], sources: dict[Role, Source], tmp_path: Path
) -> None:
    name, options = case
    options = strategy_options(name, options).model_dump(mode="json")
    strategy = make_strategy(name, options, 3)
    folds = options.get("folds", 1) if name == "ner-selected" else 1
    assert isinstance(folds, int)
    sources[Role.DOMAIN] = replace(sources[Role.DOMAIN], spans=tagged(DOMAIN, folds))
    strategy.prepare(sources, Silent())
    task = sources[Role.TASK]
    np.savez(tmp_path / "model.npz", allow_pickle=False, **explanation_arrays(strategy, task.learnable_rows()))
    with np.load(tmp_path / "model.npz", allow_pickle=False) as kept:
        model = dict(kept)
    vectors = bag_vectors(ASKED)[0]
    sentences = [sentence(text) for text in ASKED]
    ids = np.array([int(s.id, 16) for s in sentences], dtype=np.uint64)
    found_in = tagged(ASKED, folds)
    others = strategy.others(strategy.options)
    ranks = np.arange(1.0, len(ASKED) * len(others) + 1).reshape(len(ASKED), -1)
    if len(others) > 1:
        ranks[1, 0] = np.nan  # the first of them could not score this sentence
    scores = strategy.score(Batch(ids=ids, sentences=sentences, vectors=vectors, spans=found_in, ranks=ranks))
    for row, (row_sentence, vector, score) in enumerate(zip(sentences, vectors, scores.tolist(), strict=True)):
        evidence = Evidence(
            sentence=row_sentence,
            score=score,
            unit=strategy.unit,
            options=options,
            seed=3,
            model=model,
            vector=vector,
            task=task.vectors,
            task_norms=task.norms,
            labelled=sources[Role.LABELLED].corpus,
            spans=[each.part(row, row + 1) for each in found_in],
            ranks=dict(zip(others, ranks[row].tolist(), strict=True)),
        )
        found = explain(name, evidence)
        if name == "pseudo-perplexity" or (name == "loss-drop" and row < 3):  # the parts would need the models
            assert found.notes
            continue
        total = 10**found.total if "10 to the power of their sum" in found.formula else found.total
        assert total == pytest.approx(score, rel=1e-4, abs=2e-5)
        assert found.notes == ()
        one_part = not STRATEGIES[name].topical or options.get("query") == "k-means" or name in COUNTS
        assert len(found.parts) > 1 or one_part
        learnt = set(task.learnable_rows().tolist())
        assert {part.task_row for part in found.parts} - {None} <= learnt


def test_explanation_without_a_model_has_only_the_score() -> None:
    options: dict[str, object] = {"query": "raw-mean", "neighbours": 5}
    evidence = Evidence(sentence=sentence("a b"), score=0.25, unit="cosine", options=options, seed=0, model={})
    for name in ("knn", "cos-pretrained", "classifier", "ngram-perplexity", "gazetteer", "something else"):
        found = explain(name, evidence)
        assert [part.value for part in found.parts] == [0.25]
        assert found.notes
    evidence = Evidence(sentence=sentence(""), score=float("nan"), unit="u", options={}, seed=0, model={})
    assert explain("knn", evidence).parts == ()


def test_small_parts_are_summed_into_one() -> None:
    parts = [Part(name=str(i), value=(-1) ** i * float(i)) for i in range(SHOWN + 5)]
    shown = top(parts, "others")
    assert len(shown) == SHOWN + 1
    assert sum(part.value for part in shown) == sum(part.value for part in parts)
    assert shown[0].value == parts[-1].value


def test_nearest_sentences_equal_brute_force() -> None:
    task, vector = bag_vectors(TASK)[0], bag_vectors(ASKED)[0][0]
    about: dict[str, Any] = {"unit": "", "options": {}, "seed": 0, "model": {}}
    evidence = Evidence(sentence=sentence("x"), score=0, vector=vector, task=task, **about)
    every = task.astype(np.float64) @ vector.astype(np.float64)
    found = neighbours(evidence, 4)
    np.testing.assert_allclose([cosine for _, cosine in found], np.sort(every)[::-1][:4], atol=1e-5)
    for row, cosine in found:
        assert every[row] == pytest.approx(cosine, abs=1e-5)
    np.testing.assert_allclose(cosines(task, vector[None])[:, 0], every, atol=1e-5)


def test_pairs_equal_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.selection.near.BLOCK", 16)
    vectors = bag_vectors(DOMAIN)[0]
    ours, among = np.array([3, 120, 60]), np.arange(1, 190, 3)
    which, best = nearest_rows(vectors, ours, among)
    every = vectors[ours].astype(np.float64) @ vectors[among].astype(np.float64).T
    np.testing.assert_allclose(best, every.max(axis=1), atol=1e-5)
    np.testing.assert_allclose(every[np.arange(3), which], every.max(axis=1), atol=1e-5)
