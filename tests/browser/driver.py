"""Start and stop the app, and wait until a page has settled."""

import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from playwright.sync_api import TimeoutError as TooLate

from tests import waiting
from tests.browser.forge import Forge, Forked
from tests.browser.wire import WIRE
from tests.homes import project_in
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
_NAMES = (path.stem.partition("_")[2] for path in sorted((ROOT / "pages").glob("*.py")))
PAGES = {"Home": "", **{name: name for name in _NAMES}}  # {name in the menu: address}
PATIENCE = waiting.WAIT_SECONDS * 1000  # milliseconds, the unit of playwright
AGAIN = 20_000  # milliseconds before an action is repeated because a redraw lost it
PORTS = range(12_000, 32_000)  # below the ports that the system assigns to outgoing connections
# A new tab starts with an empty local storage; a reload keeps it.
FORGET = """if (location.protocol === "http:" && !sessionStorage.known) {
    localStorage.clear();
    sessionStorage.known = "yes";
}"""
# Resolves after two frames, because a busy browser may need longer for them than any fixed pause.
FRAMES = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
# Milliseconds that a busy machine adds to drawing one frame and to one answer of the server.
LAG = """async () => {
    const start = performance.now();
    await new Promise(requestAnimationFrame);
    await fetch("/_stcore/health");
    return performance.now() - start - 16;
}"""


class Watch(threading.Thread):
    """Read the resident memory of a process, in bytes, every 20 ms while the block runs; keep the largest value."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak = psutil.Process(pid), 0
        self._limit, self._under, self._over = 0.0, threading.Event(), threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self.join()

    @property
    def now(self) -> int:
        return int(self.process.memory_info().rss)

    def run(self) -> None:
        while not self._over.wait(0.02):
            now = self.now
            self.peak = max(self.peak, now)
            if now <= self._limit:
                self._under.set()

    def falls(self, limit: float) -> bool:
        """Wait until the memory is at most `limit`; return False if it never is."""
        self._limit = limit
        return self._under.wait(waiting.WAIT_SECONDS)


_left: list[int] = []  # ports of stopped servers, reused because the browser has cached the scripts of these addresses


def free_port() -> int:
    """Return a port that no process listens on and that the system does not assign to connections."""
    return _free(random.SystemRandom().sample(PORTS, 100))


def served_port() -> int:
    """Return a free port, if possible one that an earlier server of these tests has used."""
    port = _free([*_left, *random.SystemRandom().sample(PORTS, 100)])
    _left[:] = [each for each in _left if each != port]
    return port


def _free(ports: Iterable[int]) -> int:
    for port in ports:
        with socket.socket() as four, socket.socket(socket.AF_INET6) as six:
            try:
                for probe in (four, six):  # connections of a stopped server do not block its port, as in app.py
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                four.bind(("127.0.0.1", port))
                six.bind(("::1", port))
            except OSError:
                continue
            return port
    raise AssertionError("a hundred ports are all taken")


@dataclass
class Server:
    """`python app.py` on its own home. Entering the context does not start it; leaving the context stops it."""

    home: Path
    data: Path
    port: int = field(default_factory=served_port)
    environment: Mapping[str, str] = field(default_factory=dict)
    root: Path = ROOT
    forge: Forge | None = None  # forks the server from a process that has done the imports; None starts a new process
    process: subprocess.Popen[bytes] | Forked | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
        _left.append(self.port)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def project(self) -> Path:
        """Return the folder of the home's first project."""
        return project_in(self.home)

    def start(self, words: Sequence[str] = (), host: str = "localhost") -> None:
        """Start the server; return when it answers at `host`. words: the command, if not `app.py`."""
        words = words or ("app.py", "--port", str(self.port), "--no-browser")
        folders = {"WINNOW_HOME": str(self.home), "WINNOW_DATA_DIRS": str(self.data)}
        environment = {**os.environ, **folders, **self.environment}
        log = self.data / "server.log"
        if self.forge:
            self.process = self.forge.server(words, environment, log)
        else:
            with log.open("ab") as file:
                command = [sys.executable, *words]
                self.process = subprocess.Popen(command, cwd=self.root, env=environment, stdout=file, stderr=file)
        process = self.process

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                with urllib.request.urlopen(f"http://{host}:{self.port}/_stcore/health", timeout=5) as answer:
                    return bool(answer.read() == b"ok")
            except (OSError, http.client.HTTPException):
                return False

        until(answers, "the server answers", pause=0.05)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End the server if it runs. Errors: AssertionError if it does not end, after killing it."""
        if not self.process:
            return
        process, self.process = self.process, None
        process.send_signal(by)
        try:
            process.wait(waiting.WAIT_SECONDS)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            process.kill()
            process.wait()
            raise AssertionError("the server did not end within four minutes") from None


def loaded(page: Page) -> None:
    """Wait until the page has all scripts and fonts.

    An element without its script is drawn as a skeleton, and a late font moves text and redraws charts. If the server
    stops before that, the browser reports a script that it could not fetch.
    """
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]') && document.fonts.status === 'loaded'")


def left(page: Page) -> None:
    """Leave the page once it is loaded, so that the server may stop."""
    loaded(page)
    page.goto("about:blank")


def watched(browser: Browser, **options: Any) -> BrowserContext:
    """Return a browser context whose pages count open requests to the server and start with empty local storage."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(FORGET)
    context.add_init_script(WIRE)
    return context


