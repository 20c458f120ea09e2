"""Taggers with mixed, removed or reinitialised layers train like others: a resumed one equals an undisturbed one."""

from pathlib import Path

import pytest
import torch

from core.models.taggers import load_tagger
from core.training.finetune import lpft
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, Listener, apart, make, train

FULL = [pytest.param(layers, marks=pytest.mark.full) for layers in ("1", "reinit:1")]


@pytest.mark.parametrize("layers", ["mix", *FULL])
def test_resumed_training_equals_an_undisturbed_one(tmp_path: Path, layers: str) -> None:
    """To the bytes of what is written."""
    epochs, calm = train(tmp_path / "calm", tagger=make(layers=layers), checkpoint_seconds=float("inf"))
    if calm.mix:
        assert calm.mix.weights.detach().abs().max() > 0.01  # the mix is learnt
        assert calm.mix.gamma.detach() != 1
    with pytest.raises(Killed):
        train(tmp_path / "cut", Listener(5, Killed()), make(layers=layers), checkpoint_seconds=0.0)
    again, resumed = train(tmp_path / "cut", tagger=make(seed=99, layers=layers), checkpoint_seconds=0.0)
    assert again.dev_f1 == epochs.dev_f1
    assert apart(calm, resumed) == 0.0
    calm.write(tmp_path / "one")
    resumed.write(tmp_path / "other")
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "other" / file.name).read_bytes(), file.name
    assert load_tagger(tmp_path / "one", "cpu", "fp32").predict(DEV) == calm.predict(DEV)


def test_layer_mix_trains_under_a_frozen_encoder(tmp_path: Path) -> None:
    tagger, before = make(layers="mix"), make(layers="mix")
    lpft(tagger, TRAIN, DEV, SETTINGS, seed=1, folder=tmp_path, report=Listener(), types=TYPES)
    assert tagger.mix
    assert before.mix
    assert not torch.equal(tagger.mix.weights, before.mix.weights)
