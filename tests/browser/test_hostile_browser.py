"""Hostile files in the running app: a message on the page, and a server that keeps running and stays small."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.importing import view as corpora
from core.projects import runs
from tests import hostile
from tests.browser.driver import PATIENCE, Server, Watch, expert, settled
from tests.experiment.test_experiment import fill
from tests.homes import project_in

# Bytes by which the server may grow; reading the dictionary in the server would take nearly twice as much.
MOST = 60_000_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server whose home has a corpus for each role."""
    data = tmp_path / "data"
    data.mkdir()
    for role, corpus in fill(project_in(tmp_path / "home")).items():
        corpora.set_role(role, corpus.fingerprint)
    with Server(home=tmp_path / "home", data=data) as server:
        server.start()
        yield server


def look(page: Page, path: Path) -> None:
    page.get_by_role("textbox", name="File or folder").fill(str(path))
    page.get_by_role("button", name="Look at it").click()


def healthy(server: Server, page: Page) -> bool:
    return page.request.get(f"{server.url}/_stcore/health", timeout=PATIENCE).text() == "ok"


@pytest.mark.alone
def test_previews_of_parquet_bombs_do_not_grow_the_server(server: Server, page: Page) -> None:
    """Preview a text of 20 MB that is repeated a thousand times, and 200 MB in one page, after a harmless file."""
    (server.data / "fine.txt").write_text("one sentence here .\n", encoding="utf-8")
    dictionary, bomb = hostile.dictionary_bomb(server.data), hostile.page_bomb(server.data)
    page.goto(f"{server.url}/Corpora")
    settled(page)
    page.get_by_test_id("stMain").get_by_text("Import a corpus").click()
    page.get_by_role("radio", name="A path on this machine").click()
    look(page, server.data / "fine.txt")
    expect(page.get_by_role("list", name="First rows")).to_contain_text("one sentence here")
    settled(page)
    assert server.process
    with Watch(server.process.pid) as watch:
        before = watch.now
        look(page, dictionary)
        expect(page.get_by_role("list", name="First rows")).to_contain_text("a short one")
        look(page, bomb)
        expect(page.get_by_test_id("stMain").get_by_role("alert").filter(has_text="as a zip bomb does")).to_be_visible()
        settled(page)
    assert watch.peak - before < MOST
    assert healthy(server, page)


def test_an_encoder_whose_weights_are_a_pipe_is_refused(server: Server, page: Page) -> None:
    """Opening a pipe blocks until another process writes into it."""
    folder = server.data / "encoder"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    os.mkfifo(folder / "model.safetensors")
    page.goto(f"{server.url}/Selection")
    settled(page)
    expert(page)
    page.get_by_text("More options", exact=True).click()
    page.get_by_role("textbox", name="Encoder", exact=True).fill(str(folder))
    page.get_by_role("button", name=re.compile("Score and select")).click()
    alert = page.get_by_test_id("stMain").get_by_role("alert").filter(has_text="model.safetensors is not a plain file")
    expect(alert).to_be_visible()
    settled(page)
    assert healthy(server, page)
    assert not runs.listed("select")
