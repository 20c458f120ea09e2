"""The browser of the tests: one that is there, else playwright's own, else the system's package.

`python -m tests.browser.chromium` sees to one before `make test`; where none can be had, it says why, and the tests
that need one say at their end that they were left out.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Error, Playwright, sync_playwright

from tests.patience import PATIENCE

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--no-sandbox",)
NONE = "there is no chromium"


def find() -> str | None:
    """The path of a browser: the system's goes first."""
    programs = (path for name in PROGRAMS if (path := shutil.which(name)))
    return next(programs, None) or _downloaded()


def _downloaded() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def start(playwright: Playwright, path: str | None) -> Browser | str:
    """A browser, or why there is none: it is not there, or does not start."""
    if path is None:
        return NONE
    try:
        return playwright.chromium.launch(executable_path=path, args=OPTIONS, timeout=PATIENCE * 1000)
    except Error as error:
        return f"{path} does not start: {error.message.splitlines()[0]}"


def why_not(path: str | None) -> str:
    """Why a browser cannot be used; empty where it can."""
    if path is None:
        return NONE
    with sync_playwright() as playwright:
        started = start(playwright, path)
        if isinstance(started, str):
            return started
        started.close()
    return ""


def ways() -> Iterator[Sequence[Sequence[str]]]:
    """Commands that may lead to a browser, one way after the other; the system's packages only where they may be."""
    download = (sys.executable, "-m", "playwright", "install", "chromium")
    yield [download]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        yield [("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", "chromium")]
        yield [(sys.executable, "-m", "playwright", "install-deps", "chromium"), download]


def provide() -> str:
    """Try one way after the other until a browser starts; what is wrong in the end, empty where nothing is."""
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
