"""What taggers on an encoder share: words to pieces, in windows, at a precision."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from core.models.crf import Head
from core.models.pieces import Pieces
from core.models.tagger import Features, Tagger
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class PieceTagger(Tagger):
    """A tagger whose encoder stands for a word by the state of its first piece.

    dtype: what the encoder computes in. max_length: pieces a window. context: pieces of neighbouring sentences that are
    read on each side of one.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        types: Sequence[str],
        head: Head,
        *,
        max_length: int,
        dtype: torch.dtype = torch.float32,
        constrained: bool = False,
        context: int = 0,
    ) -> None:
        super().__init__(types, head, constrained=constrained)
        self.model, self.tokenizer, self.dtype, self.context = model, tokenizer, dtype, context
        self.pieces = Pieces(tokenizer, max_length)

    def features(self, sentences: Sequence[Sentence]) -> Features:
        """ids, attention `(w, p)`, whether any of it is 0; and for every word where it goes, (sentence, word), and
        whence, (window, piece)."""
        windows = [
            (row, window)
            for row, s in enumerate(sentences)
            for window in self.pieces.windows(s.tokens, self.pieces.around(s, self.context))
        ]
        ids = np.full((len(windows), max(len(w.ids) for _, w in windows)), self.tokenizer.pad_token_id or 0)
        attention = np.zeros_like(ids)
        places = []
        for line, (row, window) in enumerate(windows):
            ids[line, : len(window.ids)], attention[line, : len(window.ids)] = window.ids, 1
            places += [(row, window.start + i, line, piece) for i, piece in enumerate(window.first)]
        arrays = {"ids": ids, "attention": attention, "places": np.array(places, dtype=np.int64).T}
        pieces = sum(len(window.ids) for _, window in windows)
        padded = not attention.all()  # known here without asking a card: without padding there is a faster kernel
        return {"pieces": pieces, "padded": padded, **{name: torch.from_numpy(array) for name, array in arrays.items()}}

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    def size(self, sentence: Sentence) -> int:
        around = self.pieces.around(sentence, self.context)
        return sum(map(len, (*self.pieces.of(sentence.tokens), *around)))
