"""Masks: the pieces that a masked language model has to guess, and the pieces that it sees in their place.

Every draw is a hash of (seed, epoch, row, place), so that a mask depends on nothing that came before it: a resumed
training, two processes or another batch size see the same masks.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from core.errors import ModelError
from core.results import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Unit = Literal["piece", "word", "span"]

MASKED, RANDOM = 0.8, 0.1  # of the chosen pieces; the rest stays as it is (Devlin et al. 2019)


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """A rule by which pieces are chosen and replaced.

    probability: share of the pieces that are chosen. unit: `piece` each for itself; `word` all pieces of a word or
    none; `span` as CrossNER does (its p is 0.2): of two chosen pieces that stand alone, in turn, the first moves
    beside the second. mask: the mask piece's id. special: `(vocabulary,)` pieces that are never chosen nor put in
    another's place. ordinary: ids of all others.
    """

    probability: float
    unit: Unit
    seed: int
    mask: int
    special: BoolArray
    ordinary: IntArray

    @classmethod
    def of(
        cls, tokenizer: "PreTrainedTokenizerBase", *, probability: float = 0.15, unit: Unit = "piece", seed: int = 0
    ) -> Self:
        """A masking of a tokenizer's pieces. Errors: ModelError where it has no mask piece."""
        if tokenizer.mask_token_id is None:
            raise ModelError("the tokenizer has no mask piece, so it has no masked language model; choose BERT.")
        special = np.zeros(len(tokenizer), dtype=np.bool_)
        special[list(tokenizer.all_special_ids)] = True
        return cls(
            probability=probability,
            unit=unit,
            seed=seed,
            mask=int(tokenizer.mask_token_id),
            special=special,
            ordinary=np.flatnonzero(~special).astype(np.int32),
        )

    def draw(
        self, ids: IntArray, rows: IntArray, places: IntArray, begins: BoolArray, epoch: int
    ) -> tuple[IntArray, BoolArray]:
        """The pieces that the model sees `(n,)` and whether it has to guess them `(n,)`.

        ids: `(n,)` pieces, row after row. rows: `(n,)` each piece's row, any number that names it in this epoch.
        places: `(n,)` where in its row it stands. begins: `(n,)` it begins a word.
        """
        free = ~self.special[ids]
        units = places
        if self.unit == "word":  # all pieces of a word share the draw of its first
            units = places[np.maximum.accumulate(np.where(begins, np.arange(len(ids)), 0))]
        chosen = free & (self._uniform(epoch, rows, units, 0) < self.probability)
        if self.unit == "span":
            chosen = _joined(chosen, rows, free)
        fate = self._uniform(epoch, rows, places, 1)
        random_pieces = self.ordinary[(self._uniform(epoch, rows, places, 2) * len(self.ordinary)).astype(np.int64)]
        seen = np.where(chosen & (fate < MASKED), self.mask, ids)
        return np.where(chosen & (fate >= 1 - RANDOM), random_pieces, seen), chosen

    def _uniform(self, epoch: int, rows: IntArray, places: IntArray, draw: int) -> FloatArray:
        """`(n,)` in [0, 1), one a piece. draw: which of several at the same place."""
        # There are three draws a place: times 4 keeps those of two seeds apart.
        start = _mix(np.array([self.seed * 4 + draw], dtype=np.uint64)) + np.uint64(epoch)
        hashed = _mix(_mix(_mix(start) + rows.astype(np.uint64)) + places.astype(np.uint64))
        return (hashed >> np.uint64(11)).astype(np.float64) * 2.0**-53  # as many bits as a float64 holds


def _mix(x: IntArray) -> IntArray:
    """splitmix64 of every element: neighbouring numbers come out unrelated (Steele et al. 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: IntArray = x ^ (x >> np.uint64(31))
    return result


def _joined(chosen: BoolArray, rows: IntArray, free: BoolArray) -> BoolArray:
    """Choose as many pieces as `chosen`, fewer of them alone (CrossNER's spans)."""
    joined = chosen.copy()
    waiting = -1  # a chosen piece that stands alone and may move to the next one of its row
    for piece in np.flatnonzero(chosen).tolist():
        if waiting < 0 or rows[waiting] != rows[piece]:
            alone = piece == 0 or not joined[piece - 1] or rows[piece - 1] != rows[piece]
            waiting = piece if alone else -1
            continue
        if waiting < piece - 1 and free[piece - 1]:
            joined[waiting], joined[piece - 1] = False, True
        waiting = -1
    return joined
