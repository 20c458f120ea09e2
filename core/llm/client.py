"""Send requests to an OpenAI-compatible server, without redirects or proxies, and with limits of size and time.

Errors and logs contain no prompt, no answer and no key.
"""

import json
import os
import re
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from core.errors import ConfigError, ModelError, ResourceError
from core.llm.addresses import Server

# name of the environment variable with the key of the server, if the server needs one
KEY = "WINNOW_LLM_KEY"
# largest size of a response in bytes; an answer of 32,000 tokens has about 200 kB
MOST_BYTES = 1 << 22
TIME_OUT, LOST, TOO_LARGE, NO_ANSWER = "no answer in time", "connection lost", "too large", "no chat completion"
# time limit of `check_reachable`, in seconds
_PATIENCE = 10.0
# HTTP status codes below 500 for which a repeated request may succeed
_AGAIN = (408, 425, 429)
_SENDABLE = re.compile("[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Reply to one request. text: the model's answer. problem: reason if there is no answer, else "".

    again: True if the same request may succeed later.
    """

    text: str = ""
    problem: str = ""
    again: bool = False


class Client:
    """Sends requests to a server. Several threads may share a client. timeout: seconds for a whole request.

    closed: event that `close` sets, so that no further request is sent.
    """

    def __init__(self, server: Server, timeout: float) -> None:
        """Read the key from the environment variable `KEY`, if set. Errors: ConfigError if the key cannot be sent."""
        self.server, self.timeout = server, timeout
        self.closed = threading.Event()
        self._headers = {"Content-Type": "application/json", "Connection": "close"}
        if key := os.environ.get(KEY, ""):
            if not _SENDABLE.fullmatch(key):
                raise ConfigError(f"{KEY}: contains a blank or a non-ASCII character; correct the key, or unset it.")
            self._headers["Authorization"] = f"Bearer {key}"
        self._guard, self._open = threading.Lock(), set[_Connection]()

    def ask(self, body: bytes) -> Reply:
        """Send the body of a chat completion, and return the reply.

        Errors: ResourceError if nothing listens at the address or TLS fails; ModelError for a redirect, a refused key
        and an unknown model.
        """
        connection = _Connection(self.server, self.timeout)
        with self._guard:
            if self.closed.is_set():
                return Reply(problem=LOST)
            self._open.add(connection)
        timer = threading.Timer(self.timeout, connection.stop)
        timer.daemon = True
        timer.start()
        try:
            connection.request("POST", f"{self.server.path}/chat/completions", body, self._headers)
            with connection.getresponse() as response:
                status, data = response.status, response.read(MOST_BYTES + 1)
        except (ConnectionRefusedError, socket.gaierror) as error:
            raise _nothing_at(self.server) from error
        except (OSError, HTTPException) as error:
            late = connection.stopped or isinstance(error, TimeoutError)  # The socket may end before the timer.
            return Reply(problem=TIME_OUT if late else LOST, again=True)
        finally:
            timer.cancel()
            connection.close()
            with self._guard:
                self._open.discard(connection)
        if connection.stopped:  # a body that was cut short raises no error
            return Reply(problem=TIME_OUT, again=True)
        self._refuse(status)
        if status != 200:
            return Reply(problem=f"HTTP {status}", again=status >= 500 or status in _AGAIN)
        return Reply(problem=TOO_LARGE) if len(data) > MOST_BYTES else _reply(data)

    def close(self) -> None:
        """End all requests, including the requests of other threads."""
        with self._guard:
            self.closed.set()
            opened = list(self._open)
        for connection in opened:
            connection.stop()

    def _refuse(self, status: int) -> None:
        """Raise ModelError for an HTTP status that all further requests would get too."""
        problems = {
            401: f"refuses access; set the key in the environment variable {KEY}",
            403: f"refuses access; check the key in the environment variable {KEY}",
            404: "does not know the model or the path; check both (`ollama list` shows the models of Ollama)",
        }
        problem = problems.get(status, "")
        if 300 <= status < 400:
            problem = "redirects elsewhere, which Winnow does not follow; give the address that it redirects to"
        if problem:
            raise ModelError(f"{self.server.address}: the server {problem} (HTTP {status}), then resume the run.")


def check_reachable(server: Server) -> None:
    """Connect to a server without sending anything. Errors: ResourceError if it fails or takes over 10 seconds."""
    try:
        server.connected(_PATIENCE).close()
    except OSError as error:
        raise _nothing_at(server) from error


def _nothing_at(server: Server) -> ResourceError:
    return ResourceError(
        f"{server.address}: nothing answers there; start the server of the model (for example `ollama serve`, `vllm "
        "serve` or `llama-server`) or correct the address, then resume the run."
    )


class _Connection(HTTPConnection):
    """A connection that any thread can end with `stop`. stopped: True after a call of `stop`.

    http.client follows no redirect and reads no proxy from the environment.
    """

    def __init__(self, server: Server, seconds: float) -> None:
        super().__init__(server.host, server.port, timeout=seconds)
        self.stopped = False
        self._server, self._seconds = server, seconds
        self._live: socket.socket | None = None

    def connect(self) -> None:
        """Connect, with TLS for https. Errors: OSError; ResourceError if TLS fails."""
        plain = self._server.connected(self._seconds)
        self._use(plain)
        if not self._server.tls:
            return
        secure = ssl.create_default_context().wrap_socket(
            plain, server_hostname=self._server.host, do_handshake_on_connect=False
        )
        self._use(secure)
        try:
            secure.do_handshake()
        except ssl.SSLError as error:
            if self.stopped:
                raise
            raise ResourceError(
                f"{self._server.address}: no secure connection ({error.reason}); use http, or name the file of the "
                "server's certificate in the environment variable SSL_CERT_FILE, then resume the run."
            ) from error

    def stop(self) -> None:
        """End the connection. The thread that waits for a response continues at once."""
        self.stopped = True
        if self._live:
            with suppress(OSError):
                # SSLSocket.shutdown would change state that the waiting thread uses.
                socket.socket.shutdown(self._live, socket.SHUT_RDWR)

    def _use(self, opened: socket.socket) -> None:
        self.sock = self._live = opened
        if self.stopped:  # `stop` may have been called before `_live` was set
            raise TimeoutError


def _reply(data: bytes) -> Reply:
    """Return the reply in a chat completion. The header Content-Type is ignored."""
    try:
        text = json.loads(data)["choices"][0]["message"]["content"]
    except (ValueError, TypeError, LookupError, RecursionError):
        text = None
    return Reply(text=text) if isinstance(text, str) else Reply(problem=NO_ANSWER, again=True)
