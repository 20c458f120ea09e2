"""Refuse every connection of this process while a model of unknown origin is loaded and applied.

Offline settings of libraries are requests, which a new version or another option may ignore. Python reports each call
of its socket module to audit hooks before the call is made, in all threads and for all libraries. A hook that raises
prevents the call. Calls of code in other languages are not reported, but no such code opens a connection when a model
is loaded from a local folder.
"""

import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from core.errors import ModelError

_CALLS = frozenset(
    f"socket.{name}"
    for name in ("connect", "sendto", "sendmsg", "getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo")
)
_guards: list[list[str]] = []  # one list of refused calls for each active `without_connections`


@contextmanager
def without_connections(name: str) -> Iterator[None]:
    """Refuse connections (also to this machine) and look-ups of host names, in all threads of this process.

    Unix domain sockets stay usable. name: the model's name, for the error. Errors: ModelError at the end of the block
    if a call was refused, even if a library has handled the refusal.
    """
    _watch()
    refused: list[str] = []
    _guards.append(refused)
    try:
        yield
    finally:
        # Compare by identity, because two lists with the same calls are equal.
        _guards[:] = [each for each in _guards if each is not refused]
        if refused:
            raise ModelError(
                f"{name}: loading or using the model tried to connect to another address ({refused[0]}), which was "
                "refused. Do not use this model, and report where it comes from."
            )


@cache
def _watch() -> None:
    """Add the hook. Python has no call that removes it, so it is added once, when it is first needed."""
    sys.addaudithook(_hook)


def _hook(event: str, values: Sequence[object]) -> None:
    if not _guards or event not in _CALLS:
        return
    if values and isinstance(values[0], socket.socket) and values[0].family == getattr(socket, "AF_UNIX", None):
        return
    call = f"{event} {values[1] if isinstance(values[0], socket.socket) else values[0]!r}"[:120]
    for refused in _guards:
        refused.append(call)
    raise PermissionError(f"{event} is refused while a model is loaded and applied")
