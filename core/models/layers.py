"""Layers of an encoder: mixed, removed or reinitialised for a tagger, or trained by LoRA.

LoRA (Hu et al. 2022, arXiv 2106.09685) trains small matrices beside the linear layers. A layer then computes
W x + B A x instead of W x, with A `(r, in)` and B `(out, r)`. After the training, `Lora.merge` replaces W by W + B A.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from core.errors import ConfigError, ModelError
from core.models.networks import LayerChoice

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class LayerMix(nn.Module):
    """Mixes the states h_l of an encoder's embeddings and layers: gamma * sum softmax(w)_l h_l (Peters et al. 2018).

    w and gamma are learnt. The mix replaces the output of the last layer of `model`, which must be called with
    `output_hidden_states=True`. The weights and files of `model` do not contain the mix.
    """

    def __init__(self, model: "PreTrainedModel") -> None:
        super().__init__()
        # Start with zeros, because their softmax gives all layers the same weight.
        self.weights = nn.Parameter(torch.zeros(model.config.num_hidden_layers + 1))
        self.gamma = nn.Parameter(torch.ones(()))
        self._on = True
        model.base_model.register_forward_hook(self._replace)

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """Return the mix `(b, l, d)` of the layers' states, each `(b, l, d)`."""
        shares = self.weights.softmax(0)
        # Sum in float32, because a sum of a dozen layers would lose one of the three digits of bf16.
        weighed = [share * state.float() for share, state in zip(shares, states, strict=True)]
        return self.gamma * torch.stack(weighed).sum(0)

    def _replace(self, encoder: nn.Module, inputs: object, output: Any) -> Any:
        if self._on:
            output.last_hidden_state = self(output.hidden_states)
        return output

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switch the mix off in this context. The model then returns its last layer, as it does without Winnow."""
        self._on = False
        try:
            yield
        finally:
            self._on = True


def arrange(model: "PreTrainedModel", choice: LayerChoice, name: str) -> None:
    """Remove or reinitialise layers of `model` as described by `choice`.

    New weights are drawn from torch's current random state. name: the encoder's name, for errors. Errors: ConfigError
    if the encoder lacks the layer; ModelError.
    """
    if choice.kind not in ("named", "reinit"):
        return
    layers = layers_of(model, name, "give last")
    n = len(layers)
    if choice.k > n:
        raise ConfigError(f"layers: {name} has {n} layers and no layer {choice.k}; give a number from 1 to {n}.")
    if choice.kind == "reinit":
        for layer in layers[n - choice.k :]:
            _draw(layer, float(getattr(model.config, "initializer_range", 0.02)))
        return
    del layers[choice.k :]
    if isinstance(kinds := getattr(model.config, "layer_types", None), list):
        model.config.layer_types = kinds[: choice.k]
    model.config.num_hidden_layers = choice.k


def layers_of(model: "PreTrainedModel", name: str, instead: str) -> nn.ModuleList:
    """Return the encoder's layers in order.

    name, instead: the encoder's name and advice to the user, for the error. Errors: ModelError if the encoder has no
    list of separate layers.
    """
    n = int(model.config.num_hidden_layers)
    lists = (part for part in model.base_model.modules() if isinstance(part, nn.ModuleList) and len(part) == n)
    layers = next(lists, None)
    if layers is None:
        raise ModelError(
            f"{name}: its layers are not separate, perhaps because they share one set of weights; {instead}."
        )
    return layers


def _draw(layer: nn.Module, spread: float) -> None:
    """Reinitialise a layer like BERT's layers before pre-training (Zhang et al. 2021, section 4)."""
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() > 1:
            nn.init.normal_(parameter, std=spread)
        else:
            nn.init.ones_(parameter)  # weights of a layer norm


class Lora:
    """LoRA matrices of rank `rank` for all linear layers of an encoder, which is frozen until `merge`.

    model: encoder and head; the head is trained as usual. seed: seed of the random matrices A. The matrices B start at
    0, so training starts from the unchanged encoder. The matrices are parameters of `model`, named after their layer
    with `lora_a` and `lora_b`.
    """

    def __init__(self, model: "PreTrainedModel", rank: int, seed: int) -> None:
        self.encoder = model.base_model
        self.encoder.requires_grad_(False)
        generator = torch.Generator().manual_seed(seed)
        self._pairs = [_Pair(part, rank, generator) for part in self.encoder.modules() if isinstance(part, nn.Linear)]

    def merge(self) -> None:
        """Add the product B A of each layer to the layer's weights. The result is an ordinary encoder."""
        for pair in self._pairs:
            pair.merge()
        self.encoder.requires_grad_(True)


class _Pair:
    """The two LoRA matrices of one linear layer."""

    def __init__(self, layer: nn.Linear, rank: int, generator: torch.Generator) -> None:
        self.layer, weight = layer, layer.weight
        # As in the authors' code. Their paper draws A from a Gaussian and does not give its width.
        spread = 1 / math.sqrt(layer.in_features)
        a = torch.empty(rank, layer.in_features).uniform_(-spread, spread, generator=generator)
        self.a, self.b = nn.Parameter(a.to(weight)), nn.Parameter(weight.new_zeros(layer.out_features, rank))
        layer.register_parameter("lora_a", self.a)
        layer.register_parameter("lora_b", self.b)
        self._hook = layer.register_forward_hook(self._add)

    def _add(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + linear(linear(inputs[0], self.a), self.b)

    def merge(self) -> None:
        with torch.no_grad():
            self.layer.weight += self.b @ self.a
        self._hook.remove()
        del self.layer.lora_a, self.layer.lora_b
