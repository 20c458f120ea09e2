"""Strategies with real, small trainings; test_model_strategies.py uses stand-ins."""

from dataclasses import replace

import numpy as np
import pytest

from core.models.encoder import Encoder
from core.models.taggers import load_tagger
from core.projects import runs as facade_runs
from core.reporter import Silent
from tests.conftest import Seal, sentence
from tests.fake_models import found_by_list
from tests.homes import executed
from tests.planted import contracts, kitchen

NAMES = {"supplier": "PARTY", "buyer": "PARTY", "agreement": "THING", "goods": "THING"}
TASK, DOMAIN = contracts(24, seed=1), [*contracts(20, seed=2), *kitchen(20)]


@pytest.fixture(autouse=True)
def piles(seal: Seal) -> None:
    seal(TASK, "task")
    seal(DOMAIN, "domain")
    for name, seed, n in (("train", 3, 40), ("dev", 4, 8)):
        rows = [sentence(text) for text in contracts(n, seed=seed)]
        found = found_by_list(rows, NAMES)
        labelled = [replace(row, entities=one.entities) for row, one in zip(rows, found, strict=True)]
        seal(labelled, name, labelled=True)


def test_strategies_train_their_models_and_score_by_them() -> None:
    """Three strategies share one encoder and one tagger, and scores equal those computed directly by these models."""
    given = {"task": "task", "domain": "domain", "train": "train", "dev": "dev", "encoder": "tiny", "budget": "10"}
    scores, made_by = {}, {}
    for strategy in ("cos-mlm", "ner-selected", "pseudo-perplexity"):
        run = executed("select", given, strategy=strategy)
        assert run.result()["selected"] == 10
        scoring = facade_runs.get(run.result()["score_run"])
        scores[strategy] = np.load(scoring.artifacts / "scores.npy")
        made_by[strategy] = scoring.result()["made_by"]
        assert np.isfinite(scores[strategy]).all()
    (b1,) = {runs["pretrain"][0] for runs in made_by.values()}
    (b2,) = made_by["ner-selected"]["finetune"]
    assert [run.id for run in facade_runs.listed("pretrain")] == [b1]
    assert [run.id for run in facade_runs.listed("finetune")] == [b2]

    encoder = Encoder.load(str(facade_runs.get(b1).artifacts / "model"))
    (task, task_norms), (domain, _) = (encoder.encode(texts, Silent()) for texts in (TASK, DOMAIN))
    wanted = (task.astype(np.float64) * task_norms[:, None]).mean(axis=0)
    cosines = domain.astype(np.float64) @ wanted / np.linalg.norm(wanted)
    assert scores["cos-mlm"] == pytest.approx(cosines, abs=5e-3)

    tagger = load_tagger(facade_runs.get(b2).artifacts / "model")
    found = tagger.predict([sentence(text) for text in DOMAIN])
    assert np.floor(scores["ner-selected"]).tolist() == [len(one.entities) for one in found]
    assert sum(len(one.entities) for one in found) > 0

    assert (scores["pseudo-perplexity"] > 1).all()
    words = scores["pseudo-perplexity"]
    assert np.median(words[:20]) < np.median(words[20:])  # the encoder was trained on contracts, not recipes
