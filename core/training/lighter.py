"""Training an encoder in less memory: what the options say, and layers that are computed again for their gradients."""

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LORA = (
    "Rank of LoRA: small matrices are trained beside the encoder's linear layers and added to them at the end. Less "
    "memory, for encoders of 100 million parameters and more; 8 is usual. 0: the encoder's own weights are trained."
)
PARTS = 2  # more cost time on two cores: each part has gradients of its own for every weight
IN_PARTS = (
    "On a processor: parts that a step is cut into, a thread each. More use more than two cores; another number gives "
    "other last digits."
)
CHECKPOINTING = (
    "Keep only what goes from layer to layer and compute the rest again for the gradients: less memory, a third more "
    "time, the same training."
)
LARGE = 100_000_000  # parameters from which LoRA is worth it
LORA_FASTER = 20  # times the rate of training all weights, unless one is said (SOURCES.md, LoRA)


def lora_note(model: "PreTrainedModel", rank: int) -> str:
    """A sentence where LoRA of that rank was asked of an encoder that is small for it; "" where not."""
    n = sum(weight.numel() for weight in model.base_model.parameters())
    if not rank or n >= LARGE:
        return ""
    return (
        f"lora: is for encoders of {LARGE // 1_000_000} million parameters and more; this one has {n / 1e6:.1f} "
        "million, so little memory is saved, and its own weights may as well be trained (lora 0)."
    )


def checkpoint_layers(model: "PreTrainedModel", name: str) -> None:
    """Checkpoint every layer of `model` while it is trained (Chen et al. 2016). name: of the encoder, for errors.

    Not by transformers' own switch, which MPNet and ALBERT lack. Errors: ModelError where layers share their weights.
    """
    from core.models.layers import layers_of

    for layer in layers_of(model, name, "leave checkpointing out"):
        layer.__dict__["forward"] = partial(_again, layer, layer.forward)  # what torch calls


def _again(layer: Any, forward: Any, *inputs: Any, **kw: Any) -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    from core.training.threads import same_draws

    if not (layer.training and torch.is_grad_enabled()):
        return forward(*inputs, **kw)
    return checkpoint(forward, *inputs, use_reentrant=False, context_fn=same_draws, **kw)
