"""The frozen states of an encoder, all its layers, as further features of words (after Peters et al. 2018).

Computed once a sentence: they do not change while the tagger above them learns.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from core.models import hub
from core.models.encoder import longest
from core.models.pieces import Pieces
from core.text.sentence import Sentence

KEPT = 1 << 29  # bytes of states that are kept for the next epoch


class FrozenStates:
    """layers: embeddings and each layer, to be mixed. size: of a state. A word has the states of its first piece."""

    def __init__(self, name: str, max_length: int = 256) -> None:
        from transformers import AutoModel

        self.model = hub.load_model(name, AutoModel, new_layers=("pooler",), dtype=torch.float32).eval()
        tokenizer = hub.load_tokenizer(name)
        self.pieces = Pieces(tokenizer, min(max_length, longest(self.model, tokenizer)))
        self.layers: int = self.model.config.num_hidden_layers + 1
        self.size: int = self.model.config.hidden_size
        self._kept: OrderedDict[str, Tensor] = OrderedDict()
        self._bytes = 0

    def of(self, sentences: Sequence[Sentence]) -> Tensor:
        """`(b, l, layers, size)` float32, 0 beyond a sentence's end."""
        states_by_sentence = [self._states_of(sentence) for sentence in sentences]
        return torch.nn.utils.rnn.pad_sequence([states.float() for states in states_by_sentence], batch_first=True)

    def _states_of(self, sentence: Sentence) -> Tensor:
        if sentence.id not in self._kept:
            self._keep(sentence.id, self._computed(sentence))
        return self._kept[sentence.id]

    @torch.inference_mode()
    def _computed(self, sentence: Sentence) -> Tensor:
        """`(l, layers, size)` float16."""
        states = torch.zeros(len(sentence.tokens), self.layers, self.size, dtype=torch.float16)
        for window in self.pieces.windows(sentence.tokens):
            ids = torch.tensor([window.ids], device=self.model.device)
            output = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
            layers = torch.stack(output.hidden_states)[:, 0, np.array(window.first)]
            states[window.start : window.start + len(window.first)] = layers.transpose(0, 1).half().cpu()
        return states

    def _keep(self, key: str, states: Tensor) -> None:
        self._kept[key] = states
        self._bytes += states.nbytes
        while self._bytes > KEPT and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
