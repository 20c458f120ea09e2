"""Files on disk: readable by their owner alone whatever the umask, and damaged ones are skipped and named."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import RunError
from core.facade import corpora
from core.facade.home import private, unreadable
from core.runs.store import RunStore
from tests.conftest import Seal
from tests.finished import SELECTED, finish
from tests.pages.test_pages import opened

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def wide_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def wider(folder: Path) -> list[str]:
    """What below a folder somebody else may look into."""
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.mark.usefixtures("wide_mask")
def test_a_door_of_the_program_narrows_the_mask(home: Path) -> None:
    home.mkdir(mode=0o755)
    private()
    (home / "new").write_text("x")
    assert wider(home) == []


def test_what_a_newer_version_wrote_beside_is_passed_over(seal: Seal, home: Path) -> None:
    corpus = seal(["a sentence ."], "mine")
    run = RunStore(home).create("select", {"budget": "10%"}, {}, seed=0, versions={}, parent=None, key="k")
    for file in (corpus.path / "about.json", run.path / "manifest.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "of_a_newer_version": {"x": 1}}))
    assert corpora.listed()[0].name == "mine"
    assert [each.id for each in RunStore(home).list()] == [run.id]
    assert unreadable() == []


EVENTS = {
    "no pid": {"kind": "started", "data": {}},
    "null": {"kind": "started", "data": {"pid": None, "created": None}},
    "text for a time": {"kind": "started", "time": "soon", "data": {"pid": 1, "created": 1.0}},
    "no data": {"kind": "stage", "data": None},
    "a list": {"kind": "stage", "data": []},
    "text for numbers": {"kind": "progress", "data": {"done": "few", "total": "many", "unit": "rows"}},
    "a newer kind": {"kind": "of_a_newer_version", "data": {}},
    "a newer key": {
        "kind": "part",
        "data": {"number": 1, "of": 2, "name": "x", "left": None, "after": None, "newer": 1},
    },
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_a_damaged_event_hides_no_other_event(event: dict[str, object], home: Path) -> None:
    run = RunStore(home).create("select", {"budget": "10%"}, {}, seed=0, versions={}, parent=None, key="k")
    sound = {"seq": 0, "time": 1.0, "kind": "stage", "data": {"name": "reading"}}
    lines = [sound, {"seq": 1, "time": 2.0, **event}, {**sound, "seq": 2, "time": 3.0, "data": {"name": "scoring"}}]
    run.events_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run.state().stage == "scoring"
    assert unreadable() == ([] if "newer" in json.dumps(event) else [run.events_file])


def test_a_damaged_result_hides_no_page_and_an_error_names_it(seal: Seal, home: Path) -> None:
    marks = {role: seal([f"a sentence of {role} ."], role).fingerprint for role in ("task", "domain")}
    run = finish(home, "select", marks, lambda context: SELECTED)
    run.result_file.write_bytes(b'{"n_sent')
    app = opened("home.py")
    assert not app.exception
    assert not app.error
    with pytest.raises(RunError, match=rf"{run.id}: its result.json cannot be read"):
        run.result()


def test_damaged_roles_are_ignored_until_one_is_set(seal: Seal, home: Path) -> None:
    mark = seal(["a sentence ."], "mine").fingerprint
    for data in (b"[]", b"3", b"[" * 50_000, b"", b'{"task": ["x"], "domain": {}}'):
        (home / "roles.json").write_bytes(data)
        assert corpora.roles() == {}
        assert unreadable() == ([] if data.startswith(b"{") else [home / "roles.json"])
    corpora.set_role("task", mark)
    assert corpora.roles() == {"task": mark}
