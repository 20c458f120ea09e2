"""Write and read the audit log: one line of JSON per action, such as an import, an export or the start of a run.

A line has the time (UTC), the operating system's account, the action, its origin, fingerprints of corpora and ids of
runs. It contains no text and no file names, because both may contain the name of a patient.
"""

import json
import logging
import os
import pwd
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, TypeGuard

from core.errors import ConfigError, ResourceError
from core.files import append_line
from core.paths import machine_home

Action = Literal["import", "look", "export", "remove", "start", "cancel", "resume"]
Origin = Literal["page", "command line"]
OFF = "off"
_origin: ContextVar[Origin] = ContextVar("origin", default="page")
logger = logging.getLogger("winnow.audit")


class Line(TypedDict):
    """One entry of the log. time: UTC, ISO 8601."""

    time: str
    uid: int
    account: str
    action: Action
    origin: Origin
    runs: NotRequired[list[str]]
    corpora: NotRequired[list[str]]


@contextmanager
def asked_by(origin: Origin) -> Iterator[None]:
    """Record `origin` as the origin of all actions that the block logs. Outside of such a block, it is "page"."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


def place() -> Path | None:
    """Return the path of the log, or None if WINNOW_AUDIT is "off".

    The path is the value of WINNOW_AUDIT; by default it is `audit.jsonl` in Winnow's home folder.
    Errors: ConfigError for a relative path.
    """
    setting = os.environ.get("WINNOW_AUDIT", "")
    if setting == OFF:
        return None
    if setting and not Path(setting).is_absolute():
        raise ConfigError(f"WINNOW_AUDIT: {setting!r} is not a valid value; give `off` or an absolute path.")
    return Path(setting) if setting else _usual()


@contextmanager
def noted(action: Action, *, runs: Collection[str] = (), corpora: Collection[str] = ()) -> Iterator[None]:
    """Log an action after the block has succeeded. Errors: those of `ready`, raised before the block begins."""
    ready()
    yield
    note(action, runs=runs, corpora=corpora)


def ready() -> None:
    """Check that the log can be written.

    Errors: ResourceError if an administrator set the path (WINNOW_AUDIT) and the log cannot be written. If a log at the
    default path cannot be written, actions are still done, and `note` logs a warning.
    """
    path = place()
    if path and path != _usual():
        with _refused_or_warned(path):
            os.close(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600))


def note(action: Action, *, runs: Collection[str] = (), corpora: Collection[str] = ()) -> None:
    """Append an action to the log. Errors: those of `ready`."""
    path = place()
    if path is None:
        return
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "uid": os.getuid(),
        "account": account(),
        "action": action,
        "origin": _origin.get(),
        **{name: list(marks) for name, marks in (("runs", runs), ("corpora", corpora)) if marks},
    }
    with _refused_or_warned(path):
        machine_home().mkdir(parents=True, exist_ok=True, mode=0o700)
        append_line(path, json.dumps(line).encode())


def lines(since: datetime | None = None) -> Iterator[Line]:
    """Yield the entries, oldest first, without damaged lines. since: time (UTC) of the earliest entry; None for all."""
    earliest = "" if since is None else since.isoformat()
    yield from (line for line in _read() if line and line["time"] >= earliest)


def spoilt() -> int:
    """Count the damaged lines of the log. A line is damaged if its writer was killed, or if it was edited by hand."""
    return sum(line is None for line in _read())


def _read() -> Iterator[Line | None]:
    """Yield all entries, with None for each damaged line. Errors: ConfigError if WINNOW_AUDIT names a folder."""
    path = place()
    if path is None or not path.exists():
        return
    if path.is_dir():
        raise ConfigError(f"WINNOW_AUDIT: {path} is a folder; give the path of a file in it.")
    with path.open("rb") as file:
        for raw in file:
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                line = None
            yield line if _well_formed(line) else None


def _well_formed(line: object) -> TypeGuard[Line]:
    if not isinstance(line, dict) or not isinstance(line.get("time"), str):
        return False
    return all(isinstance(line.get(name, []), list) for name in ("runs", "corpora"))


def _usual() -> Path:
    return machine_home() / "audit.jsonl"


@contextmanager
def _refused_or_warned(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"{path}: the audit log cannot be written ({error.strerror})"
        if path != _usual():
            raise ResourceError(f"{problem}, so nothing was done; ask the person who set WINNOW_AUDIT.") from error
        logger.warning("%s", problem)


def account() -> str:
    """Return the name of the account that runs this process, or the account's number if it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # an account without a name, as in containers
        return str(os.getuid())
