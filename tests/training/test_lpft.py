"""Training in two stages: first the head under a frozen encoder, then all weights; exact resuming in either stage."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from core.errors import Cancelled
from core.models.tagger import Tagger
from core.models.taggers import EncoderTagger
from core.reporter import Reporter, Silent
from core.training import finetune as stages
from core.training.events import CHECKPOINT_SECONDS, HEAD
from core.training.finetune import Epochs, frozen_encoder, lpft
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, Listener, largest_difference, make

Weights = list[Tensor]
Trained = tuple[Epochs, EncoderTagger, Listener, tuple[Weights, Weights], tuple[Weights, Weights]]


def train(
    folder: Path,
    report: Reporter | None = None,
    tagger: EncoderTagger | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> tuple[Epochs, EncoderTagger]:
    tagger = tagger or make()
    own: dict[str, Any] = {"folder": folder, "report": report or Silent(), "checkpoint_seconds": checkpoint_seconds}
    return lpft(tagger, TRAIN, DEV, SETTINGS, seed=1, types=TYPES, **own), tagger


def weights(tagger: Tagger) -> tuple[Weights, Weights]:
    """Return copies of the weights of the encoder and of the head."""
    body, head = tagger.parameter_groups(0, 0)[:2]
    return [one.detach().clone() for one in body["params"]], [one.detach().clone() for one in head["params"]]


def equal(ours: Weights, theirs: Weights) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    listener, seen, tagger = Listener(), list[tuple[Weights, Weights]](), make()
    first, real = weights(tagger), stages._write_head

    def spy(tagger: Tagger, path: Path, seconds: float) -> None:
        seen.append(weights(tagger))
        real(tagger, path, seconds)

    stages._write_head = spy
    try:
        epochs, _ = train(tmp_path_factory.mktemp("calm"), listener, tagger, checkpoint_seconds=float("inf"))
    finally:
        stages._write_head = real
    return epochs, tagger, listener, first, seen[-1]


def test_encoder_is_frozen_in_the_first_stage(undisturbed: Trained) -> None:
    epochs, tagger, listener, (first_body, first_head), (body, head) = undisturbed
    assert len(first_body) > 10
    assert equal(body, first_body)
    assert not equal(head, first_head)
    assert not equal(weights(tagger)[0], first_body)
    assert all(parameter.requires_grad for parameter in tagger.parameters())
    assert max(epochs.dev_f1) > 60
    assert set(listener.curve("head_dev_f1@1")) == set(listener.curve("dev_f1@1")) == {3, 6, 9, 12}
    rates, head_rates = (listener.curve(name) for name in ("learning_rate@1", "head_learning_rate@1"))
    assert [rates[step] for step in (1, 12)] == [head_rates[step] for step in (1, 12)]  # the schedule starts again
    killed = make()
    with suppress(Killed), frozen_encoder(killed):
        assert killed.parameter_groups(0, 0)[0]["params"] == []
        raise Killed
    assert all(parameter.requires_grad for parameter in killed.parameters())


class RaiseInStage(Listener):
    """Raise after `after` steps, counted over both stages of 12 steps each."""

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self.steps = getattr(self, "steps", [])
        if not self.steps or self.steps[-1] != done:
            self.steps.append(done)
        self.done = len([step for step in self.steps if step])


@pytest.mark.alone  # as in test_finetune
@pytest.mark.parametrize("after", [4, 9, 14, 20])
def test_training_resumes_exactly_from_either_stage(undisturbed: Trained, tmp_path: Path, after: int) -> None:
    error = Killed() if after % 2 else Cancelled("stop")
    with pytest.raises(type(error)):
        train(tmp_path, RaiseInStage(after, error), checkpoint_seconds=0.0)
    assert (tmp_path / HEAD).exists() == (after > 12)
    epochs, tagger = train(tmp_path, tagger=make(seed=99) if after > 12 else make(), checkpoint_seconds=0.0)
    assert epochs.dev_f1 == undisturbed[0].dev_f1
    assert largest_difference(tagger, undisturbed[1]) == 0.0
