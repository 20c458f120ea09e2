"""Pages and their runs may read only files in allowed folders, after links are resolved."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core import paths
from core.corpora.readers import ReadOptions, read, sniff
from core.errors import ConfigError, ModelError, PathError
from core.importing import view as corpora
from core.models import hub
from core.models.fingerprint import fingerprint
from core.paths import allowed_path, allowed_roots, confine, opened
from core.projects import runs
from core.projects.home import store
from core.tagging.estimate import _weights_gb
from tests.conftest import entities_of
from tests.homes import project_in
from tests.pages.drawing import opened as opened_page
from tests.waiting import until, within

SECRET = "root:x:0:0:root:/root:/bin/bash\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the only allowed folder, and confine this process."""
    path = tmp_path / "texts"
    path.mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(path))
    confine()
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Write a file outside the allowed folder."""
    path = tmp_path / "outside" / "passwd"
    path.parent.mkdir()
    path.write_text(SECRET, encoding="utf-8")
    return path


def test_only_files_in_allowed_folders_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "root", tmp_path / "root2"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.txt").write_text("a")
    (root / "link").symlink_to(outside / "a.txt")
    assert allowed_path(root / "a.txt", [root]) == (root / "a.txt").resolve()
    assert allowed_path(str(root / "x" / ".." / "a.txt").replace("/x/..", ""), [root]).name == "a.txt"
    for path in (outside / "a.txt", root / "link", root / ".." / "root2" / "a.txt", "/etc/passwd"):
        with pytest.raises(PathError, match="WINNOW_DATA_DIRS"):
            allowed_path(path, [root])
    for path in (root / "none", "a\0b", "~nobody-at-all/x"):
        with pytest.raises(PathError, match="no such file"):
            allowed_path(path, [root])


def test_neither_the_whole_disk_nor_a_hidden_folder_can_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may start with `/` as home and working folder."""
    hidden = tmp_path / ".ssh"
    hidden.mkdir()
    (hidden / "id_ed25519").write_text("a key")
    monkeypatch.setenv("HOME", "/")
    monkeypatch.chdir("/")
    monkeypatch.setenv("WINNOW_DATA_DIRS", f"/:{hidden}")
    assert allowed_roots() == (paths._PROJECT,)
    for path in ("/proc/self/environ", "/etc/passwd", hidden / "id_ed25519"):
        with pytest.raises(PathError, match="outside the allowed folders"):
            allowed_path(path)


def test_hidden_files_are_refused_except_uploads(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(root / ".winnow"))
    upload = project_in(root / ".winnow") / "uploads" / "ab" / ".notes.txt"
    for path in (root / ".ssh/id", root / ".winnow/key", root / ".netrc", upload):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text of it\n")
    (root / "open").symlink_to(root / ".ssh")
    for name in (".ssh/id", ".winnow/key", ".netrc", "open/id", "open"):
        with pytest.raises(PathError, match="outside the allowed folders"):
            allowed_path(root / name)
    assert sniff(upload).rows == ("text of it",)
    with pytest.raises(PathError):  # a typed path is refused even if it is that of an upload
        allowed_path(str(upload), allowed_roots())


def test_errors_do_not_reveal_if_an_outside_file_exists(root: Path) -> None:
    (root / "out").symlink_to("/etc")
    messages = []
    for path in ("/etc/passwd", "/etc/nothing-here", root / "out" / "passwd", root / "out" / "nothing-here"):
        with pytest.raises(PathError) as raised:
            allowed_path(str(path), allowed_roots())
        messages.append(str(raised.value).removeprefix(repr(str(path))))
    assert len(set(messages)) == 1


def _numbered(root: Path) -> Path:
    folder = root / "set" / "data"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"tokens": [["a", "b"]], "ner_tags": [[0, 1]]}), folder / "train.parquet")
    return folder / "train.parquet"


def link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


def plant(root: Path, secret: Path, what: str) -> Path:
    """Write files, one of them a link to `secret` or to its folder. Return the path to read."""
    match what:
        case "text":
            (root / "x.ann").write_text("T1\tPER 0 4\troot\n")
            return link(root / "x.txt", secret).with_suffix(".ann")
        case "notes" | "notes in a folder":
            (root / "y.txt").write_text("A sentence .\n")
            notes = link(root / "y.ann", secret)
            return notes.with_suffix(".txt") if what == "notes" else root
        case "folder":
            return link(root / "away", secret.parent)
        case "card":
            return link(_numbered(root).parent / "README.md", secret).with_name("train.parquet")
    return link(_numbered(root).parents[1] / "dataset_info.json", secret).parent


@pytest.mark.parametrize("there", [True, False], ids=["there", "nothing there"])
@pytest.mark.parametrize("what", ["text", "notes", "notes in a folder", "folder", "card", "description above"])
def test_no_link_leads_out(root: Path, secret: Path, what: str, there: bool) -> None:
    """Covers companion files of readers. The error does not reveal if the target of a link exists."""
    path = plant(root, secret, what)
    if not there:
        secret.unlink()
        secret.parent.rmdir()
    for work in (lambda: sniff(path), lambda: list(read(path))):
        with pytest.raises(PathError, match="outside the allowed folders"):
            work()


