"""One run on several processes, as torchrun starts them: the first owns the run, the others train along.

Only the first has the run's lock, its events and its result. It announces the run in torchrun's own store; the
others wait for that, read the same corpora and take their share of every step, or seeds of their own (`seeds.py`).
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import Cancelled, WinnowError, memory_ran_out
from core.files import write_atomic
from core.kind import Kind, work_of
from core.reporter import Silent
from core.runs.context import CHECK_SECONDS
from core.runs.events import OUT_OF_MEMORY
from core.runs.run import Run
from core.runs.store import RunStore

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

PATIENCE = timedelta(days=1)
_KEY = "winnow run"
_announced: set[str] = set()


def rank() -> int:
    """Number of this process; 0 where it is the only one."""
    return int(os.environ.get("RANK", "0"))


def announce(run_id: str) -> None:
    """Tell the other processes which run to train along with; "": none, it is finished already."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not rank() and not _announced:
        _announced.add(run_id)
        _store().set(_KEY, run_id)


def train_along(home: Path, kinds: Mapping[str, Kind]) -> None:
    """Take this process's share of the run that the first announces."""
    if not (run_id := _store().get(_KEY).decode()):
        return
    run = RunStore(home).get(run_id)
    try:
        work_of(run, kinds)(_SilentContext(run))  # type: ignore[arg-type]
    except Cancelled:
        raise
    except Exception as error:  # the first process has the run's words, and is ended for this
        if run.lock.held():  # else it has ended, and this is only what became of the others
            with suppress(OSError):
                write_atomic(run.companion_file, _in_words(error).encode("utf-8", "replace"))
        raise


def _in_words(error: Exception) -> str:
    if isinstance(error, WinnowError):
        return str(error)
    if memory_ran_out(error):
        return f"{OUT_OF_MEMORY}; choose smaller batches or a smaller model."
    return f"this is a bug in Winnow, {type(error).__name__}; the traceback is in that process's output."


class _SilentContext(Silent):
    """The context of a process that has nothing to say."""

    is_child = False

    def __init__(self, run: Run) -> None:
        self.run, self.root, self._checked = run, run, time.monotonic()

    def check(self) -> None:
        """Errors: Cancelled where the first process is gone, and nobody would know what this one leaves."""
        if (now := time.monotonic()) - self._checked > CHECK_SECONDS:
            self._checked = now
            if not self.run.lock.held() and self.run.state().state != "succeeded":
                raise Cancelled(f"run {self.run.id}: the process that it belongs to is gone.")

    def checkpoint(self, data: Mapping[str, object]) -> None: ...

    def artifact(self, name: str, path: Path) -> None: ...

    def emit(self, kind: str, data: Mapping[str, object]) -> None: ...

    def child(self, run: Run) -> None: ...

    def runs_on(self, device: str, machine: str) -> None: ...

    def waiting(self, run_id: str | None) -> None: ...


def _store() -> "TCPStore":
    """torchrun's own, which outlives every process."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public by its documentation

    # Before the first announces its run it may read files for an hour, or wait for a card that another run has.
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return TCPStore(*address, is_master=False, timeout=PATIENCE)
