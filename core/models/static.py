"""Static vectors distilled from an encoder: a sentence is the weighted mean of its pieces' vectors, without a forward
pass.

The method is that of model2vec (Tulkens and van Dongen 2024): every piece passes through the encoder once, alone. The
vectors are reduced by PCA and weighted by the smooth inverse frequency of Arora et al. (2017).
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

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

DIMENSION = 256  # principal components to keep, as in model2vec
_COMMON = 1e-3  # the constant a of a / (a + p), the weight of a piece with share p of the text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pieces:
    """Texts as pieces without special ones. Text i has `ids[starts[i]:starts[i + 1]]`, which may be empty."""

    ids: IntArray
    starts: IntArray

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: "PreTrainedTokenizerBase") -> Self:
        """Cut texts into pieces."""
        rows: list[list[int]] = []
        if texts:  # a tokenizer fails on an empty list
            rows = tokenizer(
                list(texts),
                add_special_tokens=False,
                truncation=True,
                max_length=LONGEST,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
        return cls(ids=ids, starts=np.concatenate([[0], np.cumsum(lengths)]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StaticVectors:
    """Vectors of pieces.

    table: `(p + 1, d)` float32, weighted vectors of the p known pieces, then a row of zeros for all other pieces.
    places: `(v,)`, row of the table for each piece of the vocabulary.
    """

    table: FloatArray
    places: IntArray

    @classmethod
    def distil(cls, encoder: Encoder, pieces: Pieces, report: Reporter) -> Self:
        """Distil vectors of the pieces that occur in a sample of text. Other pieces get no vector.

        pieces: the sample, which also gives the frequencies.
        """
        counts = np.bincount(pieces.ids, minlength=len(encoder.tokenizer))
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

    def __call__(self, pieces: Pieces) -> FloatArray:
        """Return float32 vectors `(n, d)` of length 1; zeros for a text without known pieces."""
        import torch

        sums = torch.nn.functional.embedding_bag(
            torch.from_numpy(self.places[pieces.ids]),
            torch.from_numpy(self.table),
            torch.from_numpy(pieces.starts[:-1]),
            mode="sum",
        )
        lengths = torch.linalg.vector_norm(sums, dim=1, keepdim=True)
        unit: FloatArray = (sums / lengths.clamp(min=torch.finfo(torch.float32).tiny)).numpy()
        return unit


def _alone(encoder: Encoder, pieces: IntArray, report: Reporter) -> FloatArray:
    """Return the encoder's vector of each piece as a text of its own, `(p, d)` float32, not scaled to length 1."""
    (ids,), (special,) = encoder.cut(["a"])[:2]
    at = special.index(0)  # the special pieces around a text differ between encoders, so take those around this one
    rows = [[*ids[:at], piece, *ids[at + special.count(0) :]] for piece in pieces.tolist()]
    marks = [[*special[:at], 0, *special[at + special.count(0) :]]] * len(rows)
    unit, norms = encoder.encode_cut(Cut(ids=rows, special=marks, further={}), report)
    return unit.astype(np.float32) * norms[:, None]
