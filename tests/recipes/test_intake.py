"""Several files become corpora with roles in one run: what fails is one part, what is killed goes on, nothing is lost."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from core.corpora.grouped import UNUSED
from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, ReadError, ResourceError
from core.importing import add, uploads
from core.importing import intake_view as intake
from core.importing import view as corpora
from core.importing.intake import IntakeConfig
from core.importing.intake_result import IntakeResult
from core.kinds import KINDS
from core.projects import removals, runs
from core.runs import context
from core.runs.events import Event
from tests import documents
from tests.planted import contracts, kitchen


def labels(n: int, start: int = 0) -> str:
    """`n` labelled sentences as CoNLL."""
    rows = [text.split() for text in contracts(start + n, seed=1)[start:]]
    return "".join(
        "".join(f"{word}\t{'B-PARTY' if i == 0 else 'O'}\n" for i, word in enumerate(row)) + "\n" for row in rows
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "labels.conll").write_text(labels(120))
    (folder / "pile.txt").write_text("\n".join(kitchen(300)))
    return folder


def options(folder: Path, **parts: Sequence[str]) -> dict[str, Any]:
    return {"path": str(folder), **parts}


def taken_in(folder: Path, **parts: Sequence[str]) -> IntakeResult:
    """Import a folder's files by part, or as proposed."""
    return intake.result(runs.execute("intake", options(folder, **parts) if parts else as_proposed(folder)).id)


def as_proposed(folder: Path, *, move: bool = False) -> dict[str, object]:
    return intake.options(intake.proposal([folder]), [folder], move=move)


def marks(*roles: str) -> set[str]:
    return {corpora.roles()[role] for role in roles}


def test_one_labelled_file_is_divided_and_a_second_import_keeps_the_roles(
    files: Path, home: Path, tmp_path: Path
) -> None:
    result = taken_in(files)
    assert [(each.part, each.files, each.problem) for each in result.parts] == [("domain", 1, ""), ("divide", 1, "")]
    assert result.roles == ["task", "domain", "train", "dev", "test"]
    assert corpora.roles()["task"] == corpora.roles()["train"]
    assert len(marks("train", "dev", "test", "domain")) == 4
    texts = {role: {s.text for b in corpora.find(mark).batches() for s in b} for role, mark in corpora.roles().items()}
    assert not texts["task"] & (texts["dev"] | texts["test"])
    assert len(texts["train"]) > len(texts["test"]) > len(texts["dev"]) > 0
    [run] = runs.own()
    assert run.manifest.kind == "intake"

    before, more = corpora.roles(), tmp_path / "more"
    more.mkdir()
    (more / "deeds.txt").write_text("\n".join(kitchen(100, seed=5)))
    (more / "others.conll").write_text(labels(40, start=300))
    taken_in(more)
    assert corpora.roles() == before
    assert {"deeds", "others"} <= {corpus.name for corpus in corpora.listed()}

    part = {each.part: each.run for each in result.parts}
    removals.remove_everything(corpora.roles()["domain"])
    left = {run.id for run in runs.listed()}
    assert part["divide"] in left
    assert not {part["domain"], run.id} & left  # nor any run whose options name its file
    assert set(corpora.roles()) == {"task", "train", "dev", "test"}
    removals.remove_everything(next(c.fingerprint for c in corpora.listed() if c.name == "labels"))
    assert not {corpus.name for corpus in corpora.listed()} & {"labels", "pile"}


def test_parts_that_are_missing_alone_are_divided_off(files: Path, home: Path) -> None:
    (files / "test.conll").write_text(labels(30, start=200))
    taken_in(files, divide=("labels.conll",), test=("test.conll",), task=("pile.txt",))
    assert corpora.find(corpora.roles()["test"]).name == "test"
    assert {corpora.find(corpora.roles()[role]).name for role in ("train", "dev")} == {"labels-train", "labels-dev"}
    assert corpora.find(corpora.roles()["task"]).name == "pile"
    assert "domain" not in corpora.roles()


def test_sources_become_a_corpus_each_and_take_no_role(files: Path, home: Path) -> None:
    for name in ("a", "b"):
        (files / f"{name}.txt").write_text("\n".join(f"Clause {name} {n} of the deed ." for n in range(9)))
    result = taken_in(files, domain=("pile.txt",), source=("a.txt", "b.txt"))
    assert [each.part for each in result.parts] == ["domain", "source", "source"]
    assert {corpus.name for corpus in corpora.listed()} == {"pile", "a", "b"}
    assert corpora.find(corpora.roles()["domain"]).name == "pile"


