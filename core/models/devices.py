"""Choose device and precision of a model, share batches among CPU cores, copy to a GPU, and handle a lack of memory.

`python -m core.models.devices` prints the device that a training would use.

If the host copies from ordinary memory, or reads a result at once, it waits until the GPU has finished all its work.
The host prepares no batch during this time, so the GPU then waits for the next one. Therefore `to_device` copies from
pinned memory, and `fetched` reads each result one batch late.

parts.json in Winnow's home folder stores, for each GPU and kind of work, how many parts a batch was last cut into.
Batches of work that is not listed are not cut.
"""

import gc
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from core import cards
from core.errors import ResourceError, memory_ran_out
from core.files import read_object, write_atomic
from core.heap import trim
from core.paths import machine_home
from core.shown import count

if TYPE_CHECKING:
    import torch
    from transformers import TrainingArguments

Item = TypeVar("Item")
Key = TypeVar("Key")
Result = TypeVar("Result")
Precision = Literal["auto", "bf16", "fp32"]

FILE = "parts.json"


def pick_device(name: str = "auto") -> "torch.device":
    """Return the device with this torch name.

    For `auto`, return the GPU if torch can use one and `--device` allows it, else the CPU. Under torchrun each process
    gets the GPU of its local rank. Errors: ResourceError if this machine lacks the device.
    """
    import torch

    if name == "auto":
        if cards.asked() == "cpu" or not torch.cuda.is_available():
            return torch.device("cpu")
        card = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("cpu") if failure(card) else card
    try:
        device = torch.device(name)
        # A well-formed name may belong to no device. Only an allocation shows that.
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ResourceError(f"device: {name!r} is not on this machine; give auto, cpu, cuda or cuda:1.") from error
    return device


@cache
def failure(card: "torch.device") -> str:
    """Return torch's error if this GPU cannot compute although torch lists it; "" if it can compute."""
    import torch

    try:
        torch.ones(1, device=card).add_(1).item()
    except (RuntimeError, AssertionError) as error:  # "no kernel image": the GPU is too old for this build
        return "" if memory_ran_out(error) else str(error).partition("\n")[0]
    return ""


def hindrance() -> str:
    """Return a sentence that explains why this machine's GPU is not used; "" if it is used, absent or switched off."""
    import torch

    if cards.asked() == "cpu" or pick_device().type == "cuda":
        return ""
    if reason := cards.hindrance():
        return reason
    if not cards.visible():
        return ""
    own = failure(torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))))
    return f"This machine has a GPU ({cards.visible()[0].name}), but torch cannot use it: {own.rstrip('.')}."


def in_words(device: "torch.device", dtype: "torch.dtype") -> str:
    """Return device and precision in words, such as "cuda:0 NVIDIA H100, bf16"."""
    import torch

    precision = {torch.bfloat16: "bf16", torch.float16: "fp16"}.get(dtype, "fp32")
    if device.type != "cuda":
        return f"{device} ({count(torch.get_num_threads(), 'thread')}), {precision}"
    text = f"cuda:{device.index or 0} {name_of(device)}, {precision}"
    return text if _has_bf16(device) else f"{text} (no bf16 support, so training uses fp32)"


def name_of(device: "torch.device") -> str:
    """Return the name of the GPU, or of the processor."""
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else cards.processor()


def lock_of(card: "torch.device") -> str:
    """Return the name of a GPU's lock, made from the uuid that torch reports.

    This name is used if the driver cannot be queried. The GPU's number does not identify it: with
    `CUDA_VISIBLE_DEVICES=3` the fourth GPU is `cuda:0` too.
    """
    import torch

    return cards.lock_name(f"GPU-{torch.cuda.get_device_properties(card).uuid}")


def on_one_card(arguments: "TrainingArguments") -> "TrainingArguments":
    """Limit a Trainer to one GPU; otherwise it would split every batch among all GPUs.

    Our batches cannot be split this way, because the first axis of their tensors is not always the sentence. A small
    encoder would also gain nothing. Under torchrun each process has one GPU anyway.
    """
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # the Trainer itself sets this attribute to 1 if a model spans several GPUs
    return arguments


