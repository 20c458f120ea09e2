"""Taggers of ready models. `hub` loads them like encoders: only safetensors, no code of the folder, no network."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core.errors import ModelError
from core.models import hub
from core.models.encoder import longest
from core.models.tagger import Features, PieceTagger, Reading, prediction_of
from core.reporter import Reporter, Silent
from core.text.sentence import Prediction, Sentence
from core.zero_shot.folders import folder_of
from core.zero_shot.labels import Labels

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class ReadyTagger(PieceTagger):
    """A token classifier that tags each word by its first piece, in float32. Only the method `predict` works.

    labels: tags of the k outputs. There is no CRF; each word gets its most probable tag.
    """

    def __init__(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", labels: Labels, max_length: int
    ) -> None:
        super().__init__(model, tokenizer, (), "softmax", Reading(max_length=max_length))
        self.labels = labels

    def emissions(self, features: Features, shape: tuple[int, int]) -> Tensor:
        """Return the logits of each word's first piece, `(b, l, k)`, for b sentences of up to l words."""
        result = torch.zeros(*shape, len(self.labels.column), device=self.device)
        sentence, word, window, piece = features["places"]
        attention = features["attention"] if features["padded"] else None
        logits = self.model(input_ids=features["ids"], attention_mask=attention).logits
        result[sentence, word] = logits[window, piece].float()
        return result

    def predict(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[Prediction]:
        """Return the entities of each sentence, with the model's types. Errors: ModelError if a score is not finite."""

        def probabilities(emissions: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
            return emissions.double().softmax(-1).transpose(1, 2)  # words last: `_decoded` pads the last dimension

        result = [prediction_of(())] * len(sentences)
        for rows, decoded in self._decoded(sentences, probabilities, report or Silent()):
            if not decoded.isfinite().all():
                raise ModelError("The model's scores are not numbers, so its weights are damaged; fetch it again.")
            for row, columns in zip(rows, decoded.numpy(), strict=True):
                result[row] = self.labels.entities(columns.T[: len(sentences[row].tokens)])
        return result


def load(name: str, labels: Labels, *, max_length: int, device: torch.device) -> ReadyTagger:
    """Load a ready model. name: its folder. max_length: most pieces per window; the model may read fewer.

    Errors: PathError; ModelError if the model cannot be loaded, or if the numbers of outputs and labels differ.
    """
    from transformers import AutoModelForTokenClassification

    folder = str(folder_of(name))
    model = hub.load_model(folder, AutoModelForTokenClassification, new_layers=(), dtype=torch.float32)
    tokenizer = hub.load_tokenizer(folder)
    outputs = int(model.config.num_labels)
    if outputs != len(labels.column):
        raise ModelError(
            f"{name}: has {outputs:,} outputs and {len(labels.column):,} label names; fetch the model again."
        )
    try:
        tagger = ReadyTagger(model, tokenizer, labels, min(max_length, longest(model, tokenizer)))
    except ValueError as error:  # raised by `Pieces` if the tokenizer gives no piece for a letter
        raise ModelError(f"{name}: its tokenizer gives no piece for a word; fetch the model again.") from error
    return tagger.to(device).eval()
