"""Hostile project files are refused with a clear error, and nothing of them stays."""

import errno
import hashlib
import io
import json
import random
import zipfile
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from core.errors import ProjectError, ResourceError, RunBusy
from core.paths import within
from core.project_list import FIRST_SLUG, LOCK, PROJECTS, shared_home
from core.projects import runs, unpack
from core.projects import view as projects
from core.projects.home import store
from core.projects.pack import FORMAT, LIST
from core.runs.lock import locked
from core.runs.worker import execute
from tests.conftest import Command

NAME = "corpora/0123456789abcdef01234567/about.json"
Files = dict[str | zipfile.ZipInfo, bytes]


def packed(files: Files, /, *, unlisted: Files | None = None, **about: Any) -> bytes:
    """Make a project file with these entries. about: forged fields of its list."""
    names = {name if isinstance(name, str) else name.filename: data for name, data in files.items()}
    rows = {name: [len(data), hashlib.sha256(data).hexdigest(), 0] for name, data in names.items()}
    manifest = {
        "format": FORMAT,
        "version": 1,
        "winnow": "0.3.0",
        "name": "Brought",
        "created": "",
        "files": rows,
    } | about
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, **(unlisted or {})}.items():
            archive.writestr(name, data)
        archive.writestr(LIST, json.dumps(manifest))
    return out.getvalue()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def encrypted() -> bytes:
    """Make a project file flagged as encrypted, in the entry and in the directory."""
    data = bytearray(packed({NAME: b"{}"}))
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + place] |= 1
    return bytes(data)


def twice() -> bytes:
    out = io.BytesIO(packed({NAME: b"{}"}))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(NAME, b"{}")
    return out.getvalue()


def empty() -> bytes:
    out = io.BytesIO()
    zipfile.ZipFile(out, "w").close()
    return out.getvalue()


HOSTILE: dict[str, Callable[[], bytes]] = {
    **{
        f"named {name!r}": partial(packed, {name: b"x"})
        for name in (
            "../out", "/etc/out", "runs/../../out", "runs/./out", "runs//out", "runs\\..\\out", "C:/out", "out",
            "runs/.hidden/out", "runs/a\n/out", "encoders/evil/config.json", "key", "runs/x/model.pkl",
            "runs/x/artifacts/model/pytorch_model.bin", "project.json", "runs/" + "a/" * 40 + "out", "corpora/",
            "runs/x/where.json", "runs/x/Where.json", "runs/x/launched", "runs/x/checkpoints/step.json",
            "corpora", "runs", "runs/x/artifacts", "runs/x/chunks",
        )
    },
    "a link": lambda: packed({entry("runs/x/link", 0o120777): b"/etc/passwd"}),
    "a device": lambda: packed({entry("runs/x/device", 0o020666): b""}),
    "encrypted": encrypted,
    "twice": twice,
    "a file under a file": lambda: packed({"runs/x": b"x", "runs/x/y": b"y"}),
    "another sum": lambda: packed({NAME: b"{}"}, files={NAME: [2, "0" * 64, 0]}),
    "another size": lambda: packed({NAME: b"{}"}, files={NAME: [3, hashlib.sha256(b"{}").hexdigest(), 0]}),
    "one more than listed": lambda: packed({NAME: b"{}"}, unlisted={"roles.json": b"{}"}),
    "one less than listed": lambda: packed({}, files={NAME: [2, "0" * 64, 0]}),
    "a bomb": lambda: packed({NAME: b"{}"}, files={NAME: [1 << 40, "0" * 64, 0]}),
    "of another program": lambda: packed({}, format="other"),
    "of a later version": lambda: packed({}, version=2),
    "a log of blank lines": lambda: packed({"runs/x/events.jsonl": b"\n" * 2_000_000}),
    "a manifest of blanks": lambda: packed({"runs/x/manifest.json": b"{" + b" " * 2_000_000 + b"}"}),
    "a manifest of megabytes": lambda: packed({"runs/x/manifest.json": random.Random(0).randbytes((2 << 20) + 1).hex().encode()}),
    "a list of blanks": lambda: packed({}, more=" " * 2_000_000),
    "a list of lists": lambda: packed({}, files=[[]]),
    "before all time": lambda: packed({NAME: b"{}"}, files={NAME: [2, hashlib.sha256(b"{}").hexdigest(), -1]}),
    "without a name": lambda: packed({}, name=""),
    "no zip": lambda: b"PK, or so it says",
    "torn": lambda: packed({NAME: b"{}" * 999})[:-40],
    "without its beginning": lambda: packed({NAME: b"{}"})[10:],
    "nothing": lambda: b"",
    "a zip of something else": empty,
}  # fmt: skip


