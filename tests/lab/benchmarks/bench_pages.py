"""How long a person waits for pages.

    python -m tests.lab.benchmarks.bench_pages            4_Explore: selection to map, its first paint, a change of page
    python -m tests.lab.benchmarks.bench_pages --every    every page's first paint, a click, and its opening from the menu
    python -m tests.lab.benchmarks.bench_pages --every --rows 1000000    the same with so many rows behind it
    ... --rounds 1    a try: each once in place of five times
    python -m tests.lab.benchmarks.bench_pages --finished    from the press that opens the finished sample to its road

A real server and chromium, an idle machine. Goals of the first: 60 s, 3 s, 0.5 s; of every page: 1 s, with a million
rows 2 s, and a click 0.3 s; of the finished sample: 5 s, once in a home, its map, answer and report a change of page
away. The click is on the switch Expert, which draws all of the page anew. Beside each stand the
processor seconds that the server took for it, which other work on the machine does not stretch.

Playwright has the browser take down the stack of every error that a script makes, with its place in the script; as
the map's script is read, which catches several of its own, that costs the page half a second, which no person's
browser spends. So a new tab is one of a browser left alone, which has seen the page before: its first words and
buttons, and the moment when all is drawn, charts too. The map's first paint in a new browser is told twice.
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
# When the page itself first has the map in a frame: playwright looks every half second, which is what it would report.
PAINTED = f"() => document.querySelector('{DRAWN}')?.checkVisibility() && performance.timeOrigin + performance.now()"
# A page that keeps when it first had each of some things, for whoever asks later.
KEEP = """(() => {
    const drawn = [%s], moments = window.painted = drawn.map(() => null);
    (function look() {
        drawn.forEach((each, i) => moments[i] ||= each() || null);
        moments.includes(null) && requestAnimationFrame(look);
    })();
})()"""
# When a page's heading can be read.
HEADED = "() => document.querySelector('h1')?.checkVisibility() && performance.timeOrigin + performance.now()"
ROUNDS = 5
SEEN = 2  # times that a browser has loaded a page before a person's next tab: from then on it keeps what it compiled
# When all of a page is drawn: its script has ended, no part of it waits for its code, and every chart has a drawing.
WHOLE = """() => document.querySelector('h1')?.checkVisibility() && !document.querySelector('[data-testid=stSkeleton]')
    && [...document.querySelectorAll('.stPlotlyChart, .stVegaLiteChart')].every(e => e.querySelector('.main-svg, .marks'))
    && document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
    && performance.timeOrigin + performance.now()"""
# The same, once it is another page than that of this heading.
TURNED = f"before => document.querySelector('h1')?.innerText !== before && ({WHOLE})()"
# Milliseconds from a click until the script that it begins has ended.
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
    """Processor seconds that the server has taken so far."""
    assert server.process
    took = psutil.Process(server.process.pid).cpu_times()
    return float(took.user + took.system)


def row(server: Server, work: Callable[[], float], rounds: int) -> str:
    """The cells of what is waited for: its seconds, and the server's own for each."""
    before = served(server)
    waited = median([work() for _ in range(rounds)])
    return f"{waited} | {(served(server) - before) / rounds:.2f} s"


def first_paint(page: Page, address: str, drawn: str = PAINTED) -> float:
    page.goto("about:blank")
    started = time.time()
    page.goto(address)
    return float(page.wait_for_function(drawn).json_value()) / 1000 - started


def answer(page: Page) -> float:
    """Seconds until a click has been answered."""
    settled(page)
    return float(page.locator(".st-key-frame-expert input").evaluate(ANSWERED)) / 1000


def turned(page: Page, name: str) -> float:
    """Seconds from a click on a page's name in the menu, on Home, until all of it is drawn."""
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
    """`new_tab` in a browser that has just started, and is only asked, ten times a second, what is there."""
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
    """Seconds until a page in a new tab has each of what `drawn` looks for. tabs: where they take orders."""
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
    """What the browser answers to an order; it tells of much else in between."""
    tab.send(json.dumps({"id": 1, "method": method, "params": params}))
    while (answer := json.loads(tab.recv())).get("id") != 1:
        pass
    return dict(answer["result"])


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


def chosen(rows: int) -> None:
    """The legal sample with a choice and its map; rows: of made-up text in place of its domain corpus, 0 for none."""
    corpora.open_sample("legal")
    how = {"strategy": "knn"}
    if rows:
        texts = (f"Clause {i} binds the tenant of house {i % 977} to pay {i % 7919} pounds ." for i in range(rows))
        sentences = (Sentence(id=sentence_id(text), text=text, tokens=tuple(text.split())) for text in texts)
        corpora.set_role("domain", library().seal(sentences, name="big", origin={}).fingerprint)
        how = {"strategy": "length-matched-random", "budget": "10000"}
    roles = {name: corpora.roles()[name] for name in ("task", "domain")}
    # The least encoder there is: what is made here is the same in number, and is not timed.
    select = runs.execute("select", {**roles, **how, "encoder": "tiny"})
    runs.execute("map", maps.options(select.id))


def explore(server: Server, playwright: Playwright) -> None:
    """Print what the first line above asks of Explore."""
    corpora.open_sample("legal")
    select = runs.execute("select", {name: corpora.roles()[name] for name in ("task", "domain")}).id
    to_map = seconds(lambda: runs.execute("map", maps.options(select)))
    print(f"from a finished selection to its map, stored     {to_map:.1f} s   goal 60 s")
    server.start()
    address = f"{server.url}/Explore?run={select}"
    with alone() as tab:
        (painted,) = tab(address, PAINTED)
    print(f"first paint of the map, server and browser new, alone {painted:.2f} s   goal 3 s")
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
    """Print a row a page: its first paint, and a click."""
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
    """Print seconds from one press on a new home's first page to the finished sample's road, and to what it leads to."""
    server.start()
    page = opened(playwright)
    first_paint(page, server.url, WHOLE)

    def pressed() -> None:
        page.get_by_role("button", name="Open the finished sample").click()
        page.wait_for_url("**project=*")
        expect(page.get_by_role("button", name="Report (.pdf)")).to_be_visible()

    print(f"from the press to the finished sample's road     {seconds(pressed):.2f} s   goal 5 s")
    for name, drawn in (("Explore", DRAWN), ("Results", ".st-key-results-gaps .nsewdrag.drag")):
        settled(page)
        page.get_by_test_id("stSidebar").get_by_role("link").filter(has_text=name).click()
        drawing = expect(page.locator(drawn).first)
        print(f"from there to what {name + ' draws':25} {seconds(drawing.to_be_visible):.2f} s")


def opened(playwright: Playwright) -> Page:
    """A page of a browser that has just started."""
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    return watched(browser, viewport={"width": 1280, "height": 900}).new_page()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", action="store_true", help="Every page in place of Explore alone.")
    parser.add_argument("--finished", action="store_true", help="The finished sample in place of Explore.")
    parser.add_argument("--rows", type=int, default=0, help="Of the domain corpus; 0: the legal sample's.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="Of every page.")
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
