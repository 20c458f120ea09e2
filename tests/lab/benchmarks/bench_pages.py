"""Measure how long a user waits for pages.

    python -m tests.lab.benchmarks.bench_pages            4_Explore: selection to map, its first paint, a change of page
    python -m tests.lab.benchmarks.bench_pages --every    every page: first paint, a click, opening it from the menu
    python -m tests.lab.benchmarks.bench_pages --every --rows 1000000    the same with a domain corpus of a million rows
    ... --rounds 1    a trial: each once instead of five times
    python -m tests.lab.benchmarks.bench_pages --finished    from the button that opens the finished sample to its steps

Run this with a real server and chromium on an idle machine. Goals for Explore: 60 s, 3 s, 0.5 s. Goals for every page:
1 s, with a million rows 2 s, and 0.3 s for a click. Goal for the finished sample: 5 s, once per home; its map, answer
and report are then one change of page away. The click is on the switch Expert, which redraws the whole page. The CPU
seconds of the server are printed too, because other work on the machine does not lengthen them.

Playwright makes the browser record the stack of every script error. The map's script raises and catches several errors
when it loads. Recording them costs half a second, which a user's browser does not spend. So a "new tab" is measured in
a browser without Playwright that has loaded the page before. It is measured until the heading is visible, and until
everything is drawn, including charts. The map's first paint in a new browser is printed with and without Playwright.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Page, Playwright, expect, sync_playwright
from websockets.sync.client import ClientConnection, connect

from core.explore import view as maps
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import library
from core.text.sentence import Sentence, sentence_id
from tests.browser.driver import PAGES, Server, left, settled, watched

DRAWN = ".st-key-explore-map .nsewdrag.drag"
# Time of the first frame with the map, by the page's own clock. Playwright looks only every half second.
PAINTED = f"() => document.querySelector('{DRAWN}')?.checkVisibility() && performance.timeOrigin + performance.now()"
# Script that records in the page when each of some things first appeared.
KEEP = """(() => {
    const drawn = [%s], moments = window.painted = drawn.map(() => null);
    (function look() {
        drawn.forEach((each, i) => moments[i] ||= each() || null);
        moments.includes(null) && requestAnimationFrame(look);
    })();
})()"""
# Time at which a page's heading is visible.
HEADED = "() => document.querySelector('h1')?.checkVisibility() && performance.timeOrigin + performance.now()"
ROUNDS = 5
SEEN = 2  # loads of a page before the measured one; afterwards the browser keeps the compiled scripts
# Time at which a page is drawn: its script has ended, no element waits for its code, and every chart has a drawing.
WHOLE = """() => document.querySelector('h1')?.checkVisibility() && !document.querySelector('[data-testid=stSkeleton]')
    && [...document.querySelectorAll('.stPlotlyChart, .stVegaLiteChart')].every(e => e.querySelector('.main-svg, .marks'))
    && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
    && performance.timeOrigin + performance.now()"""
# The same, but wait until the heading differs from `before`.
TURNED = f"before => document.querySelector('h1')?.innerText !== before && ({WHOLE})()"
# Milliseconds from a click until the script that it starts has ended.
ANSWERED = """button => new Promise(answered => {
    const app = document.querySelector("[data-testid=stApp]"), start = performance.now();
    let begun = false;
    new MutationObserver((_, watch) => {
        const running = app.dataset.testScriptState !== "notRunning";
        begun ||= running;
        if (begun && !running) { watch.disconnect(); requestAnimationFrame(() => answered(performance.now() - start)); }
    }).observe(app, { attributes: true });
    button.click();
})"""


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median(waits: Sequence[float]) -> str:
    return f"{statistics.median(waits):.2f} s ({min(waits):.2f} to {max(waits):.2f}, {len(waits)} rounds)"


def served(server: Server) -> float:
    """Return the CPU seconds of the server so far."""
    assert server.process
    took = psutil.Process(server.process.pid).cpu_times()
    return float(took.user + took.system)


def row(server: Server, work: Callable[[], float], rounds: int) -> str:
    """Return two cells: the seconds of `work`, and the server's CPU seconds per round."""
    before = served(server)
    waited = median([work() for _ in range(rounds)])
    return f"{waited} | {(served(server) - before) / rounds:.2f} s"


