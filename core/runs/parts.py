"""A run's parts, reported one by one, with the seconds left judged by those that have passed."""

import time
from collections.abc import Sequence

from core.runs.context import RunContext


class Parts:
    """Reports each part to `context` as it begins.

    sizes: what every part amounts to, in any unit. judged: parts that this attempt must have ended before it says
    how long the others will take.
    """

    def __init__(self, context: RunContext, sizes: Sequence[float], *, judged: int = 1) -> None:
        self._context, self._sizes, self._judged = context, sizes, judged
        self._passed = self._seconds = 0.0
        self._ended = 0
        self._begun: tuple[int, float] | None = None

    def next(self, i: int, name: str) -> None:
        """Part `i`, counted from 0, begins; the one that began before it has ended."""
        now = time.monotonic()
        if self._begun:
            before, since = self._begun
            self._ended += 1
            self._passed += self._sizes[before]
            self._seconds += now - since
        self._begun = (i, now)
        after = left = None
        if self._ended >= self._judged and self._passed:
            pace = self._seconds / self._passed
            after = pace * sum(self._sizes[i + 1 :])
            left = after + pace * self._sizes[i]
        if len(self._sizes) > 1:
            self._context.part(i + 1, len(self._sizes), name, left=left, after=after)
