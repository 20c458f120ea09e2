"""Fine-tuning: learning, the best epoch, presets, early stopping, and exact resuming."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
import torch
from transformers import set_seed

from core.errors import Cancelled, ResourceError
from core.models.crf import Head
from core.models.tagger import Tagger
from core.models.taggers import EncoderTagger, new_tagger
from core.reporter import Reporter, Silent
from core.tagging import watched
from core.text.sentence import Prediction, Sentence
from core.training.events import CHECKPOINT_SECONDS
from core.training.finetune import Epochs, Watch, finetune, score
from core.training.rows import judges
from core.training.settings import Settings, TaggerSettings
from tests.conftest import sentence
from tests.reporters import Recorder

TYPES = ("LOC", "PER")
SETTINGS = Settings(
    epochs=4, batch_size=8, learning_rate=3e-3, head_learning_rate=3e-2, weight_decay=0.0, patience=4, min_epochs=1
)


def labelled(n: int, seed: int) -> list[Sentence]:
    """Return random sentences in which words that begin with P are PER, with L LOC."""
    rng, found = random.Random(seed), list[Sentence]()
    for _ in range(n):
        words = [rng.choice("PLabc") + rng.choice("xyz") * rng.randint(0, 2) for _ in range(rng.randint(1, 6))]
        kinds = {"P": "PER", "L": "LOC"}
        spans = [(i, i + 1, kinds[word[0]]) for i, word in enumerate(words) if word[0] in kinds]
        found.append(sentence(" ".join(words), spans))
    return found


TRAIN, DEV = labelled(20, 1), labelled(12, 2)  # three steps per epoch; the last step has four sentences


class Listener(Recorder):
    """Record metrics; after `after` steps, raise `error` at the next check.

    This check comes at the end of the next step or, after an epoch, during the evaluation on the dev set.
    """

    def __init__(self, after: int = 0, error: BaseException | None = None) -> None:
        super().__init__()
        self.done, self.after, self.error = 0, after, error

    def progress(self, done: int, total: int | None, unit: str) -> None:
        assert (total, unit) == (12, "steps")
        self.done = done

    def check(self) -> None:
        if self.error and self.done >= self.after:
            raise self.error

    def curve(self, name: str) -> dict[int | None, float]:
        return {step: value for metric, value, step in self.metrics if metric == name}


class Killed(BaseException):
    """Error that leaves the same files behind as kill -9."""


def make(seed: int = 1, head: Head = "crf", layers: str = "last") -> EncoderTagger:
    set_seed(seed)
    return new_tagger("tiny", TYPES, precision="fp32", max_length=64, head=head, layers=layers)


def train(
    folder: Path,
    report: Reporter | None = None,
    tagger: EncoderTagger | None = None,
    settings: Settings = SETTINGS,
    seed: int = 1,
    stopped: Callable[[Epochs], None] | None = None,
    watch: Watch | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> tuple[Epochs, EncoderTagger]:
    tagger = tagger or make(seed)
    own: dict[str, Any] = {"stopped": stopped, "watch": watch, "checkpoint_seconds": checkpoint_seconds, "types": TYPES}
    return finetune(tagger, TRAIN, DEV, settings, seed=seed, folder=folder, report=report or Silent(), **own), tagger


Trained = tuple[Epochs, EncoderTagger, Listener]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    listener = Listener()
    epochs, tagger = train(tmp_path_factory.mktemp("calm"), listener, checkpoint_seconds=float("inf"))
    return epochs, tagger, listener


def largest_difference(tagger: Tagger, other: Tagger) -> float:
    """Return the largest difference between two weights; 0.0 for equal taggers."""
    pairs = zip(tagger.state_dict().values(), other.state_dict().values(), strict=True)
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs if a.numel())


def test_number_of_threads_does_not_change_the_weights(tmp_path: Path) -> None:
    before, made = torch.get_num_threads(), list[Tagger]()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            made.append(train(tmp_path / str(threads), settings=replace(SETTINGS, epochs=1))[1])
    finally:
        torch.set_num_threads(before)
    assert largest_difference(*made) == 0.0


def test_training_learns_and_keeps_the_best_epoch(undisturbed: Trained) -> None:
    epochs, tagger, listener = undisturbed
    assert epochs.dev_f1[-1] > epochs.dev_f1[0]
    assert max(epochs.dev_f1) > 60
    assert epochs.dev_f1[epochs.best - 1] == max(epochs.dev_f1)
    assert score(tagger, DEV, TYPES, Silent()).f1() == max(epochs.dev_f1)
    curve = listener.curve("dev_f1@1")
    assert curve == dict(zip((3, 6, 9, 12), epochs.dev_f1, strict=True))
    assert set(listener.curve("dev_f1/PER@1")) == {3, 6, 9, 12}
    assert {"loss@1", "learning_rate@1", "grad_norm@1", "tokens_per_second@1"} <= {
        name for name, _, _ in listener.metrics
    }


def test_last_epoch_is_kept_after_the_same_patience(tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=12, learning_rate=0.1, head_learning_rate=0.3, patience=2)
    best, _ = train(tmp_path / "best", settings=settings)
    last, tagger = train(tmp_path / "last", settings=replace(settings, last=True))
    assert last.dev_f1 == best.dev_f1  # training ends after the same epoch
    assert best.best < len(best.dev_f1) < settings.epochs
    assert last.best == len(last.dev_f1)
    assert score(tagger, DEV, TYPES, Silent()).f1() == last.dev_f1[-1]


def test_entities_of_some_dev_sentences_are_stored_after_each_epoch(tmp_path: Path) -> None:
    run: Any = SimpleNamespace(checkpoints=tmp_path, manifest=SimpleNamespace(config={"seeds": [1, 7]}))
    assert watched.read(run) is None
    folder, epochs = tmp_path / "seed-7", list[float]()
    write = watched.writer(folder)

    def watch(epoch: float, gold: Sequence[Sentence], found: Sequence[Prediction]) -> None:
        epochs.append(epoch)
        write(epoch, gold, found)

    _, tagger = train(folder, settings=replace(SETTINGS, epochs=2, last=True), watch=watch)
    assert epochs == [1, 2]
    now = watched.read(run)
    assert now
    assert (now.seed, now.epoch) == (7, 2)
    named = [sentence for sentence in DEV if sentence.entities][: watched.SENTENCES]
    assert now.found == {s.id: p.entities for s, p in zip(named, tagger.predict(named), strict=True)}
    (folder / watched.FILE).write_text('{"epoch": 3, "found": {"a": [[1]]}}')
    assert watched.read(run) is None


@pytest.mark.parametrize("after", [1, 4, 5, 6])
@pytest.mark.parametrize("error", [Killed(), Cancelled("stop")], ids=["killed", "cancelled"])
def test_resumed_training_equals_an_undisturbed_one(
    undisturbed: Trained, tmp_path: Path, after: int, error: BaseException
) -> None:
    """The kill comes within an epoch, at its last step, or during the evaluation on the dev set."""
    with pytest.raises(type(error)):
        train(tmp_path, Listener(after, error), checkpoint_seconds=0.0)
    assert list(tmp_path.glob("checkpoint-*/trainer_state.json"))
    listener = Listener()
    # The checkpoint replaces these weights.
    epochs, tagger = train(tmp_path, listener, tagger=make(seed=99), checkpoint_seconds=0.0)
    assert epochs.dev_f1 == undisturbed[0].dev_f1
    assert epochs.best == undisturbed[0].best
    assert largest_difference(tagger, undisturbed[1]) == 0.0
    # The curve does not start again.
    assert set(listener.curve("dev_f1@1")) == ({3, 6, 9, 12} if after == 1 else {6, 9, 12})


def test_cancelled_tagging_restores_the_number_of_threads() -> None:
    """The number is restored at once, not by garbage collection: a resumed training needs the same number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)  # with one thread nothing would change
    try:
        with pytest.raises(Cancelled) as caught:  # keeps the stack frames alive
            make().tag(DEV * 40, Listener(0, Cancelled("stop")))
        assert torch.get_num_threads() == 2
        assert caught.traceback
    finally:
        torch.set_num_threads(before)


