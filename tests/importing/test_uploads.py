"""Copies of uploads: deleted if useless, listed while they wait, and deleted after days without use."""

import io
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zipfile import ZipFile

import pytest

from core.corpora.library import Library
from core.corpora.uploads import keep_only
from core.errors import Cancelled, ReadError, WinnowError
from core.importing import intake_view as intake
from core.importing import uploads
from core.importing import view as corpora
from core.importing.result import AddResult
from core.kind import register
from core.kinds import KINDS
from core.projects import removals, runs
from core.runs.events import Event
from core.runs.result import read as read_result
from core.runs.store import RunStore
from tests.conftest import ROOT, Command, Seal, sentence
from tests.finished import as_running
from tests.pages.drawing import opened, texts
from tests.word_search import holding

DAYS = 3 * 24 * 3600
PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)


def upload(name: str, data: bytes, age: float = 0) -> str:
    token = uploads.spool(name, io.BytesIO(data))
    file = uploads.spooled(token)
    for path in (file, file.parent):
        os.utime(path, (time.time() - age,) * 2)
    return token


def add(token: str, fails: bool = False, **options: object) -> None:
    """Import an upload. fails: expect an error."""
    with pytest.raises(WinnowError) if fails else nullcontext():
        runs.execute("add", {"path": str(uploads.spooled(token)), "move": True, **options})


def test_uploads_that_no_option_can_read_are_deleted(home: Path) -> None:
    for name, data in (
        ("x.txt", b""),
        ("x.txt", b"\n\n\n"),
        ("Zyxname1.gz", b"\x1f\x8b\x08\x00Zyxname1"),
        ("x.parquet", b"PAR1 Zyxname1 PAR1"),
    ):
        add(upload(name, data), fails=True)
        assert list((home / "uploads").iterdir()) == []
        assert uploads.waiting() == {}
    token = upload("x.jsonl", b'{"a": "Zyxname1"}\n{"text": 3, "b": "Zyxname2"}\n' * 4)
    add(token, fails=True, text_column="text")
    run = runs.listed("add")[0]  # a failed import keeps no rejected row
    assert not list(run.artifacts.iterdir())
    assert holding(run.path, ["Zyxname1", "Zyxname2"]) == []
    uploads.discard(token)
    assert list((home / "uploads").iterdir()) == []


READABLE_WITH_OPTIONS: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "encoding": ("x.txt", "M\u00fcller sah \u00fcber Z\u00fcrich .\n".encode("cp1252") * 3, {"encoding": "cp1252"}),
    "column": ("x.jsonl", b'{"a": 1, "b": "A clause stands here ."}\n' * 3, {"text_column": "b"}),
    "scheme": ("x.conll", b"Ada\tI-PER\nleft\tO\n\nBo\tB-PER\nZed\tB-PER\n\n", {"scheme": "iob1"}),
}


@pytest.mark.parametrize("case", READABLE_WITH_OPTIONS)
def test_uploads_that_other_options_may_read_wait_for_another_import(case: str, home: Path) -> None:
    name, data, options = READABLE_WITH_OPTIONS[case]
    token = upload(name, data)
    add(token, fails=True, text_column="a" if case == "column" else None)
    assert uploads.waiting() == {token: name}
    if case == "encoding":
        app = opened("pages/1_Corpora.py")
        assert "1 upload waiting" in texts(app)
        app.button(key=f"corpora.waiting.{token}").click().run()
        assert dict(app.query_params)["upload"] in (token, [token])
        assert not app.exception
    add(token, **options)
    assert uploads.waiting() == {}


def test_a_cancelled_import_keeps_its_upload_for_resume(home: Path) -> None:
    token = upload("x.txt", b"A clause is here .\n" * 5)
    options = {"path": str(uploads.spooled(token)), "move": True}

    def cancel(event: Event) -> None:
        if event.kind == "stage":
            runs.listed("add")[0].cancel_file.touch()

    with pytest.raises(Cancelled):
        runs.execute("add", options, cancel)
    assert uploads.waiting() == {token: "x.txt"}
    runs.go_on(runs.listed("add")[0].id)
    assert uploads.waiting() == {}


def test_the_page_deletes_a_waiting_upload(home: Path) -> None:
    tokens = [upload(f"{name}.txt", b"A clause .\n") for name in ("one", "two")]
    app = opened("pages/1_Corpora.py")
    assert "2 uploads waiting" in texts(app)
    app.button(key=f"corpora.forget.{tokens[0]}").click().run()
    assert "1 upload waiting" in texts(app)
    assert list(uploads.waiting()) == [tokens[1]]


