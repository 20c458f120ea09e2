"""Intake of several files as corpora with roles, also after a kill; tokenisation of texts; splits of corpora."""

import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zipfile import ZipFile

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.corpora.proposal import UNUSED
from core.errors import Cancelled, ConfigError, OptionsError, ReadError, ResourceError
from core.importing import intake_view as intake
from core.importing import uploads
from core.importing import view as corpora
from core.importing.intake import IntakeConfig
from core.importing.result import AddResult, IntakeResult, SplitResult
from core.projects import removals, runs
from core.runs import context
from core.runs.events import Event
from core.runs.result import read as read_result
from core.stats.draws import kept_in_smallest
from core.text.sentence import Sentence
from pages.ui.widgets import plain
from tests import documents
from tests.conftest import Command
from tests.homes import done
from tests.importing.test_uploads import Killed
from tests.pages.drawing import opened_on, texts
from tests.planted import contracts, kitchen


def labels(n: int, start: int = 0) -> str:
    """Return n labelled sentences as CoNLL."""
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


def taken_in(folder: Path, **parts: Sequence[str]) -> IntakeResult:
    """Import the files of a folder with these roles, or as proposed."""
    return read_result(
        runs.get(done("intake", {"path": str(folder), **parts} if parts else as_proposed(folder))), IntakeResult
    )


def as_proposed(folder: Path, *, move: bool = False) -> dict[str, object]:
    return intake.options(intake.proposal([folder]), [folder], move=move)


def test_one_labelled_file_is_divided_and_a_second_import_keeps_the_roles(
    files: Path, home: Path, tmp_path: Path
) -> None:
    packed = {name: (files / name).read_bytes() for name in ("labels.conll", "pile.txt")}
    (tmp_path / "all.zip").write_bytes(documents.zipped(packed))
    result = taken_in(tmp_path / "all.zip")
    assert not list((home / "unpacked").glob("*"))
    assert [(each.part, each.files, each.problem) for each in result.parts] == [("domain", 1, ""), ("divide", 1, "")]
    assert result.roles == ["task", "domain", "train", "dev", "test"]
    before = corpora.roles()
    assert before["task"] == before["train"]
    assert len({before[role] for role in ("train", "dev", "test", "domain")}) == 4
    texts = {role: {s.text for b in corpora.find(mark).batches() for s in b} for role, mark in before.items()}
    assert not texts["task"] & (texts["dev"] | texts["test"])
    assert len(texts["train"]) > len(texts["test"]) > len(texts["dev"]) > 0
    [run] = runs.own()
    assert run.manifest.kind == "intake"

    more = tmp_path / "more"
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


def test_only_missing_sets_are_split_off_and_sources_get_no_role(files: Path, home: Path) -> None:
    (files / "test.conll").write_text(labels(30, start=200))
    for name in ("a", "b"):
        (files / f"{name}.txt").write_text("\n".join(f"Clause {name} {n} of the deed ." for n in range(9)))
    parts = {"divide": ("labels.conll",), "test": ("test.conll",), "task": ("pile.txt",), "source": ("a.txt", "b.txt")}
    result = taken_in(files, **parts)
    assert sorted(each.part for each in result.parts) == ["divide", "source", "source", "task", "test"]
    roles = {role: corpora.find(mark).name for role, mark in corpora.roles().items()}
    assert roles == {"task": "pile", "train": "labels-train", "dev": "labels-dev", "test": "test"}
    assert {"a", "b"} <= {corpus.name for corpus in corpora.listed()}
    task = corpora.roles()["task"]
    taken_in(files, train=("labels.conll",))
    assert corpora.roles()["task"] == task != corpora.roles()["train"]  # a new training set leaves T_C


def tagged(tags: Sequence[str], n: int, start: int = 0) -> str:
    return "".join("".join(f"w{i}{j}\t{tag}\n" for j, tag in enumerate(tags)) + "\n" for i in range(start, start + n))


