"""Requests for unknown addresses, sent as by a browser and as by the scripts of a page."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.frame import PAGES
from pages.ui.middleware import NAMES, NotFound
from tests.pages.drawing import ROOT, texts
from tests.pages.test_door import Inside


def ask(path: str, accept: str = "text/html,*/*", kind: str = "http", query: bytes = b"") -> list[dict[str, Any]]:
    """Return the messages that answer a request."""
    sent: list[dict[str, Any]] = []
    scope: dict[str, Any] = {"type": kind, "path": path, "method": "GET", "headers": [(b"accept", accept.encode())]}
    scope["query_string"] = query

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def nothing() -> dict[str, Any]:
        return {}

    with ThreadPoolExecutor(1) as thread:  # a browser test leaves this thread's event loop running
        thread.submit(lambda: asyncio.run(NotFound(Inside())(scope, nothing, send))).result()  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize("path", ["/nonsense", "/explore", "/a b", "/nonsense/"])
def test_unknown_address_redirects_a_browser_to_home(path: str) -> None:
    sent = ask(path)
    assert sent[0]["status"] == 303
    assert dict(sent[0]["headers"])[b"location"].startswith(b"/?nowhere=")


def test_redirect_keeps_the_project_of_the_address() -> None:
    [start, *_] = ask("/Nonsense", query=b"run=x&project=odd-files")
    assert dict(start["headers"])[b"location"] == b"/?nowhere=Nonsense&project=odd-files"


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/", "text/html"),
        ("/Explore", "text/html"),
        ("/Explore/", "text/html"),
        ("/nonsense", "*/*"),
        ("/favicon.png", "text/html"),
        ("/_stcore/health", "text/html"),
        ("/static/js/index.js", "text/html"),
    ],
)
def test_known_addresses_and_files_are_passed_on(path: str, accept: str) -> None:
    assert ask(path, accept)[0]["status"] == 200


def test_every_page_of_the_menu_is_a_known_address() -> None:
    stems = [Path(path).stem for pages in PAGES.values() for path, *_ in pages]
    assert {stem.partition("_")[2] or stem for stem in stems} == NAMES


def test_home_names_the_unknown_page_escaped() -> None:
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300)
    app.query_params["nowhere"] = "<b>explain"
    app.run()
    assert "There is no page &#60;b&#62;explain here" in texts(app)
