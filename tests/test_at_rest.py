"""What lies on disk: read by its owner alone, whatever the mask; spoilt files are named and passed over."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from core.errors import RunError
from core.facade import corpora
from core.facade.home import private, store, unreadable
from core.runs.store import RunStore
from tests.conftest import Seal
from tests.finished import SELECTED, finish
from tests.pages.test_pages import opened, texts
from tests.planted import contracts, kitchen

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


def command(home: Path, *words: object) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "core", *map(str, words), "--json"],
        cwd=ROOT,
        env={**os.environ, "WINNOW_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


@pytest.mark.usefixtures("wide_mask")
def test_everything_is_the_owners_alone_and_an_older_home_is_tightened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name, lines in {"task": contracts(30, 1), "domain": [*contracts(60, 2), *kitchen(60)]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    command(home, "select", "--task", tmp_path / "task.txt", "--domain", tmp_path / "domain.txt", "--budget", 20)
    assert len(list(home.rglob("*"))) > 20
    assert wider(home) == []
    for path in (home, *home.rglob("*")):  # as an older version left it
        path.chmod(0o755 if path.is_dir() else 0o644)
    command(home, "corpus", "list")
    assert wider(home) == []


@pytest.mark.usefixtures("wide_mask")
def test_a_door_of_the_program_narrows_the_mask(home: Path) -> None:
    home.mkdir(mode=0o755)
    private()
    (home / "new").write_text("x")
    assert wider(home) == []


SPOILT_CORPUS = {"empty": b"", "a list": b"[]", "null": b"null", "no names": b"{}", "deep": b'{"a":' * 50_000}


@pytest.mark.parametrize("data", SPOILT_CORPUS.values(), ids=SPOILT_CORPUS)
def test_a_spoilt_corpus_takes_no_page_and_no_list(data: bytes, seal: Seal) -> None:
    sound, spoilt = seal(["a sound sentence ."], "sound"), seal(["another sentence ."], "spoilt")
    (spoilt.path / "about.json").write_bytes(data)
    assert [corpus.name for corpus in corpora.listed()] == ["sound"]
    assert corpora.find("sound").fingerprint == sound.fingerprint
    assert unreadable() == [spoilt.path / "about.json"]
    for page in ("home.py", "pages/1_Corpora.py"):
        app = opened(page)
        assert not app.exception
        assert not app.error
        assert spoilt.fingerprint in unescape(texts(app))


def test_what_a_newer_version_wrote_beside_is_passed_over(seal: Seal, home: Path) -> None:
    corpus = seal(["a sentence ."], "mine")
    run = RunStore(home).create("select", {"budget": "10%"}, {}, seed=0, versions={}, parent=None, key="k")
    for file in (corpus.path / "about.json", run.path / "manifest.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "of_a_newer_version": {"x": 1}}))
    assert corpora.listed()[0].name == "mine"
    assert [each.id for each in RunStore(home).list()] == [run.id]
    assert unreadable() == []


SPOILT_MANIFEST = {
    "empty": {},
    "a list": [],
    "no options": {"config": {}},
    "null": {"config": None},
    "inputs": {"inputs": {"task": 3}},
    "deep options": {"config": {"options": json.loads("[" * 600 + "]" * 600)}},
}


@pytest.mark.parametrize("change", SPOILT_MANIFEST.values(), ids=SPOILT_MANIFEST)
def test_a_spoilt_manifest_takes_no_page_and_no_list(change: object, home: Path) -> None:
    run = RunStore(home).create("select", {"budget": "10%"}, {}, seed=0, versions={}, parent=None, key="k")
    file = run.path / "manifest.json"
    stored = json.loads(file.read_text())
    file.write_text(json.dumps({**stored, **change} if change and isinstance(change, dict) else change))
    assert store().unreadable() == [file]
    app = opened("home.py")
    assert not app.exception
    assert not app.error
    assert run.id in unescape(texts(app))


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
def test_a_spoilt_event_changes_nothing(event: dict[str, object], home: Path) -> None:
    run = RunStore(home).create("select", {"budget": "10%"}, {}, seed=0, versions={}, parent=None, key="k")
    sound = {"seq": 0, "time": 1.0, "kind": "stage", "data": {"name": "reading"}}
    lines = [sound, {"seq": 1, "time": 2.0, **event}, {**sound, "seq": 2, "time": 3.0, "data": {"name": "scoring"}}]
    run.events_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run.state().stage == "scoring"
    assert unreadable() == ([] if "newer" in json.dumps(event) else [run.events_file])
    app = opened("home.py")
    assert not app.exception
    assert not app.error


def test_a_torn_result_takes_no_page_and_a_sentence_names_it(seal: Seal, home: Path) -> None:
    marks = {role: seal([f"a sentence of {role} ."], role).fingerprint for role in ("task", "domain")}
    run = finish(home, "select", marks, lambda context: SELECTED)
    run.result_file.write_bytes(b'{"n_sent')
    app = opened("home.py")
    assert not app.exception
    assert not app.error
    with pytest.raises(RunError, match=rf"{run.id}: its result.json cannot be read"):
        run.result()


def test_spoilt_roles_are_no_roles(seal: Seal, home: Path) -> None:
    mark = seal(["a sentence ."], "mine").fingerprint
    for data in (b"[]", b"3", b"[" * 50_000, b"", b'{"task": ["x"], "domain": {}}'):
        (home / "roles.json").write_bytes(data)
        assert corpora.roles() == {}
        app = opened("home.py")
        assert not app.exception
        assert not app.error
        assert ("roles.json" in unescape(texts(app))) == (not data.startswith(b"{"))
    corpora.set_role("task", mark)
    assert corpora.roles() == {"task": mark}
