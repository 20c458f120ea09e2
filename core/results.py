"""The few types in which results travel: arrays with a name, a unit, a direction and an origin."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from core.config import Budget

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]

Prefer = Literal["high", "low"]


class Role(StrEnum):
    """What a corpus is to a run. A corpus has no role of its own."""

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
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows chosen from a corpus, best first, and why the others were withheld.

    rows: `(k,)` int64, in rank order. dropped: how many rows each flag withheld; a row with
    several flags counts once, under the first of them in the policy's order.
    """

    corpus: str
    rows: IntArray
    scores: FloatArray
    budget: Budget
    dropped: Mapping[str, int]
