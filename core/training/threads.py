"""Micro-batches side by side on a CPU: one thread each, each with its own generator for dropout.

Threads that share one small product wait for each other at its end, for most of the time where the cores have other
work too; a thread that has a micro-batch for itself does not wait. What comes out does not depend on who was faster.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from core.models.devices import single_threads

Item = TypeVar("Item")
NAME = "own_lots"


class _ThreadGenerator(threading.local):
    """This thread's generator."""

    def __init__(self) -> None:
        self.generator = torch.Generator()


_rng = _ThreadGenerator()


def drop(x: Tensor, p: float) -> Tensor:
    """Dropout, drawn 16 bits an element: a tenth of the time of torch's."""
    if not p:
        return x
    n = x.numel()
    # Four elements of a 64-bit draw; p is rounded to 1 / 65,536, far below what any dropout is tuned to.
    bits = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(2**63), None, generator=_rng.generator)
    keep = bits.view(torch.int16)[:n].view(x.shape) >= round(65_536 * p) - 32_768
    return x * keep.to(x.dtype).mul_(1 / (1 - p))


def same_draws() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts of a pass and of its repetition for the gradients, which is to drop the same: torch's checkpointing
    brings back its own generators alone."""
    return nullcontext(), _from(_rng.generator, _rng.generator.get_state())


@contextmanager
def _from(generator: torch.Generator, state: Tensor) -> Iterator[None]:
    now = generator.get_state()
    generator.set_state(state)
    try:
        yield
    finally:
        generator.set_state(now)


def attention(  # noqa: PLR0917  as transformers calls it
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kw: object,
) -> tuple[Tensor, None]:
    """Scaled dot products `(b, heads, l, d)` -> `(b, l, heads, d)`; without dropout torch's own kernel."""
    # With dropout not by torch's kernel: it draws from the global generator, in whatever order threads come to it.
    if not dropout:
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
        return out.transpose(1, 2).contiguous(), None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = (query * scale) @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    shares = torch.softmax(scores, dim=-1, dtype=scores.dtype)
    return (drop(shares, dropout) @ value).transpose(1, 2).contiguous(), None


def _drop(part: torch.nn.Dropout, x: Tensor) -> Tensor:
    return drop(x, part.p if part.training else 0.0)


class Threads:
    """Workers, as many as torch has threads, each of one thread; while it is open `trained` draws dropout from `drop`.

    model: of transformers. trained: what gradients are wanted of, `model` itself or what it is a part of.
    """

    def __init__(self, model: PreTrainedModel, trained: torch.nn.Module | None = None) -> None:
        self.n = torch.get_num_threads()
        self._model, self._trained = model, trained or model
        self._parts = [part for part in self._trained.modules() if type(part) is torch.nn.Dropout]

    def __enter__(self) -> Self:
        AttentionInterface.register(NAME, attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        self._was = self._model.config._attn_implementation
        if self._was == "sdpa":
            self._model.set_attn_implementation(NAME)
        for part in self._parts:
            part.__dict__["forward"] = partial(_drop, part)  # what torch calls, and `__exit__` takes out again
        self._pool = single_threads(self.n)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        self._model.set_attn_implementation(self._was)
        for part in self._parts:
            part.__dict__.pop("forward", None)

    def gradients(self, losses: Callable[[Item], Tensor], items: Sequence[Item], seed: int) -> Tensor:
        """The sum of `losses` over `items`, and its gradients added to the model's."""
        trained = [parameter for parameter in self._trained.parameters() if parameter.requires_grad]

        def work(i: int) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            # Seeded by the item, not by the thread that takes it. A hash of numbers is the same in every process.
            _rng.generator.manual_seed(hash((seed, i)) % 2**63)
            loss = losses(items[i])
            return loss.detach(), torch.autograd.grad(loss, trained, allow_unused=True)

        total = torch.zeros(())
        # In the order of the items, whoever was faster: sums of floats depend on their order.
        for loss, gradients in self._pool.map(work, range(len(items))):
            total += loss
            for parameter, gradient in zip(trained, gradients, strict=True):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return total
