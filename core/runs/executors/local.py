"""Chunks made one after the other, in this process."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import zip_longest
from typing import Any, Generic, Self, TypeVar

from core.runs.chunks import Chunks, Work
from core.runs.executors.hello import compare

Result = TypeVar("Result")


def make(chunks: Chunks, work: Work, device: Callable[[], AbstractContextManager[object]]) -> Mapping[str, Any]:
    """Make what is missing of `chunks`: what the work says of its model."""
    with device():
        opened = work.open(chunks.context)
        compare(chunks, work, opened)
        chunks.context.stage(work.stage)

        def rows(i: int) -> Any:
            given = work.read(*chunks.bounds(i), opened.about)
            return opened.ahead(given) if opened.ahead else given

        with Ahead(rows) as ahead:
            for i, following in zip_longest(chunks.missing, chunks.missing[1:]):
                report = chunks.begin()
                chunks.keep(i, opened.compute(ahead.take(i, following) if opened.ahead else rows(i), report))
    return opened.about


class Ahead(Generic[Result]):
    """Does `work` for what is asked for next in a thread, while the caller is at what it has: one at a time."""

    def __init__(self, work: Callable[[int], Result]) -> None:
        self._work, self._pool = work, ThreadPoolExecutor(1)
        self._coming: dict[int, Future[Result]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def take(self, item: int, following: int | None) -> Result:
        """Result of `work` on `item`; that of `following` is begun."""
        # A tokenizer must not be asked by two threads, so what nobody foresaw is done in the same one.
        result = (self._coming.pop(item, None) or self._pool.submit(self._work, item)).result()
        self._coming = {} if following is None else {following: self._pool.submit(self._work, following)}
        return result
