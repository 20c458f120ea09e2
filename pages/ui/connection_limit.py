"""Connections before they ask for anything: other accounts may hold some, not all that a process can have."""

import asyncio
import os
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from core.facade import door

MOST = 64  # connections that other accounts may hold; a process may have a thousand files open in all
BACKLOG = 128  # connections that are taken before the first of them is looked at


class ConnectionLimit(H11Protocol):
    """HTTP as uvicorn speaks it, for as many others at once."""

    others: ClassVar[list[asyncio.Transport]] = []
    sees_owners: ClassVar[bool] = False  # whether this system tells who is at the other end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Hang up on one stranger too many, who would keep the owner out by holding them and saying nothing."""
        super().connection_made(transport)
        ends = [transport.get_extra_info(end) for end in ("peername", "sockname")]
        if door.mode() == "open" or None in ends:
            return
        client, server = (tuple(end[:2]) for end in ends)
        account = door.account_behind(client, server)
        # Where owners are seen, one that is not is counted too: with no file left to open, the kernel cannot be asked.
        if account != os.getuid() and (account is not None or ConnectionLimit.sees_owners):
            ConnectionLimit.others = [each for each in ConnectionLimit.others if not each.is_closing()]
            ConnectionLimit.others.append(transport)
            if len(ConnectionLimit.others) > MOST:
                transport.abort()
