"""What training does on a card, held without one: no two devices meet, the host waits for nothing, one card is used.

`lazy` is a device that every build of torch can fake with gradients: weights are fake tensors there, the CPU is real.
"""

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from accelerate.utils import send_to_device
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from core.models.mlm import MaskedLM
from core.models.taggers import new_tagger
from core.recipes import calibrate
from core.reporter import Silent
from core.training import finetune, mlm_trainer
from core.training.settings import Settings
from tests.conftest import sentence

ROWS = [sentence(f"Acme Ltd pays {i}", [(0, 2, "ORG")]) for i in range(9)]


class Card(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch gives it no types
    """Raises where two devices meet; `waits` counts, by operation, what makes the host wait for the card."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func._schema.name.removeprefix("aten::"), kwargs or {}
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if "lazy" not in str(kwargs.get("device")) and not any(isinstance(x, FakeTensor) for x in given):
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        kinds = {x.device.type for x in given}
        target = torch.device(kwargs.get("device") or next(iter(kinds), "lazy")).type
        if name == "_local_scalar_dense" or (name.startswith("index") and len(kinds) > 1):
            self.waits[name] += 1  # the host reads a value; an index lies on the CPU
        if name == "_to_copy" and {target} != kinds:
            self.waits[f"to {target}"] += 1
            with unset_fake_temporarily() if target == "cpu" else nullcontext():
                return torch.zeros(given[0].shape, dtype=kwargs.get("dtype") or given[0].dtype, device=target)
        return 1 if name == "_local_scalar_dense" else func(*args, **kwargs)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch, "autocast", lambda *args, **kw: nullcontext())  # it knows no such device
    adam = torch.optim.AdamW  # its one kernel for all weights does not know this device
    monkeypatch.setattr(torch.optim, "AdamW", lambda *args, fused, **kw: adam(*args, foreach=False, **kw))
    with FakeTensorMode(allow_non_fake_inputs=True), Card() as card:
        yield card


def on_the_card(module: Any) -> Any:
    """The same module, its weights on the fake card; a tensor that is used twice is moved once."""
    moved: dict[int, torch.Tensor] = {}
    for table in (table for part in module.modules() for table in (part._parameters, part._buffers)):
        for name, x in ((name, x) for name, x in table.items() if x is not None):
            if id(x) not in moved:
                there = torch.empty_like(x, device="lazy")
                is_weight = type(x) is torch.nn.Parameter
                moved[id(x)] = torch.nn.Parameter(there, requires_grad=x.requires_grad) if is_weight else there
            table[name] = moved[id(x)]
    return module


def a_tagger(head: Any = "crf", **options: Any) -> Any:
    with unset_fake_temporarily():
        tagger = new_tagger("tiny", ["ORG"], head=head, device="cpu", precision="fp32", **options)
    return on_the_card(tagger)


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_no_two_devices_meet_in_a_step_of_fine_tuning_and_the_host_waits_for_nothing(card: Card, head: str) -> None:
    tagger = a_tagger(head)
    batch = send_to_device(tagger.batch(ROWS), tagger.device)
    card.waits.clear()
    tagger(**batch)["loss"].backward()
    assert tagger.model.get_input_embeddings().weight.grad.device.type == "lazy"
    assert not card.waits


@pytest.mark.parametrize("asked", ["tag", "predict"])
@pytest.mark.parametrize("constrained", [False, True])
def test_a_batch_is_decoded_on_the_card_and_comes_back_at_once(
    card: Card, monkeypatch: pytest.MonkeyPatch, asked: str, *, constrained: bool
) -> None:
    monkeypatch.setattr(torch, "inference_mode", lambda on=True: torch.set_grad_enabled(not on))  # knows no such device
    tagger = a_tagger(constrained=constrained)
    inputs = [*tagger.features(ROWS).values(), "mask"]
    assert len(getattr(tagger, asked)(ROWS)) == len(ROWS)
    assert card.waits == {"to cpu": 1, "to lazy": sum(not isinstance(x, int) for x in inputs)}


def test_pre_training_and_fine_tuning_are_timed_on_a_card(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    with unset_fake_temporarily():
        lm = MaskedLM.load("tiny", device="cpu")
    on_the_card(lm.model)
    assert calibrate._time_mlm(lm, ROWS, Silent())[1] > 0
    assert calibrate._time_tagger(a_tagger(), ROWS, Silent())[1] > 0


@pytest.mark.parametrize("kind", ["fine-tuning", "pre-training"])
def test_of_several_cards_a_training_takes_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two, transformers would cut each batch in two and wrap the model, which neither training can bear."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    card = torch.device("cuda")
    if kind == "fine-tuning":
        arguments = finetune._arguments(tmp_path, Settings.quick(500), 1, card)
    else:
        options = mlm_trainer.Settings(epochs=1, batch_size=16, learning_rate=1e-4)
        arguments = mlm_trainer._arguments(tmp_path, options, 1e-4, card)
    AcceleratorState._reset_state(reset_partial_state=True)  # which now says that this process has a card
    assert arguments.device.type == "cuda"
    assert (arguments.n_gpu, arguments.train_batch_size) == (1, arguments.per_device_train_batch_size)
