"""A fake server of language models on this computer, with the faults of real ones."""

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ASKED = re.compile(r"Sentence: (\".*\")\nAnswer:")

Answer = Callable[[str], str]  # the sentence -> text of the answer


def entities(*pairs: tuple[str, str]) -> str:
    """Return an answer. pairs: (text, type)."""
    return json.dumps([{"text": text, "type": type} for text, type in pairs], ensure_ascii=False)


def completion(text: str) -> bytes:
    """Return the body of a response."""
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


class FakeLlm(ThreadingHTTPServer):
    """Answers chat completions until the block ends.

    answer: function from the sentence to the text of the answer. faults: {number of the request, from 0: function that
    handles it instead}; key -1 stands for all others. asked: sentence, body and headers of each request, in order.
    busiest: most requests at a time.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, answer: Answer, faults: Mapping[int, Callable[["Handler"], None]] | None = None, seconds: float = 0.0
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.faults, self.seconds = answer, dict(faults or {}), seconds
        self.asked = list[tuple[str, dict[str, Any], dict[str, str]]]()
        self.busy = self.busiest = 0
        self.guard = threading.Lock()
        self.over = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def server_bind(self) -> None:
        """Bind without looking up the name of this computer, as `HTTPServer` does."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    @property
    def sentences(self) -> Sequence[str]:
        """Sentences of all requests, in order."""
        return [sentence for sentence, _, _ in self.asked]

    def __exit__(self, *args: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing if a client hangs up."""


class Handler(BaseHTTPRequestHandler):
    server: FakeLlm
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sentence = json.loads(_ASKED.findall(body["messages"][0]["content"])[-1])
        with self.server.guard:
            number = len(self.server.asked)
            self.server.asked.append((sentence, body, dict(self.headers)))
            self.server.busy += 1
            self.server.busiest = max(self.server.busy, self.server.busiest)
        try:
            time.sleep(self.server.seconds)
            fault = self.server.faults.get(number, self.server.faults.get(-1))
            answer = b"" if fault else completion(self.server.answer(sentence))
        finally:
            # Before the reply: the client may send its next request before this thread continues after it.
            with self.server.guard:
                self.server.busy -= 1
        if fault:
            fault(self)
        else:
            self.reply(answer)

    def do_GET(self) -> None:
        """Answer what a client that follows a redirect would send."""
        with self.server.guard:
            self.server.asked.append(("", {}, dict(self.headers)))
        self.reply(completion("[]"))

    def reply(self, body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


def says(text: str) -> Callable[[Handler], None]:
    """Return a fault: an answer with this text."""
    return lambda handler: handler.reply(completion(text))


def fails(status: int, body: bytes = b"{}", **headers: str) -> Callable[[Handler], None]:
    """Return a fault: a response with this state."""
    return lambda handler: handler.reply(body, status, **headers)


def hangs(handler: Handler) -> None:
    """Answer nothing until the server ends."""
    handler.server.over.wait(30)


def drips(handler: Handler) -> None:
    """Send a byte of the response every 0.05 seconds, so that no single read times out."""
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        if handler.server.over.wait(0.05):
            return


def hangs_up(handler: Handler) -> None:
    """Close the connection in the middle of the body."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')
    handler.close_connection = True


def floods(handler: Handler) -> None:
    """Send an endless body."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 40))
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * (1 << 16))


@cache
def lasting() -> str:
    """Return the address of a server that lasts as long as this process, and takes the first word for a PARTY."""
    return FakeLlm(lambda sentence: entities((sentence.split(maxsplit=1)[0], "PARTY"))).address
