"""Pages of other servers in a real browser: their access to Winnow, and the headers of every answer."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from pages.ui.door import PROTECTION
from tests.browser import chromium
from tests.browser.driver import PATIENCE, Server, settled
from tests.browser.forge import Forge
from tests.waiting import until

OPENS = """address => new Promise(resolve => {
    const line = new WebSocket(address);
    line.onopen = () => resolve("open");
    line.onerror = () => resolve("refused");
})"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("shared")
    with Server(home=folder / "home", data=folder, forge=forge) as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def rebound(browser: Browser) -> Iterator[Browser]:
    """Start a browser in which evil.example resolves to this machine, as after DNS rebinding."""
    rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    options = [*chromium.OPTIONS, rules]
    with browser.browser_type.launch(executable_path=chromium.find(), args=options, timeout=PATIENCE) as other:
        yield other


@pytest.fixture
def rebound_page(rebound: Browser) -> Iterator[Page]:
    """Open a tab of that browser in a new context."""
    with rebound.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        yield page


@pytest.fixture
def elsewhere(shared: Server) -> Iterator[str]:
    """Start another server of this machine whose page frames Winnow, and yield its address."""
    page = f'<h1>Elsewhere</h1><iframe src="{shared.url}/Corpora"></iframe>'

    class Framing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Framing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()


def test_another_page_can_neither_frame_winnow_nor_open_its_websocket(
    shared: Server, elsewhere: str, rebound_page: Page
) -> None:
    messages: list[str] = []
    rebound_page.on("console", lambda message: messages.append(message.text))
    with rebound_page.expect_event("console", lambda message: "frame-ancestors 'none'" in message.text):
        rebound_page.goto(elsewhere)
    [frame] = rebound_page.frames[1:]

    def refused() -> bool:
        frame.wait_for_load_state()
        return frame.url.startswith("chrome-error:")

    until(refused, f"no page in it: {messages}")
    socket = f"ws://localhost:{shared.port}/_stcore/stream"
    assert rebound_page.evaluate(OPENS, socket) == "refused"
    rebound_page.goto(shared.url)
    assert rebound_page.evaluate(OPENS, socket) == "open"  # Winnow's own page may connect


def test_another_page_has_no_handle_on_a_window_that_it_opened(
    shared: Server, elsewhere: str, rebound_page: Page
) -> None:
    """Otherwise it could send messages to Winnow, count its frames and navigate it away."""
    rebound_page.goto(elsewhere)
    with rebound_page.expect_popup() as caught:
        rebound_page.evaluate("address => { window.opened = window.open(address) }", shared.url)
    expect(caught.value.get_by_role("heading", name="Winnow", exact=True)).to_be_visible()
    rebound_page.wait_for_function("() => window.opened.closed")
    assert caught.value.evaluate("() => window.opener === null")


def test_a_foreign_name_shows_nothing_and_opens_no_websocket(shared: Server, rebound_page: Page) -> None:
    answer = rebound_page.goto(f"http://evil.example:{shared.port}/Corpora")
    assert answer
    assert answer.status == 403
    expect(rebound_page.get_by_text("Winnow answers only under the name localhost")).to_be_visible()
    for name in ("evil.example", "localhost", "127.0.0.1"):
        assert rebound_page.evaluate(OPENS, f"ws://{name}:{shared.port}/_stcore/stream") == "refused"


def test_no_other_page_may_send_commands(shared: Server, page: Page) -> None:
    assert page.request.get(f"{shared.url}/_stcore/host-config").json()["allowedOrigins"] == []


def test_every_kind_of_answer_has_the_security_headers(shared: Server, fresh_page: Page, tmp_path: Path) -> None:
    """Answers to the browser: page, script, upload and download; then a missing file and a refused request."""
    found: dict[str, dict[str, str]] = {}

    def heard(answer: Response) -> None:
        if answer.url.startswith(shared.url):
            found[f"{answer.request.method} {urlparse(answer.url).path}"] = answer.headers

    fresh_page.on("response", heard)
    (tmp_path / "rows.jsonl").write_text('{"text": "A clause is here ."}\n{"text": \n', encoding="utf-8")
    fresh_page.goto(f"{shared.url}/Corpora")
    settled(fresh_page)
    fresh_page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(tmp_path / "rows.jsonl")
    fresh_page.get_by_role("button", name="Import", exact=True).click()
    with fresh_page.expect_download() as caught:
        fresh_page.get_by_role("button", name="Download the rejected rows").click()
    media, nowhere = urlparse(caught.value.url).path, "/media/none.txt"
    for path in (media, nowhere):
        found[f"GET {path}"] = fresh_page.request.get(shared.url + path).headers
    refusal = fresh_page.request.get(shared.url, headers={"Host": "evil.example"})
    assert refusal.status == 403
    found["refused"] = refusal.headers
    for kind in (
        "GET /Corpora",
        "GET /static/js/",
        "PUT /_stcore/upload_file/",
        f"GET {media}",
        f"GET {nowhere}",
        "refused",
    ):
        assert [each for each in found if each.startswith(kind)], kind
    for kind, headers in found.items():
        assert {name: headers.get(name) for name in PROTECTION} == PROTECTION, kind
        assert headers.get("content-security-policy", "").startswith("default-src 'self'; "), kind
