"""Data that explains a score: predicted entities as flat arrays, and the terms that add up to the score.

Objects would take gigabytes. Flat arrays take megabytes and load without torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.results import FloatArray, IntArray, Rows
from core.text.sentence import Entity, Prediction, Sentence

SPAN = np.dtype(
    [("row", np.int64), ("start", np.int32), ("end", np.int32), ("type", np.int16), ("confidence", np.float32)]
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """A tagger's entities in `n` sentences.

    types: names of the t types. records: shape (m,), dtype `SPAN`, ordered by sentence; `type` indexes `types`.
    offsets: shape (n + 1,); sentence i has `records[offsets[i]:offsets[i + 1]]`.
    """

    types: tuple[str, ...]
    records: npt.NDArray[np.void]
    offsets: IntArray

    @classmethod
    def make(cls, types: Sequence[str], records: npt.NDArray[np.void], n: int) -> Self:
        """Make the spans of `n` sentences. records: sorted by `row`, the number of the sentence from 0 to n - 1."""
        return cls(types=tuple(types), records=records, offsets=np.searchsorted(records["row"], np.arange(n + 1)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> Self:
        """Return the spans of sentences `start` to `stop - 1`."""
        offsets = self.offsets[start : stop + 1]
        return type(self)(
            types=self.types, records=self.records[offsets[0] : offsets[-1]], offsets=offsets - self.offsets[start]
        )

    def surer_than(self, least: float) -> Self:
        """Return the entities whose confidence is at least `least`. If `least` is 0, return all entities."""
        kept = self.records[self.records["confidence"] >= least] if least else self.records
        return self.make(self.types, kept, len(self))

    def counts(self) -> IntArray:
        """Number of entities per sentence and type, shape (n, t)."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        cells = owner * len(self.types) + self.records["type"]
        return np.bincount(cells, minlength=len(self) * len(self.types)).reshape(len(self), len(self.types))

    def totals(self) -> IntArray:
        """Number of entities per sentence, shape (n,)."""
        return np.diff(self.offsets)

    def confidence(self) -> FloatArray:
        """Sum of the entities' posteriors per sentence, shape (n,)."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        weights = self.records["confidence"]
        sums: FloatArray = np.bincount(owner, weights=weights, minlength=len(self)).astype(np.float64)
        return sums

    def entities(self, row: int) -> tuple[Entity, ...]:
        """Return the entities of sentence `row`."""
        here = self.records[self.offsets[row] : self.offsets[row + 1]]
        return tuple(Entity(start=start, end=end, type=self.types[kind]) for _, start, end, kind, _ in here.tolist())


def flat(predictions: Sequence[Prediction], types: Sequence[str], first: int = 0) -> npt.NDArray[np.void]:
    """Return the entities of sentences `first`, `first + 1`, ... as records of dtype `SPAN`, shape (m,)."""
    kinds = {name: i for i, name in enumerate(types)}
    return np.array(
        [
            (row, entity.start, entity.end, kinds[entity.type], confidence)
            for row, prediction in enumerate(predictions, first)
            for entity, confidence in zip(prediction.entities, prediction.confidence, strict=True)
        ],
        dtype=SPAN,
    )


WITHOUT_VECTORS = (
    "The nearest sentences of the task corpus are not shown, because the vectors of this scoring run are not stored "
    "here. Score again to see these sentences."
)
# largest number of parts to show; the other parts are added up
SHOWN = 12
# the arrays, by name, that a strategy stores to explain its scores
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A term of a score. task_row: row of the T_C sentence that contributes this term, if any."""

    name: str
    value: float
    task_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Terms of a score. formula: how their sum becomes the score. notes: sentences shown to users."""

    parts: Sequence[Part]
    formula: str = "the parts add up to the score"
    notes: Sequence[str] = ()

    @property
    def total(self) -> float:
        return float(sum(part.value for part in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """One sentence of D_C and the data behind its score.

    vector: unit vector, shape (d,), None if the strategy uses text. task, task_norms: T_C's vectors, shape (t, d), and
    norms, shape (t,). model: arrays of `Strategy.learned`. options: the strategy's options. labelled: L_C. spans: the
    sentence's entities by each tagger. ranks: the sentence's rank by each of `Strategy.others`, NaN if not scored.
    """

    sentence: Sentence
    score: float
    unit: str
    options: Mapping[str, Any]
    seed: int
    model: Arrays
    vector: FloatArray | None = None
    task: Rows | None = None
    task_norms: FloatArray | None = None
    labelled: Corpus | None = None
    spans: Sequence[Spans] = ()
    ranks: Mapping[str, float] = field(default_factory=dict)

    @property
    def whole(self) -> Part:
        """The whole score as a single part."""
        return Part(name=f"score ({self.unit})", value=self.score)

    def learnt_from(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return vectors (m, d), norms (m,), both float64, and rows of the T_C sentences that the strategy learnt from.

        Errors: CorpusError if the vectors were removed.
        """
        if self.task is None or self.task_norms is None or self.vector is None:
            raise CorpusError("the task corpus's vectors were removed.")
        rows = self.model["task_rows"]
        return np.asarray(self.task[rows], dtype=np.float64), self.task_norms[rows].astype(np.float64), rows


def top(parts: Sequence[Part], rest: str) -> list[Part]:
    """Return the `SHOWN` largest parts by absolute value, then the sum of the others, named `rest`."""
    # Large negative parts explain a score as well as large positive ones.
    ordered = sorted(parts, key=lambda part: -abs(part.value))
    others = ordered[SHOWN:]
    return [*ordered[:SHOWN], *([Part(name=rest, value=sum(part.value for part in others))] if others else [])]


def unit(vectors: FloatArray) -> FloatArray:
    """Return the rows scaled to length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    rows: FloatArray = vectors / np.maximum(lengths, 1e-12)
    return rows
