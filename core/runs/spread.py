"""Compute the chunks of a `Work` in this process or, with `--on`, on workers of Ray."""

import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from core.reporter import Silent
from core.runs import on_ray
from core.runs.chunks import About, Chunks, Work
from core.runs.context import RunContext
from core.runs.where import checked, uses_ray

Result = TypeVar("Result")
Device = Callable[[], AbstractContextManager[object]]


def spread(
    context: RunContext, n: int, size: int, work: Work, name: str, *, device: Device, folder: Path | None = None
) -> tuple[list[Path], About]:
    """Compute all missing chunks of `work`. Return the files of all chunks, and `Opened.about`.

    n, size, name, folder: see `Chunks`. device: function that returns a context manager that locks a device for this
    process. It is not called for workers of Ray, because they have their own devices.
    """
    chunks = Chunks(context, n, size, name, folder=folder)
    on = checked()
    if not uses_ray(on) or (on == "ray" and len(chunks.missing) < 2):  # starting Ray takes longer than one chunk
        with device():
            about = _here(chunks, work)
    else:
        about = on_ray.compute(chunks, work, on)
    context.progress(n, n, "sentences")
    return chunks.paths, about


def _here(chunks: Chunks, work: Work) -> About:
    opened = work.open(chunks.context)
    if chunks.missing and len(chunks.paths) > 1:
        rows = work.read(*chunks.probed, opened.about)
        chunks.hold_to_first(socket.gethostname(), opened.array(rows, _Unseen(chunks.context)))
    chunks.context.stage(work.stage)

    def rows_of(i: int) -> Any:
        rows = work.read(*chunks.bounds(i), opened.about)
        return opened.ahead(rows) if opened.ahead else rows

    with Ahead(rows_of) as ahead:
        for i, following in zip_longest(chunks.missing, chunks.missing[1:]):
            report = chunks.begin()
            chunks.keep(i, opened.compute(ahead.take(i, following) if opened.ahead else rows_of(i), report))
    return opened.about


class _Unseen(Silent):
    """A reporter for the items of `Chunks.hold_to_first`. It shows no progress, but `check` can cancel the run."""

    def __init__(self, context: RunContext) -> None:
        self.check = context.check  # type: ignore[method-assign]


class Ahead(Generic[Result]):
    """Prepare the next item in a thread while the caller computes the current item."""

    def __init__(self, work: Callable[[int], Result]) -> None:
        self._work, self._pool = work, ThreadPoolExecutor(1)
        self._coming: dict[int, Future[Result]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def take(self, item: int, following: int | None) -> Result:
        """Return the result for `item`, and start the work on `following`."""
        # If the item was not started before, the pool's only thread prepares it too: tokenizers are not thread-safe.
        result = (self._coming.pop(item, None) or self._pool.submit(self._work, item)).result()
        self._coming = {} if following is None else {following: self._pool.submit(self._work, following)}
        return result
