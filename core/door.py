"""Control access: by the account behind a loopback connection, or by a key if the system does not show the account."""

import os
import secrets
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Literal, get_args

from core.errors import ConfigError
from core.files import write_atomic
from core.paths import machine_home

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
Address = tuple[str, int]
Mode = Literal["user", "key", "open"]
_LEADS = """<!doctype html><meta charset="utf-8"><title>Winnow</title><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><p><a href="{address}">Winnow</a></p>
"""
_OPEN, _LISTENS = 1, 10  # states of a TCP socket

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST = 4, 20, 1  # constants from linux/netlink.h and linux/sock_diag.h


def account_behind(client: Address, server: Address) -> int | None:
    """Return the id of the user that owns the client's end of a connection between two addresses of this machine.

    Return None if the kernel does not show it: on systems other than Linux, or for a client on another machine. Also
    return None for a closed connection, because the kernel reports root as its owner.
    """
    with suppress(OSError, AttributeError):  # the kernel does not answer, or the system has no such sockets
        state, user = _socket_state(client, server)
        return user if state == _OPEN else None
    ends = {(_as_written(client, table), _as_written(server, table)) for table in TABLES}
    for local, remote, state, user in _sockets():
        if (local, remote) in ends and state == _OPEN:
            return user
    return None


def sees_owner(server: Address) -> bool:
    """Return True if the system shows the account behind a connection. The test opens a connection to `server`.

    Errors: OSError if no process listens there.
    """
    with socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET) as client:
        client.connect(server)
        return account_behind(client.getsockname()[:2], server) == os.getuid()


def _socket_state(client: Address, server: Address) -> tuple[int, int]:
    """Return (state, user id) of a socket from Linux's sock_diag, which is 100 times faster than the tables in /proc.

    Errors: OSError if sock_diag does not answer or does not know the socket.
    """
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    hosts = [socket.inet_pton(family, host.partition("%")[0]).ljust(16, b"\0") for host, _ in (client, server)]
    question = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 0)
    # The last two fields, 4 and 8 bytes, accept any device and any cookie.
    question += struct.pack("!HH16s16s", client[1], server[1], *hosts) + bytes(4) + b"\xff" * 8
    head = struct.pack("=IHHII", 16 + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as line:
        line.settimeout(1)
        line.sendto(head + question, (0, 0))
        answer = line.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != _SOCK_DIAG_BY_FAMILY:
        raise OSError("there is no such socket, or sock_diag does not answer")
    return answer[17], struct.unpack_from("=I", answer, 80)[0]


def account_listening(server: Address) -> int | None:
    """Return the id of the user whose process listens on an address of this machine; None if none or unknown."""
    written = {_as_written(server, table) for table in TABLES}
    return next((user for local, _, state, user in _sockets() if state == _LISTENS and local in written), None)


def mode() -> Mode:
    """Return the value of `WINNOW_DOOR`, by default `user`.

    `user` admits only the account that runs the server; `key` admits anyone who has the key; `open` admits every
    account.
    Errors: ConfigError for another value.
    """
    word = os.environ.get("WINNOW_DOOR") or "user"
    for known in get_args(Mode):
        if word == known:
            return known  # type: ignore[no-any-return]
    raise ConfigError(f"WINNOW_DOOR: {word!r} is not one of {', '.join(get_args(Mode))}; choose one of them.")


def key() -> str:
    """Return the access key of this machine's home folder, see `key_of`."""
    return key_of(machine_home())


def key_of(home: Path) -> str:
    """Return the access key of a home folder. It is in a file, made on first use, that only its owner can read.

    A key that another account wrote or could read is not secret, so it is replaced.
    """
    path = home / "key"
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="ascii") as file:
            status, key = os.fstat(descriptor), file.read().strip()
        if key and status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077:
            return key
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = secrets.token_urlsafe(32)
    write_atomic(path, key.encode("ascii"))
    path.chmod(0o600)
    return key


def _sockets() -> Iterator[tuple[str, str, int, int]]:
    """Yield (local address, remote address, state, user id) of every TCP socket of this network namespace.

    The tables for IPv4 and for IPv6 are both read, because an IPv6 socket may carry an IPv4 connection.
    """
    for table in TABLES:
        with suppress(OSError), table.open(encoding="ascii") as file:
            next(file, None)
            for line in file:
                parts = line.split()
                yield parts[1], parts[2], int(parts[3], 16), int(parts[7])


def _as_written(address: Address, table: Path) -> str:
    """Return an address in the notation of `table`: hexadecimal, each 32-bit word in the machine's byte order."""
    host, port = address
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host.partition("%")[0])
    if table.name.endswith("6") and len(packed) == 4:
        packed = b"\0" * 10 + b"\xff\xff" + packed
    words = (packed[i : i + 4] for i in range(0, len(packed), 4))
    ordered = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    return f"{ordered.hex().upper()}:{port:04X}"


def unseen(address: str) -> str:
    """Write a file that redirects to `address`, which contains the key, and return the file's URI for a browser.

    Every account of a machine can see the arguments of a program, but only the owner can read this file.
    """
    path = machine_home() / "open.html"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(path, _LEADS.format(address=escape(address)).encode())
    path.chmod(0o600)
    return path.as_uri()