def test_cancelled_training_passes_on_the_best_epoch(tmp_path: Path) -> None:
    kept: list[Epochs] = []
    tagger = make()
    with pytest.raises(Cancelled):
        train(tmp_path, Listener(7, Cancelled("stop")), tagger, stopped=kept.append)
    assert len(kept) == 1
    assert score(tagger, DEV, TYPES, Silent()).f1() == max(kept[0].dev_f1)


def test_training_stops_early_and_suggests_accumulation_without_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = replace(SETTINGS, epochs=9, learning_rate=1e-12, head_learning_rate=1e-12, patience=2, min_epochs=4)
    epochs, tagger = train(tmp_path / "still", settings=still)
    assert (len(epochs.dev_f1), epochs.best) == (4, 1)
    falling = Epochs(dev_f1=[50.0, 40.0], best=1)
    assert [falling.keeps(replace(SETTINGS, last=last)) for last in (False, True)] == [False, True]

    def full(*args: object, **kw: object) -> NoReturn:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(tagger, "emissions", full)
    with pytest.raises(ResourceError, match="accumulation to 2"):
        train(tmp_path / "full", tagger=tagger)


def test_accumulated_parts_give_the_same_step(tmp_path: Path) -> None:
    curves = []
    settings = replace(SETTINGS, epochs=2, learning_rate=1e-3, head_learning_rate=1e-2)
    for parts in (1, 2, 4):
        tagger = make()
        for module in tagger.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        tagger.model.config.attention_probs_dropout_prob = 0.0
        for layer in tagger.model.bert.encoder.layer:
            layer.attention.self.dropout.p = 0.0
        train(tmp_path / str(parts), tagger=tagger, settings=replace(settings, accumulation=parts))
        curves.append(torch.cat([p.flatten() for p in tagger.parameters()]).detach())
    assert torch.allclose(curves[0], curves[1], atol=2e-3)
    assert torch.allclose(curves[0], curves[2], atol=2e-3)
    for wanted, taken in ((1, 1), (2, 2), (3, 4), (5, 8), (16, 16), (64, 16)):  # parts have equal sizes
        assert replace(SETTINGS, batch_size=16, accumulation=wanted).planned(100).accumulation == taken


