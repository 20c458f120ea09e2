"""Starting and stopping the app, and knowing when a page has settled."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page, expect

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """`python -m streamlit run app.py` on a home of its own."""

    home: Path
    data: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(self.port)]
        environment = {**os.environ, "WINNOW_HOME": str(self.home), "WINNOW_DATA_DIRS": str(self.data)}
        with (self.data / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.data / "server.log").read_text()
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1) as answer:  # noqa: S310
                    if answer.read() == b"ok":
                        return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not come up within a minute")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(20)
            self.process = None


def settled(page: Page) -> None:
    """The script has run; no exception, no dialog. Only for pages without a live panel."""
    page.wait_for_selector("[data-testid=stApp][data-test-connection-state=CONNECTED]")
    page.wait_for_timeout(160)  # the state flips to running within 155 ms of a click
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stDialog")).to_have_count(0)