def test_the_label_scheme_is_that_of_all_tags_of_all_files(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "train.conll").write_text(tagged("OOO", 2010) + tagged(("S-X", "O", "B-X", "E-X"), 90, 2010))
    taken_in(folder, train=("train.conll",))
    late = corpora.find(corpora.roles()["train"])
    assert (len(late), late.types, late.origin["scheme"]) == (2100, {"X": 180}, "bioes")
    (folder / "train.conll").write_text(tagged(("B-X", "O"), 20))
    (folder / "more.conll").write_text(tagged(("S-X", "O", "B-X", "E-X"), 20))
    (folder / "pile.txt").write_text("\n".join(kitchen(20)))
    result = taken_in(folder, train=("train.conll", "more.conll"), domain=("pile.txt",))
    problems = {each.part: each.problem for each in result.parts}
    assert "as if schemes were mixed" in problems["train"]
    assert corpora.roles()["train"] == late.fingerprint, "no sentence of a file is left out without a word"
    (folder / "train.conll").write_text(tagged(("B-X", "O", "B-X", "I-X", "O", "I-X"), 20))
    taken_in(folder, train=("train.conll",))
    assert corpora.find(corpora.roles()["train"]).types == {"X": 60}, "IOB1 or IOB2: the spans are the same"


def test_the_command_calls_labels_without_entities_labels(tmp_path: Path, home: Path, command: Command) -> None:
    (tmp_path / "none.conll").write_text(tagged("OOO", 3))
    (tmp_path / "pile.txt").write_text("\n".join(kitchen(3)))
    said = [command("corpus", "add", tmp_path / name)[1].splitlines()[0] for name in ("none.conll", "pile.txt")]
    assert [words.endswith(", labelled, but without entities") for words in said] == [True, False]
    assert [words.endswith(", without labels") for words in said] == [False, True]


