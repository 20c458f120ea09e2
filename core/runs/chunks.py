"""Long computations in pieces that survive: a chunk is finished if and only if its file is there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.files import TEMPORARY, save_array_atomic
from core.reporter import Reporter
from core.runs.context import RunContext

Compute = Callable[[int, int, Reporter], npt.NDArray[np.generic]]


class Part:
    """A reporter for a part of the work: its progress counts on from what is done already."""

    def __init__(self, context: Reporter, done: int, total: int, unit: str) -> None:
        self._context, self._done, self._total, self._unit = context, done, total, unit
        self.stage, self.metric, self.note, self.check = context.stage, context.metric, context.note, context.check

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self._context.progress(self._done + done, self._total, self._unit)


def chunked(
    context: RunContext,
    n: int,
    size: int,
    compute: Compute,
    name: str,
    *,
    unit: str = "sentences",
    folder: Path | None = None,
) -> list[Path]:
    """`chunks/<name>-000012.npy` for every `size` of `n` items, in order; those already there are not made again.

    compute: (start, stop, report) -> an array for these items, of the same bytes whenever it is asked.
    unit: what the items are called in the progress. folder: another than the run's for chunks, where they shall stay.
    """
    folder = folder or context.run.chunks
    starts = range(0, n, size)
    paths = [folder / f"{name}-{i:06d}.npy" for i in range(len(starts))]
    for leftover in folder.glob(TEMPORARY):
        leftover.unlink()
    missing = [i for i, path in enumerate(paths) if not path.exists()]
    done = n - sum(min(size, n - starts[i]) for i in missing)
    for i in missing:
        context.check()
        context.progress(done, n, unit)
        stop = min(starts[i] + size, n)
        save_array_atomic(paths[i], compute(starts[i], stop, Part(context, done, n, unit)))
        done += stop - starts[i]
    context.progress(n, n, unit)
    return paths
