"""Train in less memory: LoRA, recomputed activations, and steps that are cut into parts if memory runs out."""

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
    "Rank of LoRA, usually 8; 0: train the encoder's own weights. LoRA trains small matrices beside the encoder's "
    "linear layers and adds them at the end. It saves memory for encoders of 100 million parameters or more."
)
# Parts per step on a CPU. More parts were slower on two cores, because each part computes gradients for all weights.
PARTS = 2
IN_PARTS = (
    "On a CPU: number of parts that a step is cut into. Each part has its own thread, so N parts use up to N cores. "
    "The number of parts changes the last digits of results."
)
CHECKPOINTING = (
    "Keep only the output of each layer and recompute the rest for the gradients. This needs less memory and a third "
    "more time; results stay the same."
)
# Number of parameters from which LoRA saves memory.
LARGE = 100_000_000
# With LoRA, the default learning rate is multiplied by this factor (SOURCES.md, LoRA).
LORA_FASTER = 20


def lora_note(model: "PreTrainedModel", rank: int) -> str:
    """Return a warning if LoRA was requested for an encoder too small to benefit from it, else ""."""
    n = sum(weight.numel() for weight in model.base_model.parameters())
    if not rank or n >= LARGE:
        return ""
    return (
        f"lora: saves memory for encoders of {LARGE // 1_000_000} million parameters or more, but this one has "
        f"{n / 1e6:.1f} million. Set lora to 0 to train the encoder's own weights."
    )


def checkpoint_layers(model: "PreTrainedModel", name: str) -> None:
    """Recompute the activations of every layer of `model` in the backward pass (Chen et al. 2016).

    name: the encoder's name, for errors. transformers' own option is not used, because MPNet and ALBERT do not support
    it. Errors: ModelError if layers share weights.
    """
    from core.models.layers import layers_of

    for layer in layers_of(model, name, "leave checkpointing out"):
        # torch calls `self.forward`, so an attribute of the object replaces the method of the class.
        layer.__dict__["forward"] = partial(_recomputed, layer, layer.forward)


def _recomputed(layer: Any, forward: Any, *inputs: Any, **kw: Any) -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    from core.training.threads import same_draws

    if not (layer.training and torch.is_grad_enabled()):
        return forward(*inputs, **kw)
    return checkpoint(forward, *inputs, use_reentrant=False, context_fn=same_draws, **kw)


class Smaller:
    """Runs each optimizer step in parts that fit into memory. The gradients of the parts are added up.

    work: name of the kind of step. An earlier run may have stored the number of parts for this name (`parts_kept`).
    """

    def __init__(self, model: "torch.nn.Module", work: str, device: "torch.device", report: Reporter) -> None:
        # Include the number of weights in the name, because other encoders and heads need other amounts of memory.
        self._work = f"{work}, {sum(weight.numel() for weight in model.parameters())} weights"
        self._model, self._device, self._report = model, device, report
        self.times = parts_kept(self._work, device)
        if self.times > 1:
            report.note(
                f"An earlier run of this kind ran out of memory on this GPU, so each step is cut into {self.times} "
                f"times as many parts; results stay the same. To try whole steps again, delete {FILE} in Winnow's "
                "home folder."
            )

    def step(self, work: Callable[[int], Result], most: int) -> Result:
        """Return `work(times)`; if memory runs out, call it again with smaller parts.

        work: function of a number n. It cuts a step into n times the usual number of parts, and adds their gradients.
        If memory runs out, this step and all later ones are cut into twice as many parts. most: largest possible n.
        Errors: the error of `work` if the step cannot be cut further.
        """
        while True:
            times = min(self.times, most)
            try:
                return work(times)
            except Exception as error:
                if not memory_ran_out(error) or times >= most:
                    raise
            # Retry outside of the `except` block; inside it, the error's stack frames would still keep the memory in
            # use.
            self.times = 2 * times
            self._model.zero_grad()  # delete the gradients of the parts that did fit
            release_memory()
            keep_parts(self._work, self._device, self.times)
            self._report.note(
                f"Memory ran out, so each step is now cut into {self.times} times as many parts; results stay the same."
            )


@contextmanager
def memory_watched(batch_size: int, accumulation: int = 0) -> Iterator[None]:
    """If memory runs out, raise a ResourceError that advises the user. Other errors stay unchanged.

    accumulation: number of parts of a batch; 0 if the training does not have this option.
    """
    try:
        yield
    except Exception as error:
        if not memory_ran_out(error):
            raise
        advice = "set a smaller batch_size, or choose a smaller encoder."
        if accumulation:  # advise more parts, because a smaller batch would change the results
            advice = (
                f"set accumulation to {2 * accumulation}, which cuts the same batch into smaller parts, or use "
                "checkpointing, lora or a smaller encoder."
            )
        raise ResourceError(f"batch_size {batch_size}: memory ran out; {advice}") from error
