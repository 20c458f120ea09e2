"""Reporters for tests: one records its calls, one cancels."""

from core.errors import Cancelled
from core.reporter import Silent


class Recorder(Silent):
    """Record notes, metrics and progress."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.metrics: list[tuple[str, float, int | None]] = []
        self.progressed: list[tuple[int, int | None, str]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self.metrics.append((name, value, step))

    def progress(self, done: int, total: int | None, unit: str) -> None:
        self.progressed.append((done, total, unit))


class Canceller(Silent):
    """Cancel once `check` has been called `at` times."""

    def __init__(self, at: int = 1) -> None:
        self.at, self.checks = at, 0

    def check(self) -> None:
        self.checks += 1
        if self.checks >= self.at:
            raise Cancelled("stop")
