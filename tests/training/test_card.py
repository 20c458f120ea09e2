"""Training on a GPU, checked without one: tensors of two devices never meet, and the host does not wait for the GPU.

The device `lazy` replaces the GPU, because every build of torch can fake it with gradients. Its weights are fake
tensors; the CPU is real.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from accelerate.utils import send_to_device
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from core.models.bilstm import LAYOUTS, BiLstmTagger
from core.models.classifier import new_classifier
from core.models.devices import prepare_attention
from core.models.encoder import Encoder
from core.models.mlm import MaskedLM, Masking, pseudo_perplexity
from core.models.taggers import new_span_tagger, new_tagger
from core.models.word_features import build_vocabulary
from core.reporter import Silent
from core.results import Role
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.tagging import calibrate
from core.text.sentence import Paired, Sentence
from core.training import classify, finetune, mlm_settings, pretrain
from core.training.settings import ClassifySettings, Settings
from core.training.steps import Step, Steps, tokenised
from tests.conftest import Seal, sentence
from tests.fake_models import tiny_mlm

ROWS = [sentence(f"Acme Ltd pays {i}", [(0, 2, "ORG")]) for i in range(9)]


class Card(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch gives it no types
    """Raise if tensors of two devices meet.

    waits: number of operations that make the host wait for the GPU. copies: number of copies from and to pinned
    memory, for which the host does not wait."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits, self.copies = Counter[str](), Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func._schema.name.removeprefix("aten::"), kwargs or {}
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if "lazy" not in str(kwargs.get("device")) and not any(isinstance(x, FakeTensor) for x in given):
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        kinds = {x.device.type for x in given}
        target = torch.device(kwargs.get("device") or next(iter(kinds), "lazy")).type
        if name == "_local_scalar_dense" or (name.startswith("index") and len(kinds) > 1):
            self.waits[name] += 1  # the host reads a value, or an index is on the CPU
        if name == "_to_copy" and {target} != kinds:
            (self.copies if kwargs.get("non_blocking") else self.waits)[f"to {target}"] += 1
            with unset_fake_temporarily() if target == "cpu" else nullcontext():
                return torch.zeros(given[0].shape, dtype=kwargs.get("dtype") or given[0].dtype, device=target)
        return 1 if name == "_local_scalar_dense" else func(*args, **kwargs)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch, "autocast", lambda *args, **kw: nullcontext())  # does not support this device
    adam = torch.optim.AdamW  # its fused kernel does not support this device
    monkeypatch.setattr(torch.optim, "AdamW", lambda *args, fused, **kw: adam(*args, foreach=False, **kw))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(torch, "inference_mode", lambda on=True: torch.set_grad_enabled(not on))  # not supported either
    monkeypatch.setattr(AttentionMaskInterface, "_global_mapping", {**AttentionMaskInterface._global_mapping})
    prepare_attention()  # as on a real GPU
    with FakeTensorMode(allow_non_fake_inputs=True), Card() as card:
        yield card


def on_gpu(module: Any) -> Any:
    """Move a module's weights to the fake GPU; a tensor that is used twice is moved once."""
    moved: dict[int, torch.Tensor] = {}
    for table in (table for part in module.modules() for table in (part._parameters, part._buffers)):
        for name, x in ((name, x) for name, x in table.items() if x is not None):
            if id(x) not in moved:
                there = torch.empty_like(x, device="lazy")
                is_weight = type(x) is torch.nn.Parameter
                moved[id(x)] = torch.nn.Parameter(there, requires_grad=x.requires_grad) if is_weight else there
            table[name] = moved[id(x)]
    for part in module.modules():
        if isinstance(part, torch.nn.LSTM):  # keeps a second list of its weights
            part._flat_weights = [getattr(part, name) for name in part._flat_weights_names]
    return module


def gpu_tagger(new: Any = new_tagger, **options: Any) -> Any:
    with unset_fake_temporarily():
        tagger = new("tiny", ["ORG"], device="cpu", precision="fp32", **options)
    return on_gpu(tagger)