@pytest.mark.parametrize(
    "given", ["folder", "zip", "files", "zip beside another file", "zip in a folder, unpacked too"]
)
def test_a_brat_pair_is_the_same_in_a_folder_in_a_zip_and_loose(given: str, tmp_path: Path, home: Path) -> None:
    folder, archive = tmp_path / "pair", tmp_path / "pair.zip"
    folder.mkdir()
    (folder / "loan.txt").write_text("Lender means Alpha Bank.\nThe Borrower pays.\n")
    (folder / "loan.ann").write_text("T1\tORG 13 23\tAlpha Bank\n")
    with ZipFile(archive, "w") as zipped:
        for file in sorted(folder.iterdir()):
            zipped.write(file, file.name)
    dropped = tmp_path / "dropped"  # as an upload of several files
    dropped.mkdir()
    paths = {"folder": [folder], "zip": [archive], "files": sorted(folder.iterdir())}.get(given, [dropped])
    name = "loan.txt"
    if paths == [dropped]:
        archive.rename(dropped / archive.name)
        name = "pair/loan.txt"
        if given == "zip beside another file":
            (dropped / "notes.txt").write_text("\n".join(kitchen(40)))
            (dropped / "torn.zip").write_bytes(b"PK\x03\x04 cut off")
        else:
            folder.rename(dropped / "pair")
    proposed = intake.proposal(paths)
    rows = {row.files: row for row in proposed.rows}
    assert rows[(name,)].labelled
    assert all(row.bytes for row in proposed.rows)
    parts = {file: "train" if (file,) == (name,) else UNUSED for (file,) in rows}
    runs.execute("intake", intake.options(proposed, paths, parts))
    train = corpora.find(corpora.roles()["train"])
    assert (len(train), dict(train.types)) == (2, {"ORG": 1})


def test_a_new_training_set_leaves_the_task_corpus(files: Path, home: Path) -> None:
    taken_in(files, task=("pile.txt",))
    task = corpora.roles()["task"]
    taken_in(files, train=("labels.conll",))
    assert corpora.roles()["task"] == task != corpora.roles()["train"]


def test_the_last_change_of_roles_can_be_undone_and_changed_files_are_imported_again(files: Path, home: Path) -> None:
    assert corpora.former_roles() is None
    taken_in(files, domain=("pile.txt",))
    before = corpora.roles()
    (files / "other.txt").write_text("\n".join(kitchen(50, seed=9)))
    taken_in(files, domain=("other.txt",))
    changed = corpora.roles()
    assert changed != before == corpora.former_roles()
    corpora.undo_roles()
    assert (corpora.roles(), corpora.former_roles()) == (before, changed)
    (files / "pile.txt").write_text("\n".join(kitchen(40)))
    taken_in(files, domain=("pile.txt",))
    assert corpora.roles()["domain"] not in (before["domain"], changed["domain"])


def test_files_of_one_name_are_told_apart(tmp_path: Path, home: Path) -> None:
    places = [tmp_path / place / "a" / "text.txt" for place in ("x", "y", "z", "w")]
    for i, place in enumerate(places):
        place.parent.mkdir(parents=True)
        place.write_text("\n".join(f"Clause {i} of deed {n} ." for n in range(9)))
    proposed = intake.proposal(places)
    names = [name for row in proposed.rows for name in row.files]
    assert sorted(names) == ["a 2/text.txt", "a 3/text.txt", "a/text.txt", "text.txt"]
    runs.execute("intake", intake.options(proposed, places, {row.files[0]: "domain" for row in proposed.rows}))
    domain = corpora.find(corpora.roles()["domain"])
    assert {sentence.text.split()[1] for block in domain.batches() for sentence in block} == set("0123")


def test_whole_documents_stay_on_one_side(tmp_path: Path, home: Path) -> None:
    blocks = labels(120).split("\n\n")[:120]
    text = "".join("-DOCSTART-\tO\n\n" * (i % 6 == 0) + block + "\n\n" for i, block in enumerate(blocks))
    (tmp_path / "mine.conll").write_text(text)
    taken_in(tmp_path / "mine.conll", divide=("mine.conll",))
    docs = [set(corpora.find(corpora.roles()[role]).column("doc").to_pylist()) for role in ("train", "dev", "test")]
    assert sum(map(len, docs)) == len(set.union(*docs)) == 20


