"""Access to the app: which accounts it lets in, and the key for servers that cannot identify them."""

import os
from html import escape
from typing import Literal, get_args

from core.door import key_of
from core.errors import ConfigError
from core.files import write_atomic
from core.projects.home import machine_home

Mode = Literal["user", "key", "open"]
_LEADS = """<!doctype html><meta charset="utf-8"><title>Winnow</title><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><p><a href="{address}">Winnow</a></p>
"""


def mode() -> Mode:
    """Return `WINNOW_DOOR`: `user` admits the server's account, `key` holders of the key, `open` every account.

    Errors: ConfigError for another word.
    """
    word = os.environ.get("WINNOW_DOOR") or "user"
    for known in get_args(Mode):
        if word == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"WINNOW_DOOR: {word!r} is none of {', '.join(get_args(Mode))}; choose one of them.")


def key() -> str:
    """Return the key of this home, from a file that only its owner may read."""
    return key_of(machine_home())


def unseen(address: str) -> str:
    """Write a file that redirects to an address with the key in it, and return the file's URI for a browser.

    Every account of a machine can see the arguments of a program; only the owner can read the file.
    """
    path = machine_home() / "open.html"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(path, _LEADS.format(address=escape(address)).encode())
    path.chmod(0o600)
    return path.as_uri()