def recurrent(init: str, types: Sequence[str], head: Any, **options: Any) -> BiLstmTagger:
    return BiLstmTagger(types, head, replace(LAYOUTS["bilstm"], hidden=4), [build_vocabulary(ROWS)])


def trainer_of(lm: MaskedLM, settings: mlm_settings.Settings) -> Any:
    """Return the attributes of a Trainer that `_in_turn` needs."""
    trainer = SimpleNamespace(lm=lm, args=SimpleNamespace(device=lm.model.device), settings=settings)
    trainer.accelerator = SimpleNamespace(backward=torch.autograd.backward, no_sync=lambda model: nullcontext())
    for name in ("_sum", "_precision"):
        setattr(trainer, name, partial(getattr(pretrain.Pretraining, name), trainer))
    return trainer


def backpropagate(tagger: Any, rows: Sequence[Sentence], n_words: Any = None) -> None:
    """Compute the gradients of one step."""
    batch = send_to_device(tagger.batch(rows), tagger.device, non_blocking=True)  # as accelerate does for a GPU
    tagger(**batch, num_items_in_batch=n_words)["loss"].backward()


HEADS = ("softmax", "crf", "memm")
STEPS: list[dict[str, Any]] = [
    *({"head": head} for head in HEADS),
    {"layers": "mix"},
    *({"new": recurrent, "head": head} for head in HEADS),
    {"new": new_span_tagger},
    {"new": new_span_tagger, "beta": 0.01, "gamma": 0.001},
]


@pytest.mark.parametrize(
    "options", STEPS, ids=lambda options: "-".join(getattr(x, "__name__", str(x)) for x in options.values())
)
def test_fine_tuning_step_does_not_wait_for_the_gpu(card: Card, options: dict[str, Any]) -> None:
    """`card` also raises if tensors of two devices meet."""
    tagger = gpu_tagger(**options).train()
    rows: list[Any] = ROWS
    if "beta" in options:
        rows = [Paired.of(row, ROWS[0], (((0, 2), (0, 2)),)) for row in ROWS]
    spans = options.get("new") is new_span_tagger
    backpropagate(
        tagger, rows, torch.full((), 36, device="lazy") if spans else None
    )  # of all parts, as the Trainer counts
    parts = {name.split(".")[0] for name, weight in tagger.named_parameters() if weight.grad is not None}
    assert {weight.grad.device.type for weight in tagger.parameters() if weight.grad is not None} == {"lazy"}
    assert parts >= ({"span"} if spans else {"towers"} if options.get("new") is recurrent else {"model"})
    assert ("mix" in parts, "contrast" in parts) == ("layers" in options, "beta" in options)
    assert not card.waits


@pytest.mark.parametrize("accumulation", [1, 3])
def test_pretraining_step_does_not_wait_for_the_gpu(card: Card, accumulation: int) -> None:
    with unset_fake_temporarily():
        lm = MaskedLM.load("tiny", device="cpu")
        texts = [row.text for row in ROWS]
        examples = tokenised([texts], lm.tokenizer, max_length=32, n=len(texts), report=Silent())
        rows = np.arange(len(examples))
        options: dict[str, Any] = {"batch_size": len(rows), "pieces": 4096, "pad": 0, "total": 1, "stretch": math.inf}
        steps = Steps(examples, Masking.of(lm.tokenizer), lambda epoch: rows, parts=accumulation, **options)
    on_gpu(lm.model)
    micros = steps[0]["micro"]
    assert len(micros) == accumulation  # one padded batch for all lengths
    trainer = trainer_of(lm, mlm_settings.Settings(epochs=1, batch_size=9, learning_rate=1e-4))
    pretrain.Pretraining._in_turn(trainer, lm.model, micros, 1.0)
    assert lm.model.get_input_embeddings().weight.grad.device.type == "lazy"
    assert not card.waits


