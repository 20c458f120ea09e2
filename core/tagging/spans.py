"""The entities that a `tag` run found in a corpus.

artifacts/  spans.npy   (m,) of dtype `selection.spans.SPAN`, sentence by sentence
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.files import read_back
from core.runs import result
from core.runs.run import Run
from core.selection.spans import Spans

_FILE = "spans.npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagResult:
    """Result of a `tag` run. types: that the tagger knows; spans count by them. sentences, entities: counts."""

    types: Sequence[str]
    sentences: int
    entities: int


def write(run: Run, spans: npt.NDArray[np.void]) -> None:
    """Write `spans`: `(m,)` of dtype `SPAN`; the types that it counts by are in the run's result."""
    np.save(run.artifacts / _FILE, spans)


def read(run: Run) -> Spans:
    """Read a finished run's spans, memory-mapped."""
    counts = result.read(run, TagResult)
    with read_back(path := run.artifacts / _FILE):
        return Spans.make(counts.types, np.load(path, mmap_mode="r"), counts.sentences)
