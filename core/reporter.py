"""Interface through which long computations report progress."""

from typing import Protocol, TypedDict


class Checkpoint(TypedDict):
    """A checkpoint of a training run. name: name of its folder. step: number of optimizer steps."""

    name: str
    step: int


class Reporter(Protocol):
    """Receives the progress of a long computation. Calls are cheap: the receiver drops calls that are too frequent."""

    def stage(self, name: str) -> None:
        """Report that a new stage begins, for example "embedding the domain corpus"."""

    def progress(self, done: int, total: int | None, unit: str) -> None:
        """Report `done` of `total` (None: unknown) `unit`s of the current stage."""

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """Report a number for a curve or a table."""

    def note(self, text: str) -> None:
        """Report a sentence to the user. The sentence must not quote a corpus."""

    def check(self) -> None:
        """Raise `Cancelled` if the run was asked to stop. Call it at least once per second."""


class Parted(Reporter, Protocol):
    """A reporter for work whose parts are known from the start."""

    def part(self, number: int, of: int, name: str, *, left: float | None = None, after: float | None = None) -> None:
        """Report that a part begins. number: number of the part, from 1. of: number of parts.

        left: estimated seconds for this part and all later parts. after: estimated seconds for the later parts alone.
        """


class Silent:
    """A reporter that ignores everything."""

    def stage(self, name: str) -> None: ...

    def part(
        self, number: int, of: int, name: str, *, left: float | None = None, after: float | None = None
    ) -> None: ...

    def progress(self, done: int, total: int | None, unit: str) -> None: ...

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, text: str) -> None: ...

    def check(self) -> None: ...