def test_presets_have_the_published_settings() -> None:
    assert TaggerSettings(preset="paper").training(100).batch_size == 16
    assert TaggerSettings(preset="paper").training(201).batch_size == 32
    paper = TaggerSettings(preset="paper").training(201)
    assert (paper.learning_rate, paper.weight_decay, paper.epochs, paper.patience) == (2e-5, 1e-8, 200, 20)
    assert paper.chain_learning_rate is None  # the paper has one rate for all parameters
    bias = TaggerSettings(preset="paper-bias")
    assert (bias.head, bias.within_bioes, bias.training(5).last) == ("softmax", True, True)
    assert TaggerSettings(preset="paper-bias", head="crf").head == TaggerSettings(preset="paper").head == "crf"
    table_8 = {(s.epochs, s.batch_size, s.learning_rate) for s in map(bias.training, (1, 4999))}
    assert table_8 == {(10, 8, 5e-5)}
    assert (bias.training(5000).epochs, bias.training(5000).batch_size) == (7, 16)
    assert TaggerSettings(preset="quick").training(100).chain_learning_rate == 1e-2
    assert TaggerSettings(preset="custom", chain_learning_rate=0.5).training(100).chain_learning_rate == 0.5
    assert TaggerSettings(preset="paper", chain_learning_rate=0.5).training(100).chain_learning_rate == 0.5
    assert TaggerSettings(network="bilstm").training(100).chain_learning_rate is None
    assert TaggerSettings(preset="quick").training(100).planned(100).epochs == 30
    assert TaggerSettings(preset="quick").training(14_041).planned(14_041).epochs == 4
    assert TaggerSettings(preset="custom").training(14_041).planned(14_041).epochs == 30


def test_large_dev_set_is_sampled_and_zero_weights_have_no_effect(tmp_path: Path) -> None:
    """The sample is the same for every epoch and seed, in the order of the dev set; a small dev set is used whole."""
    part = judges(DEV, 5)
    assert len(part) == 5
    assert part == judges(DEV, 5) == [sentence for sentence in DEV if sentence in part]
    assert judges(DEV, 0) == judges(DEV, 12) == DEV
    noise = [sentence("Px", []), sentence("Lx", []), sentence("", [])] * 5
    weights = [1.0] * len(TRAIN) + [0.0] * len(noise)
    options: dict[str, Any] = {"seed": 1, "report": Silent(), "weights": weights, "types": TYPES}
    rows, dev, tagger = [*TRAIN, *noise], [*DEV, sentence("", [])], make(head="softmax")
    found = finetune(tagger, rows, dev, SETTINGS, folder=tmp_path / "noise", **options)
    assert max(found.dev_f1) > 60
    assert not tagger.crf.transitions.any()  # a softmax head has no chain to learn
    epochs, judged = train(tmp_path / "part", settings=replace(SETTINGS, dev_sentences=5))
    assert epochs.dev_f1[epochs.best - 1] == score(judged, part, TYPES, Silent()).f1()
    quick = TaggerSettings(preset="quick")
    assert [quick.training(n).dev_sentences for n in (100, 300, 9000)] == [150, 300, 500]
    assert TaggerSettings(preset="paper").training(100).dev_sentences == 0


def test_chain_has_its_own_learning_rate(tmp_path: Path) -> None:
    """A chain with a rate close to 0 does not change, while the layer below learns at its own rate."""
    moved: dict[float | None, float] = {}
    for rate in (None, 1e-12, 0.1):
        tagger = make()
        tagger.level_chains()
        layer = tagger.last_layer.weight.detach().clone()
        train(tmp_path / str(rate), tagger=tagger, settings=replace(SETTINGS, chain_learning_rate=rate))
        moved[rate] = float(tagger.crf.transitions.detach().abs().mean())
        assert not torch.equal(tagger.last_layer.weight, layer)
    assert moved[1e-12] < 1e-6 < moved[None] < moved[0.1]
