"""Run the app's server on a home, and visit its first page without a browser, by the messages that a browser sends."""

import http.client
import os
import random
import socket
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from signal import SIGKILL
from typing import Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.browser.forge import Forge, Forked

PATIENCE = 120.0  # seconds
PORTS = range(12_000, 32_000)  # below the ports that the system assigns to outgoing connections


class Servers:
    """Servers with one environment, one at a time, on one port. As a context manager, kill the last one at the end."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log, self._environment = log, environment
        self._forge, self._port = _forge(), _free_port()
        self._process: Forked | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start a server and return when it answers. Errors: AssertionError if it does not within `PATIENCE`."""
        words = ["app.py", "--port", str(self._port), "--no-browser"]
        self._process = self._forge.server(words, {**os.environ, **self._environment}, self._log)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://localhost:{self._port}/_stcore/health", timeout=5) as answer:
                    if answer.read() == b"ok":
                        return
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """Send SIGKILL to the server, if one is running."""
        if self._process and self._process.is_running():
            self._process.send_signal(SIGKILL)
            while self._process.is_running():
                time.sleep(0.01)

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Request the first page, and stay connected during the block."""
        with self._line() as line:
            line.send(_ask())
            yield

    def page(self) -> None:
        """Load the first page completely. Errors: AssertionError if it shows a bug."""
        with self._line() as line:
            line.send(_ask())
            while True:
                message = ForwardMsg.FromString(line.recv(timeout=PATIENCE))
                element = message.delta.new_element
                assert not element.HasField("exception"), element.exception.message
                assert "bug in Winnow" not in element.alert.body, element.alert.body
                if message.HasField("script_finished"):
                    return

    def _line(self) -> ClientConnection:
        """Connect to the server as a page does."""
        origin, address = Origin(f"http://localhost:{self._port}"), f"ws://localhost:{self._port}/_stcore/stream"
        return connect(address, origin=origin, max_size=None, open_timeout=PATIENCE)


@cache
def _forge() -> Forge:
    """Return the forge of all servers; it ends with this process."""
    return Forge()


def _ask() -> bytes:
    message = BackMsg()
    message.rerun_script.query_string = ""
    return bytes(message.SerializeToString())


def _free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as four:
            try:
                four.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("100 random ports are all in use")
