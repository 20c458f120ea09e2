"""Parts of an explanation: one sentence's evidence, and terms that add up to its score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.results import FloatArray, IntArray, Rows
from core.selection.spans import Spans
from core.text.sentence import Sentence

SHOWN = 12  # parts of one sort; the others are added up
Arrays = Mapping[str, npt.NDArray[Any]]  # numbers and words, each strategy its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A term of a score. task_row: the sentence of T_C it comes from, if it is one."""

    name: str
    value: float
    task_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """formula: how the sum of `parts` becomes the score."""

    parts: Sequence[Part]
    formula: str = "the parts add up to the score"
    notes: Sequence[str] = ()

    @property
    def total(self) -> float:
        return float(sum(part.value for part in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """One sentence of D_C and the data behind its score.

    vector: `(d,)` of length 1, None where the strategy reads text. task: `(t, d)` T_C's vectors; task_norms `(t,)`.
    model: arrays of `learned`. options: the strategy's own. labelled: L_C. spans: each tagger's entities in it.
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

    @property
    def whole(self) -> Part:
        """The score as one part."""
        return Part(name=f"score ({self.unit})", value=self.score)

    def learnt_from(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """T_C's vectors `(m, d)` and norms `(m,)` that were learnt from, float64, and their rows.

        Errors: CorpusError where the vectors are gone.
        """
        if self.task is None or self.task_norms is None or self.vector is None:
            raise CorpusError("the task corpus's vectors are gone.")
        rows = self.model["task_rows"]
        return np.asarray(self.task[rows], dtype=np.float64), self.task_norms[rows].astype(np.float64), rows


def top(parts: Sequence[Part], rest: str) -> list[Part]:
    """The `SHOWN` largest parts, largest first, and the others added up."""
    # By size, not sign: what counts against a sentence explains it as well.
    ordered = sorted(parts, key=lambda part: -abs(part.value))
    others = ordered[SHOWN:]
    return [*ordered[:SHOWN], *([Part(name=rest, value=sum(part.value for part in others))] if others else [])]


def unit(vectors: FloatArray) -> FloatArray:
    """Rows of length 1; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    rows: FloatArray = vectors / np.maximum(lengths, 1e-12)
    return rows
