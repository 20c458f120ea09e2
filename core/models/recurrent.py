"""Layers of a recurrent tagger: a bidirectional LSTM that needs no packing, and the stack over a word's features."""

import torch
from torch import Tensor, nn

from core.models.word_features import Vectors, Vocabulary, WordVectors


class BiLstm(nn.Module):
    """`(b, l, d)` to `(b, l, 2h)`. Two LSTMs, the second over the sentences turned round: exact without packing,
    which costs a CPU several times as long."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(size, hidden, batch_first=True)
        self.behind = nn.LSTM(size, hidden, batch_first=True)
        for lstm in (self.ahead, self.behind):  # a forget gate that is open at first
            nn.init.ones_(lstm.get_parameter("bias_ih_l0").data[hidden : 2 * hidden])

    def forward(self, inputs: Tensor, turned: Tensor) -> Tensor:
        """turned: `(b, l)` the place that each place has in the turned sentence; its own beyond the end."""
        ahead, behind = self.ahead(inputs)[0], self.behind(_at(inputs, turned))[0]
        return torch.cat([ahead, _at(behind, turned)], 2)


def _at(values: Tensor, places: Tensor) -> Tensor:
    return values.gather(1, places[..., None].expand(-1, -1, values.shape[2]))


class Tower(nn.Module):
    """Word vectors and BiLSTMs over words and their letters' features; one a corpus or one for all."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        word_size: int,
        letters: int,
        hidden: int,
        layers: int,
        dropout: float,
        states: int,
        vectors: Vectors | None,
    ) -> None:
        super().__init__()
        self.words = WordVectors(vocabulary, word_size, vectors)
        sizes = [word_size + letters, *([2 * hidden] * (layers - 1))]
        if states:
            sizes[1] += states
        self.layers = nn.ModuleList(BiLstm(size, hidden) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor, letters: Tensor, turned: Tensor, states: Tensor | None) -> Tensor:
        """`(b, l, 2h)`."""
        hidden = torch.cat([self.words(words), letters], 2)
        for index, layer in enumerate(self.layers):
            if index == 1 and states is not None:
                hidden = torch.cat([hidden, states], 2)
            hidden = layer(self.dropout(hidden), turned)
        dropped: Tensor = self.dropout(hidden)
        return dropped
