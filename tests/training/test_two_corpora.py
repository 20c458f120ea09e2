"""Training on a primary and an assisting corpus: gradients, batches, and the protocol of Murthy et al. 2018."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import set_seed

from core.errors import Cancelled
from core.models.bilstm import BiLstmTagger, Layout
from core.models.crf import Head
from core.models.word_features import build_vocabulary
from core.reporter import Reporter, Silent
from core.text.sentence import Sentence
from core.training import finetune as training
from core.training.finetune import Epochs
from core.training.rows import ASSISTING, PRIMARY, Alternating, Joined, OneCorpus, Row
from core.training.settings import Settings
from tests.conftest import sentence
from tests.reporters import Recorder
from tests.training.test_finetune import DEV, TRAIN, TYPES, largest_difference
from tests.training.test_finetune import SETTINGS as TAGGER

OTHER = [
    sentence("Qx walked", [(0, 1, "GPE")]),
    sentence("a b Px c a b c", [(2, 3, "PER")]),
    sentence("c", []),
    sentence("Lx met Px in b", [(0, 1, "LOC"), (2, 3, "PER")]),
    sentence("a a a", []),
]
ONE_STEP = replace(TAGGER, epochs=1, learning_rate=0.1, head_learning_rate=0.1, patience=1, clip=1e9, decay=0.7)
IN_TURN = replace(Settings.sentence_by_sentence(), epochs=4)


def tagger(head: Head = "crf") -> BiLstmTagger:
    """Return a small charcnn with a fixed seed, without dropout and rare words; each corpus has its own types."""
    set_seed(1)
    layout = Layout(layers=1, hidden=4, word_size=5, letter_size=3, filters=2, widths=(1, 2), dropout=0.0)
    return BiLstmTagger(
        TYPES, head, layout, [build_vocabulary([*TRAIN, *OTHER] * 2)], assisting_types=("GPE", "LOC", "PER")
    )


def rows(sentences: list[Sentence], weight: float, source: int) -> list[Row]:
    return [(one, weight, source) for one in sentences]


def trained(
    folder: Path,
    settings: Settings,
    train: list[Sentence],
    weight: float = 0.3,
    report: Reporter | None = None,
    head: Head = "crf",
) -> tuple[Epochs, BiLstmTagger]:
    learner = tagger(head)
    own: dict[str, Any] = {"types": TYPES, "assisting": OTHER, "checkpoint_seconds": math.inf}
    own |= {"folder": folder, "report": report or Silent(), "assisting_weight": weight}
    return training.finetune(learner, train, DEV, settings, seed=1, **own), learner


@pytest.mark.parametrize("accumulation", [1, 2])
def test_step_adds_the_weighted_gradient_of_the_assisting_batch(tmp_path: Path, accumulation: int) -> None:
    """Plain SGD moves weights by the rate times the gradient, which this test computes corpus by corpus."""
    own = TRAIN[:8]
    _, moved = trained(tmp_path, replace(ONE_STEP, accumulation=accumulation), own)
    keys = Joined(rows(own, 1.0, PRIMARY), rows(OTHER, 0.3, ASSISTING), 0.3, 8).keys(np.random.default_rng([1, 0]))
    beside = [OTHER[key[1]] for key in keys if isinstance(key, tuple)]
    reference = tagger()
    loss = reference(**reference.batch(own))["loss"]
    loss = loss + 0.3 * reference(**reference.batch(beside, sources=[ASSISTING] * len(beside)))["loss"]
    loss.backward()
    for (name, after), before in zip(moved.named_parameters(), reference.parameters(), strict=True):
        assert before.grad is not None
        assert torch.allclose(after, before - 0.1 * before.grad, atol=1e-6), name


def test_primary_batches_equal_those_of_training_alone() -> None:
    own = rows(TRAIN, 1.0, PRIMARY)
    for epoch in range(3):
        alone, beside = (
            corpora.keys(np.random.default_rng([4, epoch]))
            for corpora in (OneCorpus(own), Joined(own, rows(OTHER, 0.1, ASSISTING), 0.1, 8))
        )
        assert list(alone) == [key[0] for key in beside if isinstance(key, tuple)]


def test_alternating_steps_use_single_sentences_of_each_corpus(tmp_path: Path) -> None:
    corpora = Alternating(rows(TRAIN, 1.0, PRIMARY), rows(OTHER, 0.1, ASSISTING))
    epoch = [corpora[key] for key in corpora.keys(np.random.default_rng(0))]
    assert [source for ((_, _, source),) in epoch] == [PRIMARY, ASSISTING] * len(TRAIN)
    assert {one.text for ((one, _, source),) in epoch if source == ASSISTING} == {one.text for one in OTHER}
    assert sorted(one.text for ((one, _, source),) in epoch if source == PRIMARY) == sorted(s.text for s in TRAIN)

    recorder = Recorder()
    trained(tmp_path, replace(IN_TURN, epochs=1), TRAIN, 0.1, recorder)
    assert recorder.progressed[-1][1] == 2 * len(TRAIN)


def test_weights_roll_back_and_the_rate_falls_when_dev_loss_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, best_epochs, rates = iter([3.0, 2.0, 5.0, 2.5]), dict[int, float](), dict[int, float]()
    step, n = training.Finetuning.training_step, 2 * 6

    def watched(trainer: training.Finetuning, *given: Any) -> torch.Tensor:
        at = trainer.state.global_step
        before = {name: value.clone() for name, value in trainer.tagger.state_dict().items()} if at == 3 * n else {}
        loss = step(trainer, *given)
        if before:  # gradients of the step belong to the best weights, not to those of the previous epoch
            now = trainer.tagger.state_dict()
            assert any(not torch.equal(now[name], before[name]) for name in before)
            assert all(torch.equal(now[name], trainer.best[name]) for name in before)
        rates[at // n] = trainer.optimizer.param_groups[0]["lr"]
        best_epochs[at // n] = trainer.epochs.best
        return loss

    monkeypatch.setattr(training, "loss_of", lambda *given: next(losses))
    monkeypatch.setattr(training.Finetuning, "training_step", watched)
    epochs, _ = trained(tmp_path, IN_TURN, TRAIN[:6])
    assert (epochs.best, epochs.dev_loss) == (2, [3.0, 2.0, 5.0, 2.5])
    assert best_epochs == {0: 0, 1: 1, 2: 2, 3: 2}
    assert rates == pytest.approx({0: 0.4, 1: 0.4, 2: 0.4, 3: 0.4 * 0.7})


@pytest.mark.parametrize("head", ["crf", pytest.param("memm", marks=pytest.mark.full)])
def test_alternating_training_cancelled_between_epochs_resumes_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: Head
) -> None:
    """A resumed process also rolls weights back at the beginning of an epoch."""

    def odd(learner: BiLstmTagger, *_: object) -> float:
        """Return a value that goes up and down and depends only on the weights."""
        return math.sin(1e4 * float(learner.last_layer.weight.detach().sum()))

    monkeypatch.setattr(training, "loss_of", odd)

    class Stop(Silent):
        at = 0
        done = 0

        def progress(self, done: int, total: int | None, unit: str) -> None:
            self.done = done

        def check(self) -> None:
            if self.done >= self.at:
                raise Cancelled("Stop.")

    undisturbed, whole = trained(tmp_path / "undisturbed", IN_TURN, TRAIN[:6], head=head)
    # The processor decides if dev loss rises and weights are rolled back; the previous test asserts the rollback.
    for epoch in (1, 2, 3):
        stop = Stop()
        stop.at = epoch * 12
        with pytest.raises(Cancelled):
            trained(tmp_path / "stopped", IN_TURN, TRAIN[:6], report=stop, head=head)
    epochs, resumed = trained(tmp_path / "stopped", IN_TURN, TRAIN[:6], head=head)
    assert epochs.dev_loss == undisturbed.dev_loss
    assert largest_difference(whole, resumed) == 0
