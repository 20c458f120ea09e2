"""Compute micro-batches in parallel on a CPU, one per thread, each with its own random numbers for dropout.

If threads share one small matrix product and the cores are busy, they mostly wait for each other. A thread with its own
micro-batch does not wait. The result does not depend on the order in which threads finish.
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
NAME = "own_lots"  # name of `attention` in transformers' registry


class _ThreadGenerator(threading.local):
    """Holds this thread's random generator."""

    def __init__(self) -> None:
        self.generator = torch.Generator()


_rng = _ThreadGenerator()


def drop(x: Tensor, p: float) -> Tensor:
    """Return `x` after dropout with 16 random bits per element; ten times as fast as torch's dropout."""
    if not p:
        return x
    n = x.numel()
    # One draw of 64 bits serves four elements. p is rounded to a multiple of 1 / 65,536.
    bits = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(2**63), None, generator=_rng.generator)
    keep = bits.view(torch.int16)[:n].view(x.shape) >= round(65_536 * p) - 32_768
    return x * keep.to(x.dtype).mul_(1 / (1 - p))


def same_draws() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return two contexts, for a forward pass and its recomputation, so that dropout drops the same elements in both.

    Checkpointing restores torch's own random generators, but not the generators of this module.
    """
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
    """Return scaled dot-product attention with dropout by `drop`: `(b, heads, l, d)` -> `(b, l, heads, d)`."""
    # Use torch's kernel only without dropout. Its dropout uses the global generator, so threads would change the
    # result.
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
    """A pool with one worker per thread of torch. While it is open, `trained` uses `drop` instead of torch's dropout.

    model: a model of transformers. trained: module that gets gradients; `model`, or a module that contains it.
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
            # torch calls `self.forward`, so this attribute replaces the method of the class. `__exit__` removes it.
            part.__dict__["forward"] = partial(_drop, part)
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
        """Return the sum of `losses` over `items`, and add its gradients to the gradients of `trained`."""
        trained = [parameter for parameter in self._trained.parameters() if parameter.requires_grad]

        def work(i: int) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            # Seed per item, so that results do not depend on the thread. Python's hash of numbers is equal in every
            # process.
            _rng.generator.manual_seed(hash((seed, i)) % 2**63)
            loss = losses(items[i])
            return loss.detach(), torch.autograd.grad(loss, trained, allow_unused=True)

        total = torch.zeros(())
        # Add in the order of the items, because sums of floats depend on the order.
        for loss, gradients in self._pool.map(work, range(len(items))):
            total += loss
            for parameter, gradient in zip(trained, gradients, strict=True):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return total