def first_paint(page: Page, address: str, drawn: str = PAINTED) -> float:
    page.goto("about:blank")
    started = time.time()
    page.goto(address)
    return float(page.wait_for_function(drawn).json_value()) / 1000 - started


def answer(page: Page) -> float:
    """Return the seconds until a click has been answered."""
    settled(page)
    return float(page.locator(".st-key-frame-expert input").evaluate(ANSWERED)) / 1000


def turned(page: Page, name: str) -> float:
    """Return the seconds from a click on a page's name in the menu of Home until that page is drawn."""
    link = page.get_by_test_id("stSidebar").get_by_role("link")
    link.filter(has_text="Home").click()
    expect(page).to_have_title("Winnow")
    settled(page)
    before = page.locator("h1").inner_text()
    started = link.filter(has_text=name).evaluate(
        "link => { const now = performance.timeOrigin + performance.now(); link.click(); return now; }"
    )
    drawn = page.wait_for_function(TURNED, arg=before).json_value()
    return float(drawn - started) / 1000


@contextmanager
def alone() -> Iterator[Callable[..., list[float]]]:
    """Yield `new_tab` for a newly started browser that is controlled without Playwright."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = ("--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={folder}")
        program = [shutil.which("chromium") or "chromium", *words, "--window-size=1280,900", "about:blank"]
        with subprocess.Popen(program, stderr=subprocess.DEVNULL) as browser:
            place = Path(folder) / "DevToolsActivePort"
            while not (place.exists() and place.read_text().count("\n")):
                time.sleep(0.05)
            port, path = place.read_text().split()
            with connect(f"ws://localhost:{port}{path}") as orders:
                yield partial(new_tab, orders, f"ws://localhost:{port}/devtools/page")
            browser.terminate()


def new_tab(browser: ClientConnection, tabs: str, address: str, *drawn: str) -> list[float]:
    """Return the seconds until a page in a new tab has each thing that the scripts `drawn` look for.

    tabs: base address for debugging connections to tabs.
    """
    tab = _ask(browser, "Target.createTarget", url="about:blank")["targetId"]
    with connect(f"{tabs}/{tab}", max_size=None) as orders:
        _ask(orders, "Page.enable")
        _ask(orders, "Page.addScriptToEvaluateOnNewDocument", source=KEEP % ", ".join(drawn))
        started = time.time()
        _ask(orders, "Page.navigate", url=address)
        moments: list[float | None] = [None]
        while None in moments:
            time.sleep(0.1)
            answered = _ask(orders, "Runtime.evaluate", expression="window.painted", returnByValue=True)
            moments = answered["result"].get("value") or [None]
    _ask(browser, "Target.closeTarget", targetId=tab)
    return [moment / 1000 - started for moment in moments if moment]


def _ask(tab: ClientConnection, method: str, **params: object) -> dict[str, Any]:
    """Send a debugging command and return its answer. Skip the events that the browser sends in between."""
    tab.send(json.dumps({"id": 1, "method": method, "params": params}))
    while (answer := json.loads(tab.recv())).get("id") != 1:
        pass
    return dict(answer["result"])


def change(page: Page) -> float:
    """Change to Selection and back to Explore by the sidebar; return the longer wait for a heading."""
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


def chosen(rows: int) -> None:
    """Prepare the legal sample with a selection and its map. rows: size of a made-up domain corpus; 0: the sample's."""
    corpora.open_sample("legal")
    how = {"strategy": "knn"}
    if rows:
        texts = (f"Clause {i} binds the tenant of house {i % 977} to pay {i % 7919} pounds ." for i in range(rows))
        sentences = (Sentence(id=sentence_id(text), text=text, tokens=tuple(text.split())) for text in texts)
        corpora.set_role("domain", library().seal(sentences, name="big", origin={}).fingerprint)
        how = {"strategy": "length-matched-random", "budget": "10000"}
    roles = {name: corpora.roles()[name] for name in ("task", "domain")}
    # The smallest encoder is enough: the number of rows is the same, and this step is not timed.
    select = runs.execute("select", {**roles, **how, "encoder": "tiny"})
    runs.execute("map", maps.options(select.id))


