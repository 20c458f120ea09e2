"""A worker's process: it computes chunks for a run's process, reads no corpus, writes nothing, and knows no run."""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import cards
from core.errors import WinnowError, for_the_log, memory_ran_out
from core.reporter import Silent
from core.runs.chunks import Opened, Work
from core.runs.executors.hello import Hello
from core.runs.versions import versions

_HOME = "WINNOW_HOME"
_PASSED_ON = (_HOME, cards.DEVICE, "WINNOW_OFFLINE", "HF_HUB_OFFLINE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Failure of a worker: an error that is shown as it is, or a traceback for the log (see `for_the_log`)."""

    error: WinnowError | None = None
    log: str = ""
    memory: bool = False

    def raised(self) -> Exception:
        """The error that ends the run."""
        if self.error:
            return self.error
        return MemoryError() if self.memory else RuntimeError(f"in a worker:\n{self.log}")


def environment() -> dict[str, str]:
    """Variables that a worker shall take over of this process's environment."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if passed.get(cards.DEVICE, "").startswith("cuda"):
        passed[cards.DEVICE] = "cuda"  # for it sees that card alone which it was given
    return passed


class Hand:
    """Answers of an engine's worker, which is asked in this order: `hello`, `open`, then `make` for each chunk."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """environment: of the run's process; its home counts where it is seen from here."""
        seen = Path(environment.get(_HOME, "")).is_dir()
        os.environ.update({name: value for name, value in environment.items() if seen or name != _HOME})
        self._opened: Opened | None = None

    def hello(self) -> Hello:
        guarded = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
        return Hello(versions=versions(), node=socket.gethostname(), guarded=guarded)

    def computer(self, *, card: bool) -> str:
        """The name of what workers compute on here, whatever this one was given: of a card, else of the processor."""
        if not card or cards.asked() == "cpu":
            return cards.processor()
        there = cards.installed()
        return there[0].name if there else "a card that is not known"

    def sees(self, path: Path) -> bool:
        """Whether a file of the run's machine is here too."""
        return path.exists()

    def open(self, work: Work) -> Any:
        """Description of the work's model, and of what it computes on; or a `Failure`."""

        def opened() -> Any:
            device = work.device()
            self._opened = work.open(Silent())
            return self._opened.about, device

        return _or_failure(opened)

    def make(self, rows: Any) -> Any:
        """The array of some rows, or a `Failure`."""
        opened = self._opened
        assert opened
        return _or_failure(lambda: opened.compute(opened.ahead(rows) if opened.ahead else rows, Silent()))


def _or_failure(work: Callable[[], Any]) -> Any:
    """An engine would print an error, wrap it and count the worker as broken."""
    try:
        return work()
    except WinnowError as error:
        return Failure(error=error)
    except Exception as error:  # noqa: BLE001  it goes on in the run's process
        return Failure(log=for_the_log(error), memory=memory_ran_out(error))
