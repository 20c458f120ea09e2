"""Actions of users on a finished run, stored beside it in an append-only log with one JSON object per line."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from core.audit_log import account
from core.errors import Overtaken
from core.files import WholeLines, append_line
from core.runs.lock import locked
from core.shown import shown

Entry = TypeVar("Entry")
UNDO = "undo"  # the action that reverts the previous one


class Dated(Protocol):
    """An entry with its time (seconds since 1970) and, in `by`, the name of the account that wrote it."""

    @property
    def time(self) -> float: ...

    @property
    def by(self) -> str: ...


@contextmanager
def changing(home: Path) -> Iterator[None]:
    """Lock the journals of a project for a block that reads a journal and then changes it. Errors: RunBusy."""
    with locked(home / "locks" / "journal.lock", patience=5):
        yield


def refuse_overtaken(last: Dated | None, seen: float | None, what: str) -> None:
    """Check that the latest entry, `last`, is the entry that the user saw. Errors: Overtaken if it is not.

    seen: time of the entry that the user saw; 0 if the user saw no entry; None skips the check. what: name of the
    object, for the message.
    """
    if seen is None or seen == (last.time if last else 0.0):
        return
    since = "was undone in another window"
    if last and last.time > seen:
        who = "another window of yours" if last.by in ("", account()) else shown(last.by)
        since = f"was changed by {who} at {time.strftime('%H:%M:%S', time.localtime(last.time))}"
    raise Overtaken(
        f"{what}: {since}, after it was shown here, so nothing was done; look at the new state and decide again."
    )


def append(file: Path, **action: object) -> None:
    """Append an action to a journal, with the current time and the account of this process."""
    record = {**action, "by": account(), "time": round(time.time(), 3)}
    append_line(file, json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode())


def read(file: Path, parse: Callable[[dict[str, object]], Entry]) -> tuple[Entry, ...]:
    """Return all entries that were not undone, oldest first. Incomplete and damaged lines are ignored.

    parse: function from a JSON object to an entry. It raises ValueError, TypeError or KeyError for a damaged entry.
    """
    history: list[Entry] = []
    for line in _lines(file):
        if (parsed := _parsed(line, parse)) is None:
            continue
        action, entry = parsed
        if action != UNDO:
            history.append(entry)
        elif history:
            history.pop()
    return tuple(history)


def is_spoilt(file: Path, parse: Callable[[dict[str, object]], Entry]) -> bool:
    """Return True if a complete line is damaged. An incomplete line, left by a killed writer, does not count."""
    try:
        return any(_parsed(line, parse) is None for line in _lines(file) if line[:1] != b"{" or line[-1:] == b"}")
    except OSError:  # the file cannot be read: a bad sector, or a folder of this name
        return True


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from WholeLines(file)


def _parsed(line: bytes, parse: Callable[[dict[str, object]], Entry]) -> tuple[object, Entry] | None:
    """Return the action and the entry of a line, or None if the line cannot be read."""
    try:
        record = json.loads(line)
        return record["action"], parse(record)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
