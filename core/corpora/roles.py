"""Read and change the roles of a project's corpora, stored in `roles.json` as {role: fingerprint}.

The key "before" of this file has the roles before the last change, so that a user can undo this change.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from core.corpora.library import Library
from core.files import read_object, write_atomic
from core.project_list import ROLES_FILE
from core.runs.lock import locked

FILE = ROLES_FILE
_LOCK = Path("locks", "roles.lock")
_BEFORE = "before"
ROLES = ("task", "domain", "train", "dev", "test")


def read(home: Path) -> dict[str, str]:
    """Return {role: fingerprint} without roles whose corpus was removed. home: folder of the project."""
    return _of_corpora_here(home, read_object(home / FILE))


def before(home: Path) -> dict[str, str] | None:
    """Return the roles before the last change; None if nothing can be undone."""
    stored = read_object(home / FILE) or {}
    former = stored.get(_BEFORE)
    if not isinstance(former, dict):
        return None
    here = _of_corpora_here(home, former)
    return None if here == _of_corpora_here(home, stored) else here


def _of_corpora_here(home: Path, stored: Mapping[str, object] | None) -> dict[str, str]:
    if not stored:
        return {}
    library = Library(home)
    return {role: str(mark) for role, mark in stored.items() if role in ROLES and library.holds(str(mark))}


def give(home: Path, given: Mapping[str, str | None]) -> None:
    """Assign corpora to roles. None empties a role; roles that are not in `given` keep their corpus."""
    with locked(home / _LOCK, patience=5):  # two browser windows may change roles at the same time
        former = read(home)
        after = {role: mark for role, mark in {**former, **given}.items() if mark is not None}
        if after != former:
            _write(home, after, former)


def undo(home: Path) -> None:
    """Undo the last change of roles. A second call repeats the change."""
    with locked(home / _LOCK, patience=5):
        former = before(home)
        if former is not None:
            _write(home, former, read(home))


def forget(home: Path, gone: Collection[str]) -> None:
    """Empty the roles of corpora that were removed. gone: fingerprints of these corpora."""
    with locked(home / _LOCK, patience=5):
        _write(home, {role: mark for role, mark in read(home).items() if mark not in gone})


def _write(home: Path, given: Mapping[str, str], former: Mapping[str, str] | None = None) -> None:
    home.mkdir(parents=True, exist_ok=True)
    stored = {**given, **({_BEFORE: dict(former)} if former is not None else {})}
    write_atomic(home / FILE, json.dumps(stored, indent=1).encode())
