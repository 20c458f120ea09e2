"""Measure the server memory that an upload or an import takes, and how much of it is released.

    python -m tests.lab.benchmarks.bench_upload [--megabytes 300]               upload, preview, import
    python -m tests.lab.benchmarks.bench_upload --by-path --megabytes 5000      import a file of this machine by its path

With a real server and chromium, a text file is imported on the page Corpora. Resident memory of the server is read
every 20 ms. Goals for an upload of 300 MB: at most 400 MB more during it, at most 100 MB more ten seconds after it and
ten seconds after its import. Goals for 5 GB by path: less than 300 MB more, and progress at least every 2 seconds.
"""

import argparse
import os
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.driver import Server, Watch, settled, watched

MB = 1_000_000
WAIT = 10  # seconds after which memory should be back
PANEL = ".st-key-corpora-run-panel"
# Records in the page when the text of the import's panel changed.
NOTE_CHANGES = f"""() => {{
    let before = "";
    window.changes = [];
    setInterval(() => {{
        const text = document.querySelector("{PANEL}")?.innerText || "";
        if (text && text !== before) {{ before = text; window.changes.push(performance.now()); }}
    }}, 50);
}}"""


def upload(page: Page, file: Path) -> float:
    """Return the seconds until the file's first rows are shown."""
    began = time.perf_counter()
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(file)
    expect(page.get_by_text("First rows")).to_be_visible(timeout=300_000)
    return time.perf_counter() - began


def look(page: Page, file: Path) -> float:
    """Name the file by its path; return the seconds until its first rows are shown."""
    page.get_by_role("radio", name="A path on this machine").click()
    settled(page)
    page.get_by_role("textbox", name="File or folder").fill(str(file))
    began = time.perf_counter()
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_text("First rows")).to_be_visible(timeout=300_000)
    return time.perf_counter() - began


def imported(page: Page) -> tuple[float, float]:
    """Import the file on the page. Return the seconds, and the longest time between two changes of the panel's text."""
    settled(page)
    page.evaluate(NOTE_CHANGES)
    began = time.perf_counter()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("Use it as")).to_be_visible(timeout=3_600_000)
    took = time.perf_counter() - began
    changes = page.evaluate("window.changes")
    return took, max((b - a for a, b in pairwise(changes)), default=1000 * took) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=300, help="Size of the file.")
    parser.add_argument("--by-path", action="store_true", help="Import the file by its path instead of uploading it.")
    given = parser.parse_args()
    size = given.megabytes * MB
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(home=Path(folder) / "home", data=Path(folder))
        file = Path(folder) / "large.txt"
        with file.open("wb") as out:
            written = 0
            while written < size:  # numbered, so that no two lines are equal
                written += out.write(
                    b"The tenant number %d shall pay the rent on the first day of the month .\n" % written
                )
        server.start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = watched(browser).new_page()
        page.goto(server.url + "/Corpora")
        settled(page)
        assert server.process
        print(f"load {os.getloadavg()[0]:.1f}")
        with Watch(server.process.pid) as watch:
            before = watch.now
            took = look(page, file) if given.by_path else upload(page, file)
            peak = watch.peak
            time.sleep(0 if given.by_path else WAIT)
            after = watch.now
            seconds, pause = imported(page)
            time.sleep(WAIT)
            last = watch.now
        way = "named by its path" if given.by_path else "uploaded"
        print(f"{size / MB:.0f} MB {way} and previewed in {took:.1f} s, imported in {seconds:.0f} s")
        print(f"longest time without a change of the progress  {pause:5.1f} s    goal 2 s")
        print("resident memory of the server:")
        print(f"before                        {before / MB:5.0f} MB")
        print(
            f"at most, until the preview   {(peak - before) / MB:+6.0f} MB   goal {300 if given.by_path else 400:+} MB"
        )
        print(f"at most, until the end       {(watch.peak - before) / MB:+6.0f} MB")
        print(f"{WAIT} s after the preview       {(after - before) / MB:+6.0f} MB   goal +100 MB")
        print(f"{WAIT} s after the import        {(last - before) / MB:+6.0f} MB   goal +100 MB")
        browser.close()
        server.stop()


if __name__ == "__main__":
    main()