def test_links_among_files_are_skipped_except_for_the_owner_at_the_command_line(
    root: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("Ours .\n")
    (root / "b.txt").symlink_to(secret)
    assert [sentence.text for sentence in read(root)] == ["Ours ."]
    for path, make in ((root / "pipe", os.mkfifo), (root / "folder", Path.mkdir)):
        make(path)
        with pytest.raises(PathError, match="not a plain file"):  # a pipe is not waited for
            opened(path)
    monkeypatch.setenv("WINNOW_CONFINED", "0")
    assert [sentence.text for sentence in read(root / "b.txt")] == [SECRET.strip()]


def test_readers_look_for_no_companion_above_an_allowed_folder(root: Path) -> None:
    path = _numbered(root).rename(root / "train.parquet")
    (root / "dataset_info.json").write_text(json.dumps({"features": {"ner_tags": {"names": ["O", "B-PER"]}}}))
    (root.parent / "README.md").symlink_to("/etc/passwd")
    (found,) = read(path, ReadOptions(scheme="iob2"))
    assert [entity.type for entity in entities_of(found)] == ["PER"]


def test_a_file_name_that_is_not_text_is_a_clear_error(root: Path) -> None:
    """Old archives leave names in Latin-1."""
    path = Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.txt"))
    path.write_text("Ours .\n")
    (root / "a.txt").write_text("Ours .\n")
    assert corpora.import_listing(str(root))[1] == {"a.txt": root / "a.txt"}
    with pytest.raises(ConfigError, match="rename the file"):
        runs.start("add", {"path": str(path)})


@pytest.mark.parametrize("at", ["file", "folder"])
def test_a_file_replaced_while_it_is_opened_is_not_read(
    root: Path, secret: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """After the check and before the open, a link replaces the file or a folder of its path."""
    path = root / "folder" / "passwd"
    path.parent.mkdir()
    path.write_text("harmless\n")
    look = paths._placed

    def swapped(name: Path | str, roots: Sequence[Path] | None) -> tuple[Path, Path]:
        found = look(name, roots)
        if at == "file":
            path.unlink()
            path.symlink_to(secret)
        else:
            path.parent.rename(root / "old")
            path.parent.symlink_to(secret.parent)
        return found

    with opened(path) as file:
        assert file.read() == b"harmless\n"
    monkeypatch.setattr(paths, "_placed", swapped)
    with pytest.raises(OSError, match=r"symbolic|Not a directory"):
        opened(path)


def test_a_run_that_a_page_started_is_confined(root: Path, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file becomes a link before the worker starts."""
    monkeypatch.setenv("WINNOW_CONFINED", "0")
    app = opened_page("pages/1_Corpora.py")
    path = root / "mine.txt"
    path.write_text("A sentence of mine .\n")
    app.segmented_control(key="corpora.source").set_value("A path on this machine").run()
    app.text_input[0].set_value(str(path))
    app.button(key="corpora.look").click().run()
    path.unlink()
    path.symlink_to(secret)
    run_id = runs.start("add", {"path": str(path)})
    until(lambda: not runs.state(run_id).active)
    assert runs.state(run_id).state == "failed"
    assert "outside the allowed folders" in str(runs.state(run_id).error)
    assert not corpora.listed()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound")
    hub.load_model("tiny").save_pretrained(path)
    hub.load_tokenizer("tiny").save_pretrained(path)
    return path


@pytest.mark.parametrize("what", ["pipe", "endless", "link", "dangling"])
def test_an_encoder_of_pipes_and_links_is_refused(root: Path, secret: Path, what: str) -> None:
    """None of them is opened, because a pipe would block and /dev/zero has no end."""
    folder = root / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = folder / "model.safetensors"
    if what == "pipe":
        os.mkfifo(weights)
    else:
        weights.symlink_to({"endless": Path("/dev/zero"), "link": secret, "dangling": secret / "none"}[what])
    with within(2), pytest.raises((PathError, ModelError)) as raised:
        runs.start("calibrate", {"encoder": str(folder), "task": "x", "train": "x"})
    assert str(folder) in str(raised.value)
    assert isinstance(raised.value, PathError) == (what != "pipe")


def test_paths_of_encoders_are_checked_too(root: Path, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "out").symlink_to("/etc")
    messages = []
    for name in ("/etc/ssl", "/etc/nothing-here", str(sound), "/proc/self", str(root / "out" / "ssl"), "../../etc/ssl"):
        with pytest.raises(PathError) as raised:
            fingerprint(name)
        messages.append(str(raised.value).removeprefix(repr(name)))
    assert len(set(messages)) == 1
    assert _weights_gb("/etc/ssl", store()) is None  # an estimate ignores a refused encoder
    with pytest.raises(PathError, match="no such file"):
        fingerprint("~nobody-at-all/x")
    with pytest.raises(ModelError, match="not on this machine"):
        fingerprint("somebody/some-bert")
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(sound))
    assert fingerprint(str(sound))
    monkeypatch.setenv("WINNOW_CONFINED", "0")
    monkeypatch.delenv("WINNOW_DATA_DIRS")
    assert fingerprint(str(sound))
    monkeypatch.setenv("WINNOW_CONFINED", "1")
    monkeypatch.chdir("/")
    with pytest.raises(ModelError, match="not on this machine"):
        fingerprint("etc/ssl")  # the name of a model, not a path
