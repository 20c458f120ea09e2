"""The Content-Security-Policy: pages of a forged project work under it, and markup on a page fetches nothing."""

import http.server
import json
import re
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from core.project_list import Project
from core.projects import view as projects
from tests.browser.driver import PAGES, Server, settled, visit, watched
from tests.browser.forge import Forge
from tests.browser.test_every_page import CHART, tabs_of

MARKUP = "![i](http://127.0.0.1:9/beacon.png) [l](http://127.0.0.1:9/link) <img src=http://127.0.0.1:9/tag.png>"
DRAWN = ":is(img[src*='127.0.0.1:9'], a[href*='127.0.0.1:9'])"
CHARTED = {"Selection", "Explore", "Results"}  # pages on which the sample shows a chart
BLOCKED = "addEventListener('securitypolicyviolation', e => console.error(`${e.violatedDirective} ${e.blockedURI}`))"
VERDICTS = ("verdict", "helped", "chose")  # each has one of a few fixed phrases, so it is not free text
FREE = ("unit", "machine", "device", "text", "file", "about", "why", "seeds_needed", "name", "names", "note")
# Try everything that markup or a script could do. Returns if all requests failed, and if the script did not run.
ATTEMPTS = """async address => {
    const image = new Image(); image.src = `${address}/image`; document.body.append(image);
    const style = document.createElement('style');
    style.textContent = `body { background: url(${address}/style) }`; document.head.append(style);
    const frame = document.createElement('iframe'); frame.src = `${address}/frame`; document.body.append(frame);
    const script = document.createElement('script'); script.textContent = 'window.ran = true';
    document.body.append(script);
    const answers = await Promise.allSettled([fetch(`${address}/fetch`, {mode: 'no-cors'}), new Promise((_, failed) => {
        const line = new WebSocket(address.replace('http', 'ws')); line.onerror = failed; line.onclose = failed;
    })]);
    navigator.sendBeacon(`${address}/beacon`, 'x');
    return [answers.every(answer => answer.status === 'rejected'), window.ran === undefined];
}"""


def walked(page: Page, server: Server, slug: str, tabs: bool) -> Iterator[str]:
    """Open every page of a project, and each of its tabs if `tabs`, and yield the page's name each time."""
    page.goto(f"{server.url}/Papers?project={slug}")
    settled(page)
    for name, address in PAGES.items():
        visit(page, f"{address}?project={slug}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Winnow" if name == "Home" else name)
        if name in CHARTED:
            expect(page.locator(CHART).first).to_be_visible()
        for _ in tabs_of(page) if tabs else [""]:
            yield name


def forged(value: object, key: str = "") -> object:
    """Replace every free string of a JSON value by markup; identifiers, dates and the names of options stay."""
    if isinstance(value, Mapping):
        metric = value.get("kind") == "metric"
        return {name: part if metric else forged(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [forged(part, key) for part in value]
    words = isinstance(value, str) and (key in FREE or (" " in value and key not in VERDICTS))
    return MARKUP if words and not re.match(r"/|\d{4}-\d\d-\d\dT", str(value)) else value


def forge_project(folder: Path) -> None:
    """Forge the JSON files of a project's runs and corpora; update the size and checksum of each result."""
    for about in folder.glob("corpora/*/about.json"):
        about.write_text(json.dumps(forged(json.loads(about.read_bytes()))), encoding="utf-8")
    for log in folder.glob("runs/*/events.jsonl"):
        result = log.with_name("result.json")
        written = json.dumps(forged(json.loads(result.read_bytes()))).encode()
        result.write_bytes(written)
        lines = [forged(json.loads(line)) for line in log.read_bytes().splitlines()]
        for line in lines:
            assert isinstance(line, dict)
            if line["kind"] == "succeeded":
                line["data"] |= {"size": len(written), "crc": zlib.crc32(written)}
        log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("WINNOW_HOME", str(tmp_path / "home"))
    return projects.open_finished_sample()


@pytest.fixture
def server(sample: Project, tmp_path: Path, forge: Forge) -> Iterator[Server]:
    (tmp_path / "data").mkdir()
    with Server(home=tmp_path / "home", data=tmp_path / "data", forge=forge) as server:
        server.start()
        yield server


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """Open a tab whose console may show errors, because each request that the policy blocks is one."""
    with watched(browser) as context:
        yield context.new_page()


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """Start another server of this machine; yield its address and the requests that it has received."""
    requests: list[str] = []

    class Listening(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listening) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()


@pytest.mark.parametrize("tabs", [pytest.param(False, marks=pytest.mark.road), True], ids=["pages", "tabs"])
def test_a_forged_project_makes_no_page_ask_another_server(
    server: Server, sample: Project, page: Page, tabs: bool
) -> None:
    """The fixture `page` fails the test for any error in the console; each blocked request causes one."""
    hosts: list[str] = []

    def note(request: Request) -> None:
        hosts.append(urlparse(request.url).netloc)

    forge_project(sample.folder)
    # Requests that the policy blocks count too, because `plain` and `escape` must prevent them already.
    page.add_init_script(BLOCKED)
    page.on("request", note)
    shown, drawn = [], []
    for name in walked(page, server, sample.slug, tabs):
        drawn += [name] * page.locator(DRAWN).count()
        shown += [name] if page.get_by_text("beacon.png").count() else []
    assert not drawn
    # Proves that the forged strings are shown at all.
    assert {"Selection", "Explore", "Training", "Results"} <= set(shown)
    assert set(hosts) - {""} == {urlparse(server.url).netloc}


def test_markup_on_a_page_fetches_nothing(server: Server, tab: Page, listener: tuple[str, list[str]]) -> None:
    address, requests = listener
    tab.goto(server.url)
    settled(tab)
    assert tab.evaluate(ATTEMPTS, address) == [True, True]
    tab.goto(f"{address}/seen")
    assert [path for path in requests if path != "/favicon.ico"] == ["/seen"]
