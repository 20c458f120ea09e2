"""The door of the app: whom it lets in, and the key for where it cannot see who comes."""

import os
from html import escape
from typing import Literal, get_args

from core.door import account_behind, account_listening, key_of, sees_owner
from core.errors import ConfigError
from core.files import write_atomic
from core.projects.home import machine_home

Mode = Literal["user", "key", "open"]
_LEADS = """<!doctype html><meta charset="utf-8"><title>Winnow</title><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><p><a href="{address}">Winnow</a></p>
"""


def mode() -> Mode:
    """`WINNOW_DOOR`: `user` lets in the server's own account, `key` who has the key, `open` everybody on the machine.

    Errors: ConfigError for another word.
    """
    word = os.environ.get("WINNOW_DOOR") or "user"
    for known in get_args(Mode):
        if word == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"WINNOW_DOOR: {word!r} is none of {', '.join(get_args(Mode))}; choose one of them.")


def key() -> str:
    """The key of this home, in a file that its owner alone may read."""
    return key_of(machine_home())


def unseen(address: str) -> str:
    """The path that a browser is told to open for an address with the key in it: a file that leads there.

    Every account of a machine sees with which words a program was started; the file its owner alone may read.
    """
    path = machine_home() / "open.html"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(path, _LEADS.format(address=escape(address)).encode())
    path.chmod(0o600)
    return path.as_uri()


__all__ = ["Mode", "account_behind", "account_listening", "key", "mode", "sees_owner", "unseen"]
