"""Where everything lives."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from core.apart import serving
from core.config import offline
from core.corpora.corpus import Library
from core.files import on_disk, read_object
from core.paths import confine, home, private
from core.recipes import RECIPES
from core.runs.store import RunStore

ROLES_FILE = "roles.json"


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
    return RunStore(folder, optioned=RECIPES)


__all__ = ["confine", "home", "library", "offline", "on_disk", "private", "serving", "store", "unreadable"]
