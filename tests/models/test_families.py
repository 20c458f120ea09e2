"""Every family of encoders, tiny and random: embedding, pre-training, fine-tuning, classification, and reloading."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors import safe_open
from transformers import AutoModel, AutoModelForMaskedLM, set_seed

from core.errors import ModelError
from core.models import hub
from core.models.classifier import new_classifier
from core.models.encoder import Encoder
from core.models.layers import Lora
from core.models.mlm import MaskedLM, head_parameters
from core.models.taggers import load_tagger, new_tagger
from core.reporter import Silent
from core.training.classify import log2_probabilities, train
from core.training.finetune import lpft
from core.training.memory import checkpoint_layers
from core.training.pretrain import pretrain
from core.training.settings import ClassifySettings
from core.training.threads import Threads
from tests.training.test_finetune import DEV, TRAIN, TYPES
from tests.training.test_finetune import SETTINGS as TAGGER
from tests.training.test_pretrain import SETTINGS as MLM
from tests.training.test_pretrain import piles

SIZE = {
    "vocab_size": 193,  # of `tiny`'s tokenizer, whose padding is 0
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 80,
    "initializer_range": 0.1,
    "pad_token_id": 0,
}
IDS = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
FAMILIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "BERT": ("BertConfig", {}),
    "RoBERTa": ("RobertaConfig", {"type_vocab_size": 1}),
    "XLM-R": ("XLMRobertaConfig", {"type_vocab_size": 1}),
    "CamemBERT": ("CamembertConfig", {"type_vocab_size": 1}),
    "DistilBERT": ("DistilBertConfig", {"dim": 32, "n_heads": 2, "hidden_dim": 48}),
    "ELECTRA": ("ElectraConfig", {"embedding_size": 16}),
    "ALBERT": ("AlbertConfig", {"embedding_size": 16, "hidden_dropout_prob": 0.1}),
    "MPNet": ("MPNetConfig", {"pad_token_id": 1}),
    "DeBERTa-v3": (
        "DebertaV2Config",
        {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "position_biased_input": False,
            "type_vocab_size": 0,
            "max_relative_positions": -1,
        },
    ),
    "ModernBERT": ("ModernBertConfig", {"local_attention": 8, "global_attn_every_n_layers": 2, **IDS}),
}
TEXTS = ["A cat sat.", "", "The judge ruled on the appeal of the case.", "x"]


OFTEN = {
    "BERT",
    "DeBERTa-v3",
    "ModernBERT",
    "ALBERT",
}  # tested by `make test`; each other family resembles one of these
PARAMS = [pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.full]) for name in FAMILIES]


@pytest.fixture(scope="module", params=PARAMS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a masked language model of a family, with a tokenizer."""
    return save_random(request.param, tmp_path_factory.mktemp(request.param))


