"""Training in less memory: LoRA, checkpointed layers, and steps cut into smaller parts when memory runs out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from core.errors import ResourceError, memory_ran_out
from core.models.devices import FILE, keep_parts, parts_kept, release_memory
from core.reporter import Reporter

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

Result = TypeVar("Result")

LORA = (
    "Rank of LoRA: small matrices are trained beside the encoder's linear layers and added to them at the end. Less "
    "memory, for encoders of 100 million parameters and more; 8 is usual. 0: the encoder's own weights are trained."
)
PARTS = 2  # more were slower on two cores, because each part has its own gradient for every weight
IN_PARTS = (
    "On a CPU: number of parts that a step is cut into, one thread each. More parts use more than two cores. Another "
    "number changes the last digits of results."
)
CHECKPOINTING = (
    "Keep only the output of each layer and compute the rest again for the gradients: less memory, a third more time, "
    "the same training."
)
LARGE = 100_000_000  # parameters from which LoRA is worthwhile
LORA_FASTER = 20  # LoRA's default learning rate, in multiples of the rate for all weights (SOURCES.md, LoRA)


def lora_note(model: "PreTrainedModel", rank: int) -> str:
    """Return a sentence if LoRA was asked for although the encoder is small for it, else ""."""
    n = sum(weight.numel() for weight in model.base_model.parameters())
    if not rank or n >= LARGE:
        return ""
    return (
        f"lora: is for encoders of {LARGE // 1_000_000} million parameters and more; this one has {n / 1e6:.1f} "
        "million, so little memory is saved, and its own weights may as well be trained (lora 0)."
    )


def checkpoint_layers(model: "PreTrainedModel", name: str) -> None:
    """Checkpoint every layer of `model` in training (Chen et al. 2016). name: of the encoder, for errors.

    transformers' own switch is not used because MPNet and ALBERT lack it. Errors: ModelError if layers share weights.
    """
    from core.models.layers import layers_of

    for layer in layers_of(model, name, "leave checkpointing out"):
        layer.__dict__["forward"] = partial(_recomputed, layer, layer.forward)  # torch calls this attribute


def _recomputed(layer: Any, forward: Any, *inputs: Any, **kw: Any) -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    from core.training.threads import same_draws

    if not (layer.training and torch.is_grad_enabled()):
        return forward(*inputs, **kw)
    return checkpoint(forward, *inputs, use_reentrant=False, context_fn=same_draws, **kw)


class Smaller:
    """Runs optimizer steps in as few parts as fit into memory. Gradients are sums over parts, so the step is the same.

    work: names the kind of step; an earlier run may have stored its number of parts (`parts_kept`).
    """

    def __init__(self, model: "torch.nn.Module", work: str, device: "torch.device", report: Reporter) -> None:
        # The number of weights is part of the name, because another encoder or head needs another amount of memory.
        self._work = f"{work}, {sum(weight.numel() for weight in model.parameters())} weights"
        self._model, self._device, self._report = model, device, report
        self.times = parts_kept(self._work, device)
        if self.times > 1:
            report.note(
                f"Memory ran out in such a training on this card before, so a step is taken in {self.times} times as"
                f" many parts; the steps are the same. {FILE} of the home keeps that; without it whole steps are tried."
            )

    def step(self, work: Callable[[int], Result], most: int) -> Result:
        """Return `work(times)`: the loss of a step cut into `times` as many parts as usual, gradients added.

        If memory runs out, this and all later steps take twice as many parts. most: largest `times` that is possible.
        Errors: that of work which cannot be cut further.
        """
        while True:
            times = min(self.times, most)
            try:
                return work(times)
            except Exception as error:
                if not memory_ran_out(error) or times >= most:
                    raise
            # Outside the handler: the frames of the error still hold the memory to release.
            self.times = 2 * times
            self._model.zero_grad()  # drops the gradients of the parts before the one that did not fit
            release_memory()
            keep_parts(self._work, self._device, self.times)
            self._report.note(
                f"Memory ran out, so a step is now taken in {self.times} times as many parts; the steps are the same."
            )


@contextmanager
def memory_watched(batch_size: int, accumulation: int = 0) -> Iterator[None]:
    """Turn an error of exhausted memory into a ResourceError that says what to do; pass on any other error.

    accumulation: parts of a batch; 0 if the training has no such option.
    """
    try:
        yield
    except Exception as error:
        if not memory_ran_out(error):
            raise
        advice = "give a smaller one, or choose a smaller encoder."
        if accumulation:  # more parts, not a smaller batch: the steps stay the same, and results comparable
            advice = (
                f"set accumulation to {2 * accumulation}, which keeps the batch and takes it in smaller parts, or "
                "choose checkpointing, lora or a smaller encoder."
            )
        raise ResourceError(f"batch_size {batch_size}: memory ran out; {advice}") from error
