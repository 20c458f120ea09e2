"""Preferences of the user for all projects, stored in `preferences.json` in Winnow's home folder."""

import json
import threading
from contextlib import suppress

from core.files import read_object, write_atomic
from core.paths import machine_home

PREFERENCES_FILE = "preferences.json"
_writing = threading.Lock()


def expert() -> bool:
    """Return True if pages show fields for experts; the default is False."""
    return _kept().get("expert") is True


def set_expert(shown: bool) -> None:
    """Store the preference of `expert`."""
    _keep(expert=shown)


def last_project() -> str:
    """Return the slug of the project that was shown last; "" if unknown."""
    slug = _kept().get("project")
    return slug if isinstance(slug, str) else ""


def set_last_project(slug: str) -> None:
    """Store the slug of the project that is shown. Disk errors are ignored."""
    if slug != last_project():
        with suppress(OSError):  # pages must work on a full disk, too
            _keep(project=slug)


def _keep(**changed: object) -> None:
    with _writing:  # two windows may change two preferences at the same time
        machine_home().mkdir(parents=True, exist_ok=True)
        write_atomic(machine_home() / PREFERENCES_FILE, json.dumps({**_kept(), **changed}).encode())


def _kept() -> dict[str, object]:
    """Return the stored preferences; {} if there are none or they are damaged."""
    return read_object(machine_home() / PREFERENCES_FILE) or {}
