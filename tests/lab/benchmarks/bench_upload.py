"""Measure the server memory that an upload takes, and how much of it is released.

    python -m tests.lab.benchmarks.bench_upload [--megabytes 300]

With a real server and chromium, a text file is uploaded on the page Corpora and previewed, not imported. Resident
memory is read every 20 ms. Goals: at most 400 MB more during an upload of 300 MB, at most 100 MB more ten seconds after
it.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.driver import Server, Watch, settled, watched

MB = 1_000_000
WAIT = 10  # seconds after which memory should be back


def upload(page: Page, file: Path) -> float:
    """Return the seconds until the file's first rows are shown."""
    began = time.perf_counter()
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(file)
    expect(page.get_by_text("First rows")).to_be_visible(timeout=300_000)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=300)
    size = parser.parse_args().megabytes * MB
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(home=Path(folder) / "home", data=Path(folder))
        file = Path(folder) / "large.txt"
        line = b"The tenant shall pay the rent on the first day of every month, and the landlord shall thank him .\n"
        file.write_bytes(line * (size // len(line)))
        server.start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = watched(browser).new_page()
        page.goto(server.url + "/Corpora")
        settled(page)
        assert server.process
        with Watch(server.process.pid) as watch:
            before = watch.now
            took = upload(page, file)
            time.sleep(WAIT)
            after = watch.now
        print(f"{size / MB:.0f} MB uploaded and previewed in {took:.1f} s; resident memory of the server:")
        print(f"before     {before / MB:5.0f} MB")
        print(f"at most   {(watch.peak - before) / MB:+6.0f} MB   goal +400 MB")
        print(f"{WAIT} s after {(after - before) / MB:+5.0f} MB   goal +100 MB")
        browser.close()
        server.stop()


if __name__ == "__main__":
    main()
