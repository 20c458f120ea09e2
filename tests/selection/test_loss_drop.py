"""`loss-drop`: two language models of known probabilities, compared on the best sentences of the default strategy."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.kind import Job, Result
from core.pretraining.pretrain import PretrainConfig
from core.projects import runs
from core.projects.home import library
from core.reporter import Silent
from core.results import FloatArray, Role
from core.runs.run import Run
from core.selection import insights, make_strategy
from core.selection import view as selections
from core.selection.base import Batch, Source
from core.selection.choose import ranks
from core.text.sentence import Sentence
from tests.conftest import Seal, sealer, sentence
from tests.fake_models import unigram_mlm
from tests.homes import Homes, Names, executed
from tests.planted import contracts, kitchen
from tests.untrained import sentences, without_training

TASK, DOMAIN = contracts(40, seed=1), [*contracts(60, seed=2), *kitchen(60)]
GIVEN = {"task": "task", "domain": "domain", "encoder": "tiny", "budget": "10", "strategy": "loss-drop"}


def pretrain(config: PretrainConfig, job: Job) -> Result:
    """Stand in for MLM: fit a unigram model to the corpora."""
    folder = job.context.run.artifacts / "model"
    unigram_mlm(folder, [each.text for name in config.corpora for each in sentences(job, name)], [*TASK, *DOMAIN])
    return {"model": str(folder)}


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("core.models.devices._has_bf16", lambda device: False)
    with without_training(pretrain=pretrain):
        yield


def selection(home: Path) -> Names:
    seal = sealer(home)
    seal(TASK, "task")
    seal(DOMAIN, "domain")
    with without_training(pretrain=pretrain):
        return {"drop": executed("select", GIVEN).id, "default": executed("select", GIVEN, strategy="classifier").id}


@pytest.fixture
def made(homes: Homes, home: Path) -> Names:
    return homes.copy(selection, home)


def scoring(run_id: str) -> Run:
    return runs.get(runs.get(run_id).result()["score_run"])


def values(run: Run) -> FloatArray:
    scores: FloatArray = np.load(run.artifacts / "scores.npy")
    return scores


def scored(seal: Seal, folders: Sequence[Path], texts: list[str], places: list[float], pool: int = 0) -> FloatArray:
    """Score texts by the models of T_C and of D_C, with these ranks by the default strategy."""
    corpora = seal(TASK, "task"), seal(DOMAIN, "domain")
    sources = {
        role: Source(corpus=corpus, model=folder)
        for role, corpus, folder in zip((Role.TASK, Role.DOMAIN), corpora, folders, strict=True)
    }
    strategy = make_strategy("loss-drop", {"pool": pool}, 3)
    strategy.prepare(sources, Silent())
    rows = [sentence(text) for text in texts]
    ids = np.array([int(row.id, 16) for row in rows], dtype=np.uint64)
    return strategy.score(Batch(ids=ids, sentences=rows, ranks=np.array(places)[:, None]))


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [unigram_mlm(tmp_path / name, texts, [*TASK, *DOMAIN]) for name, texts in (("t", TASK), ("d", DOMAIN[40:]))]


def test_drop_is_the_difference_of_the_losses_by_hand(seal: Seal, folders: list[Path]) -> None:
    """A sentence of one repeated word has the loss -log p of this word under any mask."""
    words = {word for text in (*TASK, *DOMAIN) for word in text.split()}
    expected = []
    for word in ("supplier", "stir"):
        losses = []
        for texts in (TASK, DOMAIN[40:]):
            counts = Counter(word for text in texts for word in text.split())
            # Each word has one more count than in the texts, and each of the five special pieces has one.
            losses.append(-log((counts[word] + 1) / (counts.total() + len(words) + 5)))
        expected.append(losses[1] - losses[0])
    found = scored(seal, folders, ["supplier supplier supplier", "stir stir stir stir"], [1, 2])
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert expected[0] > 0 > expected[1]


def test_both_models_read_the_same_masks(seal: Seal, folders: list[Path]) -> None:
    """Equal models differ by 0, which they would not with different masks."""
    assert scored(seal, [folders[0], folders[0]], DOMAIN[:20], [*range(1, 21)]).tolist() == [0.0] * 20


def test_sentences_beyond_the_pool_rank_behind_by_the_default_strategy(seal: Seal, folders: list[Path]) -> None:
    """By hand: 120 sentences in D_C, so ranks 3 and 30 give -5 - 3/120 and -5 - 30/120. An empty one has no rank."""
    found = scored(seal, folders, [*DOMAIN[:4], ""], [2, 30, 1, 3, np.nan], pool=2)
    np.testing.assert_allclose(found[[1, 3, 4]], [-5.25, -5.025, np.nan])
    assert (found[[0, 2]] > -5).all()


def test_selection_trains_two_models_and_compares_five_times_the_budget(made: Names) -> None:
    run = scoring(made["drop"])
    made_by = run.result()["made_by"]
    assert made_by["score"] == [scoring(made["default"]).id]  # shared with a selection by the default strategy
    ours, prior = (runs.get(name).manifest.config for name in made_by["pretrain"])
    assert {key for key in ours if ours[key] != prior[key]} == {"corpora"}
    drawn = [each.text for each in sentences_of(prior)]
    assert len(drawn) == len(TASK)
    assert set(drawn) < set(DOMAIN)
    assert run.manifest.config["options"]["pool"] == 50
    places = ranks(values(scoring(made["default"])), "high")
    assert ((values(run) > -5) == (places <= 50)).all()
    rows = np.load(runs.get(made["drop"]).artifacts / "rows.npy")
    assert (rows < 60).all()  # contracts
    inside, outside = (int(np.flatnonzero(places == rank)[0]) for rank in (1, 51))
    assert "Rank 1 by classifier" in insights.why(made["drop"], inside).notes[0]
    why = insights.why(made["drop"], outside)
    assert why.total == pytest.approx(why.score)
    assert "-rank by classifier (51)" in why.parts[1].name


def sentences_of(config: Mapping[str, Any]) -> list[Sentence]:
    (corpus,) = config["corpora"]
    return [each for batch in library().find(corpus).batches() for each in batch]


def test_shown_command_of_another_budget_keeps_the_scores(made: Names) -> None:
    """A `select` run with a smaller budget compares fewer sentences, so it selects others."""
    assert " select " in selections.command(made["drop"], "s.txt", "txt")
    selections.keep_budget(made["drop"], "4")
    again = executed("select", GIVEN, budget="4").id
    assert set(selections.chosen(again).rows) != set(selections.chosen(made["drop"]).rows)
    assert f" export {made['drop']} " in selections.command(made["drop"], "s.txt", "txt")


def test_model_of_the_domain_corpus_does_not_see_held_out_sentences(made: Names, seal: Seal) -> None:
    seal([sentence(text, []) for text in DOMAIN[::3]], "test", labelled=True)
    run = scoring(executed("select", GIVEN, holdout=("test",)).id)
    prior = runs.get(run.result()["made_by"]["pretrain"][1]).manifest.config
    drawn = {each.text for each in sentences_of(prior)}
    assert drawn
    assert not drawn & set(DOMAIN[::3])


def test_a_threshold_compares_all_sentences(made: Names) -> None:
    run = scoring(executed("select", GIVEN, budget="threshold:0").id)
    assert run.manifest.config["options"]["pool"] == 0
    assert (values(run) > -5).all()
