"""What a tagger reads of its encoder: a mix of the layers, a named one, the last after the top ones are drawn anew."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from core.errors import ConfigError, ModelError
from core.models.layer_choice import LayerChoice

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class LayerMix(nn.Module):
    """gamma * sum softmax(w)_l h_l over an encoder's embeddings and layers, w and gamma learnt (Peters et al. 2018).

    It stands in for the last layer of `model`, whatever reads that; the model's own weights and files know nothing of
    it. `output_hidden_states=True` must be asked of the model.
    """

    def __init__(self, model: "PreTrainedModel") -> None:
        super().__init__()
        # Zeros under a softmax: at first every layer counts alike.
        self.weights = nn.Parameter(torch.zeros(model.config.num_hidden_layers + 1))
        self.gamma = nn.Parameter(torch.ones(()))
        self._on = True
        model.base_model.register_forward_hook(self._replace)

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """`(b, l, d)` of as many for each layer."""
        shares = self.weights.softmax(0)
        # In float32: of bf16's three digits a sum over a dozen layers would keep two.
        weighed = [share * state.float() for share, state in zip(shares, states, strict=True)]
        return self.gamma * torch.stack(weighed).sum(0)

    def _replace(self, encoder: nn.Module, inputs: object, output: Any) -> Any:
        if self._on:
            output.last_hidden_state = self(output.hidden_states)
        return output

    @contextmanager
    def off(self) -> Iterator[None]:
        """Within, the last layer is read, as by who loads the model without us."""
        self._on = False
        try:
            yield
        finally:
            self._on = True


def arrange(model: "PreTrainedModel", choice: LayerChoice, name: str) -> None:
    """Cut off or draw anew the layers of `model` that `choice` says, from torch's seed as it stands.

    name: of the encoder, for errors. Errors: ConfigError for a layer that it does not have; ModelError.
    """
    if choice.kind not in ("named", "reinit"):
        return
    layers = layers_of(model, name, "give last")
    n = len(layers)
    if choice.k > n:
        raise ConfigError(f"layers: {name} has {n}, so {choice.k} is none of them; give a number from 1 to {n}.")
    if choice.kind == "reinit":
        for layer in layers[n - choice.k :]:
            _draw(layer, float(getattr(model.config, "initializer_range", 0.02)))
        return
    del layers[choice.k :]
    if isinstance(kinds := getattr(model.config, "layer_types", None), list):
        model.config.layer_types = kinds[: choice.k]
    model.config.num_hidden_layers = choice.k


def layers_of(model: "PreTrainedModel", name: str, instead: str) -> nn.ModuleList:
    """The layers of its encoder, from the first to the last. name, instead: of the encoder and what to do without, for
    errors. Errors: ModelError."""
    n = int(model.config.num_hidden_layers)
    lists = (part for part in model.base_model.modules() if isinstance(part, nn.ModuleList) and len(part) == n)
    layers = next(lists, None)
    if layers is None:
        raise ModelError(f"{name}: its layers cannot be told apart, as where they share one set of weights; {instead}.")
    return layers


def _draw(layer: nn.Module, spread: float) -> None:
    """Draw it as BERT draws a layer before it has read anything (Zhang et al. 2021, 4)."""
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=spread)
        else:
            nn.init.ones_(parameter)  # of a norm
