"""The entities that a `tag` run found in a corpus.

artifacts/  spans.npy   (m,) of dtype `selection.spans.SPAN`, sentence by sentence
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from core.runs.run import Run
from core.selection.spans import Spans

_FILE = "spans.npy"


def write(run: Run, spans: npt.NDArray[Any]) -> None:
    """Write `spans`: `(m,)` of dtype `SPAN`; the types that it counts by are in the run's result."""
    np.save(run.artifacts / _FILE, spans)


def read(run: Run) -> Spans:
    """Read a finished run's spans, memory-mapped."""
    result = run.result()
    return Spans.make(result["types"], np.load(run.artifacts / _FILE, mmap_mode="r"), result["sentences"])
