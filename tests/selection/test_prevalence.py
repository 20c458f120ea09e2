"""Estimated number of sentences in D_C that resemble T_C: planted numbers, folds, refusals, and words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from core.errors import CorpusError
from core.reporter import Silent
from core.results import Role
from core.runs.result import read
from core.selection import prevalence_view as prevalence
from core.selection.base import Batch, Source
from core.selection.prevalence import PrevalenceResult
from core.selection.strategies.classifier import ClassifierOptions, CrossFitted
from tests.conftest import Command, Seal
from tests.homes import executed
from tests.planted import bag_vectors, contracts, kitchen


def counted(task: list[str], domain: list[str], seal: Seal) -> tuple[str, PrevalenceResult]:
    """Run `prevalence`; return the id and the result of the run."""
    corpora = {name: seal(texts, name).fingerprint for name, texts in (("task", task), ("domain", domain))}
    run = executed("prevalence", corpora, encoder="tiny")
    return run.id, read(run, PrevalenceResult)


@pytest.mark.parametrize("planted", [0, 60, pytest.param(150, marks=pytest.mark.full)])
def test_planted_prevalence_is_estimated_and_printed(seal: Seal, command: Command, planted: int) -> None:
    task = contracts(200, seed=1)
    others = [text for text in contracts(500, seed=2) if text not in set(task)]
    run_id, found = counted(task, [*others[:planted], *kitchen(600)], seal)
    assert found.about == pytest.approx(planted, rel=0.2, abs=5)
    assert found.low <= planted <= found.high
    assert (found.task, found.domain) == (200, planted + 600)
    assert [above.quantile for above in found.quantiles] == [0.25, 0.5]
    words = ("prevalence", "--task", "task", "--domain", "domain", "--encoder", "tiny")
    printed = json.loads(command(*words, "--json")[1])
    assert (printed["run"], printed["low"], printed["about"], printed["high"]) == (
        run_id,
        found.low,
        found.about,
        found.high,
    )
    assert {"task", "domain", "quantiles"} <= printed.keys()
    assert prevalence.in_words(found) in command(*words)[1]


def test_equal_sentences_share_a_fold_and_are_scored_out_of_fold(seal: Seal) -> None:
    """Equal sentences of T_C and D_C share a fold, and so do neighbours; every fold has sentences of both."""
    task, domain = contracts(300, seed=1), [*kitchen(400), *contracts(300, seed=1)[:30]]
    sources = {}
    for role, texts in ((Role.TASK, task), (Role.DOMAIN, domain)):
        vectors, norms = bag_vectors(texts)
        sources[role] = Source(corpus=seal(texts, str(role)), vectors=vectors, norms=norms)
    strategy = CrossFitted(ClassifierOptions(), 0)
    strategy.prepare(sources, Silent())
    folds = {role: strategy._fold(source.corpus.ids()) for role, source in sources.items()}
    assert folds[Role.DOMAIN][-30:].tolist() == folds[Role.TASK][:30].tolist()
    assert np.bincount(folds[Role.TASK]).tolist() == [100, 50, 50, 50, 50]
    assert np.bincount(folds[Role.DOMAIN][:400]).tolist() == [100, 100, 100, 50, 50]
    own = np.concatenate([strategy.score(batch) for batch in sources[Role.TASK].batches("both")])
    copies = Batch(
        ids=sources[Role.DOMAIN].corpus.ids()[-30:],
        sentences=sources[Role.DOMAIN].corpus.take(np.arange(400, 430)),
        vectors=sources[Role.DOMAIN].vectors[400:],  # type: ignore[index]
    )
    np.testing.assert_allclose(strategy.score(copies), own[:30], rtol=1e-5)


def documents(n: int, seed: int) -> list[str]:
    """Return sentences of contracts in documents of ten; each document has its own words."""
    rng = np.random.default_rng(seed)
    texts, named = contracts(n, seed), []
    for start in range(0, n, 10):
        own = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 7)) for _ in range(6)]
        named += [f"{' '.join(rng.choice(own, 3, replace=False))} {text}" for text in texts[start : start + 10]]
    return named


def test_duplicates_count_once_and_small_corpora_are_refused(seal: Seal) -> None:
    task = contracts(100, seed=1)
    _, found = counted(task, [*task[:50] * 4, *kitchen(400)], seal)
    assert found.domain == 450
    assert found.high < 100
    with pytest.raises(CorpusError, match=r"task.*: 19 different sentences are too few.*give 20 or more"):
        counted(task[:19], kitchen(100), seal)


def test_sentences_of_one_document_share_a_fold(seal: Seal) -> None:
    _, found = counted(documents(300, seed=1), [*documents(100, seed=2), *kitchen(600)], seal)
    assert found.about == pytest.approx(100, rel=0.2)


def test_prevalence_is_shown_before_an_experiment(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    found = PrevalenceResult(low=800, about=900, high=1100, task=400, domain=40_000, quantiles=[])
    domain = seal([f"sentence {i}" for i in range(60)], "domain").fingerprint
    assert prevalence.before({"task": "t", "domain": domain, "budgets": ("20",)}) == ""
    monkeypatch.setattr(prevalence, "counted", lambda task, of: found if (task, of) == ("t", domain) else None)
    for budgets, wanted in (("20",), 20), (("10%",), 6), (("50tokens",), None), (("5", "9"), None), (("5?",), None):
        words = prevalence.before({"task": "t", "domain": domain, "budgets": budgets})
        assert words == prevalence.in_words(found, wanted), budgets
    assert prevalence.before({"train": "l", "domain": domain, "cross": True, "budgets": ("20",)}) == ""
    words = "About 900 of the domain corpus's 40,000 distinct sentences are like the task corpus (800 to 1,100); "
    assert prevalence.in_words(found, 5000) == f"{words}your budget selects 5,000."
    assert prevalence.budget(found) == "900"
    none = replace(found, low=0, about=0, high=7)
    words = "At most 7 of the domain corpus's 40,000 distinct sentences are like the task corpus (estimate: 0)."
    assert prevalence.in_words(none) == words
    assert prevalence.budget(none) is None
