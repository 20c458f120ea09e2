"""LoRA (Hu et al. 2022, arXiv 2106.09685): small matrices are trained beside an encoder's linear layers, not these.

A layer's W x becomes W x + B A x, with A `(r, in)` and B `(out, r)`; at the end W + B A is a layer as any other.
"""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Lora:
    """Matrices of rank `rank` beside all linear layers of an encoder, whose own weights stand still until `merge`.

    model: with its head, which is trained as ever. seed: of A; B is 0, so that training begins with what the encoder
    is. The matrices are parameters of `model`, under `lora_a` and `lora_b` behind each layer's name.
    """

    def __init__(self, model: "PreTrainedModel", rank: int, seed: int) -> None:
        self.encoder = model.base_model
        self.encoder.requires_grad_(False)
        generator = torch.Generator().manual_seed(seed)
        self._pairs = [_Pair(part, rank, generator) for part in self.encoder.modules() if isinstance(part, nn.Linear)]

    def merge(self) -> None:
        """Add every product B A to its layer: what is left is an ordinary encoder, which may be trained on."""
        for pair in self._pairs:
            pair.merge()
        self.encoder.requires_grad_(True)


class _Pair:
    """The matrices beside one layer."""

    def __init__(self, layer: nn.Linear, rank: int, generator: torch.Generator) -> None:
        self.layer, weight = layer, layer.weight
        spread = 1 / math.sqrt(layer.in_features)  # as in the authors' code; on paper it is a Gaussian, of any width
        a = torch.empty(rank, layer.in_features).uniform_(-spread, spread, generator=generator)
        self.a, self.b = nn.Parameter(a.to(weight)), nn.Parameter(weight.new_zeros(layer.out_features, rank))
        layer.register_parameter("lora_a", self.a)
        layer.register_parameter("lora_b", self.b)
        self._hook = layer.register_forward_hook(self._add)

    def _add(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + linear(linear(inputs[0], self.a), self.b)

    def merge(self) -> None:
        """See `Lora.merge`."""
        with torch.no_grad():
            self.layer.weight += self.b @ self.a
        self._hook.remove()
        del self.layer.lora_a, self.layer.lora_b
