"""Predicted entities of many sentences as flat arrays: no torch, and megabytes where objects would take gigabytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from core.results import FloatArray, IntArray
from core.text.sentence import Entity, Prediction

SPAN = np.dtype(
    [("row", np.int64), ("start", np.int32), ("end", np.int32), ("type", np.int16), ("confidence", np.float32)]
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """A tagger's entities in `n` sentences.

    types: t names. records: `(m,)` of dtype `SPAN`, sentence by sentence; `type` is an index into `types`.
    offsets: `(n + 1,)`; sentence i has `records[offsets[i]:offsets[i + 1]]`.
    """

    types: tuple[str, ...]
    records: npt.NDArray[np.void]
    offsets: IntArray

    @classmethod
    def make(cls, types: Sequence[str], records: npt.NDArray[np.void], n: int) -> Self:
        """Spans of `n` sentences, rows 0 to n - 1; `records["row"]` ascends."""
        return cls(types=tuple(types), records=records, offsets=np.searchsorted(records["row"], np.arange(n + 1)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> Self:
        """Sentences `start` to `stop` alone."""
        offsets = self.offsets[start : stop + 1]
        return type(self)(
            types=self.types, records=self.records[offsets[0] : offsets[-1]], offsets=offsets - self.offsets[start]
        )

    def surer_than(self, least: float) -> Self:
        """Without the entities that are less sure than this; all of them for 0."""
        kept = self.records[self.records["confidence"] >= least] if least else self.records
        return self.make(self.types, kept, len(self))

    def counts(self) -> IntArray:
        """`(n, t)` entities of each type in a sentence."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        cells = owner * len(self.types) + self.records["type"]
        return np.bincount(cells, minlength=len(self) * len(self.types)).reshape(len(self), len(self.types))

    def totals(self) -> IntArray:
        """`(n,)` entities in a sentence."""
        return np.diff(self.offsets)

    def confidence(self) -> FloatArray:
        """`(n,)` the posteriors of a sentence's entities, added up."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        weights = self.records["confidence"]
        sums: FloatArray = np.bincount(owner, weights=weights, minlength=len(self)).astype(np.float64)
        return sums

    def entities(self, row: int) -> tuple[Entity, ...]:
        """Sentence `row`'s entities."""
        here = self.records[self.offsets[row] : self.offsets[row + 1]]
        return tuple(Entity(start=start, end=end, type=self.types[kind]) for _, start, end, kind, _ in here.tolist())


def flat(predictions: Sequence[Prediction], types: Sequence[str], first: int = 0) -> npt.NDArray[np.void]:
    """`(m,)` of dtype `SPAN`: the entities of sentences `first`, `first + 1`, ..."""
    kinds = {name: i for i, name in enumerate(types)}
    return np.array(
        [
            (row, entity.start, entity.end, kinds[entity.type], confidence)
            for row, prediction in enumerate(predictions, first)
            for entity, confidence in zip(prediction.entities, prediction.confidence, strict=True)
        ],
        dtype=SPAN,
    )
