"""Which corpora of a home play which part: `roles.json`, {role: fingerprint}."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from core.corpora.library import Library
from core.files import read_object, write_atomic
from core.projects import ROLES_FILE
from core.runs.lock import locked

FILE = ROLES_FILE
_LOCK = Path("locks", "roles.lock")
ROLES = ("task", "domain", "train", "dev", "test")


def read(home: Path) -> dict[str, str]:
    """{role: fingerprint} of the corpora in use; roles whose corpus is gone are left out."""
    stored = read_object(home / FILE)
    if not stored:
        return {}
    library = Library(home)
    return {role: str(mark) for role, mark in stored.items() if role in ROLES and library.holds(str(mark))}


def give(home: Path, given: Mapping[str, str | None]) -> None:
    """Give corpora their roles, the others keep theirs; None: nobody has it."""
    with locked(home / _LOCK, patience=5):  # two windows may give two parts at once
        after = {**read(home), **given}
        _write(home, {role: mark for role, mark in after.items() if mark is not None})


def forget(home: Path, gone: Collection[str]) -> None:
    """Take their roles from corpora that are gone."""
    with locked(home / _LOCK, patience=5):
        _write(home, {role: mark for role, mark in read(home).items() if mark not in gone})


def _write(home: Path, given: Mapping[str, str]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    write_atomic(home / FILE, json.dumps(dict(given), indent=1).encode())