def test_pretraining_step_on_a_gpu_is_one_padded_batch_and_fully_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm: Any = MaskedLM.load("tiny", device="cpu")
    rows = tokenised([["a", "a much longer text"]], lm.tokenizer, max_length=32, n=2, report=Silent())
    piles = pretrain.Piles(train=rows, draw=lambda epoch: np.arange(2), task=rows, general=rows)
    settings = mlm_settings.Settings(epochs=1, batch_size=2, learning_rate=1e-4)
    assert len(pretrain._steps(lm, piles, settings)[0]["micro"]) == 2
    card = SimpleNamespace(tokenizer=lm.tokenizer, model=SimpleNamespace(device=torch.device("cuda")))
    steps = pretrain._steps(card, piles, settings)  # type: ignore[arg-type]
    assert len(steps[0]["micro"]) == 1
    assert steps.pieces == pretrain.PIECES["cuda"]
    waited_for: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited_for.append)
    trainer = SimpleNamespace(_since=time.perf_counter(), busy=0.0, args=SimpleNamespace(device=torch.device("cuda")))
    pretrain.Pretraining._pause(trainer)  # type: ignore[arg-type]
    assert waited_for == [torch.device("cuda")]
    assert trainer.busy > 0


@pytest.mark.parametrize("method", ["tag", "predict"])
@pytest.mark.parametrize(
    "options",
    [{"constrained": False}, {"constrained": True}, {"head": "memm"}, {"layers": "mix"}, {"new": new_span_tagger}],
    ids=["free", "constrained", "memm", "mix", "span"],
)
def test_batch_is_decoded_on_the_gpu_with_one_copy_back(card: Card, method: str, options: dict[str, Any]) -> None:
    tagger = gpu_tagger(**options)
    inputs = [x for x in tree_leaves(tagger.features(ROWS)) if isinstance(x, Tensor)]
    assert len(getattr(tagger, method)(ROWS)) == len(ROWS)
    assert not card.waits
    assert card.copies == {"to cpu": 1, "to lazy": len(inputs) + 1}  # plus the mask


@pytest.mark.parametrize("method", ["exact", "sampled", "one-pass"])
def test_pseudo_perplexity_does_not_wait_for_the_gpu(card: Card, method: str, seal: Seal, tmp_path: Path) -> None:
    strategy = make_strategy("pseudo-perplexity", {"method": method}, 0)
    with unset_fake_temporarily():
        task = Source(corpus=seal(["a b"], "t"), model=tiny_mlm(tmp_path))
        strategy.prepare({Role.TASK: task}, Silent())
    on_gpu(strategy._lm.model)  # type: ignore[attr-defined]
    texts = [sentence(text) for text in ("Acme Ltd pays", "Acme Ltd pays 1", "a much longer text than the other two")]
    scores = strategy.score(Batch(ids=np.arange(3, dtype=np.uint64), sentences=texts))
    assert scores.shape == (3,)
    assert not card.waits
    assert card.copies["to cpu"] >= 2  # all losses of a batch in one copy


def test_classifier_and_pseudo_perplexity_wait_only_for_reported_losses(card: Card) -> None:
    with unset_fake_temporarily():
        model, lm = new_classifier("tiny", 2, device="cpu", precision="fp32"), MaskedLM.load("tiny", device="cpu")
    inputs, losses = [model.context(row.tokens[:2], row.tokens[3:]) for row in ROWS], list[float]()
    on_gpu(model)
    settings = ClassifySettings(epochs=3, batch_size=3, learning_rate=1e-3, head_learning_rate=1e-3, pooling="cls")
    log = lambda bits, step: losses.append(bits)
    classify.train(model, inputs, np.arange(len(inputs)) % 2, settings, seed=1, report=Silent(), log=log)
    assert card.waits == {"to cpu": len(losses)}
    card.waits.clear()
    on_gpu(lm.model)
    rows = [np.array([2, *range(10, 10 + n), 3], dtype=np.int32) for n in (2, 5, 9)]
    _, n = pseudo_perplexity(lm, rows, pieces=24, report=Silent())
    assert n == len(rows)
    assert card.waits == {"_local_scalar_dense": 1}  # the sum over all rows


