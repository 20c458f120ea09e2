"""Out of memory: training and inference continue in smaller batches with the same results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core.models import devices
from core.models.classifier import Classifier, new_classifier
from core.models.devices import Halved
from core.models.encoder import Encoder
from core.models.mlm import MaskedLM
from core.models.taggers import EncoderTagger, new_tagger
from core.project_list import shared_home
from core.reporter import Silent
from core.selection.base import Batch
from core.selection.strategies.perplexity import PseudoOptions, PseudoPerplexity
from core.training import classify
from core.training import memory as training_memory
from core.training.finetune import finetune
from core.training.memory import Smaller
from core.training.mlm_settings import Settings as MlmSettings
from core.training.pretrain import Piles, pretrain
from core.training.settings import ClassifySettings, TaggerSettings
from core.training.steps import tokenised
from tests.conftest import sentence
from tests.fake_cards import seen_by_torch
from tests.reporters import Recorder
from tests.training.test_finetune import labelled

CPU = torch.device("cpu")
TEXTS = [f"{'a word and ' * (i % 5)}one more {i}" for i in range(40)]


def full(most: int, rows_of: Callable[..., int], work: Callable[..., Any]) -> Callable[..., Any]:
    """Return `work` as on a GPU that has memory for at most `most` rows."""

    def limited(*given: Any, **options: Any) -> Any:
        if rows_of(*given, **options) > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return work(*given, **options)

    return limited


def test_batch_is_halved_until_it_fits_and_the_size_is_kept() -> None:
    halved, sizes = Halved("adding", CPU), list[int]()

    def work(items: Sequence[int]) -> int:
        sizes.append(len(items))
        if len(items) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sum(items)

    assert sum(halved.each(range(10), work)) == 45
    assert sizes == [10, 5, 3, 3, 3, 1]
    assert sum(halved.each(range(10), work)) == 45
    assert sizes[6:] == [3, 3, 3, 1]
    with pytest.raises(torch.OutOfMemoryError):
        halved.each(range(2), full(0, len, work))
    with pytest.raises(ValueError, match="another"):
        halved.each(range(2), lambda items: (_ for _ in ()).throw(ValueError("another")))


def test_next_run_on_a_gpu_starts_with_the_smaller_batch(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This applies to the same work on the same GPU, never to a CPU, where results must not change in the last digit."""
    seen_by_torch(monkeypatch)
    shared_home(home).mkdir()
    card, weights, notes = torch.device("cuda"), torch.nn.Linear(2, 2), Recorder()
    for device in (card, CPU):
        assert sum(Halved("adding", device).each(range(8), full(2, len, sum))) == 28
        loss = full(1, lambda times: 4 // times, int)
        assert Smaller(weights, "training", device, notes).step(loss, 8) == 4
    assert Halved("adding", card).parts == 4
    assert [Halved(*other).parts for other in (("adding", CPU), ("another", card))] == [1, 1]
    notes.notes.clear()
    assert Smaller(weights, "training", card, notes).step(lambda times: times, 2) == 2
    assert [note[:57] for note in notes.notes] == ["An earlier run of this kind ran out of memory on this GPU"]
    assert Smaller(torch.nn.Linear(3, 3), "training", card, notes).times == 1
    seen_by_torch(monkeypatch, ["Tesla T4"])
    assert Halved("adding", card).parts == 1
    (shared_home(home) / devices.FILE).write_text("[")
    assert Halved("adding", card).parts == 1


def test_inference_continues_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked for embedding, tagging, classification, and pseudo-perplexity."""
    encoder = Encoder.load("tiny", device="cpu", precision="fp32")
    tagger = new_tagger("tiny", ["ORG"], device="cpu", precision="fp32")
    model = new_classifier("tiny", 2, device="cpu", precision="fp32")
    inputs, rows = [model.name(text.split()) for text in TEXTS], [sentence(text, []) for text in TEXTS]
    strategy = PseudoPerplexity(PseudoOptions(), seed=0)
    strategy._lm, strategy._longest = MaskedLM.load("tiny", device="cpu"), 64
    strategy._lm.has_head = True
    strategy._halved = Halved("reading", CPU)
    strategy._lm.model.eval()
    batch = Batch(ids=np.arange(len(rows)), sentences=rows, report=Silent())
    unit, norms = encoder.encode(TEXTS)
    tags, predictions = tagger.tag(rows), tagger.predict(rows)
    answers, scores = classify.log2_probabilities(model, inputs, Silent()), strategy.score(batch)
    # Sentences of several lengths, so that the parts of a batch differ in length.
    every_length = lambda lengths, budget: iter([np.argsort(lengths, kind="stable")])
    monkeypatch.setattr("core.models.tagger.length_groups", every_length)
    n_rows = lambda self, rows, *given: len(rows)
    for kind, name in ((Encoder, "_vectors"), (Classifier, "forward"), (MaskedLM, "logits")):
        monkeypatch.setattr(kind, name, full(3, n_rows, getattr(kind, name)))
    n_sentences = lambda self, features, shape: shape[0]
    monkeypatch.setattr(EncoderTagger, "emissions", full(3, n_sentences, EncoderTagger.emissions))
    again, norms_again = encoder.encode(TEXTS)
    assert np.allclose(unit, again, atol=2e-3)
    assert np.allclose(norms, norms_again, rtol=1e-3)
    assert tagger.tag(rows) == tags
    for one, other in zip(tagger.predict(rows), predictions, strict=True):
        assert one.entities == other.entities
        assert one.confidence == pytest.approx(other.confidence, abs=1e-4)
    assert np.allclose(classify.log2_probabilities(model, inputs, Silent()), answers, atol=1e-4)
    assert np.allclose(strategy.score(batch), scores, rtol=1e-4)


class Gradients:
    """Record the gradients of the first optimizer step, with enough memory and with memory for few rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of: list[dict[str, Tensor]] = []
        self.kept: list[tuple[str, str, int]] = []
        monkeypatch.setattr(training_memory, "keep_parts", lambda *given: self.kept.append(given))
        self.notes, self._seen = Recorder(), False
        step = Smaller.step

        def recorded(smaller: Smaller, work: Callable[[int], Tensor], most: int) -> Tensor:
            loss = step(smaller, work, most)
            if not self._seen:
                named = smaller._model.named_parameters()
                self.of.append({"loss": loss.clone(), **{n: p.grad.clone() for n, p in named if p.grad is not None}})
            self._seen = True
            return loss

        monkeypatch.setattr(Smaller, "step", recorded)

    def begin(self, model: torch.nn.Module) -> None:
        """Begin a training without dropout, so that both trainings are equal."""
        self._seen = False
        self.notes.notes.clear()
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0

    def are_the_same(self, trained: Callable[[str], None], kind: Any, name: str, most: int, rows: Any) -> None:
        """Train with enough memory, and with memory for `most` rows in `kind.name`; compare the first steps."""
        trained("usual")
        assert self.notes.notes == []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, name, full(most, rows, getattr(kind, name)))
            trained("smaller")
        usual, smaller = self.of
        assert usual.keys() == smaller.keys()
        assert all(torch.allclose(usual[name], smaller[name], atol=1e-5, rtol=1e-3) for name in usual)
        assert self.notes.notes
        in_steps = [parts for work, _, parts in self.kept if "reading" not in work]
        assert in_steps == [2 ** (i + 1) for i in range(len(self.notes.notes))]
        assert all("Memory ran out, so each step is now cut into" in note for note in self.notes.notes)