def assert_nothing_stays(home: Path) -> None:
    assert not {folder.name for folder in (shared_home(home) / PROJECTS).glob("*")} - {FIRST_SLUG}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_project_file_is_refused_and_leaves_nothing(name: str, home: Path, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"^(given.zip|project): .*\.$") as raised:
        projects.bring_in(io.BytesIO(HOSTILE[name]()), "given.zip")
    assert "\n" not in str(raised.value)
    assert_nothing_stays(home)
    assert not list(tmp_path.rglob("out"))


def test_well_compressed_predictions_are_not_refused_as_a_bomb(home: Path) -> None:
    """A tagger that learnt nothing writes the same line for every sentence."""
    predictions: Files = {"runs/x/artifacts/predictions-test-1.jsonl": b'{"entities": []}\n' * 200_000}
    assert projects.bring_in(io.BytesIO(packed(predictions)), "given.zip").name == "Brought"


def test_an_import_of_20_000_files_comes_back(home: Path) -> None:
    paths = [f"/data/scans of the registry/2019/Mietvertrag-{i:05d}-Musterstadt.txt" for i in range(20_000)]
    run = store().create("add", {"path": paths[0], "others": paths}, {}, versions={}, key="k")
    run.launched_file.touch()
    data = io.BytesIO(projects.export_bytes(projects.current()))
    with within(projects.bring_in(data, "given.zip", "Brought").slug):
        assert runs.get(run.id).manifest.config["others"] == paths


def test_a_run_that_comes_back_with_a_backup_has_its_state_of_then(home: Path) -> None:
    """The app's process goes on and remembers the run."""
    projects.new("Another")
    project = projects.new("Mine")
    with within(project.slug):
        run = store().create("fetch", {"encoder": "mpnet"}, {}, versions={}, key="k")
        run.launched_file.touch()
        backup = io.BytesIO(projects.export_bytes(project))
        execute(run, lambda context: {})
        assert runs.state(run.id).state == "succeeded"
    projects.remove(project)
    assert projects.bring_in(backup, "given.zip").slug == project.slug
    with within(project.slug):
        assert runs.state(run.id).state != "succeeded"


def test_a_forged_table_is_refused(home: Path) -> None:
    table = NAME.replace("about.json", "sentences.parquet")
    with pytest.raises(ProjectError, match="a table in it cannot be read"):
        projects.bring_in(io.BytesIO(packed({table: b"PAR1 forged PAR1"})), "given.zip")
    assert_nothing_stays(home)


def test_two_imports_do_not_name_their_projects_at_the_same_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "locked", lambda path, patience: locked(path, patience=0))
    with locked(shared_home(home) / LOCK, patience=0), pytest.raises(RunBusy, match="stayed locked"):
        projects.bring_in(io.BytesIO(packed({NAME: b"{}"})), "given.zip")
    assert_nothing_stays(home)
    assert projects.bring_in(io.BytesIO(packed({NAME: b"{}"})), "given.zip").name == "Brought"


def test_a_full_disk_of_the_home_is_not_reported_as_an_unreadable_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    given = tmp_path / "given.zip"
    given.write_bytes(packed({NAME: b"{}"}))
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(unpack, "_write", Mock(side_effect=full))
    assert command("project", "import", given) == (
        2,
        "",
        f"{shared_home(home)}: its disk is full; free some space there and try again.\n",
    )
    assert_nothing_stays(home)


def test_truncated_files_bombs_and_files_larger_than_the_disk_are_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given.zip"
    given.write_bytes(packed({NAME: b"{}"})[10:])  # a file on disk raises another error than bytes in memory
    with given.open("rb") as file, pytest.raises(ProjectError, match=r"^given.zip: is damaged or not a zip file"):
        projects.bring_in(file, "given.zip")
    monkeypatch.setattr(unpack, "_SMALL", 1000)
    with pytest.raises(ProjectError, match="would unpack to 1,000,000 bytes, more than 100 times its size"):
        projects.bring_in(io.BytesIO(packed({NAME: b"0" * 1_000_000})), "given.zip")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(9, 8, 1))
    with pytest.raises(ResourceError, match=r"needs 2 bytes, but .* has 1 left"):
        projects.bring_in(io.BytesIO(packed({NAME: b"{}"})), "given.zip")
    assert_nothing_stays(home)