def pick_dtype(precision: Precision, device: "torch.device", *, frozen: bool = False) -> "torch.dtype":
    """Return bfloat16 if it is requested, or under `auto` if the device supports it natively; else float32.

    frozen: True if the model is not trained. A GPU without bf16 then uses float16, whose range is too small for
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
    """Yield the results of `work(item)` in order, with their tensors on the CPU.

    On a CPU each thread computes one item. Threads that share one small matrix product would spend most of their time
    waiting for each other while other programs use the cores. On a GPU the next item starts before the previous result
    is read. The calling thread reads `items`, a few in advance. While the generator is open, torch has one thread in
    the whole process. Wrap the generator in `contextlib.closing` if the caller may stop before its end.
    """
    import torch

    threads, upcoming = torch.get_num_threads(), iter(items)
    if device.type != "cpu" or threads == 1:
        yield from fetched(map(work, upcoming))
        return
    torch.set_num_threads(1)
    try:
        with single_threads(threads) as pool:
            # Two items per thread, so that none idles while the caller handles a result.
            waiting = deque(pool.submit(work, item) for item in islice(upcoming, 2 * threads))
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(upcoming, 1))
    finally:
        torch.set_num_threads(threads)


def single_threads(n: int) -> ThreadPoolExecutor:
    """Return a pool of `n` threads, each of which computes with a single torch thread."""
    return ThreadPoolExecutor(n, initializer=_use_one_thread)


def _use_one_thread() -> None:
    """Let the calling thread compute with a single torch thread, even if another thread later raises the limit.

    A thread adopts the process's limit when it first uses torch; the call of `get_num_threads` is this first use.
    Without this call, a limit that is raised later would apply to this thread. Sums over rows (the gradients of layer
    norm) would then differ in their last digits.
    """
    import torch

    torch.get_num_threads()
    torch.set_num_threads(1)


def to_device(value: Any, device: "torch.device") -> Any:
    """Return `value` with all tensors moved to `device`, including tensors in lists and dictionaries."""
    import torch

    if isinstance(value, torch.Tensor):
        return value if device.type == "cpu" else value.pin_memory().to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {name: to_device(item, device) for name, item in value.items()}
    return [to_device(item, device) for item in value] if isinstance(value, list) else value


def prepare_attention() -> None:
    """Set up attention on a GPU for batches that each have their own shape.

    Turn off cuDNN attention, because it spends up to a second on each new shape (SOURCES.md, Conventions of this
    program). Also stop transformers from checking on the GPU whether a mask has padding, because the host would wait
    for the result. Our batches without padding have no mask anyway.
    """
    import torch
    from transformers import AttentionMaskInterface

    torch.backends.cuda.enable_cudnn_sdp(False)
    AttentionMaskInterface.register("sdpa", _mask)


def _mask(*args: Any, **options: Any) -> Any:
    from transformers.masking_utils import sdpa_mask

    if options.get("attention_mask") is not None:
        options["allow_is_bidirectional_skip"] = False
    return sdpa_mask(*args, **options)


def fetched(results: "Iterable[tuple[Key, torch.Tensor]]") -> "Iterator[tuple[Key, torch.Tensor]]":
    """Yield the results on the CPU, one step late: while a result is copied, the GPU computes the next one."""
    import torch

    coming: tuple[Key, torch.Tensor, torch.cuda.Event | None] | None = None
    for key, result in results:
        event = None
        if result.device.type == "cuda":
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        following = key, result.to("cpu", non_blocking=True), event
        if event:
            event.record(torch.cuda.current_stream(result.device))
        if coming:
            yield _arrived(*coming)
        coming = following
    if coming:
        yield _arrived(*coming)


def _arrived(key: Key, result: "torch.Tensor", event: "torch.cuda.Event | None") -> "tuple[Key, torch.Tensor]":
    if event:
        event.synchronize()
    return key, result


def parts_kept(work: str, device: "torch.device") -> int:
    """Return the number of parts that a batch was last cut into on this GPU; 1 if unknown.

    work: name of the kind of work. On a CPU, return 1, because cutting a batch changes the last digits of results, and
    results on a CPU must be reproducible.
    """
    if device.type != "cuda":
        return 1
    parts = (read_object(machine_home() / FILE) or {}).get(f"{name_of(device)}: {work}")
    return parts if isinstance(parts, int) and parts > 0 else 1


def keep_parts(work: str, device: "torch.device", parts: int) -> None:
    """Store the number of parts that a batch is cut into on this GPU, for later runs of the same kind of `work`."""
    if device.type == "cuda":
        known = (read_object(machine_home() / FILE) or {}) | {f"{name_of(device)}: {work}": parts}
        with suppress(OSError):  # not an error: later runs find the number of parts again
            write_atomic(machine_home() / FILE, json.dumps(known, indent=1).encode())


class Halved:
    """Cuts batches into `parts_kept` parts, and into twice as many parts each time that memory runs out."""

    def __init__(self, work: str, device: "torch.device") -> None:
        self._work, self._device = work, device
        self.parts = parts_kept(work, device)

    def each(self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """Return the result of `work` on each part of `items`.

        If memory runs out, this batch and all later ones are cut into twice as many parts. Errors: the error of `work`
        if even a single item does not fit.
        """
        while True:
            parts = min(self.parts, len(items))
            size = -(-len(items) // parts)
            try:
                return [work(items[start : start + size]) for start in range(0, len(items), size)]
            except Exception as error:
                if not memory_ran_out(error) or parts == len(items):
                    raise
            # Retry outside of the `except` block; inside it, the error's stack frames would still keep the memory in
            # use.
            self.parts = 2 * parts
            release_memory()
            keep_parts(self._work, self._device, self.parts)


def release_memory() -> None:
    """Release unused memory, and reset torch's record of peak GPU memory.

    A tagger, a Trainer and a language model contain reference cycles, so they and Adam's moments stay until garbage
    collection. torch keeps a GPU's memory until its cache is emptied. glibc does not return the gaps that batches of
    varying sizes leave. Without this function, an experiment of eight pre-trainings grew to 11 GB.
    """
    gc.collect()
    trim()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    _device = pick_device()
    print(" ".join(filter(None, [in_words(_device, pick_dtype("auto", _device)), hindrance()])))
