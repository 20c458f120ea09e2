"""The device and the precision that a model runs in, and how a CPU's cores share its batches.

`python -m core.models.devices` prints the device that training would take, in words.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

from core import cards
from core.errors import ResourceError, memory_ran_out

if TYPE_CHECKING:
    import torch
    from transformers import TrainingArguments

Item = TypeVar("Item")
Key = TypeVar("Key")
Precision = Literal["auto", "bf16", "fp32"]


def pick_device(name: str = "auto") -> "torch.device":
    """`auto`: the GPU where torch can use one and `--device` lets it, else the CPU; or a device by its torch name.

    Where torchrun shares batches each process has the GPU of its number.
    Errors: ResourceError for a device that this machine does not have.
    """
    import torch

    if name == "auto":
        if cards.asked() == "cpu" or not torch.cuda.is_available():
            return torch.device("cpu")
        card = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("cpu") if failure(card) else card
    try:
        device = torch.device(name)
        # A name may be well-formed and name nothing; only asking for room there tells.
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ResourceError(f"device: {name!r} is not on this machine; give auto, cpu, cuda or cuda:1.") from error
    return device


@cache
def failure(card: "torch.device") -> str:
    """Reason that nothing can be computed on a card that torch sees, in torch's words; "" where it can."""
    import torch

    try:
        torch.ones(1, device=card).add_(1).item()
    except (RuntimeError, AssertionError) as error:  # "no kernel image": the card is too old for this build
        return "" if memory_ran_out(error) else str(error).partition("\n")[0]
    return ""


def hindrance() -> str:
    """Reason that no card is used though one is here, a sentence; "" where one is, or none is here or wanted."""
    import torch

    if cards.asked() == "cpu" or pick_device().type == "cuda":
        return ""
    if reason := cards.hindrance():
        return reason
    if not cards.visible():
        return ""
    own = failure(torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))))
    return f"A GPU is here ({cards.visible()[0].name}), but torch cannot use it: {own.rstrip('.')}."


def in_words(device: "torch.device", dtype: "torch.dtype") -> str:
    """Device that computes, and its precision: "cuda:0 NVIDIA H100, bf16"."""
    import torch

    precision = {torch.bfloat16: "bf16", torch.float16: "fp16"}.get(dtype, "fp32")
    if device.type != "cuda":
        return f"{device} ({torch.get_num_threads()} threads), {precision}"
    text = f"cuda:{device.index or 0} {name_of(device)}, {precision}"
    return text if _has_bf16(device) else f"{text} (it has no bf16: training is in fp32)"


def name_of(device: "torch.device") -> str:
    """The card's name, or the processor's."""
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else cards.processor()


def lock_of(card: "torch.device") -> str:
    """The name of a card's lock where the driver cannot be asked: as the driver would call it.

    With `CUDA_VISIBLE_DEVICES=3` the fourth card is `cuda:0` too, so its number is no name.
    """
    import torch

    return cards.lock_name(f"GPU-{torch.cuda.get_device_properties(card).uuid}")


def on_one_card(arguments: "TrainingArguments") -> "TrainingArguments":
    """The same, for one card at most: of several, a Trainer would give each a part of every batch.

    Our batches are not to be cut so (their tensors' first axis is not always the sentence), and a small encoder gains
    nothing by it. With torchrun each process has one card anyway.
    """
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # as the Trainer itself does for a model that is laid out over several cards
    return arguments


def pick_dtype(precision: Precision, device: "torch.device", *, frozen: bool = False) -> "torch.dtype":
    """bfloat16 where asked for or, under `auto`, where the device computes in it natively; else float32.

    frozen: of what is not trained; a card without bf16 then computes in float16, whose range is too small for
    gradients.
    """
    import torch

    if frozen and precision == "auto" and device.type == "cuda" and not _has_bf16(device):
        return torch.float16
    if precision == "fp32" or (precision == "auto" and not _has_bf16(device)):
        return torch.float32
    return torch.bfloat16


def _has_bf16(device: "torch.device") -> bool:
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and cards.processor_has_bf16()


def side_by_side(
    work: Callable[[Item], "tuple[Key, torch.Tensor]"], items: Iterable[Item], device: "torch.device"
) -> "Generator[tuple[Key, torch.Tensor], None, None]":
    """`work` done on every item, in order; its tensors on the CPU. There an item is one thread's, and as many are at
    work as there are; on a card the next item is begun before a tensor is fetched.

    Threads that share one small product wait for each other at its end, for most of the time where the cores have
    other work too. Items are taken in the calling thread, a few ahead. Close it where it may not come to its end
    (`contextlib.closing`): until then torch has one thread, whoever asks.
    """
    import torch

    from core.models.transfer import fetched

    threads, upcoming = torch.get_num_threads(), iter(items)
    if device.type != "cpu" or threads == 1:
        yield from fetched(map(work, upcoming))
        return
    torch.set_num_threads(1)
    try:
        with single_threads(threads) as pool:
            # Two a thread: none is idle while the caller is at a result.
            waiting = deque(pool.submit(work, item) for item in islice(upcoming, 2 * threads))
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(upcoming, 1))
    finally:
        torch.set_num_threads(threads)


def single_threads(n: int) -> ThreadPoolExecutor:
    """A pool of `n` threads in each of which torch computes with that thread alone."""
    return ThreadPoolExecutor(n, initializer=_alone)


def _alone() -> None:
    """Have torch compute with this thread alone, whatever another thread asks for later.

    A thread's first look takes over what was last asked for anywhere in the process. One that did not compute before
    somebody asked for two would compute with two, and sums over rows (layer norm's gradients) would differ in their
    last digits: it looks first, then asks for one.
    """
    import torch

    torch.get_num_threads()
    torch.set_num_threads(1)


if __name__ == "__main__":
    _device = pick_device()
    print(" ".join(filter(None, [in_words(_device, pick_dtype("auto", _device)), hindrance()])))
