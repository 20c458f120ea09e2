"""Memory that runs out in a training: steps in smaller parts, and where that does not do, what a person can do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from core.errors import ResourceError, memory_ran_out
from core.models.memory import give_back
from core.reporter import Reporter


class Smaller:
    """Optimizer steps in as few parts as the memory lets them; their gradients are sums over parts, and so the same."""

    def __init__(self, model: nn.Module, report: Reporter) -> None:
        self.times = 1
        self._model, self._report = model, report

    def step(self, work: Callable[[int], Tensor], most: int) -> Tensor:
        """The loss that `work(times)` comes to, which adds a whole step's gradients, cut into `times` as many parts as
        usual. most: times that it can be. Errors: that of a step which cannot be cut further."""
        while True:
            try:
                return work(self.times)
            except Exception as error:
                if not memory_ran_out(error) or self.times >= most:
                    raise
            # Not while the error is handled: its frames hold what is to be given back.
            self.times *= 2
            self._model.zero_grad()  # of the parts before the one that was too large
            give_back()
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
            " and takes it in smaller parts, or choose a smaller encoder."
        ) from error
