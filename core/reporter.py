"""How long work tells the outside how far it is, without knowing who listens."""

from typing import Protocol


class Reporter(Protocol):
    """What every long computation is handed. Calls are cheap; the listener thins them out."""

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


class Silent:
    """A reporter that nobody listens to."""

    def stage(self, name: str) -> None: ...

    def progress(self, done: int, total: int | None, unit: str) -> None: ...

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, text: str) -> None: ...

    def check(self) -> None: ...
