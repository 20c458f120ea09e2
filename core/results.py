"""The few types in which results travel: arrays with a name, a unit, a direction and an origin."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from core.config import Budget
from core.files import read_back, replacing

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]

Index = int | slice | IntArray | BoolArray  # what picks rows of an array

Prefer = Literal["high", "low"]


class Rows(Protocol):
    """`(n, d)` vectors, stored or made as they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Index, /) -> FloatArray: ...


class Role(StrEnum):
    """The part that a corpus has in a run. A corpus has no role of its own."""

    TASK = "T_C"
    DOMAIN = "D_C"
    LABELLED = "L_C"
    SELECTED = "S_C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One number a sentence, in the strategy's own unit.

    values: `(n,)` float, row i scores sentence i; NaN where a sentence could not be scored.
    prefer: which end is wanted. Only `selection.choose` turns signs.
    corpus: fingerprint of the scored corpus.
    """

    name: str
    unit: str
    prefer: Prefer
    values: FloatArray
    corpus: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows chosen from a corpus, best first, and why the others were withheld.

    rows: `(k,)` int64, in rank order. dropped: how many rows each flag withheld; a row with
    several flags counts once, as a leak if it is one, else under the first of them in the policy's order.
    """

    corpus: str
    rows: IntArray
    scores: FloatArray
    budget: Budget
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One number about a pair of corpora, and where it came from.

    value: in `unit`; `prefer` says which end means "closer". convention: how it was made, in words. columns: its other
    readings by name, None where there is none.
    """

    name: str
    unit: str
    prefer: Prefer
    value: float
    convention: str
    columns: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The one table that every F1, test and verdict is computed from: spans by sentence and type.

    types: t names, sorted. tp, predicted, gold: `(n, t)` int32; a true positive has its start, end and type right.
    tested: `(n,)` the sentences that a replicate was tested on, where each has labels and a test set of its own; the
    others have zeros. None where all taggers that are compared learnt from the same labels. It is not saved.
    """

    types: tuple[str, ...]
    tp: IntArray
    predicted: IntArray
    gold: IntArray
    tested: BoolArray | None = None

    def among(self, rows: IntArray, n: int) -> Self:
        """The same table as part of a replicate's `n` sentences, of which it was tested on `rows`."""
        tables = np.zeros((3, n, len(self.types)), dtype=np.int32)
        tables[:, rows] = self.tp, self.predicted, self.gold
        tested = np.zeros(n, dtype=np.bool_)
        tested[rows] = True
        return replace(self, tp=tables[0], predicted=tables[1], gold=tables[2], tested=tested)

    def f1(self) -> float:
        """Micro F1 over all spans, percent; 0 where nothing is right."""
        return percent_f1(self.tp.sum(), self.predicted.sum(), self.gold.sum())

    def precision(self) -> float:
        """Share of the predicted spans that are right, percent; 0 where none is predicted."""
        return 100 * float(self.tp.sum()) / max(int(self.predicted.sum()), 1)

    def recall(self) -> float:
        """Share of the gold spans that are found, percent; 0 where there are none."""
        return 100 * float(self.tp.sum()) / max(int(self.gold.sum()), 1)

    def by_type(self) -> dict[str, float]:
        """F1 of every type, percent."""
        sums = (table.sum(axis=0) for table in (self.tp, self.predicted, self.gold))
        return {name: percent_f1(*counts) for name, *counts in zip(self.types, *sums, strict=True)}

    def macro_f1(self) -> float:
        """Mean F1 of the types that are in gold, percent: each counts alike, however rare; 0 where there are none."""
        scores = self.by_type()
        held = [scores[name] for name, n in zip(self.types, self.gold.sum(axis=0).tolist(), strict=True) if n]
        return sum(held) / max(len(held), 1)

    def of(self, rows: BoolArray) -> Self:
        """The sentences where `rows`, `(n,)`, is true."""
        return replace(self, tp=self.tp[rows], predicted=self.predicted[rows], gold=self.gold[rows])

    def save(self, path: Path) -> None:
        """Write it as `.npz`."""
        with replacing(path) as file:
            np.savez_compressed(file, types=np.array(self.types), tp=self.tp, predicted=self.predicted, gold=self.gold)

    @classmethod
    def load(cls, path: Path) -> Self:
        """The scores that `save` wrote."""
        with read_back(path), np.load(path, allow_pickle=False) as file:
            types = tuple(str(name) for name in file["types"])
            return cls(types=types, tp=file["tp"], predicted=file["predicted"], gold=file["gold"])


def percent_f1(tp: float, predicted: float, gold: float) -> float:
    """Harmonic mean of precision and recall, percent."""
    return 200 * float(tp) / max(float(predicted + gold), 1.0)
