"""Features of a word for a recurrent tagger: its vector and its letters.

To find a word's vector, the word is looked up as written, then in lower case. If neither is found, and the text of the
vectors was tokenised by `tokenize`, the longest token of the word is looked up. Vectors of words in the training
corpora are trained. Other pretrained vectors stay fixed, because no gradient would reach them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.models.devices import to_device
from core.results import FloatArray
from core.text.sentence import Sentence
from core.text.words import Tokens, is_alphanumeric, tokenize

# Word index of an unknown word and of padding; the output at padding is never used.
UNKNOWN = 0
# Letter index of padding after a word's end, and of an unknown letter.
OVER, ODD = 0, 1
# Maximum number of letters that are read per word; longer words are web addresses or tables.
LONGEST = 40
# Probability that training reads a rare word as unknown, so that a vector for unknown words is learnt.
FORGOTTEN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Pretrained vectors of n words. values: `(n, d)` float32. tokens: how their training text was tokenised."""

    words: tuple[str, ...]
    values: FloatArray
    tokens: Tokens = "blanks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Words and letters of training sentences.

    words: words with trained vectors, without the unknown word. further: words whose vectors stay fixed. once: number
    of `words` that occur once in the training sentences. rare: number of words that occur once and have no pretrained
    vector; these come last in `words`. by_parts: True to look up an unknown word by its longest token.
    """

    words: tuple[str, ...]
    letters: str
    further: tuple[str, ...] = ()
    rare: int = 0
    once: int = 0
    by_parts: bool = False

    def lookup(self) -> dict[str, int]:
        """Return {word: index}; 0 is the unknown word."""
        return {word: index for index, word in enumerate((*self.words, *self.further), 1)}

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Vocabulary":
        tuples = {name: tuple(values[name]) for name in ("words", "further")}
        return cls(**{**values, **tuples})


def build_vocabulary(sentences: Iterable[Sentence], vectors: Vectors | None = None) -> Vocabulary:
    """Return the vocabulary of training sentences. A word is rare if it occurs once and has no pretrained vector."""
    counts = Counter(token for sentence in sentences for token in sentence.tokens)
    with_vector = set(vectors.words) if vectors else set()
    # Put rare words last, so that one index separates them from the others. Sort words of equal frequency by spelling.
    order = sorted(counts, key=lambda word: (counts[word] == 1 and word not in with_vector, -counts[word], word))
    return Vocabulary(
        words=tuple(order),
        letters="".join(sorted({letter for word in counts for letter in word})),
        further=tuple(word for word in (vectors.words if vectors else ()) if word not in counts),
        rare=sum(count == 1 and word not in with_vector for word, count in counts.items()),
        once=sum(count == 1 for count in counts.values()),
        by_parts=vectors is not None and vectors.tokens == "words",
    )


def place(table: Mapping[str, int], word: str, *, by_parts: bool) -> int | None:
    """Return the index of a word in `table`, looked up as the module's docstring describes; None if unknown."""
    index = table.get(word, table.get(word.lower()))
    if index is None and by_parts:
        longest = max(filter(is_alphanumeric, tokenize(word)), key=len, default=word)
        index = table.get(longest, table.get(longest.lower()))
    return index


def share_with_vector(sentences: Iterable[Sentence], vectors: Vectors, *, each_once: bool = False) -> float:
    """Return the share of the tokens in `sentences` that have a vector. each_once: count each distinct word once."""
    rows = {word: row for row, word in enumerate(vectors.words)}
    counts = Counter(token for sentence in sentences for token in sentence.tokens)
    by_parts = vectors.tokens == "words"
    known = [word for word in counts if place(rows, word, by_parts=by_parts) is not None]
    return len(known) / len(counts) if each_once else sum(counts[word] for word in known) / counts.total()


class WordVectors(nn.Module):
    """Maps word indices `(b, l)` to vectors `(b, l, d)`."""

    def __init__(self, vocabulary: Vocabulary, size: int, vectors: Vectors | None = None) -> None:
        super().__init__()
        self.trained = nn.Embedding(1 + len(vocabulary.words), size)
        self.first_rare = 1 + len(vocabulary.words) - vocabulary.rare
        self.register_buffer("kept", torch.zeros(len(vocabulary.further), size))
        self.kept: Tensor
        spread = (3 / size) ** 0.5  # range of initial values in Ma and Hovy 2016
        nn.init.uniform_(self.trained.weight, -spread, spread)
        if vectors is not None:
            self._fill(vocabulary, vectors)

    def _fill(self, vocabulary: Vocabulary, vectors: Vectors) -> None:
        rows = {word: row for row, word in enumerate(vectors.words)}
        values = torch.from_numpy(np.asarray(vectors.values, dtype=np.float32))
        by_parts = vocabulary.by_parts
        rows_of_words = [(i, place(rows, word, by_parts=by_parts)) for i, word in enumerate(vocabulary.words, 1)]
        known_rows = [(index, row) for index, row in rows_of_words if row is not None]
        with torch.no_grad():
            self.trained.weight[[index for index, _ in known_rows]] = values[[row for _, row in known_rows]]
            self.kept.copy_(values[[rows[word] for word in vocabulary.further]])

    def forward(self, indices: Tensor) -> Tensor:
        n = self.trained.num_embeddings
        if self.training:
            # Draw on the CPU, so that training on a GPU uses the same draws.
            chance = to_device(torch.rand(indices.shape) < FORGOTTEN, indices.device)
            rare = (indices >= self.first_rare) & (indices < n)
            indices = indices.masked_fill(rare & chance, UNKNOWN)
        vectors: Tensor = self.trained(indices.clamp(max=n - 1))
        if len(self.kept):
            vectors = torch.where((indices >= n)[..., None], self.kept[(indices - n).clamp(min=0)], vectors)
        return vectors


class CharCnn(nn.Module):
    """Maps letters of words `(u, c)` to features `(u, filters x widths)`: convolutions, then the maximum over the word.

    Each letter is in the middle of one window. Windows around the padding are left out, so padding does not change the
    features.
    """

    def __init__(self, n_letters: int, size: int, filters: int, widths: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.letters = nn.Embedding(2 + n_letters, size, padding_idx=OVER)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width, padding=width // 2) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.size = filters * len(widths)

    def forward(self, letters: Tensor) -> Tensor:
        over, seen = (letters == OVER)[:, None], self.dropout(self.letters(letters)).transpose(1, 2)
        features = [convolve(seen)[:, :, : letters.shape[1]] for convolve in self.convolutions]
        return torch.cat([values.masked_fill(over, float("-inf")).amax(2) for values in features], 1)


def letter_indices(words: Sequence[str], letters: dict[str, int]) -> Tensor:
    """Return the letter indices of `words`, `(u, c)`. letters: {letter: index, from 2 on}."""
    width = min(max(map(len, words)), LONGEST)
    table = np.zeros((len(words), width), dtype=np.int64)
    for row, word in enumerate(words):
        indices = [letters.get(letter, ODD) for letter in word[:width]]
        table[row, : len(indices)] = indices
    return torch.from_numpy(table)
