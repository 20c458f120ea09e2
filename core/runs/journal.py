"""What a person did to a finished run: an append-only log beside it, one JSON object an action, read from the start."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from core.files import append_line

Entry = TypeVar("Entry")
UNDO = "undo"  # the action that takes the last one back


def append(file: Path, **action: object) -> None:
    """Write one action down, with the time."""
    record = {**action, "time": round(time.time(), 3)}
    append_line(file, json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode())


def read(file: Path, parse: Callable[[dict[str, object]], Entry]) -> tuple[Entry, ...]:
    """What was done and not undone, oldest first. A line that is torn or spoilt counts as never written.

    parse: raises ValueError, TypeError or KeyError for a spoilt one.
    """
    history: list[Entry] = []
    for line in file.read_bytes().split(b"\n")[:-1] if file.exists() else ():
        try:
            record = json.loads(line)
            entry = parse(record)
        except (ValueError, TypeError, KeyError):
            continue
        if record["action"] != UNDO:
            history.append(entry)
        elif history:
            history.pop()
    return tuple(history)