def test_a_killed_export_of_a_project_leaves_no_copy_of_its_text_for_ever(home: Path) -> None:
    add(upload("x.txt", b"A clause .\n"))
    script = (
        "import os; from core.projects import pack, view; pack.replacing = lambda path: os._exit(9); "
        "view.export_bytes(view.current())"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 9
    (left,) = home.glob(".export-*")
    os.utime(left, (0, 0))
    removals.sweep()
    assert not left.exists()


@pytest.mark.parametrize(("kind", "options"), [("add", {"move": True}), ("intake", {"domain": ("x.txt",)})])
def test_an_upload_that_a_run_reads_does_not_wait(kind: str, options: dict[str, object], home: Path) -> None:
    token = upload("x.txt", b"A clause .\n")
    config = KINDS[kind].config.parse({"path": str(uploads.spooled(token)), **options})
    with as_running(register(KINDS[kind], config, RunStore(home))):
        assert uploads.waiting() == {}
        # Another window that still shows the upload, or the browser's button Back, cannot delete it.
        app = opened("pages/1_Corpora.py", upload=token)
        app.button(key="corpora.discard").click().run()
        assert not app.error
        assert "upload" not in app.query_params
    assert uploads.waiting() == {token: "x.txt"}


@pytest.mark.parametrize("data", [b"A clause .\n", b""])
def test_an_import_deletes_abandoned_uploads(data: bytes, home: Path) -> None:
    upload("old.txt", b"Zyxname1 .\n", age=DAYS)
    young = upload("young.txt", b"A clause .\n")
    token = upload("x.txt", data)
    add(token, fails=not data)
    assert uploads.waiting() == {young: "young.txt"}
    assert holding(home, ["Zyxname1"]) == []
    add(upload("old.txt", b"A clause .\n", age=DAYS))  # an old upload can still be imported
    assert corpora.find("old")


def test_the_start_deletes_abandoned_uploads_and_files_of_killed_processes(home: Path, seal: Seal) -> None:
    upload("old.txt", b"Zyxname1 .\n", age=DAYS)
    seal(["A clause ."], "mine")
    typed = Library(home).seal([sentence("Zyxname2 .")], name="sentences to try", origin={"typed": True})
    left = [
        home / "corpora" / ".draft-x" / "sentences.parquet",
        home / "runs" / ".removed-x" / "map.parquet",
        home / "runs" / "one" / "choices" / ".removed-0b15" / "choice.json",
        home / "runs" / "one" / "choices" / ".new-0b16" / "choice.json",
        home / "corpora" / ".removed-y" / "about.json",
        home / "exports" / ".S_C.txt.1a2b.tmp",
    ]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Zyxname3")
    young = home / "corpora" / ".draft-young"
    young.mkdir()
    for path in (typed.path / "about.json", *left, *(file.parent for file in left if file.parent != home / "exports")):
        os.utime(path, (time.time() - DAYS,) * 2)
    words = [f"Zyxname{i}" for i in (1, 2, 3)]
    assert len(holding(home, words)) >= 6
    subprocess.run([sys.executable, "-c", "import app"], cwd=ROOT, check=True, capture_output=True)
    assert holding(home, words) == []
    assert young.exists()
    assert [corpus.name for corpus in corpora.listed()] == ["mine"]


TWO = {"matter/a/lease.html": b"<p>Ada rents a flat.", "matter/b/lease.html": b"<p>Bo rents a house."}


def dropped(**more: bytes) -> Path:
    """Upload a folder with two files of one name. more: further files; `_` in a name stands for the dot."""
    files = TWO | {f"matter/{name.replace('_', '.')}": data for name, data in more.items()}
    return uploads.spooled(uploads.spool_all([(name, io.BytesIO(data)) for name, data in files.items()]))


def test_two_files_of_one_name_keep_the_folders_that_distinguish_them(home: Path) -> None:
    path = dropped()
    assert uploads.called(path) == "matter"
    assert list(uploads.waiting().values()) == ["matter"]
    proposed = intake.proposal([path])
    assert [row.files for row in proposed.rows] == [("a/lease.html",), ("b/lease.html",)]
    parts = {row.files[0]: "domain" for row in proposed.rows}
    runs.execute("intake", intake.options(proposed, [path], parts, move=True))
    corpus = corpora.find(corpora.roles()["domain"])
    assert {(each.file, each.text) for batch in corpus.batches() for each in batch} == {
        ("a/lease.html", "Ada rents a flat."),
        ("b/lease.html", "Bo rents a house."),
    }
    assert list((home / "uploads").iterdir()) == []


def test_unread_and_failed_files_of_a_folder_are_named_and_wait(home: Path) -> None:
    path = dropped()
    keep_only(path, home, ["b/lease.html"])  # failed files wait until they are deleted
    assert [file.parent.name for file in path.rglob("*.html")] == ["b"]
    [token] = uploads.waiting()
    uploads.discard(token)
    assert list((home / "uploads").iterdir()) == []
    path = dropped(photo_png=b"\x89PNG\r\n", lease_txt=b"%PDF-1.7", _hidden_txt=b"Zyxname1")
    seen = {row.name: row.seen for row in intake.proposal([path]).rows}
    assert seen.keys() == {"a/lease.html", "b/lease.html", "photo.png", "lease.txt"}
    assert "not a text file but a picture" in seen["photo.png"]
    assert "a PDF; give it the extension .pdf" in seen["lease.txt"]


def test_no_file_of_a_dropped_folder_is_stored_above_it(home: Path) -> None:
    mark = "matter/.\x00./.\x00./.\x00./d.txt"
    names = ["../../a.txt", "matter/../../b.txt", "/c.txt", mark, "..", "x/" * 3_000 + "e.txt"]
    before = set(home.rglob("*.txt"))
    uploads.spool_all([(name, io.BytesIO(b"A clause .")) for name in names])
    [folder] = (home / "uploads").iterdir()
    kept = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert kept == {"a.txt", "matter/b.txt", "c.txt", "matter/d.txt", "upload", "x/" * 8 + "e.txt"}
    assert set(home.rglob("*.txt")) - before == set(folder.rglob("*.txt"))


class Killed(BaseException):
    """Simulate SIGKILL: no code of Winnow catches it."""


@pytest.mark.parametrize(
    "moment", ["core.importing.add.audit_log.note", "core.importing.add.forget", "core.runs.worker.sync_all"]
)
def test_an_import_killed_after_sealing_equals_an_undisturbed_one(
    moment: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upload may be deleted by then, and the sealed corpus is the one of this import."""
    token = upload("x.txt", b"A sentence of mine stands here .\n")

    with monkeypatch.context() as patch:
        patch.setattr(moment, Mock(side_effect=Killed))
        with pytest.raises(Killed):
            add(token)
    [run] = runs.listed("add")
    result = runs.go_on(run.id)
    assert (result["was_here"], result["name"], result["sentences"]) == (False, "x", 1)
    assert list((home / "uploads").iterdir()) == []


def test_files_of_a_folder_that_are_left_out_do_not_hide_rejected_rows(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "z.jsonl").write_text('{"text": "One clause ."}\n{"text": 3}\n', encoding="utf-8")
    for number in range(60):
        (folder / f"page{number}.png").write_bytes(b"x")
    added = read_result(runs.execute("add", {"path": str(folder)}), AddResult)
    assert (added.left_out, added.rejected) == (60, 1)
    assert [(one.file, one.line) for one in added.problems[:1]] == [("z.jsonl", 2)]
    assert len(added.problems) == 26


def test_one_unreadable_file_of_several_is_left_out_with_its_reason(
    home: Path, tmp_path: Path, command: Command
) -> None:
    given = {"notes.txt": b"The party shall pay .\nThe lessee leaves .\n", "scan.png": PNG, "deed.txt": PNG}
    token = uploads.spool_all([(name, io.BytesIO(content)) for name, content in given.items()])
    proposal = intake.proposal([folder := uploads.spooled(token)])
    assert {row.name: row.part for row in proposal.rows} == {"notes.txt": "domain", "scan.png": "", "deed.txt": ""}
    assert all("not a text file but a picture" in row.seen for row in proposal.rows if not row.part)
    runs.execute("intake", intake.options(proposal, [folder], move=True))
    assert [(corpus.name, len(corpus)) for corpus in corpora.listed()] == [("notes", 2)]
    assert uploads.waiting() == {}

    del given["deed.txt"]  # its name promises text, so an import as one corpus is refused
    token = uploads.spool_all([(name, io.BytesIO(content)) for name, content in given.items()])
    one = read_result(runs.get(runs.execute("add", {"path": str(uploads.spooled(token)), "move": True}).id), AddResult)
    assert (one.name, one.asked_name, one.left_out, one.problems[0].file) == ("notes", "notes", 1, "scan.png")

    given["deed.txt"] = PNG
    for name, content in given.items():
        (tmp_path / name).write_bytes(content)
    more = tmp_path / "more.txt"
    more.write_text("A third clause .\n")
    words = [str(tmp_path / "scan.png"), str(tmp_path / "notes.txt"), str(more)]
    _, added, _ = command("corpus", "add", *words)
    assert "notes and 1 more: 3 sentences" in added
    assert "1 file left out\n  scan.png: not a text file but a picture\n" in added

    before = corpora.listed()
    with pytest.raises(ReadError, match=r"scan\.png: not a text file but a picture"):
        uploads.spool_all([("scan.png", io.BytesIO(PNG)), ("deed.txt", io.BytesIO(PNG))])
    with pytest.raises(ReadError, match=r"deed\.txt: not a text file but a picture"):
        runs.execute("add", {"path": str(tmp_path / "deed.txt"), "others": (words[0],)})
    assert (corpora.listed(), list((home / "uploads").iterdir())) == (before, [])


def zipped(folder: Path, **files: str) -> Path:
    """Write a zip archive of text files. files: {name without extension: text}."""
    with ZipFile(folder / "matter.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.txt", text)
    return folder / "matter.zip"


@pytest.mark.parametrize("kind", ["add", "intake"])
@pytest.mark.parametrize("text", ["Zyxname1 pays .\n", "\n\n"])
def test_an_import_deletes_the_unpacked_files_of_an_uploaded_archive(
    kind: str, text: str, home: Path, tmp_path: Path
) -> None:
    token = upload("matter.zip", zipped(tmp_path, a=text, b=text).read_bytes())
    options = {"domain": ("a.txt", "b.txt")} if kind == "intake" else {}
    with pytest.raises(WinnowError) if text.isspace() else nullcontext():
        runs.execute(kind, {"path": str(uploads.spooled(token)), "move": True, **options})
    for token in uploads.waiting():
        uploads.discard(token)
    assert list((home / "unpacked").iterdir()) == list((home / "uploads").iterdir()) == []


READER = """
import sys
from pathlib import Path
from core.corpora.uploads import unpacked

print(unpacked(Path(sys.argv[1]), lambda file: True)[0], flush=True)
sys.stdin.read()
"""


def test_two_imports_of_one_archive_leave_each_other_their_files(home: Path, tmp_path: Path) -> None:
    path = zipped(tmp_path, train="A clause .\n", dev="A lease .\n")
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin
        assert other.stdout
        folder = Path(other.stdout.readline().strip())
        runs.execute("add", {"path": str(path), "part": "dev"})
        assert {file.name for file in folder.glob("*.txt")} == {"train.txt", "dev.txt"}
        other.stdin.close()
    runs.execute("add", {"path": str(path), "part": "train"})
    assert not list((home / "unpacked").iterdir())


def test_two_processes_that_unpack_one_archive_wait_for_each_other(home: Path, tmp_path: Path) -> None:
    path = zipped(tmp_path, **{f"part-{i}": "A clause .\n" for i in range(500)})
    words = [sys.executable, "-c", READER, str(path)]
    others = [
        subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    folders = {Path(other.communicate(timeout=60)[0].strip()) for other in others}
    assert [other.returncode for other in others] == [0, 0, 0]
    [folder] = folders
    assert len(list(folder.glob("*.txt"))) == 500


@pytest.mark.parametrize(("kind", "options"), [("add", {"move": True}), ("intake", {"domain": ("x.txt",)})])
def test_an_upload_whose_import_waits_for_days_is_kept(kind: str, options: dict[str, object], home: Path) -> None:
    token = upload("x.txt", b"A clause .\n", age=DAYS)
    config = KINDS[kind].config.parse({"path": str(uploads.spooled(token)), **options})
    with as_running(register(KINDS[kind], config, RunStore(home))):
        removals.sweep()
        add(upload("y.txt", b"A lease .\n"))
    assert uploads.waiting() == {token: "x.txt"}
