"""The red items of the data check that a run's user overruled: a file in the run's folder, noted by the run."""

from collections.abc import Sequence
from contextlib import suppress

from core.corpora.checks import Check
from core.files import write_atomic
from core.runs.store import Run

FILE = "run-anyway.txt"
_LONGEST = 2_000  # characters


def keep(run: Run, red: Sequence[Check]) -> None:
    """Write beside a run which red items its user overruled. The key of the run stays the same."""
    if red:
        text = " ".join(check.sentence for check in red)
        write_atomic(run.path / FILE, f"Started although the data check says: {text}".encode())


def overruled(run: Run) -> str:
    """The sentence to note when the run starts, "" if nothing was overruled."""
    with suppress(OSError, UnicodeDecodeError), (run.path / FILE).open(encoding="utf-8") as file:
        return file.read(_LONGEST)
    return ""
