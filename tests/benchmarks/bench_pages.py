"""How long a person waits for 4_Explore: from a finished selection to its map, its first paint, a change of page.

    python -m tests.benchmarks.bench_pages

A real server and chromium, the legal sample, the default strategy. Goals: 60 s, 3 s, 0.5 s on an idle machine.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from core.facade import corpora, maps, runs
from tests.browser.driver import Server, left, settled, watched

DRAWN = ".st-key-explore-map .nsewdrag.drag"
# When the page itself first has the map in a frame: playwright looks every half second, which is what it would report.
PAINTED = f"() => document.querySelector('{DRAWN}')?.checkVisibility() && performance.timeOrigin + performance.now()"
ROUNDS = 5


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median(work: Callable[[], float]) -> str:
    found = sorted(work() for _ in range(ROUNDS))
    return f"{statistics.median(found):.2f} s ({found[0]:.2f} to {found[-1]:.2f}, {ROUNDS} rounds)"


def first_paint(page: Page, address: str) -> float:
    page.goto("about:blank")
    started = time.time()
    page.goto(address)
    return float(page.wait_for_function(PAINTED).json_value()) / 1000 - started


def change(page: Page) -> float:
    """To Selection and back to Explore, by the sidebar; the heading is there and the script has begun to draw."""
    link = page.get_by_test_id("stSidebar").get_by_role("link")

    def to(name: str) -> float:
        link.filter(has_text=name).click()
        return seconds(lambda: expect(page.get_by_role("heading", name=name, level=1)).to_be_visible())

    there = to("Selection")
    settled(page)
    back = to("Explore")
    expect(page.locator(DRAWN).first).to_be_visible()
    settled(page)
    return max(there, back)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(home=Path(folder) / "home", data=Path(folder))
        os.environ["WINNOW_HOME"] = str(server.home)
        corpora.open_sample("legal")
        select = runs.execute("select", {name: corpora.roles()[name] for name in ("task", "domain")}).id
        to_map = seconds(lambda: runs.execute("map", maps.options(select)))
        print(f"from a finished selection to its map, stored     {to_map:.1f} s   goal 60 s")
        server.start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = watched(browser, viewport={"width": 1280, "height": 900}).new_page()
        address = f"{server.url}/Explore?run={select}"
        print(f"first paint of the map, server and browser new   {first_paint(page, address):.2f} s   goal 3 s")
        print(
            f"first paint of the map                           {median(lambda: first_paint(page, address))}   goal 3 s"
        )
        settled(page)
        left(page)
        server.stop()
        server.start()
        again = f"{first_paint(page, address):.2f} s"
        print(f"the same, the server started again               {again}   goal 3 s")
        settled(page)
        print(f"a change of page                                 {median(lambda: change(page))}   goal 0.5 s")
        browser.close()
        server.stop()


if __name__ == "__main__":
    main()
