"""Computation in chunks: each is a file in the run's folder for chunks, and a file that is there is not made again.

A chunk's file has the same bytes on every machine, so a run can be resumed on another one. Chunk files are
deleted with the run, or earlier by the kind of run that made them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.errors import ResourceError
from core.files import TEMPORARY, read_object, save_array_atomic, write_atomic
from core.reporter import Reporter
from core.runs.context import RunContext
from core.runs.where import Where

Array = npt.NDArray[np.generic]
Compute = Callable[[int, int, Reporter], Array]
About = Mapping[str, Any]  # a work's description of its model
PROBES = "*.probe"  # files in the folder for chunks, see `Chunks.hold_to_first`
PROBED = 64  # items that every worker computes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A work with its model loaded.

    compute: rows -> an array, of the same bytes on every call. ahead: the part of the work on rows that a thread may do
    while the rows before them are computed. about: what the work's `read` and the run's result need of the model.
    """

    compute: Callable[[Any, Reporter], Array]
    ahead: Callable[[Any], Any] | None = None
    about: About = field(default_factory=dict)

    def array(self, rows: Any, report: Reporter) -> Array:
        """Compute rows that nothing was done ahead for."""
        return self.compute(self.ahead(rows) if self.ahead else rows, report)


class Work(Protocol):
    """Computation on every chunk. It can be pickled; `read` runs beside the home, the rest on any machine.

    stage: name of the stage. card: True if a GPU makes it faster.
    """

    @property
    def stage(self) -> str: ...

    @property
    def card(self) -> bool: ...

    def read(self, start: int, stop: int, about: About) -> Any:
        """Return the rows of these items; they can be pickled. about: from `open`."""

    def open(self, report: Reporter) -> Opened:
        """Load the model. Called once per process, on the machine that computes."""

    def device(self) -> tuple[str, str]:
        """Return the device of a process that has one to itself, in words, and its name."""


class Part:
    """A reporter for a part of the work, whose progress continues from what is done already."""

    def __init__(self, context: Reporter, done: int, total: int, unit: str) -> None:
        self._context, self._done, self._total, self._unit = context, done, total, unit
        self.stage, self.metric, self.note, self.check = context.stage, context.metric, context.note, context.check

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self._context.progress(self._done + done, self._total, self._unit)


class Chunks:
    """Files `<name>-000012.npy` for every `size` of `n` items.

    paths: all files in order. missing: numbers of the chunks that are still to be computed.
    """

    def __init__(
        self, context: RunContext, n: int, size: int, name: str, *, unit: str = "sentences", folder: Path | None = None
    ) -> None:
        """unit: name of the items in the progress. folder: where the files stay; None: the run's folder for chunks."""
        folder = folder or context.run.chunks
        self.context, self._n, self._size, self._unit = context, n, size, unit
        self.paths = [folder / f"{name}-{i:06d}.npy" for i in range(-(-n // size))]
        for leftover in folder.glob(TEMPORARY):
            leftover.unlink()
        self.missing = [i for i, path in enumerate(self.paths) if not path.exists()]
        self._probe = context.run.chunks / PROBES.replace("*", name)
        if len(self.missing) == len(self.paths):
            self._probe.unlink(missing_ok=True)
        self._done = n - sum(stop - start for start, stop in map(self.bounds, self.missing))

    def bounds(self, i: int) -> tuple[int, int]:
        """Return the first item of a chunk, and the one after its last."""
        return i * self._size, min((i + 1) * self._size, self._n)

    @property
    def probed(self) -> tuple[int, int]:
        """The first items, which every worker computes to be compared; start and stop."""
        return 0, min(PROBED, self.bounds(0)[1])

    def hold_to_first(self, node: str, array: Array) -> None:
        """Refuse a worker whose `array` of the `probed` items differs from that of the run's first worker.

        Processors differ in their last digits (with AMX on and off, not one of 192 vectors is the same), and nothing
        else shows it. The first worker's digest outlives this process. Errors: ResourceError without `--mixed`.
        """
        if len(self.paths) < 2:
            return
        digest = sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()
        first = read_object(self._probe)
        if first is None:
            write_atomic(self._probe, json.dumps({"node": node, "probe": digest}).encode())
        elif first.get("probe") != digest:
            refuse(
                self.context,
                f"worker on {node}: computes other numbers for the same {PROBED} sentences than the one on "
                f"{first.get('node')} (another processor or card)",
                "use nodes of one kind, resume the run where it started, or remove it and start again",
            )

    def begin(self) -> Part:
        """Return the reporter of a chunk that starts now. Errors: Cancelled."""
        self.context.check()
        self.context.progress(self._done, self._n, self._unit)
        return Part(self.context, self._done, self._n, self._unit)

    def keep(self, i: int, array: Array) -> None:
        """Write a missing chunk."""
        save_array_atomic(self.paths[i], array)
        start, stop = self.bounds(i)
        self._done += stop - start
        self.context.progress(self._done, self._n, self._unit)


def refuse(context: RunContext, what: str, way_out: str) -> None:
    """Refuse a worker that would make other bytes; with `--mixed`, note it instead. Errors: ResourceError."""
    if not Where.asked().mixed:
        raise ResourceError(f"{what}; {way_out}, or give --mixed.")
    context.note(f"{what}. --mixed allows it: this result is equal to about 4 digits, not to the byte.")


def chunked(
    context: RunContext, n: int, size: int, compute: Compute, name: str, *, unit: str = "sentences"
) -> list[Path]:
    """Compute the missing chunks in this process, and return all files in order.

    compute: (start, stop, report) -> an array for these items, of the same bytes on every call.
    """
    chunks = Chunks(context, n, size, name, unit=unit)
    for i in chunks.missing:
        chunks.keep(i, compute(*chunks.bounds(i), chunks.begin()))
    context.progress(n, n, unit)
    return chunks.paths
