"""Fixtures: a real server and a real Chromium. `traffic.py` checks the traffic and console of every page."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser import chromium
from tests.browser.driver import PATIENCE, Server, watched
from tests.browser.forge import Forge
from tests.browser.traffic import held_to_account

VIEWPORT = {"width": 1280, "height": 900}
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder `browser`, and `full` unless it is marked `road`."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)
            if not item.get_closest_marker("road"):
                item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    with Forge() as forge:
        yield forge


@pytest.fixture
def server(tmp_path: Path, forge: Forge) -> Iterator[Server]:
    data = tmp_path / "data"
    data.mkdir()
    with Server(home=tmp_path / "home", data=data, forge=forge) as server:
        server.start()
        yield server
    end_workers(tmp_path)


@pytest.fixture
def cold(tmp_path: Path) -> Iterator[Server]:
    """Start a server in a new process that has imported nothing yet and uses all cores, as a user's server does."""
    data = tmp_path / "data"
    data.mkdir()
    cores = {"OMP_NUM_THREADS": str(os.cpu_count())}
    with Server(home=tmp_path / "home", data=data, environment=cores) as server:
        server.start()
        yield server
    end_workers(tmp_path)


def end_workers(folder: Path) -> None:
    """Kill the processes that work below `folder`. A run outlives its server, so a failed test would leave it running."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests. Without a browser, skip them and count them at the end, or fail if CI is set."""
    path = chromium.find()
    with sync_playwright() as playwright:
        started = chromium.start(playwright, path)
        if isinstance(started, str):
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"needs a browser: {started}")
        yield started
        started.close()


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """Share fetched and compiled scripts between tests, because loading them takes most of a page's load time."""
    with watched(browser, viewport=VIEWPORT) as context:
        yield context


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    """Open a tab, and check its traffic and console at the end."""
    with held_to_account(profile.new_page()) as page:
        yield page
        page.close()
    profile.clear_cookies()


@pytest.fixture
def fresh_page(browser: Browser) -> Iterator[Page]:
    """Open a tab as `page` does, in a browser context that has fetched nothing yet."""
    with watched(browser, viewport=VIEWPORT) as context, held_to_account(context.new_page()) as page:
        yield page
        page.close()


@pytest.fixture
def lines() -> Callable[[int, int], list[str]]:
    """Return `lines(n, seed)`, which makes n different sentences of invented words."""
    starts = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu")
    words = [start + end for start in starts for end in ("lan", "mer", "nit", "pos", "rud")]

    def make(n: int, seed: int) -> list[str]:
        draw = random.Random(seed)
        return [" ".join(draw.choice(words) for _ in range(draw.randint(8, 20))) + " ." for _ in range(n)]

    return make
