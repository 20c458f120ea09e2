"""Starting and stopping the app, and knowing when a page has settled."""

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

from tests import patience
from tests.browser.forge import Forge, Forked
from tests.browser.wire import WIRE
from tests.patience import until

ROOT = Path(__file__).resolve().parents[2]
_NAMES = (path.stem.partition("_")[2] for path in sorted((ROOT / "pages").glob("*.py")))
PAGES = {"Home": "", **{name: name for name in _NAMES}}  # {what the menu calls it: its address}
PATIENCE = patience.PATIENCE * 1000  # milliseconds, as playwright counts them
AGAIN = 20_000  # milliseconds after which an act that a redrawn element has lost is repeated
PORTS = range(12_000, 32_000)  # below those that the system gives to whoever connects to somewhere
# A new tab knows nothing of what an earlier one of its profile kept; one that reloads does.
FORGET = """if (location.protocol === "http:" && !sessionStorage.known) {
    localStorage.clear();
    sessionStorage.known = "yes";
}"""
# A crowded browser may take longer than any pause for a frame.
FRAMES = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
# Milliseconds until this browser has drawn a frame and the server has answered it: what a crowded machine adds.
LAG = """async () => {
    const start = performance.now();
    await new Promise(requestAnimationFrame);
    await fetch("/_stcore/health");
    return performance.now() - start - 16;
}"""


class Watch(threading.Thread):
    """The resident memory of a process, in bytes, read every 20 ms as long as the block lasts: the largest, and its fall."""

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
        """Wait until it is at most `limit`; whether it ever was."""
        self._limit = limit
        return self._under.wait(patience.PATIENCE)


_left: list[int] = []  # ports of servers that are gone: what a browser has fetched from one, it need not fetch again


def free_port() -> int:
    """A port that nobody listens on, and that the system gives to nobody in the meantime."""
    return _free(random.SystemRandom().sample(PORTS, 100))


def served_port() -> int:
    """The same; one that a server of these tests has left goes first."""
    port = _free([*_left, *random.SystemRandom().sample(PORTS, 100)])
    _left[:] = [each for each in _left if each != port]
    return port


def _free(ports: Iterable[int]) -> int:
    for port in ports:
        with socket.socket() as four, socket.socket(socket.AF_INET6) as six:
            try:
                for probe in (four, six):  # what is left of a server that is gone keeps nobody out, as in app.py
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                four.bind(("127.0.0.1", port))
                six.bind(("::1", port))
            except OSError:
                continue
            return port
    raise AssertionError("a hundred ports are all taken")


@dataclass
class Server:
    """`python app.py` on a home of its own. As a context it is not started yet, and stopped whatever happens."""

    home: Path
    data: Path
    port: int = field(default_factory=served_port)
    environment: Mapping[str, str] = field(default_factory=dict)
    root: Path = ROOT
    forge: Forge | None = None  # what makes it; else it is started anew
    process: subprocess.Popen[bytes] | Forked | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
        _left.append(self.port)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self, words: Sequence[str] = (), host: str = "localhost") -> None:
        """Return when it answers. words: another way to start it; host: where it is asked whether it is up."""
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
        """End it, if there is one. Errors: AssertionError where it does not, which kills it."""
        if not self.process:
            return
        process, self.process = self.process, None
        process.send_signal(by)
        try:
            process.wait(patience.PATIENCE)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            process.kill()
            process.wait()
            raise AssertionError("the server did not end within four minutes") from None


def loaded(page: Page) -> None:
    """What the page draws has its code and its fonts: a part whose script is still on its way holds a skeleton's place, and
    a font that comes late moves what is written and has charts drawn anew.

    A server that stops before has a browser say that it could not fetch that script.
    """
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]') && document.fonts.status === 'loaded'")


def left(page: Page) -> None:
    """The page asks its server for nothing any more, which may stop then."""
    loaded(page)
    page.goto("about:blank")


def watched(browser: Browser, **options: Any) -> BrowserContext:
    """A context in whose pages one knows what the server still owes an answer; each of them begins with nothing kept."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(FORGET)
    context.add_init_script(WIRE)
    return context


def settled(page: Page) -> None:
    """The script has run, all of it is drawn; no exception, no dialog. Only for pages without a live panel.

    Every rerun that the page has asked for has begun and ended. Where it has asked for none since the last time, one may
    still be on its way: a click leads to it within 155 ms on a quiet machine.
    """
    page.wait_for_selector("[data-testid=stApp][data-test-connection-state=CONNECTED]")
    lag = page.evaluate(LAG)
    asked = page.evaluate("wire.news()")
    page.wait_for_function("grace => wire.quiet(grace)", arg=max(40, 4 * lag) if asked else max(160, 10 * lag))
    loaded(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stDialog")).to_have_count(0)


def asking(page: Page, act: Callable[[], object]) -> None:
    """Do what makes the page ask for a rerun, however late it asks, and wait until that is over."""
    before = page.evaluate("wire.asked")
    act()
    page.wait_for_function("before => wire.asked > before", arg=before)
    settled(page)


def insisting(page: Page, act: Callable[[], object]) -> None:
    """`asking` of a chart or a grid, which forgets the mouse where it is drawn anew meanwhile: it is done again then."""
    before = page.evaluate("wire.asked")

    def heard() -> bool:
        act()
        with suppress(TooLate):
            page.wait_for_function("before => wire.asked > before", arg=before, timeout=AGAIN)
        return bool(page.evaluate("wire.asked") > before)

    until(heard, "a rerun is asked for")
    settled(page)


def drag(page: Page, chart: Locator, places: Callable[[Mapping[str, float]], Sequence[tuple[float, float]]]) -> None:
    """Draw over a chart with the mouse held down, and wait until what that asks for is over.

    places: where the mouse goes, from the chart's box.
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
    """To another page of the app that is open, as a browser's Back and Forward lead there: nothing is loaded anew."""
    go = "address => { history.pushState({}, '', address); dispatchEvent(new PopStateEvent('popstate')) }"
    asking(page, lambda: page.evaluate(go, f"/{address}"))


def still(locator: Locator) -> dict[str, float]:
    """Return the box of an element that is in sight, is not covered, and is the same for four frames in a row.

    `hover` waits until the element is stable for two frames; the further frames outlast an expander that starts to open.
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
    """Choose in a list. A rerun may make the field anew, which closes its list: it is opened again then.

    typed: what narrows the list before. nth: which of the options that fit.
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
    """Tick a box; one that a rerun has drawn anew meanwhile is ticked again."""
    box = page.get_by_role("checkbox", name=label)

    def ticked() -> bool:
        if not box.is_checked():
            page.locator("label").filter(has=box).click()
        settled(page)
        return box.is_checked()

    until(ticked, f"{label} is ticked")


def expert(page: Page, shown: bool = True) -> None:
    """Turn the switch for what only experts need, in the menu; one that stands as wanted is left alone."""
    switch = page.locator(".st-key-frame-expert")
    box = switch.locator("input")
    if box.is_checked() != shown:
        asking(page, switch.locator("label").first.click)
    expect(box).to_be_checked(checked=shown)
