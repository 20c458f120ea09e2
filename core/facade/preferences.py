"""What a person set once for all projects, in `preferences.json` of the home."""

import json

from core.facade.home import machine_home
from core.files import read_object, write_atomic

PREFERENCES_FILE = "preferences.json"


def expert() -> bool:
    """Whether what only experts need is shown; not unless somebody asked for it."""
    return _kept().get("expert") is True


def set_expert(shown: bool) -> None:
    """Remember whether it is to be shown, for every page and after a restart."""
    machine_home().mkdir(parents=True, exist_ok=True)
    data = json.dumps({**_kept(), "expert": shown})
    write_atomic(machine_home() / PREFERENCES_FILE, data.encode())


def _kept() -> dict[str, object]:
    """What is written there; nothing where that cannot be read."""
    return read_object(machine_home() / PREFERENCES_FILE) or {}
