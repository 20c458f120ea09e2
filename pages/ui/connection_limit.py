"""Connections before they ask for anything: other accounts may hold some, not all that a process can have."""

import asyncio
import os
import socket
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from core import door
from core.door import account_behind
from pages.ui.door import ACCOUNT

MOST = 64  # connections that other accounts may hold; a process may have a thousand files open in all
BACKLOG = 128  # connections that are taken before the first of them is looked at


class ConnectionLimit(H11Protocol):
    """HTTP as uvicorn speaks it, for as many others at once."""

    others: ClassVar[list[asyncio.Transport]] = []
    sees_owners: ClassVar[bool] = False  # whether this system tells who is at the other end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel whose connection this is, and keep the answer with it: its address may be another's later.

        Hang up on one stranger too many, who would keep the owner out by holding connections and saying nothing, and
        on a client that has hung up itself.
        """
        super().connection_made(transport)
        if door.mode() == "open":
            return
        try:
            account = _account_behind(transport)
        except OSError:
            transport.abort()
            return
        self.app_state = {**self.app_state, ACCOUNT: account}
        # If owners are seen, an unknown account counts too: with no file left to open, the kernel cannot be asked.
        if account != os.getuid() and (account is not None or ConnectionLimit.sees_owners):
            ConnectionLimit.others = [each for each in ConnectionLimit.others if not each.is_closing()]
            ConnectionLimit.others.append(transport)
            if len(ConnectionLimit.others) > MOST:
                transport.abort()


def _account_behind(transport: asyncio.Transport) -> int | None:
    """Return the account at the other end. Errors: OSError if the connection was reset.

    It is still connected after the kernel has answered, so no other client has taken its address before.
    """
    end: socket.socket = transport.get_extra_info("socket")
    client, server = end.getpeername()[:2], end.getsockname()[:2]
    account = account_behind(client, server)
    end.getpeername()
    return account
