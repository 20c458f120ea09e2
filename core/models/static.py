"""Static vectors, distilled from an encoder: a sentence's vector is the weighted mean of its pieces' vectors.

The method is that of model2vec (Tulkens and van Dongen 2024): every piece passes through the encoder once, alone.
Sentences then need no forward pass. The vectors are reduced by PCA and weighted by the smooth inverse frequency of
Arora et al. (2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np

from core.models.encoder import Cut, Encoder
from core.models.pieces import LONGEST
from core.reporter import Reporter
from core.results import FloatArray, IntArray
from core.text.words import tokenize

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Number of principal components to keep, as in model2vec.
DIMENSION = 256
# The constant a in a / (a + p), the weight of a piece whose share of the text is p.
_COMMON = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """Texts as words, and each distinct word as pieces (without special pieces).

    It is faster to tokenise each distinct word once than to tokenise all texts.

    Text i has the words `ids[starts[i]:starts[i + 1]]`, which may be none. Word w has the pieces
    `pieces[begins[w]:begins[w + 1]]`.
    """

    ids: IntArray
    starts: IntArray
    pieces: IntArray
    begins: IntArray

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: "PreTrainedTokenizerBase") -> Self:
        """Return the texts split into words, and the words cut into pieces."""
        numbers = dict[str, int]()
        rows = [[numbers.setdefault(word, len(numbers)) for word in tokenize(text)] for text in texts]
        cut: list[list[int]] = []
        if numbers:  # a tokenizer fails on an empty list
            cut = tokenizer(
                [f" {word}" for word in numbers],  # some tokenizers recognise a new word by the blank before it
                add_special_tokens=False,
                truncation=True,
                max_length=LONGEST,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        (ids, starts), (pieces, begins) = _joined(rows), _joined(cut)
        return cls(ids=ids, starts=starts, pieces=pieces, begins=begins)

    def counts(self, n: int) -> IntArray:
        """Return how often each piece of a vocabulary of size `n` occurs in the texts, `(n,)`."""
        times = np.repeat(np.bincount(self.ids, minlength=len(self.begins) - 1), np.diff(self.begins))
        return np.bincount(self.pieces, weights=times, minlength=n).astype(np.int64)


def _joined(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Return all rows joined to one array, and the offset where each row begins, plus the end, `(rows + 1,)`."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    joined = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
    return joined, np.concatenate([[0], np.cumsum(lengths)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StaticVectors:
    """Vectors of pieces.

    table: `(p + 1, d)` float32, weighted vectors of the p known pieces, then a row of zeros for all other pieces.
    places: `(v,)`, row of the table for each piece of the vocabulary.
    """

    table: FloatArray
    places: IntArray

    @classmethod
    def distil(cls, encoder: Encoder, words: Words, report: Reporter) -> Self:
        """Return vectors distilled for the pieces that occur in a sample of text. Other pieces get no vector.

        words: the sample, which also gives the frequencies.
        """
        counts = words.counts(len(encoder.tokenizer))
        known = np.flatnonzero(counts)
        vectors = _alone(encoder, known, report).astype(np.float64)
        vectors -= vectors.mean(axis=0)
        if min(vectors.shape) > DIMENSION:
            _, axes = np.linalg.eigh(vectors.T @ vectors)
            vectors = vectors @ axes[:, ::-1][:, :DIMENSION]
        shares = counts[known] / counts.sum()
        table = np.zeros((len(known) + 1, vectors.shape[1]), dtype=np.float32)
        table[:-1] = vectors * (_COMMON / (_COMMON + shares))[:, None]
        places = np.full(len(counts), len(known), dtype=np.int64)
        places[known] = np.arange(len(known))
        return cls(table=table, places=places)

    def __call__(self, words: Words) -> FloatArray:
        """Return float32 vectors `(n, d)` of length 1; zeros for a text without known pieces."""
        import torch

        by_word = _sums(self.table, self.places[words.pieces], words.begins)
        sums = torch.from_numpy(_sums(by_word, words.ids, words.starts))
        lengths = torch.linalg.vector_norm(sums, dim=1, keepdim=True)
        unit: FloatArray = (sums / lengths.clamp(min=torch.finfo(torch.float32).tiny)).numpy()
        return unit


def _sums(table: FloatArray, ids: IntArray, starts: IntArray) -> FloatArray:
    """Return the sum of the table's rows `ids[starts[i]:starts[i + 1]]` for each i, `(n, d)` float32."""
    import torch

    if len(starts) == 1:  # `embedding_bag` fails without texts
        return np.zeros((0, table.shape[1]), dtype=np.float32)
    first = torch.from_numpy(starts[:-1])
    found: FloatArray = torch.nn.functional.embedding_bag(
        torch.from_numpy(ids), torch.from_numpy(table), first, mode="sum"
    ).numpy()
    return found


def _alone(encoder: Encoder, pieces: IntArray, report: Reporter) -> FloatArray:
    """Return the raw vector of each piece, encoded as a separate text, `(p, d)` float32."""
    (ids,), (special,) = encoder.cut(["a"])[:2]
    # Special pieces differ between encoders, so copy them from the text "a".
    at = special.index(0)
    rows = [[*ids[:at], piece, *ids[at + special.count(0) :]] for piece in pieces.tolist()]
    marks = [[*special[:at], 0, *special[at + special.count(0) :]]] * len(rows)
    unit, norms = encoder.encode_cut(Cut(ids=rows, special=marks, further={}), report)
    return unit.astype(np.float32) * norms[:, None]
