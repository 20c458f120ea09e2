"""What a person set once for all projects, in `preferences.json` of the home."""

import json
import threading
from contextlib import suppress

from core.files import read_object, write_atomic
from core.projects.home import machine_home

PREFERENCES_FILE = "preferences.json"
_writing = threading.Lock()


def expert() -> bool:
    """Whether what only experts need is shown; not unless somebody asked for it."""
    return _kept().get("expert") is True


def set_expert(shown: bool) -> None:
    """Remember whether it is to be shown, for every page and after a restart."""
    _keep(expert=shown)


def last_project() -> str:
    """The slug of the project that was looked at last; "" where none was, or that is not known."""
    slug = _kept().get("project")
    return slug if isinstance(slug, str) else ""


def set_last_project(slug: str) -> None:
    """Remember which project is looked at, where that can be written down."""
    if slug != last_project():
        with suppress(OSError):  # a page is shown on a full disk too
            _keep(project=slug)


def _keep(**changed: object) -> None:
    with _writing:  # two windows change two of them at once
        machine_home().mkdir(parents=True, exist_ok=True)
        write_atomic(machine_home() / PREFERENCES_FILE, json.dumps({**_kept(), **changed}).encode())


def _kept() -> dict[str, object]:
    """Preferences that are written there; nothing where that cannot be read."""
    return read_object(machine_home() / PREFERENCES_FILE) or {}
