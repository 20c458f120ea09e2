"""`finetune` with recurrent networks: vectors of a corpus, an encoder's states, SGD that slows down, evaluated again."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from core.cli.options import given
from core.encoders import vectors
from core.errors import ConfigError
from core.models.bilstm import BiLstmTagger
from core.models.taggers import load_tagger
from core.projects import removals, runs
from core.runs import Run
from core.training import finetune as training
from core.training.settings import Settings
from tests.conftest import Seal, sentence
from tests.recipes.test_skl_recipe import AWAY, HOME


@pytest.fixture
def base(seal: Seal) -> dict[str, object]:
    fingerprint = seal(HOME, "home", labelled=True).fingerprint
    return {"train": fingerprint, "dev": fingerprint, "test": (fingerprint,), "seeds": (1,), "hidden": 4, "epochs": 2}


def tuned(base: Mapping[str, object], network: str = "charcnn", **options: object) -> Run:
    return runs.execute("finetune", {**base, "network": network, **options})


def loaded(run: Run) -> BiLstmTagger:
    tagger = load_tagger(run.artifacts / "model", device="cpu")
    assert isinstance(tagger, BiLstmTagger)
    return tagger


def test_vectors_and_states_and_a_model_that_is_read_again(base: dict[str, object], seal: Seal) -> None:
    text = seal([sentence("Ada lives in Rome.")] * 9 + [sentence(f"Jordan won {i} .") for i in range(9)], "text")
    run = tuned(base, "bilstm", vectors=text.fingerprint, states="tiny")
    learnt = vectors.read_words(next(r for r in runs.listed("vectors")))
    assert learnt.values.shape == (len(learnt.words), 100)
    assert {"Jordan", "Rome", "."} <= set(learnt.words)
    assert "Rome." not in learnt.words  # the text is cut as it is everywhere
    again = runs.execute("evaluate", {"model": run.result()["model"], "test": base["train"]})
    assert again.result()["test"]["micro_f1"] == run.result()["test"]["micro_f1"]
    card = (run.artifacts / "model" / "README.md").read_text()
    assert "# Tagger" in card
    assert "(bilstm) trained from nothing" in card
    assert "transformers import pipeline" not in card
    assert run.manifest.config["weights"]  # the hash of the encoder whose states are read


def test_the_same_seed_is_the_same_tagger(base: dict[str, object], home: Path) -> None:
    first = tuned(base, epochs=3)
    told = {name: first.result()[name] for name in ("dev", "test", "best_epoch")}
    removals.remove_run(first.id)
    second = tuned(base, epochs=3)
    assert {name: second.result()[name] for name in told} == told
    assert second.result()["settings"]["learning_rate"] == 0.4


def test_the_rate_falls_when_dev_does_and_then_ends() -> None:
    settings = Settings(
        epochs=9,
        batch_size=1,
        learning_rate=0.4,
        head_learning_rate=0.4,
        weight_decay=0.0,
        patience=9,
        min_epochs=1,
        decay=0.7,
        least_rate=0.002,
    )
    assert settings.rate([10, 20, 15, 15, 14, 30]) == pytest.approx(0.4 * 0.7**2)
    falls = np.arange(20, 0, -1.0).tolist()
    assert settings.rate(falls[:15]) > settings.least_rate > settings.rate(falls[:16])


def test_charcnn_learns_by_sgd_at_the_falling_rate(base: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate of an epoch's last step; its first still has the one from before the evaluation."""
    f1s, taken = iter([30, 20, 20, 10]), list[tuple[type, float | None, float]]()
    step = training.Finetuning.training_step

    def table(*given: object) -> SimpleNamespace:
        f1 = next(f1s)
        return SimpleNamespace(f1=lambda: f1, by_type=dict)

    def watched(trainer: training.Finetuning, *given: Any) -> torch.Tensor:
        optimizer = trainer.optimizer.optimizer  # accelerate's holds torch's
        taken.append((type(optimizer), trainer.state.epoch, optimizer.param_groups[0]["lr"]))
        return step(trainer, *given)

    monkeypatch.setattr(training, "score", table)
    monkeypatch.setattr(training.Finetuning, "training_step", watched)
    tuned(base, epochs=4, batch_size=2)
    assert {kind for kind, _, _ in taken} == {torch.optim.SGD}
    assert [rate for _, _, rate in taken][1::2] == pytest.approx([0.4, 0.4, 0.4 * 0.7, 0.4 * 0.7])


def test_an_encoder_takes_no_vectors(base: dict[str, object], seal: Seal) -> None:
    with pytest.raises(ConfigError, match="bilstm and charcnn"):
        tuned(base, "encoder", hidden=None, init="tiny", vectors=seal(["a b"]).fingerprint)


@pytest.mark.parametrize("share", ["all", "sub-word"])
def test_each_language_may_have_word_vectors_of_its_own(base: dict[str, object], seal: Seal, share: str) -> None:
    own, other = (
        seal([sentence(f"{names} und")] * 9, name) for names, name in (("Ada Rome", "own"), ("Lena Oslo", "other"))
    )
    options = {**base, "assisting": seal(AWAY, "theirs", labelled=True).fingerprint, "share": share}
    options |= {"vectors": own.fingerprint, "assisting_vectors": other.fingerprint, "skipgram": {"dimension": "4"}}
    tagger = loaded(tuned(options, epochs=1))
    read = {learnt.manifest.config["corpus"]: vectors.read_words(learnt) for learnt in runs.listed("vectors")}
    for corpus, word, at in ((own, "und", 0), (other, "Lena", -1)):
        kept = tagger.get_buffer(f"towers.{at % len(tagger.towers)}.words.kept")
        kept = kept[tagger.vocabularies[at].further.index(word)]
        at_word = read[corpus.fingerprint]
        assert np.array_equal(kept.numpy(), at_word.values[at_word.words.index(word)])
    assert len(tagger.towers) == (1 if share == "all" else 2)
    typed = given({"skipgram": ("dimension=4", "window=2")}, runs.KINDS["finetune"].config)
    assert typed == {"skipgram": {"dimension": "4", "window": "2"}}
    with pytest.raises(ConfigError, match="skipgram: 'wide' is not NAME=VALUE; write for example --skipgram window=2"):
        given({"skipgram": ("wide",)}, runs.KINDS["finetune"].config)
    with pytest.raises(ConfigError, match="give assisting and vectors too"):
        tuned(options, vectors="")
    with pytest.raises(ConfigError, match=r"skipgram\.width: is not an option here; choose among dimension, window"):
        tuned(options, skipgram={"width": 3})


def test_assisting_words_may_be_their_own(base: dict[str, object], seal: Seal) -> None:
    theirs = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "theirs", labelled=True)
    run = tuned(base, assisting=theirs.fingerprint, share="sub-word")
    assert "| assisting | theirs | 6 |" in (run.artifacts / "model" / "README.md").read_text()
    tagger = loaded(run)
    assert tagger.types == ("LOC", "ORG", "PER")
    assert tagger.assisting_types == ("GPE", "LOC", "PER")
    assert len(tagger.towers) == 2
