"""Compute results in chunks. Each chunk is a file in the run's folder `chunks`; existing files are not computed again.

A chunk's file has the same bytes on every machine, so a run can be resumed on another machine. Chunk files are deleted
together with the run, or earlier by the code that computed them.
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
About = Mapping[str, Any]  # facts about the model of a `Work`, see `Opened`

PROBES = "*.probe"  # names of files in the folder `chunks`, see `Chunks.hold_to_first`

PROBED = 64  # number of items that every worker computes first, so that the results of workers can be compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A `Work` with its model loaded.

    compute: function from input rows to an array; equal rows always give equal bytes. ahead: function that prepares
    rows for `compute`; a thread may call it while earlier rows are computed. about: facts about the model, for
    `Work.read` and the run's result.
    """

    compute: Callable[[Any, Reporter], Array]
    ahead: Callable[[Any], Any] | None = None
    about: About = field(default_factory=dict)

    def array(self, rows: Any, report: Reporter) -> Array:
        """Return the array that `compute` gives for input rows, which are first prepared with `ahead`."""
        return self.compute(self.ahead(rows) if self.ahead else rows, report)


class Work(Protocol):
    """A computation that is done for every chunk. It can be pickled.

    `read` is called on the machine that has the run's folder, the other methods on the machine that computes.
    stage: name of the stage to report. card: True if a GPU makes it faster.
    """

    @property
    def stage(self) -> str: ...

    @property
    def card(self) -> bool: ...

    def read(self, start: int, stop: int, about: About) -> Any:
        """Return the input rows of the items from `start` to `stop` - 1, as an object that can be pickled.

        about: `Opened.about`.
        """

    def open(self, report: Reporter) -> Opened:
        """Load the model. Called once per process, on the machine that computes."""

    def device(self) -> tuple[str, str]:
        """Return the device of a worker process of Ray: a description, and the name of the GPU or processor."""


class Part:
    """A reporter for one chunk. It adds the items of finished chunks to the progress that it reports."""

    def __init__(self, context: Reporter, done: int, total: int, unit: str) -> None:
        self._context, self._done, self._total, self._unit = context, done, total, unit
        self.stage, self.metric, self.note, self.check = context.stage, context.metric, context.note, context.check

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self._context.progress(self._done + done, self._total, self._unit)


class Chunks:
    """Chunk files such as `<name>-000012.npy`. Each has the results for `size` of the `n` items.

    paths: all files in order. missing: numbers of the chunks that are not computed yet.
    """

    def __init__(
        self, context: RunContext, n: int, size: int, name: str, *, unit: str = "sentences", folder: Path | None = None
    ) -> None:
        """Find the missing chunks. unit: plural noun for the items in progress reports.

        folder: folder of the files; None: the run's folder `chunks`.
        """
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
        """Return (first item, last item + 1) of chunk `i`."""
        return i * self._size, min((i + 1) * self._size, self._n)

    @property
    def probed(self) -> tuple[int, int]:
        """(first, last + 1) of the items that every worker computes first, so that their results can be compared."""
        return 0, min(PROBED, self.bounds(0)[1])

    def hold_to_first(self, node: str, array: Array) -> None:
        """Refuse a worker if its `array` of the `probed` items differs from the array of the run's first worker.

        Results of different processors differ in the last digits: with and without AMX instructions, none of 192
        vectors was equal. No other check finds such differences. A file stores a digest of the first worker's array.
        node: name of the worker's node.
        Errors: ResourceError without `--mixed`.
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
                f"worker on {node}: its results for the same {PROBED} sentences differ from those of the worker on "
                f"{first.get('node')} (another processor or GPU)",
                "use nodes of one kind, resume the run where it started, or remove it and start again",
            )

    def begin(self) -> Part:
        """Return the reporter for the next chunk. Errors: Cancelled."""
        self.context.check()
        self.context.progress(self._done, self._n, self._unit)
        return Part(self.context, self._done, self._n, self._unit)

    def keep(self, i: int, array: Array) -> None:
        """Write the array of the missing chunk `i` to its file."""
        save_array_atomic(self.paths[i], array)
        start, stop = self.bounds(i)
        self._done += stop - start
        self.context.progress(self._done, self._n, self._unit)


def refuse(context: RunContext, what: str, way_out: str) -> None:
    """Raise ResourceError for a worker whose results would differ from other workers'; with `--mixed`, only add a note.

    what, way_out: problem and remedy, for the message.
    """
    if not Where.asked().mixed:
        raise ResourceError(f"{what}; {way_out}, or give --mixed.")
    context.note(f"{what}. --mixed accepts this: results agree to about 4 digits, not byte for byte.")


def chunked(
    context: RunContext, n: int, size: int, compute: Compute, name: str, *, unit: str = "sentences"
) -> list[Path]:
    """Compute the missing chunks in this process, and return all files in order.

    compute: function of (start, stop, report) that returns the array for the items from `start` to `stop` - 1. It must
    return the same bytes each time.
    """
    chunks = Chunks(context, n, size, name, unit=unit)
    for i in chunks.missing:
        chunks.keep(i, compute(*chunks.bounds(i), chunks.begin()))
    context.progress(n, n, unit)
    return chunks.paths
