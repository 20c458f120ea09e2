"""Memory: given back when work ends, and a card's work done in smaller parts where it runs out.

parts.json of the home: in how many parts each work was last taken on each card; what is not in it is taken in one.
"""

import gc
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from core.errors import memory_ran_out
from core.files import read_object, write_atomic
from core.heap import trim
from core.paths import machine_home

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


FILE = "parts.json"


def parts_kept(work: str, device: "torch.device") -> int:
    """The number of parts in which `work` was last taken on this card; 1 where it was whole, and on a processor always:
    how a batch is cut changes the last digits, which are to be the same there."""
    if device.type != "cuda":
        return 1
    parts = (read_object(machine_home() / FILE) or {}).get(_named(work, device))
    return parts if isinstance(parts, int) and parts > 0 else 1


def keep_parts(work: str, device: "torch.device", parts: int) -> None:
    """Keep for the next run in how many parts `work` is taken on this card."""
    if device.type == "cuda":
        known = (read_object(machine_home() / FILE) or {}) | {_named(work, device): parts}
        with suppress(OSError):  # the work goes on without
            write_atomic(machine_home() / FILE, json.dumps(known, indent=1).encode())


def _named(work: str, device: "torch.device") -> str:
    from core.models.devices import name_of

    return f"{name_of(device)}: {work}"


class Halved:
    """Work on batches in as few parts as the memory lets it: in as many as kept (see `parts_kept`), until it runs
    out."""

    def __init__(self, work: str, device: "torch.device") -> None:
        self._work, self._device = work, device
        self.parts = parts_kept(work, device)

    def each(self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """Results of `work` on `items`, part by part; a part that the memory does not hold is halved, and those of
        later batches with it. Errors: that of an item which is too large alone."""
        while True:
            parts = min(self.parts, len(items))
            size = -(-len(items) // parts)
            try:
                return [work(items[start : start + size]) for start in range(0, len(items), size)]
            except Exception as error:
                if not memory_ran_out(error) or parts == len(items):
                    raise
            # Not while the error is handled: its frames hold what is to be given back.
            self.parts = 2 * parts
            release_memory()
            keep_parts(self._work, self._device, self.parts)


def release_memory() -> None:
    """Let go of what nobody uses any more; the most that was taken is counted anew.

    A tagger, a Trainer and a language model refer to themselves, so that they and Adam's moments stay until they are
    collected; and torch keeps the card's memory for itself until it is told not to. So does glibc the machine's:
    batches of ever other sizes leave holes that it does not return, and an experiment of eight pre-trainings came to
    11 GB.
    """
    gc.collect()
    trim()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