def save_random(family: str, folder: Path, layers: int = 2) -> Path:
    """Save a random masked language model of a family, with a tokenizer; return its folder."""
    config, own = FAMILIES[family]
    kind = getattr(transformers, config)
    known = kind()
    size = {**SIZE, **own, "num_hidden_layers": layers}
    torch.manual_seed(1)
    kept = {name: value for name, value in size.items() if hasattr(known, name)}
    AutoModelForMaskedLM.from_config(kind(**kept)).save_pretrained(folder)
    hub.load_tokenizer("tiny").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def without_head(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the encoder without its language-model head."""
    path = tmp_path_factory.mktemp("base")
    AutoModel.from_pretrained(folder).save_pretrained(path)
    hub.load_tokenizer("tiny").save_pretrained(path)
    return path


@pytest.mark.parametrize("pooling", ["mean", "last4"])
def test_vectors_of_every_family_are_independent_of_the_batch(folder: Path, pooling: Any) -> None:
    encoder = Encoder.load(str(folder), pooling=pooling, precision="fp32")
    together, norms = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text])[0] for text in TEXTS])
    assert encoder.dimension == 32
    assert (norms > 0).tolist() == [True, False, True, True]
    assert np.allclose(together, alone, atol=2e-3)
    assert encoder.encode(["y " * 300])[1] > 0  # longer than its position table


@pytest.mark.parametrize("with_head", [False, True])
def test_new_tagger_weights_are_not_counted_as_encoder(
    folder: Path, without_head: Path, tmp_path: Path, *, with_head: bool
) -> None:
    path = folder if with_head else without_head
    set_seed(1)
    tagger = new_tagger(str(path), TYPES, precision="fp32", max_length=64).eval()
    begin = f"{tagger.model.base_model_prefix}."
    with safe_open(path / "model.safetensors", framework="pt") as file:
        kept = {name.removeprefix(begin) for name in file.keys()}  # noqa: SIM118
    encoder = {id(weight) for weight in tagger.parameter_groups(1.0, 2.0)[0]["params"]}
    named = [(name.removeprefix(begin), weight) for name, weight in tagger.model.named_parameters()]
    assert {name for name, weight in named if id(weight) in encoder} == {name for name, _ in named} & kept
    tagger.write(tmp_path / "model")
    assert load_tagger(tmp_path / "model", precision="fp32").tag(DEV) == tagger.tag(DEV)


@pytest.mark.parametrize("with_head", [True, False])
def test_language_model_learns_and_reloads(
    folder: Path, without_head: Path, tmp_path: Path, *, with_head: bool
) -> None:
    lm = MaskedLM.load(str(folder if with_head else without_head), device="cpu")
    assert lm.has_head == with_head
    settings = replace(MLM, learning_rate=3e-3) if with_head else replace(MLM, epochs=1)
    outcome = pretrain(lm, piles(lm), settings, folder=tmp_path / "work", report=Silent())
    assert outcome.head_fitted == (not with_head)
    if with_head:
        assert min(outcome.dev_loss) < outcome.before["dev_loss_task"]
    else:
        assert np.isfinite(outcome.dev_loss).all()
        assert outcome.before["dev_loss_task"] < np.log(193)  # the fitted head is better than chance
    assert_same_language_model(lm, tmp_path)


def test_lora_merges_and_checkpointing_keeps_gradients(folder: Path) -> None:
    """Layers have different names and signatures in each family."""
    lm = unmoved(MaskedLM.load(str(folder), device="cpu"))
    ids, at = torch.tensor([[2, 10, 4, 12, 3], [2, 4, 9, 8, 3]]), torch.tensor([2, 8])
    before, names = lm.logits(ids, None, at).detach(), list(lm.model.state_dict())
    lora = Lora(lm.model, 4, seed=1)
    assert torch.equal(lm.logits(ids, None, at), before)
    matrices = [weight for name, weight in lm.model.named_parameters() if name.endswith("lora_b")]
    for weight in matrices:
        torch.nn.init.normal_(weight)
    head = {id(weight) for weight in head_parameters(lm.model).values()}
    trained = {id(weight) for weight in lm.model.parameters() if weight.requires_grad}
    assert len(trained) == 2 * len(matrices) + len(head)
    beside = lm.logits(ids, None, at).detach()
    assert (beside - before).abs().max() > 0.1
    lora.merge()
    torch.testing.assert_close(lm.logits(ids, None, at), beside, rtol=1e-4, atol=1e-5)
    assert list(lm.model.state_dict()) == names

    def gradients() -> list[torch.Tensor | None]:
        with Threads(lm.model) as threads:
            threads.gradients(lambda rows: lm.loss(rows, None, at, rows.flatten()[at]), [ids], seed=3)
        learnt = [weight.grad for weight in lm.model.parameters()]
        lm.model.zero_grad()
        return learnt

    lm.model.train()
    kept = gradients()
    if folder.name.startswith("ALBERT"):
        with pytest.raises(ModelError, match="share one set of weights"):
            checkpoint_layers(lm.model, "it")
        return
    checkpoint_layers(lm.model, "it")
    again = gradients()
    assert [grad is None for grad in again] == [grad is None for grad in kept]
    pairs = [(ours, theirs) for ours, theirs in zip(again, kept, strict=True) if ours is not None is not theirs]
    assert pairs
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


def assert_same_language_model(lm: MaskedLM, tmp_path: Path) -> None:
    lm.save(tmp_path / "model", "# card")
    assert (tmp_path / "model" / "README.md").read_text() == "# card"
    assert Encoder.load(str(tmp_path / "model"), device="cpu").dimension == lm.model.config.hidden_size
    again = MaskedLM.load(str(tmp_path / "model"), device="cpu")
    assert again.has_head
    ids, at = torch.tensor([[2, 10, 4, 12, 3]]), torch.tensor([2])
    with torch.inference_mode():
        scores = [model.logits(ids, None, at) for model in (unmoved(lm), unmoved(again))]
    assert torch.allclose(scores[0], scores[1], atol=1e-5)  # the last digit depends on where the weights lie in memory
    torch.testing.assert_close(lm.model.state_dict(), again.model.state_dict(), rtol=0, atol=0)


def unmoved(lm: MaskedLM) -> MaskedLM:
    lm.model.eval()
    return lm


def test_tagger_learns_and_reloads(without_head: Path, tmp_path: Path) -> None:
    """Both stages of `lpft` call `finetune`, so this covers training in one stage too."""
    set_seed(1)
    tagger = new_tagger(str(without_head), TYPES, precision="fp32", max_length=64)
    settings = replace(TAGGER, epochs=6, patience=6)
    epochs = lpft(tagger, TRAIN, DEV, settings, seed=1, folder=tmp_path / "work", report=Silent(), types=TYPES)
    assert max(epochs.dev_f1) > 20
    tagger.write(tmp_path / "model")
    again = load_tagger(tmp_path / "model", precision="fp32")
    assert (again.types, again.tags) == (tagger.types, tagger.tags)
    assert again.tag(DEV) == tagger.tag(DEV)
    assert [each.entities for each in again.predict(DEV)] == [each.entities for each in tagger.predict(DEV)]
    torch.testing.assert_close(tagger.state_dict(), again.state_dict(), rtol=0, atol=0)
    entities = transformers.pipeline("token-classification", str(tmp_path / "model"), aggregation_strategy="first")(
        "Pxx a Lyy"
    )
    assert all(entity["entity_group"] in TYPES for entity in entities)


def test_classifier_learns(without_head: Path) -> None:
    set_seed(1)
    classifier = new_classifier(str(without_head), 2, max_length=16, precision="fp32")
    inputs = [classifier.name([f"{letter}{i}"]) for i in range(20) for letter in "ab"]
    labels = np.array([0, 1] * 20)
    settings = ClassifySettings(epochs=6, learning_rate=3e-3, head_learning_rate=3e-3, batch_size=8, pooling="cls")
    train(classifier, inputs, labels, settings, seed=1, report=Silent(), log=lambda loss, step: None)
    scores = log2_probabilities(classifier, inputs, Silent())
    assert (scores.argmax(1) == labels).mean() > 0.8
