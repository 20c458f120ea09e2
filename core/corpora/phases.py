"""Phases of a join: each is computed in chunks of whole numbers, here or elsewhere, which the next ones read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.corpora.grams import UIntArray
from core.reporter import Reporter

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One of them: `n` items, computed `size` at a time.

    name: of its files. read: (start, stop) -> what is computed of these items, where the corpus is; compute: that, and
    a reporter -> an array, the same on any machine. sent: it is work enough to be worth sending elsewhere; then what
    was read and `compute` pickle.
    """

    stage: str
    name: str
    n: int
    size: int
    unit: str
    read: Callable[[int, int], Any]
    compute: Callable[[Any, Reporter], Array]
    sent: bool = True


Phases = Callable[[Phase], Iterator[Array]]  # has a phase computed: its chunks, in order


def here(report: Reporter) -> Phases:
    """One chunk after the other in this process; none is kept."""

    def computed(phase: Phase) -> Iterator[Array]:
        report.stage(phase.stage)
        for start in range(0, phase.n, phase.size):
            report.check()
            report.progress(start, phase.n, phase.unit)
            yield phase.compute(phase.read(start, min(start + phase.size, phase.n)), report)
        report.progress(phase.n, phase.n, phase.unit)

    return computed


def pack(*arrays: Array) -> UIntArray:
    """Several arrays as one, which `unpack` takes apart again."""
    sizes = np.array([array.nbytes for array in arrays], np.uint64)
    # Each begins at a multiple of 8 bytes, as a view in any type asks.
    ends = np.cumsum(-(-sizes.astype(np.int64) // 8)) + len(arrays)
    packed = np.zeros(int(ends[-1]), np.uint64)
    packed[: len(arrays)] = sizes
    for array, start in zip(arrays, [len(arrays), *ends[:-1].tolist()], strict=True):
        packed[start:].view(np.uint8)[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return packed


def unpack(packed: Array, *kinds: npt.DTypeLike) -> list[npt.NDArray[Any]]:
    """The arrays that were packed, flat, and of these kinds."""
    sizes, taken, start = packed[: len(kinds)].astype(np.int64).tolist(), [], len(kinds)
    for size, kind in zip(sizes, kinds, strict=True):
        taken.append(packed[start : start + -(-size // 8)].view(np.uint8)[:size].view(kind))
        start += -(-size // 8)
    return taken
