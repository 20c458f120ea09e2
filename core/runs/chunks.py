"""Long computations in pieces that survive: a chunk is finished if and only if its file is there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.files import TEMPORARY, save_array_atomic
from core.reporter import Reporter
from core.runs.context import RunContext

Array = npt.NDArray[np.generic]
Compute = Callable[[int, int, Reporter], Array]
About = Mapping[str, Any]  # what a work says of its model
PROBES = "*.probe"  # in a run's folder for chunks: what the first to make some came to of the same items


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A work with its model loaded.

    compute: rows -> an array, of the same bytes whenever and wherever it is asked. ahead: what may be done of rows in a
    thread, while those before them are computed. about: what the work's `read` and the run's result ask of the model.
    """

    compute: Callable[[Any, Reporter], Array]
    ahead: Callable[[Any], Any] | None = None
    about: About = field(default_factory=dict)


class Work(Protocol):
    """Computation on every chunk, in halves that two machines may do; it pickles, without what `read` needs.

    stage: its name while it is done. card: whether a GPU is of use to it. exact: it counts and compares whole numbers,
    which no processor does differently, and its model has nothing to say.
    """

    @property
    def stage(self) -> str: ...

    @property
    def card(self) -> bool: ...

    @property
    def exact(self) -> bool: ...

    def read(self, start: int, stop: int, about: About) -> Any:
        """Rows of these items, where the home is; they pickle. about: of what `open` gave."""

    def open(self, report: Reporter) -> Opened:
        """Load the model, where the device is: once a process."""

    def device(self) -> tuple[str, str]:
        """Device that `open` computes on in a process that has a device to itself, in words; and the machine's name."""


class Part:
    """A reporter for a part of the work: its progress counts on from what is done already."""

    def __init__(self, context: Reporter, done: int, total: int, unit: str) -> None:
        self._context, self._done, self._total, self._unit = context, done, total, unit
        self.stage, self.metric, self.note, self.check = context.stage, context.metric, context.note, context.check

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self._context.progress(self._done + done, self._total, self._unit)


class Chunks:
    """`chunks/<name>-000012.npy` for every `size` of `n` items: all `paths` in order, and which are `missing`.

    probe: where it is kept what whoever made the first of them is known by.
    """

    def __init__(
        self,
        context: RunContext,
        n: int,
        size: int,
        name: str,
        *,
        unit: str = "sentences",
        folder: Path | None = None,
        alone: bool = True,
    ) -> None:
        """unit: what the items are called in the progress. folder: not the run's for chunks, but where they stay.
        alone: no other process writes there, so that what is half written was left behind."""
        folder = folder or context.run.chunks
        self.context, self._n, self._size, self._unit = context, n, size, unit
        self.paths = [folder / f"{name}-{i:06d}.npy" for i in range(-(-n // size))]
        for leftover in folder.glob(TEMPORARY) if alone else ():
            leftover.unlink()
        self.missing = [i for i, path in enumerate(self.paths) if not path.exists()]
        self.probe = context.run.chunks / PROBES.replace("*", name)
        if alone and len(self.missing) == len(self.paths):
            self.probe.unlink(missing_ok=True)  # of who has made none: they are begun anew
        self._done = n - sum(stop - start for start, stop in map(self.bounds, self.missing))

    def bounds(self, i: int) -> tuple[int, int]:
        """The first item of a chunk, and the one behind its last."""
        return i * self._size, min((i + 1) * self._size, self._n)

    def begin(self) -> Part:
        """The reporter of a chunk that is made now; a wish to cancel ends it here. Errors: Cancelled."""
        self.context.check()
        self.context.progress(self._done, self._n, self._unit)
        return Part(self.context, self._done, self._n, self._unit)

    def keep(self, i: int, array: Array) -> None:
        """Write a chunk that was missing."""
        save_array_atomic(self.paths[i], array)
        self.arrived(i)

    def arrived(self, i: int) -> None:
        """A chunk that was missing is there."""
        start, stop = self.bounds(i)
        self._done += stop - start
        self.context.progress(self._done, self._n, self._unit)


def chunked(
    context: RunContext, n: int, size: int, compute: Compute, name: str, *, unit: str = "sentences"
) -> list[Path]:
    """The files of all chunks, in order; those already there are not made again.

    compute: (start, stop, report) -> an array for these items, of the same bytes whenever it is asked.
    """
    chunks = Chunks(context, n, size, name, unit=unit)
    for i in chunks.missing:
        chunks.keep(i, compute(*chunks.bounds(i), chunks.begin()))
    context.progress(n, n, unit)
    return chunks.paths
