"""A card's memory: given back when work ends, and work done in smaller parts where it runs out."""

import gc
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from core.errors import memory_ran_out

Item = TypeVar("Item")
Result = TypeVar("Result")


class Halved:
    """Work on batches in as few parts as the memory lets it: in one, until it runs out."""

    def __init__(self) -> None:
        self.parts = 1

    def each(self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """What `work` makes of `items`, part by part; a part that the memory does not hold is halved, and those of
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
            give_back()


def give_back() -> None:
    """Let go of what nobody uses any more; the most that was taken is counted anew.

    A tagger, a Trainer and a language model refer to themselves, so that they and Adam's moments stay until they are
    collected; and torch keeps the card's memory for itself until it is told not to.
    """
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
