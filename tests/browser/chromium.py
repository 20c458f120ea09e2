"""Find a browser for the tests: an installed one, else Playwright's own, else the system's package.

`python -m tests.browser.chromium` installs one before `make test`. If that fails, it prints the reason, and the tests
that need a browser are skipped and counted at the end.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Error, Playwright, sync_playwright

from tests.waiting import WAIT_SECONDS

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--no-sandbox",)
NONE = "there is no chromium"


def find() -> str | None:
    """Return the path of a browser, the system's first."""
    programs = (path for name in PROGRAMS if (path := shutil.which(name)))
    return next(programs, None) or _downloaded()


def _downloaded() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def start(playwright: Playwright, path: str | None) -> Browser | str:
    """Start a browser. Return the reason if there is none or it does not start."""
    if path is None:
        return NONE
    try:
        return playwright.chromium.launch(executable_path=path, args=OPTIONS, timeout=WAIT_SECONDS * 1000)
    except Error as error:
        return f"{path} does not start: {error.message.splitlines()[0]}"


def why_not(path: str | None) -> str:
    """Return the reason why the browser cannot be used, or an empty string."""
    if path is None:
        return NONE
    with sync_playwright() as playwright:
        started = start(playwright, path)
        if isinstance(started, str):
            return started
        started.close()
    return ""


def ways() -> Iterator[Sequence[Sequence[str]]]:
    """Yield lists of commands that install a browser. Only root uses the system's package manager."""
    download = (sys.executable, "-m", "playwright", "install", "chromium")
    yield [download]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        yield [("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", "chromium")]
        yield [(sys.executable, "-m", "playwright", "install-deps", "chromium"), download]


def provide() -> str:
    """Try the commands of `ways` until a browser starts; return the last problem, or an empty string."""
    wrong = why_not(find())
    for commands in ways():
        if not wrong:
            break
        print(f"{wrong}; trying {' && '.join(map(' '.join, commands))}", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in commands:
            if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
                break
        wrong = why_not(find())
    return wrong


if __name__ == "__main__" and (wrong := provide()):
    print(f"No browser for the tests: {wrong}. They will be left out, and counted at the end.")
