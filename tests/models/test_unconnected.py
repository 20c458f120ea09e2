"""No connection is made while a ready model is loaded and applied, by any thread, and any attempt is an error."""

import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import Cancelled, ModelError
from core.models.unconnected import without_connections


@pytest.fixture
def port() -> Iterator[int]:
    """Return a port of this machine where a test listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.sendto(b"x", ("127.0.0.1", 9))


def silent() -> None:
    with socket.socket() as plain:
        plain.connect_ex(("127.0.0.1", 9))


def in_a_thread() -> None:
    thread = threading.Thread(target=swallowed, args=(datagram,))
    thread.start()
    thread.join()


def swallowed(call: Callable[[], object]) -> None:
    with suppress(OSError):
        call()


CALLS: dict[str, Callable[[], object]] = {
    "socket.getaddrinfo": lambda: socket.getaddrinfo("localhost", 80),
    "socket.gethostbyname": lambda: socket.gethostbyname("localhost"),
    "socket.connect": silent,
    "socket.sendto": datagram,
    "socket.sendto by a thread": in_a_thread,
    "socket.getaddrinfo by urllib": lambda: urllib.request.urlopen("http://localhost:9/x"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_connection_is_refused_even_if_a_library_handles_that(name: str) -> None:
    call = name.partition(" ")[0]
    with pytest.raises(ModelError, match=f"^mine: .*{call}.*was refused"), without_connections("mine"):
        swallowed(CALLS[name])


def test_connections_work_before_and_after_and_blocks_nest(port: int) -> None:
    def connect() -> None:
        socket.create_connection(("127.0.0.1", port)).close()

    def inner() -> None:
        with pytest.raises(ModelError, match="inner: "), without_connections("inner"):
            swallowed(connect)
        with pytest.raises(PermissionError):
            connect()

    for _ in range(2):
        connect()
        with without_connections("outer"), without_connections("inner"):
            pass
        with pytest.raises(ModelError, match="outer: "), without_connections("outer"):
            inner()
    connect()


def test_files_of_this_machine_and_other_errors_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of such a socket is limited to about 100 characters
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("x")
        server.listen()
        with without_connections("mine"):
            client.connect("x")
    with pytest.raises(Cancelled), without_connections("mine"):
        raise Cancelled("Stopped.")
