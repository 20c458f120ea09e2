"""Rows that lie in several files, read as one array: what was written once is not written again to be read."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from core.errors import RunError
from core.files import read_back
from core.results import FloatArray, Index, IntArray

_OPEN = 64  # files at a time: each costs a descriptor, and a process may have a thousand


class Shards:
    """`(n, d)` rows of several files, one below the other; a file is opened when its rows are asked for."""

    def __init__(self, paths: Sequence[Path], rows: Sequence[int], load: Callable[[Path], FloatArray]) -> None:
        """rows: of each file. load: its rows, memory-mapped."""
        self._starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        self._paths, self._load = list(paths), lru_cache(_OPEN)(load)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, rows: Index, /) -> FloatArray:
        """Rows as an array gives them: a slice within one file is a view of it, all else is copied."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            return self._run(*rows.indices(len(self))[:2])
        if isinstance(rows, slice):
            return self._gather(np.arange(len(self))[rows])
        if isinstance(rows, int):
            return self._gather(np.array([rows]))[0]  # type: ignore[no-any-return]
        if rows.dtype == np.bool_ and len(rows) != len(self):
            raise IndexError(f"{len(rows)} truth values for {len(self)} rows")
        picked: IntArray = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.asarray(rows, dtype=np.int64)
        return self._gather(picked)

    def _part(self, i: int) -> FloatArray:
        with read_back(self._paths[i]):
            part = self._load(self._paths[i])
        if len(part) != self._starts[i + 1] - self._starts[i]:
            raise RunError(f"{self._paths[i]}: holds other rows than it did; remove its run and start it again.")
        return part

    def _run(self, start: int, stop: int) -> FloatArray:
        first = int(np.searchsorted(self._starts, start, "right")) - 1
        parts = []
        # An empty slice at the very end would begin behind the last part.
        for i in range(min(first, len(self._paths) - 1), len(self._paths)):
            low, high = max(start - self._starts[i], 0), stop - self._starts[i]
            parts.append(self._part(i)[low : max(high, low)])
            if stop <= self._starts[i + 1]:
                break
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _gather(self, rows: IntArray) -> FloatArray:
        rows = np.where(rows < 0, rows + len(self), rows).astype(np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"a row that is none of the {len(self)}")
        parts = np.searchsorted(self._starts, rows, "right") - 1
        order = np.argsort(parts, kind="stable")  # every file is opened once, however the rows lie
        result = np.empty((len(rows), self._part(0).shape[1]), self._part(0).dtype)
        for places in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1) if len(rows) else ():
            i = int(parts[places[0]])
            result[places] = self._part(i)[rows[places] - self._starts[i]]
        return result
