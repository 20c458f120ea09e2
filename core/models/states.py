"""The frozen states of an encoder, all its layers, as further features of words (after Peters et al. 2018).

Computed once a sentence: they do not change while the tagger above them learns.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from core.models import hub
from core.models.devices import pick_dtype
from core.models.encoder import longest
from core.models.pieces import Pieces
from core.text.sentence import Sentence

KEPT = 1 << 29  # bytes of states that are kept for the next epoch
# Windows read at once. On a processor one: padding would change the last digits there, and saves nothing.
TOGETHER = {"cpu": 1, "cuda": 64}


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
        states = {sentence.id: self._kept[sentence.id] for sentence in sentences if sentence.id in self._kept}
        computed = self._computed(list({s.id: s for s in sentences if s.id not in states}.values()))
        for id, value in computed.items():
            self._keep(id, value)
        states |= computed
        return pad_sequence([states[sentence.id].float() for sentence in sentences], batch_first=True)

    @torch.inference_mode()
    def _computed(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """`(l, layers, size)` float16 of each sentence, by its id."""
        size = self.layers, self.size
        states = {s.id: torch.zeros(len(s.tokens), *size, dtype=torch.float16) for s in sentences}
        windows = [(s.id, window) for s in sentences for window in self.pieces.windows(s.tokens)]
        device = self.model.device
        n = TOGETHER.get(device.type, TOGETHER["cpu"])
        dtype = pick_dtype("auto", device, frozen=True) if device.type == "cuda" else torch.float32
        for part in (windows[i : i + n] for i in range(0, len(windows), n)):
            ids = pad_sequence([torch.tensor(window.ids) for _, window in part], batch_first=True)
            attend = pad_sequence(
                [torch.ones(len(window.ids), dtype=torch.int64) for _, window in part], batch_first=True
            )
            with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
                output = self.model(
                    input_ids=ids.to(device), attention_mask=attend.to(device), output_hidden_states=True
                )
            layers = torch.stack(output.hidden_states).half().cpu()
            for line, (id, window) in enumerate(part):
                own = layers[:, line, np.array(window.first)].transpose(0, 1)
                states[id][window.start : window.start + len(window.first)] = own
        return states

    def _keep(self, key: str, states: Tensor) -> None:
        self._kept[key] = states
        self._bytes += states.nbytes
        while self._bytes > KEPT and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