def test_documents_of_a_part_are_one_corpus(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.docx").write_bytes(documents.docx(["The first deed is signed.", "It is sealed."]))
    (tmp_path / "b.eml").write_bytes(documents.eml("The second deed is not."))
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.4 torn")
    [part] = taken_in(tmp_path, domain=("a.docx", "b.eml", "c.pdf")).parts
    result = corpora.import_result(part.run)
    assert (result.files, result.sentences, result.rejected) == (3, 4, 1)
    assert [problem.file for problem in result.problems] == ["c.pdf"]


def test_a_part_that_fails_is_said_and_the_others_go_on(files: Path, home: Path) -> None:
    (files / "broken.conll").write_text("Ada\tE-PER\nand\tL-PER\n\n" * 30)
    result = taken_in(files, train=("labels.conll",), domain=("pile.txt",), dev=("broken.conll",))
    by_part = {each.part: each for each in result.parts}
    assert "mixed" in by_part["dev"].problem
    assert (by_part["train"].problem, by_part["domain"].problem) == ("", "")
    assert set(corpora.roles()) == {"task", "train", "domain"}


def test_a_run_of_which_nothing_can_be_imported_fails(files: Path, home: Path) -> None:
    (files / "empty.txt").write_text("\n\n")
    with pytest.raises(ReadError, match="no text"):
        taken_in(files, domain=("empty.txt",))
    with pytest.raises(ConfigError, match="no such file"):
        taken_in(files, domain=("gone.txt",))
    assert corpora.roles() == {}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "no file has a part"),
        ({"train": ("a",), "divide": ("b",)}, "divide gives a train part"),
        ({"train": ("a",), "dev": ("a",)}, "a is in two parts"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        IntakeConfig.parse({"path": "x", **parts})


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours catches it."""


@pytest.mark.parametrize(
    "moment", ["core.importing.intake.roles.give", "core.importing.intake.keep_only", "core.runs.worker.sync_all"]
)
def test_whoever_is_killed_gives_the_roles_when_resumed(
    moment: str, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (files / "labels.conll").open("rb") as first, (files / "pile.txt").open("rb") as second:
        folder = uploads.spooled(uploads.spool_all([("labels.conll", first), ("pile.txt", second)]))

    def killed(*given: object, **named: object) -> None:
        raise Killed

    wanted = as_proposed(folder, move=True)
    with monkeypatch.context() as patch:
        patch.setattr(moment, killed)
        with pytest.raises(Killed):
            runs.execute("intake", wanted)
    [run] = runs.own("intake")
    imports = {each.id for each in runs.listed("add", state="succeeded")}
    runs.go_on(run.id)
    assert set(corpora.roles()) == {"task", "domain", "train", "dev", "test"}
    assert imports <= {each.id for each in runs.listed("add")}
    assert len(runs.listed("add")) == 2  # what was imported before was found again
    assert list((home / "uploads").iterdir()) == []


def test_a_cancelled_one_keeps_its_upload_and_goes_on(files: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CHECK_SECONDS", 0.0)  # the rest may take less than it waits between two looks
    with (files / "labels.conll").open("rb") as first, (files / "pile.txt").open("rb") as second:
        token = uploads.spool_all([("labels.conll", first), ("pile.txt", second)])

    def cancel(event: Event) -> None:
        if event.kind == "part" and event.data["number"] == 2:
            runs.own("intake")[0].cancel_file.touch()

    wanted = as_proposed(uploads.spooled(token), move=True)
    with pytest.raises(Cancelled):
        runs.execute("intake", wanted, cancel)
    assert list(uploads.waiting()) == [token]
    runs.go_on(runs.own("intake")[0].id)
    assert uploads.waiting() == {}
    assert set(corpora.roles()) == {"task", "domain", "train", "dev", "test"}


def test_what_failed_of_an_upload_waits(home: Path) -> None:
    given = [("a.txt", io.BytesIO(b"A clause .\n")), ("b.conll", io.BytesIO(b"Ada\tE-PER\nand\tL-PER\n\n" * 9))]
    token = uploads.spool_all(given)
    runs.execute("intake", {**options(uploads.spooled(token), domain=("a.txt",), train=("b.conll",)), "move": True})
    assert uploads.waiting() == {token: "b.conll"}


def test_an_archive_is_unpacked_for_all_parts_and_gone_after(files: Path, home: Path) -> None:
    packed = {name: (files / name).read_bytes() for name in ("labels.conll", "pile.txt")}
    (files / "all.zip").write_bytes(documents.zipped(packed))
    taken_in(files / "all.zip")
    assert set(corpora.roles()) == {"task", "domain", "train", "dev", "test"}
    assert not list((home / "unpacked").glob("*"))


def test_a_full_disk_ends_all_of_it(files: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Library, "seal", full)
    with pytest.raises(ResourceError, match="full"):
        taken_in(files, domain=("pile.txt",))


def test_an_upload_that_an_intake_reads_does_not_wait(home: Path) -> None:
    from core.kind import register
    from core.runs.store import RunStore
    from tests.finished import at_work

    token = uploads.spool_all([("a.txt", io.BytesIO(b"A clause .\n")), ("b.txt", io.BytesIO(b"Another .\n"))])
    config = IntakeConfig.parse(options(uploads.spooled(token), domain=("a.txt", "b.txt")))
    with at_work(register(KINDS["intake"], config, RunStore(home))):
        assert uploads.waiting() == {}
    assert list(uploads.waiting()) == [token]


def test_the_imports_are_those_of_add() -> None:
    assert KINDS["add"].run is add.run