def test_fine_tuning_continues_in_smaller_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, gradients = labelled(16, 1), Gradients(monkeypatch)
    settings = TaggerSettings(preset="custom", epochs=1, batch_size=8, learning_rate=1e-3).training(len(train))

    def trained(name: str) -> None:
        torch.manual_seed(0)
        tagger = new_tagger("tiny", ["LOC", "PER"], device="cpu", precision="fp32")
        gradients.begin(tagger)
        finetune(tagger, train, train[:4], settings, seed=1, folder=tmp_path / name, report=gradients.notes)

    gradients.are_the_same(trained, EncoderTagger, "emissions", 2, lambda self, features, shape: shape[0])


def test_pretraining_continues_in_smaller_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gradients = Gradients(monkeypatch)

    def trained(name: str) -> None:
        lm = MaskedLM.load("tiny", device="cpu")
        lm.has_head = True
        gradients.begin(lm.model)
        examples = tokenised([TEXTS], lm.tokenizer, max_length=32, n=len(TEXTS), report=Silent())
        few = examples.take(np.arange(4))
        piles = Piles(train=examples, draw=lambda epoch: np.arange(len(examples)), task=few, general=few)
        settings = MlmSettings(epochs=1, batch_size=20, learning_rate=1e-6)
        pretrain(lm, piles, settings, folder=tmp_path / name, report=gradients.notes)

    # The limit applies to dev losses and pseudo-perplexity too.
    gradients.are_the_same(trained, MaskedLM, "loss", 3, lambda self, ids, *given, **options: len(ids))


def test_classifier_training_continues_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ClassifySettings(epochs=2, batch_size=8, learning_rate=1e-3, head_learning_rate=1e-3, pooling="cls")
    gradients = Gradients(monkeypatch)

    def trained(name: str) -> None:
        torch.manual_seed(0)
        model = new_classifier("tiny", 2, device="cpu", precision="fp32")
        gradients.begin(model)
        inputs = [model.name(text.split()) for text in TEXTS]
        labels = np.arange(len(inputs)) % 2
        classify.train(model, inputs, labels, settings, seed=1, report=gradients.notes, log=lambda bits, step: None)

    gradients.are_the_same(trained, Classifier, "forward", 3, lambda self, rows: len(rows))
    assert len(gradients.notes.notes) <= 2  # later steps start with the smaller size
