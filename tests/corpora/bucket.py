"""A server for the requests of Amazon's storage protocol that pyarrow sends: put, multipart put, head, get, list."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BytesIO
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

WHEN = "Mon, 01 Jan 2024 00:00:00 GMT"


class Handler(BaseHTTPRequestHandler):
    """Answer one request. `objects` and `parts` belong to the server; their keys are paths."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]
    parts: dict[str, dict[int, bytes]]

    def _asked(self) -> tuple[str, dict[str, str]]:
        url = urlsplit(self.path)
        return unquote(url.path), {
            name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()
        }

    def _body(self) -> bytes:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(_pieces(self.rfile))
        if "aws-chunked" in (self.headers.get("Content-Encoding") or ""):
            body = b"".join(_pieces(BytesIO(body)))
        return body

    def _answer(self, status: int, body: bytes = b"", *, head: bool = False, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if not head:
            self.wfile.write(body)

    def _missing(self, *, head: bool = False) -> None:
        self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>", head=head)

    def do_PUT(self) -> None:
        path, query = self._asked()
        body = self._body()
        if "partNumber" in query:
            self.parts[query["uploadId"]][int(query["partNumber"])] = body
        elif path.count("/") > 1:  # else a bucket
            self.objects[path] = body
        self._answer(200, ETag='"part"')

    def do_POST(self) -> None:
        path, query = self._asked()
        self._body()
        if "uploads" in query:
            self.parts[path] = {}
            self._answer(200, f"<R><UploadId>{escape(path)}</UploadId></R>".encode())
            return
        parts = self.parts.pop(query["uploadId"])
        self.objects[path] = b"".join(parts[n] for n in sorted(parts))
        self._answer(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")

    def do_HEAD(self) -> None:
        path, _ = self._asked()
        if path not in self.objects:
            self._missing(head=True)
            return
        self._answer(200, self.objects[path], head=True, Last_Modified=WHEN)

    def do_GET(self) -> None:
        path, query = self._asked()
        if "list-type" in query:
            self._answer(200, self._listed(f"{path.rstrip('/')}/", query.get("prefix", "")))
        elif path not in self.objects:
            self._missing()
        else:
            body = self.objects[path]
            first, _, last = (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
            span = f"bytes {first}-{last or len(body) - 1}/{len(body)}"
            self._answer(206, body[int(first) : int(last or len(body)) + 1], Content_Range=span, Last_Modified=WHEN)

    def _listed(self, bucket: str, prefix: str) -> bytes:
        keys = sorted(key.removeprefix(bucket) for key in self.objects if key.startswith(bucket + prefix))
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[bucket + key])}</Size>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        return f"<ListBucketResult><KeyCount>{len(keys)}</KeyCount>{rows}</ListBucketResult>".encode()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _pieces(stream: BufferedIOBase) -> Iterator[bytes]:
    """Yield the pieces of a chunked body: each follows its hexadecimal size; trailers and an empty line end the body."""
    while size := int(stream.readline().partition(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass


@contextmanager
def serving() -> Iterator[str]:
    """Start the server; yield its address on this machine."""
    handler = type("Own", (Handler,), {"objects": {}, "parts": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
