"""The start of the app: the address that it prints and opens, and the permissions of the files that it writes."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.driver import Server, left, settled, watched
from tests.test_files_on_disk import wider
from tests.waiting import until

# Loaded first: simulates a system that does not report which account connects, such as macOS or a container.
HIDE_ACCOUNTS = """
import pathlib, socket
del socket.AF_NETLINK
real = pathlib.Path.open
def shown(path, *args, **kwargs):
    if str(path).startswith("/proc/net/tcp"):
        raise FileNotFoundError(path)
    return real(path, *args, **kwargs)
pathlib.Path.open = shown
"""
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
TERMINALS = ("www-browser", "links", "elinks", "lynx", "w3m")  # text-mode browsers, found where there is no screen


@pytest.fixture
def hidden_accounts(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a server on a system that does not report which account connects."""
    (tmp_path / "hidden_accounts").mkdir()
    (tmp_path / "hidden_accounts" / "sitecustomize.py").write_text(HIDE_ACCOUNTS, encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path / "hidden_accounts")}


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace all browsers by programs that append the address to a file; unset all screens; return the file."""
    for name in SCREENS:
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("window", *TERMINALS):
        (programs / name).write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/opened"\n', encoding="utf-8")
        (programs / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "opened"


def printed(server: Server) -> str:
    """Return the address that a server printed at its start."""
    log = (server.data / "server.log").read_text(encoding="utf-8")
    [address] = re.findall(r"Winnow is at (\S+)", log)
    return str(address)


def from_start_to_end(server: Server, *words: str) -> None:
    """Start and stop a server as `make app` and Ctrl-C do."""
    with server:
        server.start(("app.py", "--port", str(server.port), *words))
        server.stop(signal.SIGINT)


def leads_in(page: Page, address: str, server: Server) -> None:
    """Assert that an address opens Home and that the key is not in the address bar afterwards."""
    page.goto(address)
    expect(page.get_by_role("heading", name="Winnow", exact=True)).to_be_visible()
    settled(page)
    expect(page).to_have_url(f"{server.url}/")


def test_only_the_printed_address_opens_the_app_if_accounts_are_hidden(
    tmp_path: Path, hidden_accounts: dict[str, str], opened: Path, browser: Browser
) -> None:
    environment = {**hidden_accounts, "BROWSER": f"{opened.parent}/programs/window %s"}
    with Server(home=tmp_path / "home", data=tmp_path, environment=environment) as server, watched(browser) as context:
        server.start(("app.py", "--port", str(server.port)))
        address = printed(server)
        assert "does not show who connects" in (tmp_path / "server.log").read_text(encoding="utf-8")
        page = context.new_page()
        answer = page.goto(server.url)
        assert answer
        assert answer.status == 403
        leads_in(page, address, server)
        [address_of_file] = until(
            lambda: opened.read_text(encoding="utf-8").split() if opened.exists() else [], "a browser is started"
        )
        # Other accounts can read the arguments of a process, so they contain no key.
        assert address_of_file == (server.home / "open.html").as_uri()
        context.clear_cookies()
        leads_in(page, address_of_file, server)


def test_the_printed_address_is_opened_once_if_there_is_a_screen(tmp_path: Path, opened: Path) -> None:
    window = {"BROWSER": f"{opened.parent}/programs/window %s"}
    server = Server(home=tmp_path / "home", data=tmp_path, environment=window)
    from_start_to_end(server)
    assert printed(server) == server.url  # the system reports the owner's account, so the address needs no key
    assert opened.read_text(encoding="utf-8").split() == [server.url]


def test_no_browser_is_opened_without_a_screen_or_with_no_browser(tmp_path: Path, opened: Path) -> None:
    window = {"BROWSER": f"{opened.parent}/programs/window %s"}
    from_start_to_end(Server(home=tmp_path / "home", data=tmp_path))
    from_start_to_end(Server(home=tmp_path / "home", data=tmp_path, environment=window), "--no-browser")
    assert not opened.exists()


@pytest.fixture
def wide_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("wide_mask")
def test_only_the_owner_can_read_what_the_server_writes(
    tmp_path: Path, hidden_accounts: dict[str, str], page: Page
) -> None:
    """The server writes its key, an imported upload with its run and audit log, and a waiting upload."""
    with Server(home=tmp_path / "home", data=tmp_path, environment=hidden_accounts) as server:
        server.start()
        (tmp_path / "mine.txt").write_text("A clause is here .\nAnother one follows .\n", encoding="utf-8")
        (tmp_path / "waits.txt").write_text("A third one waits .\n", encoding="utf-8")
        page.goto(printed(server))
        settled(page)
        page.goto(f"{server.url}/Corpora")
        settled(page)
        drop = page.get_by_test_id("stFileUploaderDropzoneInput")
        drop.set_input_files(tmp_path / "mine.txt")
        page.get_by_role("button", name="Import", exact=True).click()
        expect(page.get_by_role("table", name="All corpora").get_by_text("mine", exact=True)).to_be_visible()
        settled(page)
        page.get_by_text("Import a corpus").click()
        drop.set_input_files(tmp_path / "waits.txt")
        expect(page.get_by_text("A third one waits .")).to_be_visible()
        settled(page)
        left(page)
    files = [path for path in server.home.rglob("*") if path.is_file()]
    inside = [path.relative_to(server.project).parts[0] for path in files if path.is_relative_to(server.project)]
    assert {"corpora", "runs", "uploads"} <= set(inside)
    assert {"audit.jsonl", "key"} <= {path.relative_to(server.home).parts[0] for path in files}
    assert wider(server.home) == []
