"""Progress of long work, reported without knowing who listens."""

from typing import Protocol, TypedDict


class Checkpoint(TypedDict):
    """A point from which a training can go on. name: of its folder; step: of the optimizer, from 1."""

    name: str
    step: int


class Reporter(Protocol):
    """The way in which every long computation reports. Calls are cheap; the listener thins them out."""

    def stage(self, name: str) -> None:
        """A new part of the work begins, e.g. "embedding D_C"."""

    def progress(self, done: int, total: int | None, unit: str) -> None:
        """`done` of `total` (None: unknown) `unit`s of the current stage."""

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """A number worth a curve or a row in a table."""

    def note(self, text: str) -> None:
        """A sentence the user should read. Never a sentence of a corpus."""

    def check(self) -> None:
        """Raise `Cancelled` if somebody asked for an end; call it at least once a second."""


class Parted(Reporter, Protocol):
    """A reporter for work that knows all of its parts from the start."""

    def part(self, number: int, of: int, name: str, *, left: float | None = None, after: float | None = None) -> None:
        """Part `number` (from 1) of `of` begins. left: seconds of it and of all behind it; after: of those alone."""


class Silent:
    """A reporter that nobody listens to."""

    def stage(self, name: str) -> None: ...

    def part(
        self, number: int, of: int, name: str, *, left: float | None = None, after: float | None = None
    ) -> None: ...

    def progress(self, done: int, total: int | None, unit: str) -> None: ...

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, text: str) -> None: ...

    def check(self) -> None: ...
