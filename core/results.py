"""Types of results: scores, selections, measurements and evaluations."""

from collections.abc import Mapping, Sequence
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

Index = int | slice | IntArray | BoolArray  # types that select rows of an array

Prefer = Literal["high", "low"]


class Rows(Protocol):
    """Array of vectors, `(n, d)`, either stored or computed on access."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Index, /) -> FloatArray: ...


class Role(StrEnum):
    """Role of a corpus in a run. A corpus can have different roles in different runs."""

    TASK = "T_C"
    DOMAIN = "D_C"
    LABELLED = "L_C"
    SELECTED = "S_C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of the sentences of a corpus, in the strategy's unit.

    values: `(n,)` float, one per sentence; NaN if the sentence has no score. prefer: "high" if high scores are
    better, else "low". Only `selection.choose` may change the sign of scores, for sorting. corpus: fingerprint of the
    scored corpus.
    """

    name: str
    unit: str
    prefer: Prefer
    values: FloatArray
    corpus: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Rows selected from a corpus, best first, and the number of rows that were left out because of a flag.

    rows: `(k,)` int64, in rank order. dropped: {flag: number of rows left out}. A row with several flags is counted
    once: as a leak if it is one, else under its first flag (`hygiene.counted_once`).
    """

    corpus: str
    rows: IntArray
    scores: FloatArray
    budget: Budget
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One number about a pair of corpora, and how it was computed.

    value: the number, in `unit`. prefer: "high" if a higher value means closer corpora, else "low". convention: how the
    number was computed, in words. columns: further values by name; a missing value is None.
    """

    name: str
    unit: str
    prefer: Prefer
    value: float
    convention: str
    columns: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Counts of spans per sentence and type, from which every F1, significance test and verdict is computed.

    types: names of the t types, sorted. tp, predicted, gold: numbers of true positives, predicted and gold spans,
    `(n, t)` int32. A true positive has the right start, end and type.
    tested: `(n,)` bool, True for sentences of the replicate's own test set; all counts of other sentences are 0. None
    if all compared taggers use the same labels and test set. `save` does not write `tested`.
    """

    types: tuple[str, ...]
    tp: IntArray
    predicted: IntArray
    gold: IntArray
    tested: BoolArray | None = None

    def among(self, rows: IntArray, n: int) -> Self:
        """Return a table of `n` sentences with the counts of this table's m sentences; all other counts are 0.

        rows: index of each of the m sentences in the returned table, `(m,)`.
        """
        tables = np.zeros((3, n, len(self.types)), dtype=np.int32)
        tables[:, rows] = self.tp, self.predicted, self.gold
        tested = np.zeros(n, dtype=np.bool_)
        tested[rows] = True
        return replace(self, tp=tables[0], predicted=tables[1], gold=tables[2], tested=tested)

    @classmethod
    def pooled(cls, tables: Sequence[Self]) -> Self:
        """Return a table with the sums of the counts of several taggers that were tested on the same sentences."""
        counts = {name: sum(getattr(one, name) for one in tables) for name in ("tp", "predicted", "gold")}
        return replace(tables[0], **counts) if len(tables) > 1 else tables[0]

    def f1(self) -> float:
        """Return micro F1 over all spans, percent."""
        return percent_f1(self.tp.sum(), self.predicted.sum(), self.gold.sum())

    def precision(self) -> float:
        """Return the percentage of predicted spans that are right; 0 if none is predicted."""
        return 100 * float(self.tp.sum()) / max(int(self.predicted.sum()), 1)

    def recall(self) -> float:
        """Return the percentage of gold spans that are found; 0 if there are none."""
        return 100 * float(self.tp.sum()) / max(int(self.gold.sum()), 1)

    def by_type(self) -> dict[str, float]:
        """Return F1 of each type, percent."""
        sums = (table.sum(axis=0) for table in (self.tp, self.predicted, self.gold))
        return {name: percent_f1(*counts) for name, *counts in zip(self.types, *sums, strict=True)}

    def macro_f1(self) -> float:
        """Return the unweighted mean F1 of the types that have gold spans, percent; 0 if there are none."""
        scores = self.by_type()
        held = [scores[name] for name, n in zip(self.types, self.gold.sum(axis=0).tolist(), strict=True) if n]
        return sum(held) / max(len(held), 1)

    def of(self, rows: BoolArray) -> Self:
        """Return the table of the sentences for which `rows`, `(n,)` bool, is True."""
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
