"""Addresses of language models. Text stays on this computer unless the user names another host.

Addresses of this computer are 127.0.0.0/8, ::1 and `localhost`. They are never looked up, so neither a name server nor
a system file can send a request to another computer.
"""

import re
import socket
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from core.errors import ConfigError

LOCALHOST = ("127.0.0.1", "::1")
_LABEL = "[A-Za-z0-9_-]{1,63}"
_ADDRESS = re.compile(
    rf"(https?)://(\[[0-9A-Fa-f:.]{{2,45}}\]|{_LABEL}(?:\.{_LABEL})*\.?)(?::([0-9]{{1,5}}))?((?:/[A-Za-z0-9._~-]+)*)/?"
)
# Text after the last dot of a host. If it matches, operating systems read the host as an IP address, such as 127.1 or
# 0x7f000001.
_NUMBER = re.compile("[0-9]+|0[xX][0-9A-Fa-f]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of language models.

    address: normalised address. tls: True for https. host: in lower case, without brackets. path: path of the API.
    here: IP addresses of this computer to connect to, in order; () if the host is another computer.
    """

    address: str
    tls: bool
    host: str
    port: int
    path: str
    here: tuple[str, ...]

    @property
    def warning(self) -> str:
        """Warning that text leaves this computer; "" if the server is on this computer."""
        how = "encrypted" if self.tls else "not encrypted"
        return "" if self.here else f"Sentences leave this computer: they go to {self.host}, {how}."

    def connected(self, seconds: float) -> socket.socket:
        """Return a connected socket with this timeout. Errors: if no IP address works, the OSError of the first one."""
        if not self.here:
            return socket.create_connection((self.host, self.port), seconds)
        first: OSError | None = None
        for ip in self.here:
            try:
                return _connected(ip, self.port, seconds)
            except OSError as error:
                first = first or error
        assert first
        raise first


def server_at(address: str, allow_host: str = "") -> Server:
    """Return the server at an address. allow_host: the other computer that the user allows, "" for none.

    The address is neither looked up nor contacted. Errors: those of `parsed`; ConfigError for another computer without
    `allow_host`, and for an `allow_host` that differs from the address's host.
    """
    server = parsed(address)
    if allow_host and _plain(allow_host) != server.host:
        raise ConfigError(f"allow_host: differs from {server.host}, the host in the address; correct one of the two.")
    if not server.here and not allow_host:
        raise ConfigError(
            f"address: {server.host} is not this computer, so sentences would leave it; give 127.0.0.1, ::1 or "
            f"localhost, or allow it with allow_host={server.host}."
        )
    return server


def parsed(address: str) -> Server:
    """Return the server at an address, even if the user has not allowed its host.

    Errors: ConfigError for an invalid address. The message does not quote the address, which may contain a password.
    """
    match = _ADDRESS.fullmatch(address)
    port = int(match[3] or (443 if match[1] == "https" else 80)) if match else 0
    if not match or not 0 < port < 1 << 16:
        raise ConfigError(
            "address: is not of the form http://HOST:PORT/PATH, such as http://127.0.0.1:11434/v1; give http or https, "
            "and no user name, password, query or fragment."
        )
    host = _plain(match[2])
    here = _here(host, bracketed=match[2].startswith("["))
    shown = f"[{host}]" if ":" in host else host
    return Server(
        address=f"{match[1]}://{shown}:{port}{match[4]}",
        tls=match[1] == "https",
        host=host,
        port=port,
        path=match[4],
        here=here,
    )


def _plain(host: str) -> str:
    return host.strip("[]").lower().removesuffix(".")


def _here(host: str, *, bracketed: bool) -> tuple[str, ...]:
    """Return the IP addresses of a host if it is this computer, else (). Errors: ConfigError for a malformed host."""
    if host == "localhost":
        return LOCALHOST
    try:
        if bracketed:
            six = IPv6Address(host)
            ip: IPv4Address | IPv6Address = six.ipv4_mapped or six
        elif _NUMBER.fullmatch(host.rpartition(".")[2]):
            ip = IPv4Address(host)
        else:
            return ()
    except AddressValueError as error:
        raise ConfigError(
            "address: its host is an incomplete or invalid IP address; write it like 127.0.0.1 or [::1]."
        ) from error
    return (str(ip),) if ip.is_loopback else ()


def _connected(ip: str, port: int, seconds: float) -> socket.socket:
    """Return a socket connected to an IP address. `getaddrinfo` is not used: it could contact a name server."""
    opened = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.settimeout(seconds)
        opened.connect((ip, port))
    except BaseException:
        opened.close()
        raise
    return opened
