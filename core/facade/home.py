"""Where everything lives."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from core.apart import serving
from core.config import offline
from core.corpora.corpus import Library
from core.errors import PathError
from core.files import on_disk, read_object
from core.paths import confine, home
from core.runs.store import RunStore

ROLES_FILE = "roles.json"


def private() -> None:
    """From now on this process makes files that its owner alone can read; a home that was wider is tightened.

    For the doors of the program (the app, the command line, a worker): a library does not change its user's mask.
    Errors: PathError for a home that this account cannot read.
    """
    os.umask(0o077)
    _refuse_foreign(home())
    if home().is_dir() and home().stat().st_mode & 0o077:
        for path in (home(), *home().rglob("*")):
            if not path.is_symlink():
                with suppress(PermissionError):  # another account's: `doctor --privacy` names it
                    path.chmod(path.stat().st_mode & 0o700)


def _refuse_foreign(folder: Path) -> None:
    """A folder that cannot be read looks empty. Errors: PathError where that is so, for the folder or what is in it."""
    try:
        if not folder.exists():
            return
        inside = [folder, *(folder / name for name in ("corpora", "runs") if (folder / name).exists())]
        barred = [path for path in inside if not os.access(path, os.R_OK | os.X_OK)]
    except PermissionError:
        barred = [folder]
    if barred:
        raise PathError(
            f"{barred[0]}: cannot be read from this account; ask its owner, or set WINNOW_HOME to a folder of your own."
        )


def unreadable() -> Sequence[Path]:
    """Files of this home that a failing disk or another program spoilt; what they describe is passed over."""
    roles = home() / ROLES_FILE
    spoilt = [roles] if roles.exists() and read_object(roles) is None else []
    return [*library().unreadable(), *store().unreadable(), *spoilt]


def library() -> Library:
    """The corpora of this home."""
    return Library(home())


def store() -> RunStore:
    """The runs of this home; one store a home, since its handles remember what they have read."""
    return _store(home())


@lru_cache
def _store(folder: Path) -> RunStore:
    return RunStore(folder)


__all__ = ["confine", "home", "library", "offline", "on_disk", "private", "serving", "store", "unreadable"]