def settled(page: Page) -> None:
    """Wait until the script has run and the page is drawn; assert that it shows no exception and no dialog.

    Every rerun that the page has requested has started and ended. If it has requested none since the last call, one may
    still follow: within 155 ms after a click on a quiet machine. Not for pages with a panel that refreshes itself.
    """
    page.wait_for_selector("[data-testid=stApp][data-test-connection-state=CONNECTED]")
    lag = page.evaluate(LAG)
    asked = page.evaluate("wire.news()")
    page.wait_for_function("grace => wire.quiet(grace)", arg=max(40, 4 * lag) if asked else max(160, 10 * lag))
    loaded(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stDialog")).to_have_count(0)


def asking(page: Page, act: Callable[[], object]) -> None:
    """Do something that makes the page request a rerun. Wait for the request and for the end of the rerun."""
    before = page.evaluate("wire.asked")
    act()
    page.wait_for_function("before => wire.asked > before", arg=before)
    settled(page)


def insisting(page: Page, act: Callable[[], object]) -> None:
    """Do as `asking` does, but repeat the act until it requests a rerun: a redrawn chart or grid ignores the mouse."""
    before = page.evaluate("wire.asked")

    def heard() -> bool:
        act()
        with suppress(TooLate):
            page.wait_for_function("before => wire.asked > before", arg=before, timeout=AGAIN)
        return bool(page.evaluate("wire.asked") > before)

    until(heard, "a rerun is asked for")
    settled(page)


def drag(page: Page, chart: Locator, places: Callable[[Mapping[str, float]], Sequence[tuple[float, float]]]) -> None:
    """Drag the mouse over a chart, and wait for the rerun that this requests.

    places: the points that the mouse passes, computed from the chart's box.
    """

    def drawn() -> None:
        first, *rest = places(still(chart))
        page.mouse.move(*first)
        page.mouse.down()
        for place in rest:
            page.mouse.move(*place, steps=4)
        page.mouse.up()

    insisting(page, drawn)


def visit(page: Page, address: str) -> None:
    """Go to another page of the open app without loading it again, as the Back button does."""
    go = "address => { history.pushState({}, '', address); dispatchEvent(new PopStateEvent('popstate')) }"
    asking(page, lambda: page.evaluate(go, f"/{address}"))


def still(locator: Locator) -> dict[str, float]:
    """Return the box of an element once it is visible, uncovered, and at the same place for four frames in a row.

    `hover` waits until the element is stable for two frames. The further frames outlast an expander that starts to
    open.
    """
    locator.hover(trial=True)

    def rests() -> Any:
        before = locator.bounding_box()
        for _ in range(4):
            locator.page.evaluate(FRAMES)
            if locator.bounding_box() != before:
                return None
        return before

    return dict(until(rests, "the element stops moving"))


def pick(
    page: Page, label: str | re.Pattern[str], option: str | re.Pattern[str], *, typed: str = "", nth: int = 0
) -> None:
    """Choose an option of a select box; open its list again if a rerun has replaced the field and closed the list.

    typed: text that narrows the list first. nth: index among the matching options.
    """
    field = page.get_by_role("combobox", name=label).first
    wanted = page.get_by_role("option", name=option).nth(nth)

    def chosen() -> bool:
        field.click()
        if typed:
            field.fill(typed)
        try:
            wanted.click(timeout=5_000)
        except TooLate:
            return False
        return True

    until(chosen, f"{label} offers {option}")
    settled(page)


def tick(page: Page, label: str | re.Pattern[str]) -> None:
    """Tick a box; tick it again if a rerun has replaced it."""
    box = page.get_by_role("checkbox", name=label)

    def ticked() -> bool:
        if not box.is_checked():
            page.locator("label").filter(has=box).click()
        settled(page)
        return box.is_checked()

    until(ticked, f"{label} is ticked")


def expert(page: Page, shown: bool = True) -> None:
    """Set the switch for expert options in the menu."""
    switch = page.locator(".st-key-frame-expert")
    box = switch.locator("input")
    if box.is_checked() != shown:
        asking(page, switch.locator("label").first.click)
    expect(box).to_be_checked(checked=shown)
