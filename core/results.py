"""Types of results: arrays with a name, a unit, a direction and an origin."""

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

Index = int | slice | IntArray | BoolArray  # selects rows of an array

Prefer = Literal["high", "low"]


class Rows(Protocol):
    """`(n, d)` vectors, stored or computed on access."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Index, /) -> FloatArray: ...


class Role(StrEnum):
    """Role of a corpus in a run. A corpus itself has no role."""

    TASK = "T_C"
    DOMAIN = "D_C"
    LABELLED = "L_C"
    SELECTED = "S_C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One number per sentence, in the strategy's unit.

    values: `(n,)` float, one per sentence; NaN if a sentence could not be scored. prefer: which end is better. Only
    `selection.choose` changes signs. corpus: fingerprint of the scored corpus.
    """

    name: str
    unit: str
    prefer: Prefer
    values: FloatArray
    corpus: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Rows selected from a corpus, best first, and how many were withheld.

    rows: `(k,)` int64, in rank order. dropped: number of rows withheld by each flag. A row with several flags counts
    once: as a leak if it is one, else under the first flag in the policy's order.
    """

    corpus: str
    rows: IntArray
    scores: FloatArray
    budget: Budget
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One number about a pair of corpora, and how it was computed.

    value: in `unit`. prefer: which end means closer. convention: how it was computed, in words. columns: related values
    by name, None if missing.
    """

    name: str
    unit: str
    prefer: Prefer
    value: float
    convention: str
    columns: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Spans by sentence and type, from which every F1, test and verdict is computed.

    types: t names, sorted. tp, predicted, gold: `(n, t)` int32. A true positive has the right start, end and type.
    tested: `(n,)` True for sentences that a replicate was tested on, if each replicate has its own labels and test set;
    the other rows are 0. None if all compared taggers use the same labels. It is not saved.
    """

    types: tuple[str, ...]
    tp: IntArray
    predicted: IntArray
    gold: IntArray
    tested: BoolArray | None = None

    def among(self, rows: IntArray, n: int) -> Self:
        """Return the table over all `n` sentences of a replicate that was tested on `rows`."""
        tables = np.zeros((3, n, len(self.types)), dtype=np.int32)
        tables[:, rows] = self.tp, self.predicted, self.gold
        tested = np.zeros(n, dtype=np.bool_)
        tested[rows] = True
        return replace(self, tp=tables[0], predicted=tables[1], gold=tables[2], tested=tested)

    def f1(self) -> float:
        """Return micro F1 over all spans, percent."""
        return percent_f1(self.tp.sum(), self.predicted.sum(), self.gold.sum())

    def precision(self) -> float:
        """Return the share of predicted spans that are right, percent; 0 if none is predicted."""
        return 100 * float(self.tp.sum()) / max(int(self.predicted.sum()), 1)

    def recall(self) -> float:
        """Return the share of gold spans that are found, percent; 0 if there are none."""
        return 100 * float(self.tp.sum()) / max(int(self.gold.sum()), 1)

    def by_type(self) -> dict[str, float]:
        """Return F1 of each type, percent."""
        sums = (table.sum(axis=0) for table in (self.tp, self.predicted, self.gold))
        return {name: percent_f1(*counts) for name, *counts in zip(self.types, *sums, strict=True)}

    def macro_f1(self) -> float:
        """Return the unweighted mean F1 of the types in gold, percent; 0 if there are none."""
        scores = self.by_type()
        held = [scores[name] for name, n in zip(self.types, self.gold.sum(axis=0).tolist(), strict=True) if n]
        return sum(held) / max(len(held), 1)

    def of(self, rows: BoolArray) -> Self:
        """Return the table of the sentences for which `rows`, `(n,)`, is True."""
        return replace(self, tp=self.tp[rows], predicted=self.predicted[rows], gold=self.gold[rows])

    def save(self, path: Path) -> None:
        """Write the table as `.npz`."""
        with replacing(path) as file:
            np.savez_compressed(file, types=np.array(self.types), tp=self.tp, predicted=self.predicted, gold=self.gold)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a table that `save` wrote."""
        with read_back(path), np.load(path, allow_pickle=False) as file:
            types = tuple(str(name) for name in file["types"])
            return cls(types=types, tp=file["tp"], predicted=file["predicted"], gold=file["gold"])


def percent_f1(tp: float, predicted: float, gold: float) -> float:
    """Return the harmonic mean of precision and recall, percent."""
    return 200 * float(tp) / max(float(predicted + gold), 1.0)
