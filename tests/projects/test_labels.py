"""Names, tags and notes of runs: stored beside the run; damaged or forged ones do no harm."""

import json
import os
from pathlib import Path

import pytest

from core.files import bytes_in
from core.projects import labels
from core.projects.labels import Label
from core.runs.store import Run, RunStore


@pytest.fixture
def run(home: Path) -> Run:
    return RunStore(home).create("audit", {"x": 1}, {}, versions={}, key="k")


def test_a_label_is_stored_beside_the_files_of_the_run(run: Run) -> None:
    before = (run.path / "manifest.json").read_bytes()
    label = Label(name="mine", tags=("a", "b"), note="one\ntwo", pinned=True)
    labels.write(run, label)
    assert labels.read(run) == label
    assert (run.path / "manifest.json").read_bytes() == before
    labels.write(run, Label())
    assert not (run.path / labels.FILE).exists()
    assert labels.read(run) == Label()


def test_a_forged_label_is_cut_and_a_damaged_one_ignored(run: Run) -> None:
    forged = {"name": "a\x1b[2Jb " * 40, "tags": ["x", " x ", "", *map(str, range(40))], "note": "y\x00" * 9_000}
    (run.path / labels.FILE).write_text(json.dumps(forged))
    label = labels.read(run)
    assert len(label.name) <= labels.LONGEST
    assert "\x1b" not in label.name
    assert len(label.tags) == labels.MOST_TAGS
    assert label.tags[:2] == ("x", "0")
    assert len(label.note) == labels.LONGEST_NOTE
    assert "\x00" not in label.note
    for spoilt in ("", "[]", '{"name": 3, "tags": {"a": 1}, "note": [], "pinned": 1}', '{"tags": 4}'):
        (run.path / labels.FILE).write_text(spoilt)
        assert labels.read(run) == Label()


def test_a_run_is_measured_while_it_writes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint folder and a temporary file disappear while the run is measured."""
    whole = bytes_in(run.path)
    (run.checkpoints / "step-1").mkdir()
    (run.path / "half.tmp").write_bytes(b"x" * 9)
    listed, look = os.scandir, Path.lstat

    def scandir(path: str) -> object:
        if str(path).endswith("step-1"):
            Path(path).rmdir()
        return listed(path)

    def lstat(path: Path) -> os.stat_result:
        if path.name == "half.tmp":
            path.unlink()
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(Path, "lstat", lstat)
    assert bytes_in(run.path) == whole
