"""The door of the app: whom it lets in, and the key for where it cannot see who comes."""

import os
from typing import Literal, get_args

from core.door import account_behind, account_listening, key_of, sees_owner
from core.errors import ConfigError
from core.facade.home import home

Mode = Literal["user", "key", "open"]


def mode() -> Mode:
    """`WINNOW_DOOR`: `user` lets in the server's own account, `key` who has the key, `open` everybody on the machine.

    Errors: ConfigError for another word.
    """
    asked = os.environ.get("WINNOW_DOOR") or "user"
    for known in get_args(Mode):
        if asked == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"WINNOW_DOOR: {asked!r} is none of {', '.join(get_args(Mode))}; choose one of them.")


def key() -> str:
    """The key of this home, in a file that its owner alone may read."""
    return key_of(home())


__all__ = ["Mode", "account_behind", "account_listening", "key", "mode", "sees_owner"]
