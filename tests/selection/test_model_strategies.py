"""Strategies that train models first: their child runs, inputs, reuse, resuming, and predicted entities."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.corpora.library import Library
from core.encoders import vectors as vectors_of
from core.errors import Cancelled, ConfigError, CorpusError
from core.explore import view as maps
from core.importing import view as corpora
from core.kind import Job, Result
from core.pretraining.pretrain import PretrainConfig
from core.projects import runs
from core.projects.home import store
from core.runs.events import Event
from core.runs.run import Run
from core.selection import insights, score
from core.selection import view as selections
from core.selection.strategies.predictions import fold
from core.tagging.config import FinetuneConfig
from core.tagging.predictions import read_spans
from core.text.sentence import Prediction, Sentence
from tests.conftest import Seal, sealer, sentence
from tests.fake_models import found_by_list, tiny_mlm, unigram_mlm
from tests.homes import Homes, Names, done, executed
from tests.planted import contracts, kitchen
from tests.untrained import without_training

TASK, DOMAIN = contracts(40, seed=1), [*contracts(60, seed=2), *kitchen(60)]
NAMES = {"supplier": "PARTY", "buyer": "PARTY", "agreement": "THING", "goods": "THING"}
GIVEN = {"task": "task", "domain": "domain", "encoder": "tiny", "budget": "30"}
LABELLED = {**GIVEN, "train": "train", "dev": "dev"}
STRATEGIES = {  # runs that compute the scores of each strategy
    "cos-mlm": ["pretrain", "embed T_C", "embed D_C"],
    "cos-mlm-ner": ["pretrain", "finetune", "embed T_C", "embed D_C"],
    "ner-selected": ["pretrain", "finetune", "tag"],
    "pseudo-perplexity": ["pretrain"],
}


def pretrain(config: PretrainConfig, job: Job) -> Result:
    """Stand in for MLM: fit a unigram model to the corpora."""
    texts = [s.text for name in config.corpora for batch in job.corpus(name).batches() for s in batch]
    folder = job.context.run.artifacts / "model"
    unigram_mlm(folder, texts, DOMAIN)
    return {"model": str(folder)}


def finetune(config: FinetuneConfig, job: Job) -> Result:
    """Stand in for the training of a tagger: store the ids of the training sentences."""
    folder = tiny_mlm(job.context.run.artifacts / "model")
    learnt = [s.id for batch in job.corpus(config.train).batches() for s in batch]
    (folder / "tokenizer_seen.json").write_text(json.dumps(learnt))  # gives the folder its own hash
    return {"model": str(folder)}


def tagger(folder: Path) -> SimpleNamespace:
    """Return a tagger that finds the names of the list, but nothing in a sentence of its training set."""
    seen = set(json.loads((folder / "tokenizer_seen.json").read_text()))

    def predict(sentences: list[Sentence], report: object) -> list[Prediction]:
        return [
            Prediction(entities=(), confidence=()) if s.id in seen else found
            for s, found in zip(sentences, found_by_list(sentences, NAMES), strict=True)
        ]

    return SimpleNamespace(types=("PARTY", "THING"), predict=predict, crf=SimpleNamespace(), context_pieces=0, cut=None)


@pytest.fixture(autouse=True)
def stand_ins() -> Iterator[None]:
    with without_models():
        yield


@contextmanager
def without_models() -> Iterator[None]:
    with without_training(pretrain=pretrain, finetune=finetune), pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.models.taggers.load_tagger", tagger)
        patch.setattr("core.models.devices._has_bf16", lambda device: False)
        yield


def scored(home: Path) -> Names:
    """Select by each strategy that trains models first, and once at random."""
    seal = sealer(home)
    seal(TASK, "task")
    seal(DOMAIN, "domain")
    train = [sentence(f"The {word} {i} left", [(1, 2, NAMES[word])]) for i in range(4) for word in NAMES]
    seal(train, "train", labelled=True)
    seal([sentence("The buyer paid", [(1, 2, "PARTY")])], "dev", labelled=True)
    with without_models():
        names = {strategy: select(strategy).id for strategy in STRATEGIES}
        return {**names, "random": select("random").id}


@pytest.fixture(autouse=True)
def made(homes: Homes, home: Path) -> Names:
    return homes.copy(scored, home)


def select(strategy: str, **options: Any) -> Run:
    given = LABELLED if strategy in ("ner-selected", "cos-mlm-ner") else GIVEN
    return executed("select", {**given, "strategy": strategy, **options})


def scoring(run_id: str) -> Run:
    return runs.get(runs.get(run_id).result()["score_run"])


def config_of(run: Run) -> Any:
    """Return the options of a run."""
    return SimpleNamespace(**run.manifest.config)


def test_strategies_share_one_pretrained_encoder_and_one_tagger(made: Names) -> None:
    kinds = {strategy: scoring(made[strategy]).result()["made_by"] for strategy in STRATEGIES}
    assert {strategy: list(made_by) for strategy, made_by in kinds.items()} == STRATEGIES
    for strategy, made_by in kinds.items():
        assert runs.get(made[strategy]).result()["selected"] == 30
        assert all(runs.state(name).state == "succeeded" for names in made_by.values() for name in names)
    for strategy in ("ner-selected", "pseudo-perplexity"):  # the stand-ins of the others give random vectors
        assert (selections.chosen(made[strategy]).rows < 60).all()
    [b1], [b2] = runs.listed("pretrain"), runs.listed("finetune")
    assert {made_by["pretrain"][0] for made_by in kinds.values()} == {b1.id}
    task, train, dev = (corpora.find(name).fingerprint for name in ("task", "train", "dev"))
    first, second = config_of(b1), config_of(b2)
    assert (first.corpora, first.init, first.preset) == ([task], "tiny", "quick")
    assert (second.init, second.train, second.dev, second.preset) == (b1.id, train, dev, "quick")
    select("cos-mlm", options={"preset": "paper"})
    assert config_of(runs.listed("pretrain")[0]).preset == "paper"


def test_cos_mlm_ner_scores_equal_cosines_of_joined_vectors() -> None:
    run = scoring(select("cos-mlm-ner", options={"halves": "raw"}).id)
    made_by = run.result()["made_by"]
    halves = []
    for kind in ("pretrain", "finetune"):
        folder = str(runs.get(made_by[kind][0]).artifacts / "model")
        mine = [name for name in made_by["embed D_C"] if runs.get(name).manifest.config["encoder"] == folder]
        vectors, norms = vectors_of.read(runs.get(mine[0]))
        task_run = next(n for n in made_by["embed T_C"] if runs.get(n).manifest.config["encoder"] == folder)
        task_vectors, task_norms = vectors_of.read(runs.get(task_run))
        halves.append((vectors[:] * norms[:, None], task_vectors[:] * task_norms[:, None]))
    domain, task = (np.concatenate([half[i] for half in halves], axis=1).astype(float) for i in (0, 1))
    query = task.mean(axis=0)
    expected = domain @ query / np.linalg.norm(domain, axis=1) / np.linalg.norm(query)
    np.testing.assert_allclose(np.load(run.artifacts / "scores.npy"), expected, atol=2e-3)


def test_fuse_trains_what_its_strategies_train_and_shares_their_runs(made: Names) -> None:
    labels = {"train": "train", "dev": "dev"}
    run = scoring(select("fuse", **labels, options={"of": ("ner-selected", "random")}).id)
    alone = scoring(select("random", **labels).id)
    assert run.result()["made_by"] == {"score": [scoring(made["ner-selected"]).id, alone.id]}
    assert len(runs.listed("finetune")) == 1


def test_pretraining_for_selection_leaves_out_held_out_sentences(made: Names, seal: Seal, home: Path) -> None:
    first = scoring(made["ner-selected"]).result()["made_by"]
    for rank in ("density", "type-balanced", "rarity"):
        assert scoring(select("ner-selected", options={"rank": rank}).id).result()["made_by"] == first
    seal([sentence(text, []) for text in TASK[:7]], "test", labelled=True)
    select("pseudo-perplexity", holdout=("test",))
    (read,) = config_of(runs.listed("pretrain")[0]).corpora
    assert [s.text for batch in Library(home).find(read).batches() for s in batch] == TASK[7:]
    whole = scoring(select("pseudo-perplexity", holdout=("test",), transductive=True).id)
    # Both were pre-trained on all of T_C.
    assert whole.result()["made_by"] == scoring(made["pseudo-perplexity"]).result()["made_by"]


def test_fold_taggers_score_only_sentences_they_did_not_train_on(seal: Seal) -> None:
    labelled = next(corpora.find("train").batches())
    seal([*DOMAIN, labelled[0].text], "domain")  # D_C holds a copy of a labelled sentence
    options = {"domain": corpora.listed()[0].fingerprint, "options": {"folds": 3}}
    run = scoring(select("ner-selected", **options).id)
    parts = [config_of(each).train for each in runs.listed("finetune")[2::-1]]
    assert len(set(parts)) == 3
    left_out = [{s.id for s in labelled} - {s.id for s in next(corpora.find(part).batches())} for part in parts]
    assert set().union(*left_out) == {s.id for s in labelled}
    ids = corpora.find("train").ids()
    assert [{f"{i:016x}" for i in ids[fold(ids, 3) == k].tolist()} for k in range(3)] == left_out
    scores = np.load(run.artifacts / "scores.npy")
    assert int(scores[-1]) == 1  # only the tagger that did not train on it is used
    assert len(run.result()["made_by"]["tag"]) == 3


def test_missing_options_are_refused_before_training() -> None:
    with pytest.raises(ConfigError, match="needs a dev set; give it with --dev"):
        select("ner-selected", dev="")
    with pytest.raises(ConfigError, match="needs labels; give them with --train"):
        select("cos-mlm-ner", train="")
    with pytest.raises(ConfigError, match="preset"):
        select("cos-mlm", options={"preset": "slow"})
    with pytest.raises(CorpusError, match="fewer folds"):
        select("ner-selected", train="dev", options={"folds": 2})
    assert len(runs.listed("pretrain", "finetune")) == 2


def test_cancelled_scoring_resumes_from_its_chunks(made: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = scoring(made["pseudo-perplexity"])
    expected = np.load(undisturbed.artifacts / "scores.npy")
    monkeypatch.setattr(score, "SLOW_CHUNK", 32)
    for name in (undisturbed.id, made["pseudo-perplexity"]):
        store().remove(name)  # only this run; its inputs stay
    done: list[int] = []

    def stop(event: Event) -> None:
        if event.kind == "progress" and event.data.get("unit") == "sentences":
            done.append(event.data["done"])
            if event.data["done"] >= 64 and event.data["total"] == len(DOMAIN):
                raise Cancelled("stop")

    monkeypatch.setattr("core.runs.context.PROGRESS_SECONDS", 0)
    with pytest.raises(Cancelled):
        runs.execute("select", {**GIVEN, "strategy": "pseudo-perplexity"}, stop)
    run = runs.listed("score")[0]
    kept = sorted(path.name for path in run.chunks.glob("*.npy"))
    assert kept
    run_id = runs.listed("select")[0].id
    runs.go_on(run_id)
    np.testing.assert_allclose(np.load(run.artifacts / "scores.npy"), expected, rtol=1e-5)
    assert len(runs.listed("pretrain")) == 1


def test_predicted_entities_are_shown_in_explore_and_explanations(made: Names) -> None:
    run, plain = runs.get(made["ner-selected"]), runs.get(made["random"])
    (tagged,) = maps.tag_runs(run.id)
    assert [tagged.id] == scoring(run.id).result()["made_by"]["tag"]
    assert [found.id for found in maps.tag_runs(plain.id)] == [tagged.id]  # the same D_C
    assert maps.entity_types(run.id) == ["PARTY", "THING"]
    sentences = next(corpora.find("domain").batches())
    expected = [prediction.entities for prediction in found_by_list(sentences, NAMES)]
    spans = read_spans(tagged)
    assert tagged.result()["entities"] == len(spans.records)
    assert [spans.entities(row) for row in range(len(spans))] == expected
    scores = np.load(scoring(run.id).artifacts / "scores.npy")
    assert np.floor(scores).astype(int).tolist() == [len(found) for found in expected]
    map_run = done("map", maps.options(run.id, sample=100, clusters=2))
    found = maps.get(map_run)
    counts = maps.entity_counts(map_run, np.arange(len(found)))
    assert np.isnan(counts[: found.n_task]).all()
    assert counts[found.n_task :].tolist() == [len(expected[row]) for row in found.rows[found.n_task :].tolist()]
    for row in (0, 70):
        assert maps.with_entities(run.id, row) == replace(sentences[row], entities=expected[row])
        why = insights.why(run.id, row)
        assert len(why.parts) == len(expected[row]) + 1
        assert why.total == pytest.approx(why.score, abs=1e-6)
    for name in ("cos-mlm", "cos-mlm-ner"):  # explained by vectors of the pre-trained encoder
        why = insights.why(made[name], 3)
        assert why.total == pytest.approx(why.score, abs=1e-3)
        assert (len(why.neighbours), len(why.parts) > 5) == (5, True)
    store().remove(tagged.id)
    assert maps.tag_runs(plain.id) == []
    assert maps.with_entities(plain.id, 0) is None
