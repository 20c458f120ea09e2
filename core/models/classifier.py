"""A sequence classifier: an encoder, pooling to one vector per sequence, and a linear layer (Ma et al. 2023, A.3)."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from core.errors import ModelError
from core.models import hub
from core.models.devices import Precision, pick_device, pick_dtype, to_device
from core.models.encoder import longest
from core.models.pieces import Ids, Pieces, rectangle

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Pooling = Literal["pooler", "cls"]


class Classifier(nn.Module):
    """Maps each row of sub-word pieces to `n_classes` logits.

    pooling: `cls` uses the first piece's state; `pooler` passes that state through the encoder's pooler, if it has one.
    dtype: number format of the encoder's computation; the last layer stays in float32.
    """

    def __init__(
        self,
        encoder: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        n_classes: int,
        *,
        pooling: Pooling,
        max_length: int,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"{encoder.config.model_type}: has no mask piece to replace a mention; choose an encoder like BERT."
            )
        self.encoder, self.pooling, self.dtype = encoder, pooling, dtype
        self.pieces = Pieces(tokenizer, max_length)
        self.mask, self.pad = int(tokenizer.mask_token_id), int(tokenizer.pad_token_id or 0)
        # Register this dropout in the encoder, because on a CPU `training.threads` replaces all dropouts of the
        # encoder.
        encoder.dropout_of_classifier = nn.Dropout(float(getattr(encoder.config, "hidden_dropout_prob", 0.1)))
        self.last_layer = nn.Linear(int(encoder.config.hidden_size), n_classes)
        nn.init.normal_(self.last_layer.weight, std=float(getattr(encoder.config, "initializer_range", 0.02)))
        nn.init.zeros_(self.last_layer.bias)

    @property
    def device(self) -> torch.device:
        return self.last_layer.weight.device

    def name(self, words: Sequence[str]) -> Ids:
        """Return the pieces of a name without context, shortened to fit into the window."""
        return self.pieces.wrapped(self._flat(words)[: self.pieces.room])

    def context(self, before: Sequence[str], behind: Sequence[str]) -> Ids:
        """Return the pieces of a sentence with one mask piece instead of the mention.

        The sentence is shortened to fit into the window. before, behind: words before and after the mention.
        """
        left, right, room = self._flat(before), self._flat(behind), self.pieces.room - 1
        # Each side gets half of the window. The left side also gets what the right side does not need.
        n = min(len(left), max(room // 2, room - len(right)))
        return self.pieces.wrapped((*left[len(left) - n :], self.mask, *right[: room - n]))

    def holds(self, words: Sequence[str], more: int = 0) -> bool:
        """Return True if the pieces of `words` and `more` further pieces fit into the window."""
        n = sum(map(len, self.pieces.of(words))) + more
        return n <= int(self.pieces.room)

    def nothing(self) -> Ids:
        """Return the input of the null model: only the special pieces."""
        return self.pieces.wrapped(())

    def _flat(self, words: Sequence[str]) -> Ids:
        return tuple(chain.from_iterable(self.pieces.of(words)))

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """Return logits `(b, k)` float32 of `b` inputs."""
        ids, attend = rectangle(rows, self.pad)
        mask = None if attend.all() else torch.from_numpy(attend)
        tokens, mask = to_device([torch.from_numpy(ids), mask], self.device)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            out = self.encoder(input_ids=tokens, attention_mask=mask)
            pooled = getattr(out, "pooler_output", None) if self.pooling == "pooler" else None
            pooled = self.encoder.dropout_of_classifier(out.last_hidden_state[:, 0] if pooled is None else pooled)
        with torch.autocast(self.device.type, enabled=False):
            logits: Tensor = self.last_layer(pooled.float())
        return logits


def new_classifier(
    name: str,
    n_classes: int,
    *,
    pooling: Pooling = "cls",
    max_length: int = 128,
    precision: Precision = "auto",
    device: str = "auto",
    allow_download: bool = False,
) -> Classifier:
    """Make a classifier of encoder `name` with a last layer drawn from torch's current random state.

    Errors: ModelError if the encoder cannot be loaded or has no mask piece.
    """
    on_device = pick_device(device)
    encoder = hub.load_model(name, allow_download=allow_download, dtype=torch.float32)
    tokenizer = hub.load_tokenizer(name, allow_download=allow_download)
    classifier = Classifier(
        encoder,
        tokenizer,
        n_classes,
        pooling=pooling,
        max_length=min(max_length, longest(encoder, tokenizer)),
        dtype=pick_dtype(precision, on_device),
    )
    return classifier.to(on_device)