def test_embedding_does_not_wait_for_the_gpu(card: Card) -> None:
    with unset_fake_temporarily():
        encoder = Encoder.load("tiny", device="cpu", precision="fp32")
    for layer in encoder.model.modules():
        layer.__dict__.pop("forward", None)  # the packed version is for CPUs only
    on_gpu(encoder.model)
    encoder.encode([row.text for row in ROWS])
    assert not card.waits
    assert card.copies["to cpu"] >= 1


def test_attention_mask_is_not_read_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a value fails, because the device `meta` has none. Nor does cuDNN build a plan for every shape."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    lm = MaskedLM.load("tiny", device="cpu")
    lm.model.to("meta")
    ids = torch.ones(2, 4, dtype=torch.int64, device="meta")
    own = {**AttentionMaskInterface._global_mapping, "sdpa": sdpa_mask}  # undoes what an earlier test registered
    monkeypatch.setattr(AttentionMaskInterface, "_global_mapping", own)
    with pytest.raises(RuntimeError, match="meta"):
        lm.model(input_ids=ids, attention_mask=ids)
    prepare_attention()
    assert not torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    assert lm.model(input_ids=ids, attention_mask=ids).logits.shape[:2] == (2, 4)


def test_weights_are_cast_once_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Micro-batches run in bf16 on a CPU, in sequence as on a GPU; gradients equal those with separate casts."""
    lm = MaskedLM.load("tiny", device="cpu")
    trainer = trainer_of(lm, mlm_settings.Settings(epochs=1, batch_size=9, learning_rate=1e-4, bf16=True))
    lm.model.eval()
    micro = (torch.ones(2, 6, dtype=torch.int64), None, torch.tensor([1, 3]), torch.tensor([4, 5]))

    def casts(n: int) -> int:
        weights = {id(p) for p in lm.model.parameters()}
        seen: list[int] = []

        class Casts(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if "_to_copy" in str(func) and id(args[0]) in weights:
                    seen.append(id(args[0]))
                return func(*args, **(kwargs or {}))

        lm.model.zero_grad()
        with Casts():  # type: ignore[no-untyped-call]
            pretrain.Pretraining._in_turn(trainer, lm.model, [micro] * n, 1 / n)
        return len(seen)

    def gradient() -> Tensor:
        """Join all gradients, because that of a key's bias alone is only rounding."""
        return torch.cat([p.grad.flatten() for p in lm.model.parameters() if p.grad is not None])

    once = casts(1)
    single = gradient()
    assert casts(3) == once > 0
    assert (gradient() - single).norm() < 0.02 * single.norm()


def test_calibration_works_on_a_gpu(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    with unset_fake_temporarily():
        lm = MaskedLM.load("tiny", device="cpu")
    on_gpu(lm.model)
    steps = list[tuple[float, int]]()

    class Seen(Steps):
        def __getitem__(self, step: int) -> Step:
            laid = super().__getitem__(step)
            steps.append((self.stretch, len(laid["micro"])))
            return laid

    monkeypatch.setattr("core.training.steps.Steps", Seen)
    assert calibrate._time_mlm(lm, ROWS, Silent())[1] > 0
    assert set(steps) == {(math.inf, 1)}  # one padded batch per step, as in training
    assert calibrate._time_tagger(gpu_tagger(), ROWS, Silent())[1] > 0


@pytest.mark.parametrize("kind", ["fine-tuning", "pre-training"])
def test_training_uses_one_of_several_gpus(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two GPUs, transformers would split each batch and wrap the model, which makes both trainings fail."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    card = torch.device("cuda")
    if kind == "fine-tuning":
        arguments = finetune.arguments_of(tmp_path, Settings.quick(500), 1, card)
    else:
        options = mlm_settings.Settings(epochs=1, batch_size=16, learning_rate=1e-4)
        arguments = pretrain._arguments(tmp_path, options, 1e-4, card)
    AcceleratorState._reset_state(reset_partial_state=True)  # so that it reports a GPU for this process
    assert arguments.device.type == "cuda"
    if kind == "fine-tuning":
        assert arguments.accelerator_config.non_blocking
    assert (arguments.n_gpu, arguments.train_batch_size) == (1, arguments.per_device_train_batch_size)
