"""Starting and stopping the app, and knowing when a page has settled."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as TooLate

ROOT = Path(__file__).resolve().parents[2]
# Milliseconds until this browser has drawn a frame and the server has answered it: what a crowded machine adds.
LAG = """async () => {
    const start = performance.now();
    await new Promise(requestAnimationFrame);
    await fetch("/_stcore/health");
    return performance.now() - start - 16;
}"""


class Watch(threading.Thread):
    """The resident memory of a process, in bytes, read every 20 ms until `over` is set: the largest, and its fall."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.over = psutil.Process(pid), 0, threading.Event()
        self._limit, self._under = 0.0, threading.Event()

    @property
    def now(self) -> int:
        return int(self.process.memory_info().rss)

    def run(self) -> None:
        while not self.over.wait(0.02):
            now = self.now
            self.peak = max(self.peak, now)
            if now <= self._limit:
                self._under.set()

    def falls(self, limit: float, seconds: float) -> bool:
        """Wait until it is at most `limit`; whether it was so within `seconds`."""
        self._limit = limit
        return self._under.wait(seconds)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """`python app.py` on a home of its own."""

    home: Path
    data: Path
    port: int = field(default_factory=free_port)
    environment: Mapping[str, str] = field(default_factory=dict)
    root: Path = ROOT
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self, words: Sequence[str] = (), host: str = "localhost") -> None:
        """Return when it answers. words: another way to start it; host: where it is asked whether it is up."""
        command = [sys.executable, *(words or ("app.py", "--port", str(self.port), "--no-browser"))]
        folders = {"WINNOW_HOME": str(self.home), "WINNOW_DATA_DIRS": str(self.data)}
        environment = {**os.environ, **folders, **self.environment}
        with (self.data / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.root, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.data / "server.log").read_text()
            try:
                with urllib.request.urlopen(f"http://{host}:{self.port}/_stcore/health", timeout=1) as answer:
                    if answer.read() == b"ok":
                        return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not come up within two minutes")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(60)
            self.process = None


def loaded(page: Page) -> None:
    """What the page draws has its code: a part whose script is still on its way holds a skeleton's place.

    A server that stops before has a browser say that it could not fetch that script.
    """
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")


def left(page: Page) -> None:
    """The page asks its server for nothing any more, which may stop then."""
    loaded(page)
    page.goto("about:blank")


def settled(page: Page) -> None:
    """The script has run, all of it is drawn; no exception, no dialog. Only for pages without a live panel."""
    page.wait_for_selector("[data-testid=stApp][data-test-connection-state=CONNECTED]")
    lag = page.evaluate(LAG)
    page.wait_for_timeout(max(160, 10 * lag))  # the state flips to running within 155 ms of a click on a quiet machine
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    loaded(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stDialog")).to_have_count(0)


def pick(
    page: Page, label: str | re.Pattern[str], option: str | re.Pattern[str], *, typed: str = "", nth: int = 0
) -> None:
    """Choose in a list. A rerun may make the field anew, which closes its list: it is opened again then.

    typed: what narrows the list before. nth: which of the options that fit.
    """
    field = page.get_by_role("combobox", name=label).first
    for _ in range(12):
        field.click()
        if typed:
            field.fill(typed)
        try:
            page.get_by_role("option", name=option).nth(nth).click(timeout=5_000)
        except TooLate:
            continue
        settled(page)
        return
    raise AssertionError(f"{label} does not offer {option}")


def tick(page: Page, label: str | re.Pattern[str]) -> None:
    """Tick a box; one that a rerun has drawn anew meanwhile is ticked again."""
    box = page.get_by_role("checkbox", name=label)
    for _ in range(5):
        if not box.is_checked():
            page.locator("label").filter(has=box).click()
        settled(page)
        if box.is_checked():
            return
    raise AssertionError(f"{label} cannot be ticked")
