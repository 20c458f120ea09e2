"""Red items of the data check: the refusal of a run, and the record of those that its user overruled."""

from collections.abc import Sequence
from contextlib import suppress

from core.corpora.checks import Check
from core.errors import ConfigError
from core.files import write_atomic
from core.runs.store import Run

FILE = "run-anyway.txt"
_LONGEST = 2_000  # characters


def refusal(red: Sequence[Check], *, run_anyway: bool) -> ConfigError | None:
    """Return the error that stops a run with these red items, None if it may start."""
    final = [check for check in red if check.final]
    if not red or (run_anyway and not final):
        return None
    items = " ".join(check.sentence for check in (final or red))
    cure = f"{(final or red)[0].cure[:1].lower()}{(final or red)[0].cure[1:]}"
    ways = f"{cure}." if final else f"{cure}, or run anyway (--run-anyway)."
    return ConfigError(f"data check: {items} To continue, {ways}")


def keep(run: Run, red: Sequence[Check]) -> None:
    """Write beside a run which red items its user overruled. The key of the run stays the same."""
    if red:
        text = " ".join(check.sentence for check in red)
        write_atomic(run.path / FILE, f"Started although the data check says: {text}".encode())


def overruled(run: Run) -> str:
    """Return the sentence to note when the run starts, "" if nothing was overruled."""
    with suppress(OSError, UnicodeDecodeError), (run.path / FILE).open(encoding="utf-8") as file:
        return file.read(_LONGEST)
    return ""
