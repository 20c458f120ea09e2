"""Nothing leaves this machine: network calls of server and workers during a run of every kind and a visit to every
page.

The fixture `page` watches the traffic of the browser.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.kinds import KINDS
from core.projects import runs
from tests import smallest_options
from tests.browser.driver import PAGES, ROOT, Server, left, settled, visit
from tests.browser.test_door_server import ASK, asked, handshakes
from tests.experiment.test_experiment import fill, labelled
from tests.homes import project_in
from tests.planted import contracts
from tests.test_privacy import GUARD
from tests.waiting import until

FOREIGN = ("http://evil.example", "http://localhost:9999", "https://a.streamlit.app")


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make every process that starts from now on record look-ups and connections in this folder and refuse them."""
    folder = tmp_path / "guard"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("TALKED", str(folder / "talked"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # only Winnow itself may prevent connections in this test
    return folder


def talked(guard: Path) -> str:
    """Return the look-ups and connections that were tried."""
    file = guard / "talked"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def finished(run_id: str) -> None:
    """Wait until a run has ended, and assert that it succeeded."""
    until(lambda: not runs.state(run_id).active, "the run ends")
    assert runs.state(run_id).state == "succeeded", runs.state(run_id).error


# One process runs all kinds, because a worker per kind would import the same libraries thirteen times.
ALL = """
import json, sys
from core.importing import view as corpora
from core.projects import runs
from core.tagging import calibrate
from tests import smallest_options
calibrate.SECONDS = 0.0
first, made = json.loads(sys.argv[1])
for kind, options in first.items():
    runs.execute(kind, options)
for kind, options in smallest_options.second(made).items():
    runs.execute(kind, options)
for role, mark in made.items():
    corpora.set_role(role, mark)
"""


def run_every_kind(guard: Path) -> None:
    """Run one kind in a worker, as the pages do, then all others in one more watched process."""
    home = project_in(guard / "home")
    made = {name: corpus.fingerprint for name, corpus in fill(home).items()}
    again = Library(home).seal(labelled(contracts(20, seed=9)), name="again", origin={}, labelled=True).fingerprint
    (guard / "more.txt").write_text("\n".join(contracts(20, seed=5)), encoding="utf-8")
    first = smallest_options.first(made, again, guard / "more.txt")
    finished(runs.start("rank", first["rank"]))  # this kind loads the most third-party code
    words = json.dumps([{kind: options for kind, options in first.items() if kind != "rank"}, made], default=str)
    subprocess.run([sys.executable, "-c", ALL, words], cwd=ROOT, check=True)


def test_runs_of_every_kind_and_all_pages_contact_no_other_machine(
    guard: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(guard / "home"))  # for the server and the workers too
    run_every_kind(guard)
    ran = {run.manifest.kind for run in runs.listed() if runs.state(run.id).state == "succeeded"}
    assert ran == set(KINDS), "a kind of run that nobody watched"
    assert talked(guard) == ""

    with Server(home=guard / "home", data=guard) as server:
        server.start()
        page.goto(server.url)
        settled(page)
        for name, address in PAGES.items():
            visit(page, address)
            expect(page.get_by_role("heading", level=1)).to_have_text("Winnow" if name == "Home" else name)
        left(page)
        monkeypatch.delenv("PYTHONPATH")  # the client process must not be recorded
        assert handshakes(server, *FOREIGN) == [403] * len(FOREIGN)
        health = f"{server.url}/_stcore/health"
        assert asked(ASK, health) == {health: [200, "ok"]}
    assert talked(guard) == ""
