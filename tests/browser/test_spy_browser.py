"""Nothing leaves this machine: what the server's and the workers' own sockets do, over a run of every kind and a visit to
every page. The browser's traffic is watched by the fixture `page`."""

import ast
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.facade import runs
from core.recipes import RECIPES
from tests import every_kind
from tests.browser.driver import PAGES, ROOT, Server, left, settled, visit
from tests.browser.test_door_server import ASK, asked, handshakes
from tests.planted import contracts
from tests.recipes.test_experiment import fill, labelled
from tests.test_privacy import GUARD

FOREIGN = ("http://evil.example", "http://localhost:9999", "https://a.streamlit.app")
PATIENCE = 900.0  # seconds for all runs of a wave, on a crowded machine


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every process started from now on writes down here whom it would talk to, and is refused."""
    folder = tmp_path / "guard"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("TALKED", str(folder / "talked"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # nothing is held back by anything but Winnow
    return folder


def talked(guard: Path) -> str:
    """What was tried."""
    file = guard / "talked"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def finished(wave: Mapping[str, str]) -> None:
    """Wait until the runs, by kind, are over, and have succeeded."""
    deadline = time.monotonic() + PATIENCE
    while any(runs.state(run_id).active for run_id in wave.values()) and time.monotonic() < deadline:
        time.sleep(0.2)
    ended = {kind: (runs.state(run_id).state, runs.state(run_id).error) for kind, run_id in wave.items()}
    assert {state for state, _ in ended.values()} == {"succeeded"}, ended


# All kinds one after the other: a worker each would import the same thirteen times.
ALL = """
import json, sys
from core.facade import corpora, runs
from core.recipes import calibrate
from tests import every_kind
calibrate.SECONDS = 0.0
first, made = json.loads(sys.argv[1])
for kind, options in first.items():
    runs.execute(kind, options)
for kind, options in every_kind.second(made).items():
    runs.execute(kind, options)
for role, mark in made.items():
    corpora.set_role(role, mark)
"""


def run_every_kind(guard: Path) -> None:
    """One in a worker, as the pages start it; then the others in one more process that is watched."""
    home = guard / "home"
    made = {name: corpus.fingerprint for name, corpus in fill(home).items()}
    again = Library(home).seal(labelled(contracts(20, seed=9)), name="again", origin={}, labelled=True).fingerprint
    (guard / "more.txt").write_text("\n".join(contracts(20, seed=5)), encoding="utf-8")
    first = every_kind.first(made, again, guard / "more.txt")
    finished({"rank": runs.start("rank", first["rank"])})  # of all that is loaded most comes from others
    words = json.dumps([{kind: options for kind, options in first.items() if kind != "rank"}, made], default=str)
    subprocess.run([sys.executable, "-c", ALL, words], cwd=ROOT, check=True)


def test_a_run_of_every_kind_and_every_page_talk_to_nobody(
    guard: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(guard / "home"))  # the server's and the workers' too
    run_every_kind(guard)
    ran = {run.manifest.kind for run in runs.listed() if runs.state(run.id).state == "succeeded"}
    assert ran == set(RECIPES), "a kind of run that nobody watched"
    assert talked(guard) == ""

    with Server(home=guard / "home", data=guard) as server:
        server.start()
        page.goto(server.url)
        settled(page)
        for name, address in PAGES.items():
            visit(page, address)
            expect(page.get_by_role("heading", level=1)).to_have_text("Winnow" if name == "Home" else name)
        left(page)
        monkeypatch.delenv("PYTHONPATH")  # who knocks is not watched
        assert handshakes(server, *FOREIGN) == [403] * len(FOREIGN)
        health = f"{server.url}/_stcore/health"
        assert asked(ASK, health) == {health: [200, "ok"]}
    assert talked(guard) == ""


def test_whoever_talks_is_caught(guard: Path, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up planted in a page, which the server runs, and one in a recipe, which a worker runs."""
    root = guard / "planted"
    for name in ("core", "pages", "assets", ".streamlit"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "home.py"):
        shutil.copy(ROOT / name, root)
    plant(root / "pages" / "1_Corpora.py", "main", "page.example")
    plant(root / "core" / "recipes" / "add.py", "run", "recipe.example")
    monkeypatch.setenv("WINNOW_HOME", str(guard / "planted home"))
    (guard / "a.txt").write_text("one sentence .\n", encoding="utf-8")
    code = f"from core.facade import runs; runs.start('add', {{'path': {str(guard / 'a.txt')!r}}})"
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
    finished({"add": runs.listed("add")[0].id})
    assert "getaddrinfo ('recipe.example', 80)" in talked(guard)
    assert "page.example" not in talked(guard)

    with Server(home=guard / "planted home", data=guard, root=root) as server:
        server.start()
        page.goto(f"{server.url}/Corpora")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        settled(page)
        left(page)
    assert "getaddrinfo ('page.example', 80)" in talked(guard)


def plant(file: Path, function: str, host: str) -> None:
    """A look-up at the beginning of what the file runs; that it is refused is passed over."""
    source = file.read_text(encoding="utf-8")
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    at = functions[function].body[1].lineno - 1  # behind the docstring
    lookup = (
        f"    import socket\n    try:\n        socket.getaddrinfo({host!r}, 80)\n    except OSError:\n        pass\n"
    )
    lines = source.splitlines(keepends=True)
    file.write_text("".join([*lines[:at], lookup, *lines[at:]]), encoding="utf-8")
