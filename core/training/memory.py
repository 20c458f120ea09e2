"""Memory that runs out in a training: steps in smaller parts, and where that does not do, what a person can do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from core.errors import ResourceError, memory_ran_out
from core.models.memory import FILE, keep_parts, parts_kept, release_memory
from core.reporter import Reporter

Result = TypeVar("Result")


class Smaller:
    """Optimizer steps in as few parts as the memory lets them; their gradients are sums over parts, and so the same.

    work: what a card may have been too small for in an earlier run, see `parts_kept`.
    """

    def __init__(self, model: nn.Module, work: str, device: torch.device, report: Reporter) -> None:
        # Another encoder, even another head, needs another amount of memory.
        self._work = f"{work}, {sum(weight.numel() for weight in model.parameters())} weights"
        self._model, self._device, self._report = model, device, report
        self.times = parts_kept(self._work, device)
        if self.times > 1:
            report.note(
                f"Memory ran out in such a training on this card before, so a step is taken in {self.times} times as"
                f" many parts; the steps are the same. {FILE} of the home keeps that; without it whole steps are tried."
            )

    def step(self, work: Callable[[int], Result], most: int) -> Result:
        """Result of `work(times)`: the loss of a whole step, its gradients added, cut into `times` as many parts as
        usual; or a dev loss, read so. most: times that it can be. Errors: that of work which cannot be cut further."""
        while True:
            times = min(self.times, most)
            try:
                return work(times)
            except Exception as error:
                if not memory_ran_out(error) or times >= most:
                    raise
            # Not while the error is handled: its frames hold what is to be given back.
            self.times = 2 * times
            self._model.zero_grad()  # of the parts before the one that was too large
            release_memory()
            keep_parts(self._work, self._device, self.times)
            self._report.note(
                f"Memory ran out, so a step is now taken in {self.times} times as many parts; the steps are the same."
            )


@contextmanager
def memory_watched(batch_size: int, accumulation: int) -> Iterator[None]:
    """Errors: ResourceError where memory runs out within; every other error as it is."""
    try:
        yield
    except Exception as error:
        if not memory_ran_out(error):
            raise
        # Twice the parts, not half the batch: the optimizer takes the same steps then, and results stay comparable.
        raise ResourceError(
            f"batch_size {batch_size}: memory ran out; set accumulation to {2 * accumulation}, which keeps the batch"
            " and takes it in smaller parts, or choose checkpointing, lora or a smaller encoder."
        ) from error
