"""LoRA, checkpointed layers, and mixed or removed layers: resumed training ends with the same bytes as undisturbed training."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from transformers import AutoModelForTokenClassification

from core.errors import Cancelled
from core.models.layers import Lora
from core.models.taggers import EncoderTagger, load_tagger
from core.reporter import Silent
from core.training.finetune import lpft
from core.training.memory import LARGE, checkpoint_layers, lora_note
from core.training.mlm_settings import MlmSettings
from core.training.pretrain import pretrain
from core.training.settings import TaggerSettings
from tests.models.test_families import assert_same_language_model
from tests.training import test_pretrain as mlm
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, Listener, largest_difference, make, train

PRESETS: tuple[Literal["quick", "paper", "custom"], ...] = ("quick", "paper", "custom")
FASTER = replace(SETTINGS, learning_rate=1e-2)


def with_lora(seed: int = 1) -> tuple[EncoderTagger, Lora]:
    tagger = make(seed)
    return tagger, Lora(tagger.model, 4, seed)


def assert_same_files(undisturbed: EncoderTagger, resumed: EncoderTagger, folder: Path) -> None:
    """Write two taggers to `one` and `other` in `folder`; assert equal bytes, and equal predictions after loading."""
    undisturbed.write(folder / "one")
    resumed.write(folder / "other")
    for file in sorted((folder / "one").iterdir()):
        assert file.read_bytes() == (folder / "other" / file.name).read_bytes(), file.name
    assert load_tagger(folder / "one", "cpu", "fp32").predict(DEV) == undisturbed.predict(DEV)


def test_killed_tagger_with_checkpointing_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """Without checkpointing and undisturbed, the same files result; transformers can read them."""
    (undisturbed, lora), initial = with_lora(), make()
    epochs, _ = train(tmp_path / "undisturbed", tagger=undisturbed, settings=FASTER, checkpoint_seconds=float("inf"))
    for name, weight in initial.model.base_model.state_dict().items():
        assert torch.equal(weight, undisturbed.model.base_model.state_dict()[name]), f"{name} was trained"
    assert not torch.equal(initial.last_layer.weight, undisturbed.last_layer.weight)
    lora.merge()
    assert largest_difference(initial, undisturbed) > 0.01  # raises if the parameters are not the same

    cut, _ = with_lora()
    checkpoint_layers(cut.model, "tiny")
    with pytest.raises(Killed):
        train(tmp_path / "cut", Listener(5, Killed()), cut, FASTER, checkpoint_seconds=0.0)
    resumed, lora = with_lora(seed=99)
    checkpoint_layers(resumed.model, "tiny")
    again, _ = train(tmp_path / "cut", tagger=resumed, settings=FASTER, checkpoint_seconds=0.0)
    lora.merge()
    assert again.dev_f1 == epochs.dev_f1
    assert_same_files(undisturbed, resumed, tmp_path)
    plain = AutoModelForTokenClassification.from_pretrained(tmp_path / "one").eval()
    ids = torch.tensor([undisturbed.tokenizer(DEV[0].text)["input_ids"]])
    with torch.inference_mode():
        torch.testing.assert_close(plain(ids).logits, undisturbed.model(ids).logits)


def test_frozen_encoder_freezes_lora_matrices(tmp_path: Path) -> None:
    tagger, _ = with_lora()
    settings = replace(FASTER, epochs=1)
    with pytest.raises(Killed):  # at the beginning of the second stage
        lpft(tagger, TRAIN, DEV, settings, seed=1, folder=tmp_path, report=_SecondStage(), types=TYPES)
    matrices = {name: weight for name, weight in tagger.named_parameters() if "lora" in name}
    assert matrices
    assert not any(weight.any() for name, weight in matrices.items() if name.endswith("lora_b"))
    trained = {name for name, weight in tagger.named_parameters() if weight.requires_grad}
    assert trained - matrices.keys() == {name for name in trained if name.startswith(("crf.", "model.classifier."))}
    assert matrices.keys() < trained


class _SecondStage(Silent):
    """Kill a training at the beginning of its second stage."""

    def stage(self, name: str) -> None:
        if name.startswith("training the whole tagger"):
            raise Killed


def test_cancelled_language_model_with_checkpointing_resumes_to_the_same_weights(
    tmp_path: Path,
) -> None:
    settings = replace(mlm.SETTINGS, lora=4, learning_rate=1e-2)
    undisturbed_model, initial = mlm.model(), mlm.model()
    names = list(initial.model.state_dict())
    undisturbed = pretrain(
        undisturbed_model, mlm.piles(undisturbed_model), settings, folder=tmp_path / "undisturbed", report=Silent()
    )
    assert undisturbed.dev_loss[-1] < undisturbed.before["dev_loss_task"]
    assert list(undisturbed_model.model.state_dict()) == names
    for name, weight in initial.model.base_model.named_parameters():
        same = torch.equal(weight, undisturbed_model.model.base_model.get_parameter(name))
        assert same == (weight.dim() == 1 or "embed" in name), name  # only linear layers changed
    assert all(weight.requires_grad for weight in undisturbed_model.model.parameters())

    checkpointed = replace(settings, checkpointing=True)
    with pytest.raises(Cancelled):
        pretrain(mlm.model(), mlm.piles(initial), checkpointed, folder=tmp_path / "resumed", report=mlm.Stopping(at=3))
    torch.manual_seed(99)
    resumed = mlm.model()
    again = pretrain(resumed, mlm.piles(resumed), checkpointed, folder=tmp_path / "resumed", report=Silent())
    assert again.dev_loss == undisturbed.dev_loss
    for name, weight in undisturbed_model.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name
    assert_same_language_model(resumed, tmp_path)


def test_lora_has_its_own_learning_rate_and_a_note_for_small_encoders() -> None:
    assert MlmSettings(lora=8).filled().learning_rate == pytest.approx(2e-3)
    assert MlmSettings(preset="paper", lora=8).filled().learning_rate == pytest.approx(1e-3)
    assert MlmSettings(lora=8, learning_rate=1e-3).filled().learning_rate == 1e-3
    for preset in PRESETS:
        light, usual = (TaggerSettings(preset=preset, lora=rank).training(100) for rank in (8, 0))
        assert light == replace(usual, learning_rate=20 * usual.learning_rate)
    assert TaggerSettings(lora=8, learning_rate=1e-3).training(100).learning_rate == 1e-3

    class Sized:
        """An encoder with `n` parameters besides its head."""

        def __init__(self, n: int) -> None:
            self.n, self.base_model = n, self

        def parameters(self) -> list[torch.Tensor]:
            return [torch.empty(self.n, device="meta")]

    small, large = Sized(22_700_000), Sized(LARGE)
    assert "this one has 22.7 million" in lora_note(small, 8)
    assert lora_note(small, 0) == lora_note(large, 8) == ""


@pytest.mark.parametrize("layers", ["mix", *(pytest.param(name, marks=pytest.mark.full) for name in ("1", "reinit:1"))])
def test_resumed_training_with_other_layers_equals_an_undisturbed_one(tmp_path: Path, layers: str) -> None:
    epochs, undisturbed = train(tmp_path / "undisturbed", tagger=make(layers=layers), checkpoint_seconds=float("inf"))
    if undisturbed.mix:
        assert undisturbed.mix.weights.detach().abs().max() > 0.01  # the mix is learnt
        assert undisturbed.mix.gamma.detach() != 1
    with pytest.raises(Killed):
        train(tmp_path / "cut", Listener(5, Killed()), make(layers=layers), checkpoint_seconds=0.0)
    again, resumed = train(tmp_path / "cut", tagger=make(seed=99, layers=layers), checkpoint_seconds=0.0)
    assert again.dev_f1 == epochs.dev_f1
    assert largest_difference(undisturbed, resumed) == 0.0
    assert_same_files(undisturbed, resumed, tmp_path)


def test_layer_mix_trains_under_a_frozen_encoder(tmp_path: Path) -> None:
    tagger, before = make(layers="mix"), make(layers="mix")
    lpft(tagger, TRAIN, DEV, SETTINGS, seed=1, folder=tmp_path, report=Listener(), types=TYPES)
    assert tagger.mix
    assert before.mix
    assert not torch.equal(tagger.mix.weights, before.mix.weights)