def test_an_option_that_is_no_role_keeps_the_proposed_roles(tmp_path: Path, home: Path, command: Command) -> None:
    for person, kind in (("ana", "PER"), ("ben", "LOC")):
        rows = [{"text": f"Bergen is {i}.", "label": [[0, 6, kind if i else "LOC"]]} for i in range(40)]
        (tmp_path / f"{person}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "pile.txt").write_text("\n".join(kitchen(40)))
    files = (tmp_path / "ana.jsonl", tmp_path / "ben.jsonl", tmp_path / "pile.txt")
    code, _, problem = command("corpus", "propose", *files, "--use", "--annotator", "ben", "--json")
    assert code == 0, problem
    assert set(corpora.roles()) == {"task", "domain", "train", "dev", "test"}
    assert set(corpora.find(corpora.roles()["train"]).types) == {"LOC"}
    code, _, problem = command("corpus", "propose", files[2], "--use", "--task", "pile.txt", "--json")
    assert code == 0, problem
    assert corpora.roles()["task"] == corpora.roles()["domain"], "only the files that the user named are imported"


def test_the_proposal_ignores_no_file_and_no_option_without_a_word(files: Path, home: Path, command: Command) -> None:
    (files / "empty.txt").touch()
    every = (files / "labels.conll", files / "pile.txt", files / "empty.txt")
    code, _, said = command("corpus", "propose", *every, "--use", "--json")
    assert (code, "note: not used: empty.txt: cannot be read" in said) == (0, True)
    for words, says in (
        (("--task", "pile.txt"), "task: is only used for the import; add --use"),
        (("--documents", "pile", "--use"), "documents: pile is neither a role with files nor one of these files"),
    ):
        code, _, problem = command("corpus", "propose", *every, *words)
        assert (code, says in problem) == (2, True), problem


def test_the_encoding_of_files_that_are_not_in_utf_8_can_be_given(tmp_path: Path, home: Path, command: Command) -> None:
    (tmp_path / "new.txt").write_text("Die Kündigung – schriftlich – ist gültig.\n" * 30, encoding="utf-8")
    (tmp_path / "old.txt").write_text("Der Mieter zahlt die Miete für März.\n" * 30, encoding="cp1252")
    code, out, _ = command("corpus", "propose", str(tmp_path))
    assert code == 0
    assert "cannot be read: byte 0xfc is not UTF-8" in out
    code, out, _ = command("corpus", "propose", str(tmp_path), "--encoding", "cp1252")
    assert code == 0
    assert "cannot be read" not in out
    code, _, err = command("corpus", "propose", str(tmp_path), "--encoding", "cp1252", "--use")
    assert code == 0, err
    corpus = corpora.find(corpora.roles()["domain"])
    assert {sentence.text for batch in corpus.batches() for sentence in batch} == {
        "Die Kündigung – schriftlich – ist gültig.",
        "Der Mieter zahlt die Miete für März.",
    }


def test_files_like_the_task_are_typed_by_name_or_by_path(tmp_path: Path, home: Path, command: Command) -> None:
    folder = tmp_path / "mine"
    (folder / "old").mkdir(parents=True)
    names = ("pile.txt", "a, b.txt", "old/notes.txt")
    for start, name in enumerate(names):
        (folder / name).write_text("\n".join(kitchen(40, seed=start)))
    for files in ([folder], [folder / name for name in names]):
        rows = json.loads(command("corpus", "propose", *files, "--json")[1])["rows"]
        for name in names:
            listed = next(file for row in rows for file in row["files"] if Path(file).name == Path(name).name)
            for typed in (f'"{listed}"', folder / name):
                code, printed, problem = command("corpus", "propose", *files, "--like", typed, "--json")
                assert code == 0, problem
                tasks = [row["files"] for row in json.loads(printed)["rows"] if row["part"] == "task"]
                assert tasks == [[listed]], (files, typed)
    code, _, problem = command("corpus", "propose", folder, "--like", "mistyped.txt")
    assert (code, "like: mistyped.txt is not among these files" in problem) == (2, True)


def test_an_unreadable_first_file_is_left_out_as_by_an_import_of_one_corpus(files: Path, home: Path) -> None:
    (files / "a.pdf").write_bytes(b"no pdf")
    result = taken_in(files, domain=("a.pdf", "pile.txt"), train=("labels.conll",))
    assert [each.problem for each in result.parts] == ["", ""]
    added = read_result(runs.get(result.parts[0].run), AddResult)
    assert (added.left_out, added.problems[0].file) == (1, "a.pdf")


def test_an_unreadable_file_does_not_hide_the_chosen_annotator(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    rows = [
        {"text": f"Bergen is {i}.", "spans": [{"start": 0, "end": 6, "label": kind}], "_annotator_id": person}
        for i in range(8)
        for person, kind in (("ana", "PER"), ("ben", "LOC"))
    ]
    (folder / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"path": str(folder), "train": ("a.jsonl", "b.jsonl"), "annotator": "ben"}
    result = read_result(runs.get(done("intake", options)), IntakeResult)
    assert [each.problem for each in result.parts] == [""]
    assert corpora.find(corpora.roles()["train"]).types == {"LOC": 8}


@pytest.mark.parametrize(
    "given", ["folder", "zip", "files", "zip beside another file", "zip in a folder, unpacked too"]
)
def test_a_brat_pair_imports_equally_from_a_folder_a_zip_and_loose_files(
    given: str, tmp_path: Path, home: Path
) -> None:
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
    done("intake", intake.options(proposed, paths, parts))
    train = corpora.find(corpora.roles()["train"])
    assert (len(train), dict(train.types)) == (2, {"ORG": 1})


def test_role_changes_can_be_undone_and_changed_files_imported_again(files: Path, home: Path) -> None:
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


def test_files_of_one_name_are_distinguished(tmp_path: Path, home: Path) -> None:
    places = [tmp_path / place / "a" / "text.txt" for place in ("x", "y", "z", "w")]
    for i, place in enumerate(places):
        place.parent.mkdir(parents=True)
        place.write_text("\n".join(f"Clause {i} of deed {n} ." for n in range(9)))
    proposed = intake.proposal(places)
    names = [name for row in proposed.rows for name in row.files]
    assert sorted(names) == ["a 2/text.txt", "a 3/text.txt", "a/text.txt", "text.txt"]
    done("intake", intake.options(proposed, places, {row.files[0]: "domain" for row in proposed.rows}))
    domain = corpora.find(corpora.roles()["domain"])
    assert {sentence.text.split()[1] for block in domain.batches() for sentence in block} == set("0123")


def test_documents_of_a_role_are_one_corpus_and_labelled_documents_stay_whole(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.docx").write_bytes(documents.docx(["The first deed is signed.", "It is sealed."]))
    (tmp_path / "b.eml").write_bytes(documents.eml("The second deed is not."))
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.4 torn")
    blocks = labels(120).split("\n\n")[:120]
    text = "".join("-DOCSTART-\tO\n\n" * (i % 6 == 0) + block + "\n\n" for i, block in enumerate(blocks))
    (tmp_path / "mine.conll").write_text(text)
    parts = taken_in(tmp_path, domain=("a.docx", "b.eml", "c.pdf"), divide=("mine.conll",)).parts
    result = read_result(runs.get(next(part.run for part in parts if part.part == "domain")), AddResult)
    assert (result.files, result.sentences, result.rejected) == (3, 4, 1)
    assert [problem.file for problem in result.problems] == ["c.pdf"]
    docs = [set(corpora.find(corpora.roles()[role]).column("doc").to_pylist()) for role in ("train", "dev", "test")]
    assert sum(map(len, docs)) == len(set.union(*docs)) == 20


def test_a_failed_part_is_named_and_the_others_continue(files: Path, home: Path) -> None:
    (files / "broken.conll").write_text("Ada\tE-PER\nand\tL-PER\n\n" * 30)
    token = spooled(files)
    parts = {"train": ("labels.conll",), "domain": ("pile.txt",), "dev": ("broken.conll",)}
    run = done("intake", path=str(uploads.spooled(token)), move=True, **parts)
    by_part = {each.part: each for each in read_result(runs.get(run), IntakeResult).parts}
    assert "mixed" in by_part["dev"].problem
    assert (by_part["train"].problem, by_part["domain"].problem) == ("", "")
    assert set(corpora.roles()) == {"task", "train", "domain"}
    assert uploads.waiting() == {token: "broken.conll"}


def test_an_intake_that_imports_nothing_fails(files: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "empty.txt").write_text("\n\n")
    with pytest.raises(ReadError, match="no text"):
        taken_in(files, domain=("empty.txt",))
    with pytest.raises(ConfigError, match="not among those to import"):
        taken_in(files, domain=("gone.txt",))
    monkeypatch.setattr(Library, "seal", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(ResourceError, match="full"):
        taken_in(files, domain=("pile.txt",))
    assert corpora.roles() == {}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "no file has a role"),
        ({"train": ("a",), "divide": ("b",)}, "divide makes a training set"),
        ({"train": ("a",), "dev": ("a",)}, "a has two roles"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        IntakeConfig.parse({"path": "x", **parts})


@pytest.mark.parametrize(
    "moment", ["core.importing.intake.roles.give", "core.importing.intake.keep_only", "core.runs.worker.sync_all"]
)
def test_a_killed_intake_assigns_the_roles_when_resumed(
    moment: str, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = as_proposed(uploads.spooled(spooled(files)), move=True)
    with monkeypatch.context() as patch:
        patch.setattr(moment, Mock(side_effect=Killed))
        with pytest.raises(Killed):
            done("intake", wanted)
    [run] = runs.own("intake")
    imports = {each.id for each in runs.listed("add", state="succeeded")}
    runs.go_on(run.id)
    assert set(corpora.roles()) == {"task", "domain", "train", "dev", "test"}
    assert imports <= {each.id for each in runs.listed("add")}
    assert len(runs.listed("add")) == 2  # finished imports were not repeated
    assert list((home / "uploads").iterdir()) == []


def spooled(files: Path) -> str:
    """Upload a folder's files; return the token."""
    return uploads.spool_all([(path.name, io.BytesIO(path.read_bytes())) for path in sorted(files.iterdir())])


def test_a_cancelled_intake_keeps_its_upload_and_is_resumed(
    files: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "CHECK_SECONDS", 0.0)  # otherwise the run may end before the next check
    token = spooled(files)

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


CUT = "The U.S. buyer , he said , did n't pay .\n" * 12
RAW = "The U.S. buyer, he said, didn't pay.\n" * 12
OWN = ("The", "U.S.", "buyer", ",", "he", "said", ",", "did", "n't", "pay", ".")


@pytest.mark.parametrize(
    ("text", "tokens", "rule", "n"),
    [
        (CUT, "auto", "blanks", 11),
        (RAW, "auto", "words", 15),
        (CUT, "words", "words", 16),
        (RAW, "blanks", "blanks", 7),
    ],
)
def test_tokens_are_cut_as_detected_or_as_asked(
    home: Path, tmp_path: Path, text: str, tokens: str, rule: str, n: int
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in text.splitlines()))
    result = read_result(runs.get(done("add", path=str(tmp_path / "a.jsonl"), tokens=tokens)), AddResult)
    corpus = Library(home).find(result.corpus)
    assert result.cut is not None
    assert (result.cut.rule, corpus.tokens, corpora.describe(corpus)["cut"]) == (rule, rule, rule)
    assert result.cut.why == "by option" if tokens != "auto" else "follow a blank" in result.cut.why
    (first, *_) = next(corpus.batches())
    assert len(first.tokens) == n == corpus.lengths()[0]
    assert rule == "words" or first.tokens == tuple(first.text.split())


def test_tokenised_texts_and_column_files_keep_their_tokens(home: Path, tmp_path: Path) -> None:
    row = CUT.splitlines()[0]
    files = {"a.jsonl": f"{json.dumps({'text': row, 'label': [[4, 8, 'GPE']]})}\n" * 12, "b.conll": ""}
    files["b.conll"] = "".join(f"{token}\tO\n" for token in OWN) + "\n"
    for (name, text), rule in zip(files.items(), ("blanks", "own"), strict=True):
        (tmp_path / name).write_text(text)
        result = read_result(runs.get(done("add", path=str(tmp_path / name))), AddResult)
        assert result.cut is not None
        assert result.cut.rule == rule
        (first, *_) = next(Library(home).find(result.corpus).batches())
        assert first.tokens == OWN


def test_the_page_proposes_a_tokenisation_and_the_report_states_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_text(CUT)
    app = opened_on("pages/1_Corpora.py", done("add", path=str(tmp_path / "cut.txt")))
    app.file_uploader[0].upload("cut.txt", CUT.encode()).run()
    box = next(box for box in app.selectbox if box.label == "Its tokens are")
    assert (box.value, "100% of 36 commas" in box.help) == ("blanks", True)
    assert f"Its tokens are text between spaces ({plain('100% of 36 commas')}" in texts(app)
    assert not app.exception


CONTRACTS = ("alliance", "lease", "lease", "supply")  # repeated over the contracts


def unlike(n: int) -> list[str]:
    """Return sentences without near duplicates."""
    draw = random.Random(7)
    return [" ".join("".join(draw.choices("abcdefgh", k=5)) for _ in range(8)).capitalize() + " ." for _ in range(n)]


@pytest.fixture
def exported(home: Path, tmp_path: Path) -> Path:
    """Write a Doccano export of 20 contracts: nine own sentences each, and one sentence that all share."""
    lines = unlike(180)
    with (path := tmp_path / "export.jsonl").open("w", encoding="utf-8") as file:
        for i in range(20):
            text = "This agreement is governed by the laws of England . " + " ".join(lines[9 * i : 9 * i + 9])
            row = {"text": text, "label": [[0, 14, "DEED"]], "contract": f"C{i}", "meta": {"kind": CONTRACTS[i % 4]}}
            file.write(json.dumps(row) + "\n")
    return path


def added(path: Path, **options: object) -> Corpus:
    return corpora.find(
        read_result(runs.get(done("add", path=str(path), split=True, name="deeds", **options)), AddResult).corpus
    )


def split(corpus: Corpus, **options: object) -> tuple[SplitResult, dict[str, list[Sentence]]]:
    result = read_result(runs.get(done("split", corpus=corpus.fingerprint, **options)), SplitResult)
    return result, {
        part.name: [s for batch in corpora.find(part.corpus).batches() for s in batch] for part in result.parts
    }


def test_an_export_becomes_train_dev_and_test_by_contract(exported: Path) -> None:
    corpus = added(exported, doc_column="contract", group_column="kind")
    result, parts = split(corpus, by="document", shares=(70, 10, 20))
    docs = {name: {s.doc for s in sentences} for name, sentences in parts.items()}
    assert list(docs) == ["train", "dev", "test"]
    assert [len(docs[name]) for name in docs] == [14, 2, 4]
    assert set.union(*docs.values()) == {f"C{i}" for i in range(20)}, "each contract is in exactly one part"
    everywhere = [s for name in parts for s in parts[name] if "laws of England" in s.text]
    assert {s.doc for s in everywhere} == docs["dev"], "a sentence of all contracts stays in the smallest part"
    assert (result.divided, [part.left_out for part in result.parts]) == (1, [14, 0, 4])
    assert [part.sentences for part in result.parts] == [len(sentences) for sentences in parts.values()]
    assert corpora.find("deeds-test").origin["by"] == "document"
    kept, whole = split(corpus, keep_copies=True)
    assert (kept.divided, [part.left_out for part in kept.parts], sum(map(len, whole.values()))) == (1, [0] * 3, 200)
    again = replace(result.parts[0])
    assert split(corpus, by="document", shares=(7, 1, 2))[0].parts[0] == again, "the same seed gives the same bytes"
    assert split(corpus, seed=1)[0].parts[0].corpus != again.corpus


def test_a_corpus_is_split_by_the_values_of_a_column(exported: Path) -> None:
    corpus = added(exported, doc_column="contract", group_column="kind")
    assert corpora.split_by(corpus) == {"document": [], "sentence": [], "column": ["alliance", "lease", "supply"]}
    result, parts = split(corpus, by="column", values=("alliance", "supply"))
    groups = {name: {s.group for s in sentences} for name, sentences in parts.items()}
    assert groups == {"task": {"alliance", "supply"}, "domain": {"lease"}}
    assert sum(part.left_out for part in result.parts) == 10
    _, parts = split(corpus, by="column", shares=(1, 1))
    assert not {s.group for s in parts["train"]} & {s.group for s in parts["test"]}
    with pytest.raises(ConfigError, match="no sentence of deeds has 'loan'; its values are alliance, lease, supply"):
        split(corpus, by="column", values=("loan",))
    with pytest.raises(
        ConfigError, match=r"values: no sentence of deeds is left for domain, because all .* have the giv"
    ):
        split(corpus, by="column", values=("alliance", "lease", "supply"))


def test_near_duplicates_are_split_into_one_part(home: Path, tmp_path: Path, command: Command) -> None:
    pairs = [f"Then again {line} and {line}" for line in unlike(40)]
    near = [text.replace("Then again", "Then anew") for text in pairs]
    file = tmp_path / "pairs.txt"
    file.write_text("\n".join(pairs + near), encoding="utf-8")
    words = ("corpus", "split", file, "--by", "sentence", "--shares", "60,20", "--names", "rest,held", "--json")
    result = read_result(runs.get(json.loads(command(*words)[1])["run"]), SplitResult)
    assert [(part.name, part.sentences, part.left_out) for part in result.parts] == [("rest", 60, 0), ("held", 20, 0)]
    assert (result.units, result.copies, result.divided) == (40, 80, 0)
    held = {s.text[10:].strip() for s in next(corpora.find("pairs-held").batches())}
    assert len(held) == 10, "both sentences of each pair are there"
    part, copies = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 1, 5])
    kept, divided = kept_in_smallest(part, copies)
    assert (kept.tolist(), divided) == ([False, False, True, True, True, True], 2)


def test_impossible_splits_are_clear_errors(exported: Path) -> None:
    corpus = added(exported)
    assert "column" not in corpora.split_by(corpus)
    with pytest.raises(ConfigError, match="no sentence of deeds has a value of a column"):
        split(corpus, by="column")
    with pytest.raises(
        ConfigError, match="no sentence of deeds is left for f21, because the corpus has 20 documents for 21 parts"
    ):
        split(corpus, shares=[1] * 21, names=[f"f{i}" for i in range(1, 22)])
    with pytest.raises(OptionsError, match="there is no column 'clinic'"):
        added(exported, doc_column="clinic")
    with pytest.raises(ConfigError, match="expected 3 different names"):
        split(corpus, names=("train", "test"))


def test_groups_are_stored_and_change_no_fingerprint_without_groups(home: Path) -> None:
    rows = [Sentence(id=f"{i:016x}", tokens=("a", "b"), text="a b", doc="d") for i in range(3)]
    plain = Library(home).seal(iter(rows), name="plain", origin={})
    assert plain.fingerprint == "eadf1345154d5684f7c87663"
    of = [replace(row, group="x" if i else None) for i, row in enumerate(rows)]
    assert next(Library(home).seal(iter(of), name="of", origin={}).batches()) == of
