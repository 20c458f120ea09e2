"""Files on disk: readable only by their owner under any umask; fields of newer versions; damaged files."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import RunError
from core.importing import view as corpora
from core.paths import private
from core.project_list import shared_home
from core.projects.view import unreadable
from core.runs.store import RunStore
from tests.conftest import Seal
from tests.finished import SELECTED, constant, finish


@pytest.fixture
def wide_mask() -> Iterator[None]:
    """Set a umask that lets other accounts read new files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def wider(folder: Path) -> list[str]:
    """Return the paths in `folder` that another account may read."""
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.mark.usefixtures("wide_mask")
def test_a_process_narrows_its_umask_and_the_modes_of_the_home(home: Path) -> None:
    home.mkdir(mode=0o755, parents=True)
    private()
    (home / "new").write_text("x")
    assert wider(shared_home(home)) == []


@pytest.mark.usefixtures("wide_mask")
def test_files_that_are_not_winnows_keep_their_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letter, code, run = (
        tmp_path / name for name in ("letters/a.txt", "projects/code/main.py", "projects/mine/runs/x.json")
    )
    for file in (letter, code, run):
        file.parent.mkdir(parents=True)
        file.write_text("x")
    monkeypatch.setenv("WINNOW_HOME", str(tmp_path))
    tmp_path.chmod(0o755)
    private()
    assert wider(run.parents[1]) == []
    assert {str(path) for path in (tmp_path, letter, code)} < set(wider(tmp_path))


def test_fields_and_events_of_a_newer_version_are_ignored(seal: Seal, home: Path) -> None:
    corpus = seal(["a sentence ."], "mine")
    run = RunStore(home).create("select", {"budget": "10%"}, {}, seed=0, versions={}, parent=None, key="k")
    for file in (corpus.path / "about.json", run.path / "manifest.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "of_a_newer_version": {"x": 1}}))
    part = {"number": 1, "of": 2, "name": "x", "left": None, "after": None, "newer": 1}
    kinds = [("stage", {"name": "reading"}), ("newer", {}), ("part", part), ("stage", {"name": "scoring"})]
    lines = [json.dumps({"seq": i, "time": 1.0, "kind": kind, "data": data}) for i, (kind, data) in enumerate(kinds)]
    run.events_file.write_text("".join(f"{line}\n" for line in lines))
    assert corpora.listed()[0].name == "mine"
    [known] = RunStore(home).list()
    assert (known.id, known.state().stage) == (run.id, "scoring")
    assert unreadable() == []


def test_damaged_results_are_named_and_damaged_roles_ignored_until_one_is_set(seal: Seal, home: Path) -> None:
    marks = {role: seal([f"a sentence of {role} ."], role).fingerprint for role in ("task", "domain")}
    run = finish(home, "select", marks, constant(SELECTED))
    run.result_file.write_bytes(b'{"n_sent')
    with pytest.raises(RunError, match=rf"{run.id}: its result.json cannot be read"):
        run.result()
    (home / "roles.json").write_bytes(b'{"task": ["x"], "domain": {}}')  # readable, but without roles
    assert (corpora.roles(), unreadable()) == ({}, [])
    (home / "roles.json").write_bytes(b"[" * 50_000)
    assert corpora.roles() == {}
    corpora.set_role("task", marks["task"])
    assert corpora.roles() == {"task": marks["task"]}
