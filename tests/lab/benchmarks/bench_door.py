"""Measure the time that the door costs a user: first paint of Home and of Corpora, and an upload, with and without it.

    python -m tests.lab.benchmarks.bench_door [--before CHECKOUT] [--rounds 5] [--megabytes 300]

Uses real servers, chromium and the legal sample. CHECKOUT is the folder of an older commit without the door (`git
worktree add CHECKOUT ea58d4f`). Its server is started as it was then, by `streamlit run app.py`. The two servers are
measured in turn, so that a busy machine slows both alike. Each first paint is measured in a browser with an empty
cache, on a server that has drawn the page before.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, expect, sync_playwright

from core.importing import view as corpora
from tests.browser.driver import ROOT, Server
from tests.lab.benchmarks.bench_upload import upload

PAGES = {"Home": ("", "Winnow"), "Corpora": ("/Corpora", "Corpora")}
LINE = b"The tenant shall pay the rent on the first day of every month, and the landlord shall thank him .\n"


def painted(page: Page, address: str, heading: str) -> float:
    """Return the seconds from opening the address until the page is drawn completely."""
    began = time.perf_counter()
    page.goto(address)
    expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible(timeout=120_000)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=120_000)
    return time.perf_counter() - began


def fresh(browser: Browser, work: Callable[[Page], float]) -> float:
    """Return the seconds that `work` measures in a browser without cache and cookies."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        return work(context.new_page())
    finally:
        context.close()


def measure(browser: Browser, server: Server, file: Path) -> dict[str, tuple[float, float]]:
    """Run one round on one server; return (wall seconds, CPU seconds) of each page's first paint and of the upload.

    CPU seconds are those of the server, which other work on the machine changes less.
    """

    def seconds(work: Callable[[Page], float]) -> tuple[float, float]:
        assert server.process
        process = psutil.Process(server.process.pid)
        before = process.cpu_times()
        took = fresh(browser, work)
        after = process.cpu_times()
        return took, after.user + after.system - before.user - before.system

    def uploaded(page: Page) -> float:
        painted(page, server.url + "/Corpora", "Corpora")
        page.get_by_text("Import a corpus").click()
        return upload(page, file)

    found = {
        name: seconds(partial(painted, address=server.url + path, heading=heading))
        for name, (path, heading) in PAGES.items()
    }
    found["upload"] = seconds(uploaded)
    shutil.rmtree(server.project / "uploads")
    return found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="Checkout of a commit without the door.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=300)
    return parser.parse_args()


def servers(folder: Path, before: Path | None) -> dict[str, Server]:
    """Start the servers, each on its own home with the legal sample."""
    started = {}
    for name, root in {"before": before, "now": ROOT}.items():
        if root is None:
            continue
        home = folder / name
        os.environ["WINNOW_HOME"] = str(home)
        corpora.open_sample("legal")
        server = Server(home=home, data=folder, root=root.absolute())
        server.start(() if name == "now" else ("-m", "streamlit", "run", "app.py", "--server.port", str(server.port)))
        started[name] = server
    return started


def main() -> None:
    asked = options()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "large.txt"
        file.write_bytes(LINE * (asked.megabytes * 1_000_000 // len(LINE)))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        running = servers(Path(folder), asked.before)
        try:
            rounds = [
                {name: measure(browser, server, file) for name, server in running.items()}
                for _ in range(asked.rounds + 1)
            ][1:]  # the first one warms the servers up
        finally:
            for server in running.values():
                server.stop()
        browser.close()
    print(f"{asked.rounds} rounds, seconds: median (least to most); load {os.getloadavg()[0]:.1f}")
    for what in (*PAGES, "upload"):
        for name in running:
            told = []
            for unit, values in zip(
                ("", "processor "), zip(*(each[name][what] for each in rounds), strict=True), strict=True
            ):
                told.append(f"{unit}{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")
            print(f"{what:<8} {name:<7} {', '.join(told)}")


if __name__ == "__main__":
    main()
