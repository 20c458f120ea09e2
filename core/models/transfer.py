"""Tensors on their way to a card and back, without the host waiting for the card.

A copy from ordinary memory, a result that is fetched at once, or a value that is read makes the host wait until the
card has done all that it was given; meanwhile nothing new is laid out, and then the card waits.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

Key = TypeVar("Key")


def to_device(value: Any, device: torch.device) -> Any:
    """Tensors, in lists and dictionaries too, on `device`; whatever else is in them as it is."""
    if isinstance(value, Tensor):
        return value if device.type == "cpu" else value.pin_memory().to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {name: to_device(item, device) for name, item in value.items()}
    return [to_device(item, device) for item in value] if isinstance(value, list) else value


def without_reading_masks() -> None:
    """Have transformers not read from a card whether a mask has padding: where there is none, it is given none."""
    from transformers import AttentionMaskInterface

    AttentionMaskInterface.register("sdpa", _mask)


def _mask(*args: Any, **options: Any) -> Any:
    from transformers.masking_utils import sdpa_mask

    if options.get("attention_mask") is not None:
        options["allow_is_bidirectional_skip"] = False
    return sdpa_mask(*args, **options)


def fetched(results: Iterable[tuple[Key, Tensor]]) -> Iterator[tuple[Key, Tensor]]:
    """The same on the CPU, each one late: while it comes, the card computes the next."""
    coming: tuple[Key, Tensor, torch.cuda.Event | None] | None = None
    for key, result in results:
        following = key, result.to("cpu", non_blocking=True), _mark(result.device)
        if coming:
            yield _arrived(*coming)
        coming = following
    if coming:
        yield _arrived(*coming)


def _mark(device: torch.device) -> "torch.cuda.Event | None":
    """Event that has happened once the card has done all that it was given so far."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def _arrived(key: Key, result: Tensor, event: "torch.cuda.Event | None") -> tuple[Key, Tensor]:
    if event:
        event.synchronize()
    return key, result