def explore(server: Server, playwright: Playwright) -> None:
    """Print the measurements of Explore."""
    corpora.open_sample("legal")
    select = runs.execute("select", {name: corpora.roles()[name] for name in ("task", "domain")}).id
    to_map = seconds(lambda: runs.execute("map", maps.options(select)))
    print(f"from a finished selection to its map, stored     {to_map:.1f} s   goal 60 s")
    server.start()
    address = f"{server.url}/Explore?run={select}"
    with alone() as tab:
        (painted,) = tab(address, PAINTED)
    print(f"first paint of the map, server and browser new, without Playwright {painted:.2f} s   goal 3 s")
    server.stop()
    server.start()
    page = opened(playwright)
    print(f"first paint of the map, server and browser new   {first_paint(page, address):.2f} s   goal 3 s")
    again = median([first_paint(page, address) for _ in range(ROUNDS)])
    print(f"first paint of the map                           {again}   goal 3 s")
    settled(page)
    left(page)
    server.stop()
    server.start()
    again = f"{first_paint(page, address):.2f} s"
    print(f"the same, the server started again               {again}   goal 3 s")
    settled(page)
    changed = median([change(page) for _ in range(ROUNDS)])
    print(f"a change of page                                 {changed}   goal 0.5 s")


def every_page(server: Server, playwright: Playwright, rows: int, rounds: int) -> None:
    """Print one row per page: first paint, a click, and opening it from the menu."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"made in {seconds(lambda: chosen(rows)):.0f} s", flush=True)
    server.start()
    page = opened(playwright)
    print(
        "| page | new tab: its heading | all of it | server | a click | server | from the menu | server |", flush=True
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with alone() as tab:
        for name, path in PAGES.items():
            address = f"{server.url}/{path}"
            for _ in range(SEEN):
                tab(address, WHOLE)
            before = served(server)
            headed, whole = zip(*(tab(address, HEADED, WHOLE) for _ in range(rounds)), strict=True)
            cells = [median(headed), median(whole), f"{(served(server) - before) / rounds:.2f} s"]
            first_paint(page, address, WHOLE)
            cells.append(row(server, partial(answer, page), rounds))
            cells.append(" | " if name == "Home" else row(server, partial(turned, page, name), rounds))
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def finished(server: Server, playwright: Playwright) -> None:
    """Print the seconds from a press on a new home's first page to the finished sample's steps, its map and results."""
    server.start()
    page = opened(playwright)
    first_paint(page, server.url, WHOLE)

    def pressed() -> None:
        page.get_by_role("button", name="Open the finished legal sample").click()
        page.wait_for_url("**project=*")
        expect(page.get_by_role("button", name="Report (.pdf)")).to_be_visible()

    print(f"from the press to the finished sample's steps    {seconds(pressed):.2f} s   goal 5 s")
    for name, drawn in (("Explore", DRAWN), ("Results", ".st-key-results-gaps .nsewdrag.drag")):
        settled(page)
        page.get_by_test_id("stSidebar").get_by_role("link").filter(has_text=name).click()
        drawing = expect(page.locator(drawn).first)
        print(f"from there to the {name + ' chart':26} {seconds(drawing.to_be_visible):.2f} s")


def opened(playwright: Playwright) -> Page:
    """Return a page of a newly started browser."""
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    return watched(browser, viewport={"width": 1280, "height": 900}).new_page()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", action="store_true", help="Measure every page instead of Explore.")
    parser.add_argument("--finished", action="store_true", help="Measure the finished sample instead of Explore.")
    parser.add_argument("--rows", type=int, default=0, help="Rows of the domain corpus; 0: the legal sample's.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="Rounds per page.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["WINNOW_HOME"] = str(Path(folder) / "home")
        with Server(home=Path(folder) / "home", data=Path(folder)) as server:
            if given.every:
                every_page(server, playwright, given.rows, given.rounds)
            elif given.finished:
                finished(server, playwright)
            else:
                explore(server, playwright)


if __name__ == "__main__":
    main()
