"""Measure the map of Explore in a browser: first paint, frames while it moves, lasso, search and a click.

    python -m tests.lab.benchmarks.bench_map_browser [--rows 20000 100000 1000000] [--dots 20000 100000]

Per number of rows, it makes up a domain corpus, selects from it, and maps it with the tiny encoder, which is not timed.
A warm browser then loads the map five times, and another of 1280 x 900 pixels draws each number of dots.

Frames: milliseconds between two pictures of the browser while a wheel enlarges the map in 20 steps, and while a lasso
is drawn. 17 ms is as smooth as a screen of 60 Hz shows; 100 ms is a visible stutter. Without a graphics card, the
browser draws on the processor. Lasso, search and click: seconds from the last input until the page shows the answer.

Goals: 2 s for the first paint in a browser that has loaded it before, 1 s for a lasso over all rows, and a click.
"""

import argparse
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.driver import Server, settled
from tests.lab.benchmarks.bench_pages import (
    PAINTED,
    ROUNDS,
    SEEN,
    alone,
    chosen,
    first_paint,
    median,
    opened,
    seconds,
)

MAP = ".st-key-explore-map"
STEPS = 20  # of the wheel, and of the lasso
RECORD = """() => {
    window.frames = []; window.recording = true;
    let before = performance.now();
    requestAnimationFrame(function look(now) {
        window.frames.push(now - before); before = now;
        window.recording && requestAnimationFrame(look);
    });
}"""
# Pixels of the dot that is nearest to the middle of the map.
NEAREST = f"""() => {{
    const plot = document.querySelector('{MAP} .js-plotly-plot'), box = plot.getBoundingClientRect();
    const {{ xaxis, yaxis }} = plot._fullLayout, middle = [xaxis._length / 2, yaxis._length / 2];
    const dots = plot._fullData.filter(trace => trace.customdata).flatMap(trace =>
        Array.from(trace.x, (x, i) => [xaxis.d2p(x), yaxis.d2p(trace.y[i])]));
    const [x, y] = dots.reduce((best, dot) =>
        Math.hypot(dot[0] - middle[0], dot[1] - middle[1]) < Math.hypot(best[0] - middle[0], best[1] - middle[1]) ? dot : best);
    return [box.x + xaxis._offset + x, box.y + yaxis._offset + y];
}}"""
RECORDED = "() => { window.recording = false; return window.frames.slice(2); }"


def frames(page: Page, moves: Callable[[], None]) -> str:
    """Return median, 95th percentile and maximum of the milliseconds per frame during `moves`."""
    page.evaluate(RECORD)
    moves()
    taken = sorted(page.evaluate(RECORDED))
    return f"{taken[len(taken) // 2]:.0f}, {taken[int(0.95 * len(taken))]:.0f}, {taken[-1]:.0f}"


def middle(page: Page) -> tuple[float, float, float]:
    """Return the pixels of the map's middle, and a radius inside the map."""
    box = page.locator(f"{MAP} .js-plotly-plot").bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.25 * min(box["width"], box["height"])


def zoom(page: Page) -> str:
    """Enlarge the map around its middle and return the frames; then show the whole map again."""
    x, y, _ = middle(page)
    page.mouse.move(x, y)

    def turns() -> None:
        for _ in range(STEPS):
            page.mouse.wheel(0, -40)
            page.wait_for_timeout(50)

    drawn = frames(page, turns)
    settled(page)
    page.locator(f"{MAP} .modebar-btn[data-title='Reset axes']").first.click(force=True)
    settled(page)
    return drawn


def lasso(page: Page) -> tuple[str, float]:
    """Draw a lasso and return the frames, and the seconds until its sentences are shown; then clear it."""
    x, y, r = middle(page)

    def border() -> None:
        page.mouse.move(x + r, y)
        page.mouse.down()
        for step in range(STEPS):
            turn = 2 * math.pi * step / STEPS
            page.mouse.move(x + r * math.cos(turn), y + r * math.sin(turn))
            page.wait_for_timeout(50)

    drawn = frames(page, border)
    heading = page.get_by_role("heading", name="Your lasso")

    def answered() -> None:
        page.mouse.up()
        expect(heading).to_be_visible()
        settled(page)

    waited = seconds(answered)
    page.get_by_role("button", name="Clear", exact=True).first.click()
    settled(page)
    return drawn, waited


def search(page: Page) -> float:
    """Return the seconds until the words of a search are marked on the map; then empty the search."""
    field = page.locator(".st-key-explore-query input")
    field.fill("house 500")

    def found() -> None:
        field.press("Enter")
        expect(page.get_by_role("heading", name="Sentences with")).to_be_visible()
        settled(page)

    waited = seconds(found)
    field.fill("")
    field.press("Enter")
    settled(page)
    return waited


def click(page: Page) -> float:
    """Click the dot nearest to the middle of the map; return the seconds until its sentence is shown. Close it again."""
    page.mouse.move(*page.evaluate(NEAREST))
    expect(page.get_by_role("tooltip")).to_be_visible()
    card = page.locator(".st-key-explore-why-map")

    def shown() -> None:
        page.mouse.down()
        page.mouse.up()
        expect(card).to_be_visible()

    waited = seconds(shown)
    page.get_by_role("button", name="Close").click()
    settled(page)
    return waited


def draw(page: Page, dots: int) -> float:
    """Draw so many dots; return the seconds until they are drawn."""
    page.get_by_role("button", name="Options").click()
    field = page.get_by_test_id("stNumberInputField")
    field.fill(str(dots))

    def drawn() -> None:
        field.press("Enter")
        expect(page.get_by_text(f"{dots:,} shown of")).to_be_visible()

    waited = seconds(drawn)
    page.keyboard.press("Escape")
    settled(page)
    return waited


def measured(rows: int, dots: Sequence[int], folder: Path) -> None:
    """Print one row per number of dots."""
    os.environ["WINNOW_HOME"] = str(folder / "home")
    made = seconds(lambda: chosen(rows))
    with Server(home=folder / "home", data=folder) as server, sync_playwright() as playwright:
        server.start()
        address = f"{server.url}/Explore"
        with alone() as tab:
            for _ in range(SEEN):
                tab(address, PAINTED)
            painted = median([tab(address, PAINTED)[0] for _ in range(ROUNDS)])
        print(f"{rows:,} rows, made in {made:.0f} s; first paint in a warm browser {painted}", flush=True)
        page = opened(playwright)
        first_paint(page, address)
        settled(page)
        for n in dots:
            if n > rows:
                continue
            redrawn = draw(page, n)
            zoomed, (lassoed, answered), found, told = zoom(page), lasso(page), search(page), click(page)
            print(
                f"| {rows:,} | {n:,} | {redrawn:.1f} | {zoomed} | {lassoed} | {answered:.1f} | {found:.1f} | {told:.1f} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000, 100_000, 1_000_000])
    parser.add_argument("--dots", nargs="+", type=int, default=[20_000, 100_000])
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        "| rows | dots | drawn anew, s | frames of the zoom, ms | of the lasso, ms | lasso, s | search, s | click, s |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            measured(rows, given.dots, Path(folder))


if __name__ == "__main__":
    main()
