"""Roles proposed for several files: real corpora, documents made from them, and invented summaries of files."""

import gzip
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import pytest

from core.corpora import looks
from core.corpora.proposal import DIVIDE, SOURCE, UNUSED, Look, Proposal, apart, likeness, propose
from core.corpora.readers import ReadOptions, read
from core.errors import ReadError, ResourceError
from tests import documents

MOST = 600  # sentences of a real corpus that a test takes


def conll(source: Path, target: Path, skip: int = 0, n: int = MOST) -> Path:
    """Write some sentences of a labelled file to a file."""
    blocks = source.read_text(encoding="utf-8").split("\n\n")[skip : skip + n]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return target


def plain(source: Path, n: int, skip: int = 0) -> list[str]:
    """Return the text of some sentences of a corpus."""
    scheme = "iob2" if source.suffix == ".conll" else "auto"
    return [s.text for s in islice(read(source, ReadOptions(scheme=scheme)), skip, skip + n)]


def text(target: Path, lines: list[str]) -> Path:
    data = ("\n".join(lines) + "\n").encode()
    target.write_bytes(gzip.compress(data) if target.suffix == ".gz" else data)
    return target


def parts(proposal: Proposal) -> Mapping[str, str]:
    """Return the proposed role of each file."""
    return {name: row.part for row in proposal.rows for name in row.files}


def seen(proposal: Proposal, file: str) -> str:
    return next(row.seen for row in proposal.rows if file in row.files)


@pytest.mark.real
@pytest.mark.parametrize(
    ("labels", "pile"),
    [
        ("inlegalner", "legal"),
        pytest.param("bc5cdr", "pubmed", marks=pytest.mark.full),
        pytest.param("conll2003", "news", marks=pytest.mark.full),
    ],
)
def test_a_labelled_file_is_divided_and_a_large_text_is_the_domain_corpus(
    labels: str, pile: str, real_data: Path, tmp_path: Path
) -> None:
    conll(real_data / labels / "train.conll", tmp_path / "mine.conll")
    text(tmp_path / "other.txt.gz", plain(real_data / "unlabeled" / f"{pile}.txt.gz", 9_000))
    proposal = propose(looks.looks([tmp_path / "mine.conll", tmp_path / "other.txt.gz"]))
    assert parts(proposal) == {"mine.conll": DIVIDE, "other.txt.gz": "domain"}
    assert (proposal.task_of_train, proposal.ask) == (True, ())
    assert "divided into a training set, a dev set and a test set" in seen(proposal, "mine.conll")
    [small, large] = sorted(proposal.rows, key=lambda row: row.sentences)
    assert (small.exact, small.sentences) == (True, MOST)
    assert not large.exact
    assert 7_000 < large.sentences < 11_000  # an estimate, by bytes


@pytest.mark.real
@pytest.mark.parametrize(
    ("labels", "pile"),
    [
        ("inlegalner", "legal"),
        pytest.param("bc5cdr", "pubmed", marks=pytest.mark.full),
        pytest.param("crossner-ai", "news", marks=pytest.mark.full),
    ],
)
def test_the_task_corpus_is_recognised_by_its_words_and_by_its_name(
    labels: str, pile: str, real_data: Path, tmp_path: Path
) -> None:
    folder = real_data / labels
    for part in ("train", "dev", "test"):
        conll(folder / f"{part}.conll", tmp_path / f"{part}.conll", n=200)
    near = plain(folder / "dev.conll", 150, skip=100)
    text(tmp_path / "some.txt", near)
    text(tmp_path / "large.txt.gz", plain(real_data / "unlabeled" / f"{pile}.txt.gz", 2_000))
    wanted = {f"{part}.conll": part for part in ("train", "dev", "test")} | {"large.txt.gz": "domain"}
    proposal = propose(looks.looks([tmp_path]))
    assert parts(proposal) == {**wanted, "some.txt": "task"}
    assert "words are similar to those of your labelled sentences" in seen(proposal, "some.txt")
    (tmp_path / "some.txt").rename(tmp_path / "task.txt")
    (tmp_path / "large.txt.gz").rename(tmp_path / "domain.txt.gz")
    proposal = propose(looks.looks([tmp_path]))
    del wanted["large.txt.gz"]
    assert parts(proposal) == {**wanted, "task.txt": "task", "domain.txt.gz": "domain"}


@pytest.mark.real
def test_documents_beside_a_labelled_file_are_one_domain_corpus(real_data: Path, tmp_path: Path) -> None:
    mixed(tmp_path / "all", plain(real_data / "unlabeled" / "legal.txt.gz", 400))
    conll(real_data / "inlegalner" / "train.conll", tmp_path / "all" / "labels.conll", n=120)
    proposal = propose(looks.looks([tmp_path / "all"]))
    [labels, pile] = sorted(proposal.rows, key=lambda row: len(row.files))
    assert (labels.part, labels.files, labels.labelled) == (DIVIDE, ("labels.conll",), True)
    assert (pile.part, pile.name) == ("domain", "4 files (DOCX, EML, HTML, PDF) in contracts")
    assert 200 < pile.sentences < 900
    assert proposal.task_of_train


@pytest.mark.real
def test_documents_without_labels_are_asked_about(real_data: Path, tmp_path: Path) -> None:
    mixed(tmp_path, plain(real_data / "unlabeled" / "legal.txt.gz", 200))
    seen_files = looks.looks([tmp_path])
    proposal = propose(seen_files)
    names = tuple(f"contracts/lease.{ending}" for ending in ("docx", "eml", "html", "pdf"))
    assert [(row.part, row.files) for row in proposal.rows] == [("domain", names)]
    assert (proposal.ask, proposal.task_of_train) == (names, False)
    answered = propose(seen_files, like=names[:1])
    assert parts(answered) == {names[0]: "task", **dict.fromkeys(names[1:], "domain")}
    assert answered.ask == ()


@pytest.mark.real
def test_the_labelled_file_closer_to_the_large_text_is_divided(real_data: Path, tmp_path: Path) -> None:
    """The file like the large text belongs to the task. The other is not used, and the row says why."""
    conll(real_data / "bc5cdr" / "train.conll", tmp_path / "a.conll", n=300)
    conll(real_data / "conll2003" / "train.conll", tmp_path / "b.conll")
    text(tmp_path / "large.txt", plain(real_data / "unlabeled" / "pubmed.txt.gz", 1_500))
    proposal = propose(looks.looks([tmp_path]))
    assert parts(proposal) == {"a.conll": DIVIDE, "b.conll": UNUSED, "large.txt": "domain"}
    assert "another task;" in seen(proposal, "b.conll")


def mixed(folder: Path, lines: list[str]) -> None:
    """Write the lines as four documents in a folder."""
    quarter = [[" ".join(line.split()) for line in lines[i::4]] for i in range(4)]
    there = folder / "contracts"
    there.mkdir(parents=True)
    ascii_lines = [line.encode("ascii", "replace").decode()[:90] for line in quarter[0]]
    pages = [documents.lines(ascii_lines[i : i + 40]) for i in range(0, len(ascii_lines), 40)]
    (there / "lease.pdf").write_bytes(documents.pdf(pages))
    (there / "lease.docx").write_bytes(documents.docx(quarter[1]))
    (there / "lease.html").write_bytes(documents.html("".join(f"<p>{plain_html(line)}</p>" for line in quarter[2])))
    (there / "lease.eml").write_bytes(documents.eml("\n\n".join(quarter[3])))


def plain_html(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;")


def labelled(name: str, n: int = 100, **more: object) -> Look:
    values: dict[str, object] = {"types": {"PER": n}, "words": {"court": 3, "judge": 2}, "format": "conll", **more}
    return Look(name=name, bytes=n * 100, labelled=True, sentences=n, exact=True, **values)  # type: ignore[arg-type]


def unlabelled(name: str, n: int, words: Mapping[str, int] | None = None, **more: object) -> Look:
    there = {"goal": 3} if words is None else words
    return Look(name=name, bytes=n * 100, format="txt", sentences=n, words=there, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (("train.conll", "test.conll"), (DIVIDE, "test")),
        (("train.conll", "dev.conll"), (DIVIDE, "dev")),
        (("a.conll", "dev.conll", "test.conll"), ("train", "dev", "test")),
        (("a.conll", "test.conll"), (DIVIDE, "test")),
        (("a.conll", "b.conll"), (DIVIDE, DIVIDE)),
        (("test.conll",), (DIVIDE,)),
        (("train.conll", "dev.conll", "test.conll", "more.conll"), ("train", "dev", "test", UNUSED)),
        (("x/validation.conll", "x/train.conll", "x/test.conll"), ("dev", "train", "test")),
    ],
)
def test_names_of_labelled_files_decide_their_sets(files: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    proposal = propose([labelled(name) for name in files])
    assert tuple(parts(proposal)[name] for name in files) == wanted
    assert all(row.seen for row in proposal.rows)


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"a.txt": 1_000}, {"a.txt": "domain"}),
        ({"a.txt": 1_000, "b.txt": 100}, {"a.txt": "domain", "b.txt": "task"}),
        ({"a.txt": 1_000, "b.txt": 700}, {"a.txt": "domain", "b.txt": "domain"}),
        ({"raw.txt": 500, "b.txt": 700}, {"raw.txt": "domain", "b.txt": "domain"}),
        ({"task.txt": 900, "b.txt": 700}, {"task.txt": "task", "b.txt": "domain"}),
        ({"multitasking.txt": 900}, {"multitasking.txt": "domain"}),
        ({"test.txt": 900, "b.txt": 700}, {"test.txt": UNUSED, "b.txt": "domain"}),
    ],
)
def test_names_and_sizes_of_texts_decide_their_roles(files: Mapping[str, int], wanted: Mapping[str, str]) -> None:
    proposal = propose([unlabelled(name, n) for name, n in files.items()])
    assert parts(proposal) == wanted
    is_named = "task" in wanted.values()
    assert proposal.ask == (() if is_named else tuple(name for name, part in wanted.items() if part))


def test_text_of_a_held_out_set_is_not_used() -> None:
    own = {"court": 3, "judge": 2}
    proposal = propose([labelled("train.conll"), unlabelled("test.txt", 90, own), unlabelled("pile.txt", 900)])
    assert parts(proposal)["test.txt"] == UNUSED
    assert "nothing is trained on it" in seen(proposal, "test.txt")


def test_an_unreadable_file_gets_a_reason_and_no_role() -> None:
    broken = Look(name="scan.pdf", bytes=10, problem="its pages are locked by a password")
    proposal = propose([labelled("a.conll"), broken])
    [row] = [row for row in proposal.rows if row.files == ("scan.pdf",)]
    assert (row.part, row.possible_roles) == (UNUSED, (UNUSED,))
    assert row.seen == "cannot be read: its pages are locked by a password"
    assert proposal.files() == {DIVIDE: ("a.conll",)}
    chosen = propose([labelled("a.conll"), unlabelled("b.txt", 900)])  # the user's choice replaces the proposal
    assert chosen.files({"b.txt": "task", "a.conll": "train"}) == {"task": ("b.txt",), "train": ("a.conll",)}
    assert chosen.files({"b.txt": UNUSED}) == {DIVIDE: ("a.conll",)}


def test_many_files_of_one_kind_are_one_row() -> None:
    proposal = propose([unlabelled(f"notes/{i}.txt", 10) for i in range(9)])
    assert [(row.name, row.sentences) for row in proposal.rows] == [("9 files (TXT) in notes", 90)]
    assert len(propose([unlabelled(f"{i}.txt", 10) for i in range(8)]).rows) == 8
    names = ["a.txt", "b.txt", "mails/1.eml", "mails/2.pdf", "mails/list.csv"]
    assert apart(names) == [("a.txt",), ("b.txt",), ("mails/1.eml", "mails/2.pdf"), ("mails/list.csv",)]
    [row] = propose([unlabelled("a.jsonl", 20, long=True)]).rows
    assert row.long
    assert row.seen.endswith("its long rows will be split into sentences")


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ({}, ("domain", DIVIDE)),
        ({"task": "mine", "domain": "archive"}, (SOURCE, DIVIDE)),
        ({"task": "mine", "train": "gold"}, ("domain", SOURCE)),
        ({"dev": "gold-dev", "test": "gold-test"}, ("domain", "train")),
    ],
)
def test_roles_of_the_project_are_kept(held: Mapping[str, str], wanted: tuple[str, str]) -> None:
    proposal = propose([unlabelled("new.txt", 500), labelled("new.conll")], held=held)
    assert parts(proposal) == {"new.txt": wanted[0], "new.conll": wanted[1]}
    if wanted[0] == SOURCE:
        assert "archive is already the domain corpus of this project" in seen(proposal, "new.txt")
    assert proposal.task_of_train == ("task" not in held and wanted[1] in (DIVIDE, "train"))


@pytest.mark.parametrize(
    ("files", "held", "wanted"),
    [
        (("dev", "test"), {"train": "gold"}, ("dev", "test")),
        (("dev",), {"train": "gold"}, ("dev",)),
        (("test", "more"), {"train": "gold"}, ("test", UNUSED)),
        (("test",), {"train": "gold", "test": "gold-test"}, (SOURCE,)),
        (("dev",), {}, (DIVIDE,)),
    ],
)
def test_names_decide_which_files_join_the_training_set_of_the_project(
    files: Sequence[str], held: Mapping[str, str], wanted: Sequence[str]
) -> None:
    found = parts(propose([labelled(f"{name}.conll") for name in files], held=held))
    assert found == {f"{name}.conll": role for name, role in zip(files, wanted, strict=True)}


def test_texts_kept_apart_have_one_domain_corpus() -> None:
    proposal = propose([unlabelled(name, n) for name, n in {"a.txt": 300, "b.txt": 500, "c.txt": 400}.items()])
    assert set(parts(proposal).values()) == {"domain"}
    assert parts(proposal.kept_apart()) == {"a.txt": SOURCE, "b.txt": "domain", "c.txt": SOURCE}
    assert proposal.ask == ("a.txt", "b.txt", "c.txt")
    held = [unlabelled("a.txt", 500), unlabelled("b.txt", 400)]
    assert propose(held, held={"task": "mine"}).ask == ()  # the project has a task corpus


def test_likeness_is_the_cosine_of_root_frequencies() -> None:
    assert likeness({"a": 2, "b": 2}, {"a": 3, "b": 3}) == pytest.approx(1)
    assert likeness({"a": 2}, {"b": 3}) == likeness({}, {"b": 3}) == 0
    assert likeness({"a": 1, "b": 1}, {"a": 1}) == pytest.approx(0.5**0.5)


def test_a_file_that_crashes_its_reader_affects_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text(tmp_path / "fine.txt", ["One sentence here ."] * 30)
    (tmp_path / "laughs.docx").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "sheet.ods").write_bytes(b"PK\x03\x04")
    endless = tmp_path / "endless.txt"
    endless.write_text("x .\n")
    seen_files = {look.name: look for look in looks.looks([tmp_path])}
    assert seen_files["fine.txt"].sentences == 30
    assert "is damaged" in seen_files["laughs.docx"].problem
    assert seen_files["sheet.ods"].problem.startswith("not a text file but a spreadsheet")
    real = looks._asked

    def dies(paths: list[Path], encoding: str, only: tuple[str, ...] | None) -> list[Look]:
        if only is None or "endless.txt" in only:
            raise ResourceError("endless.txt: reading it took more than 60 seconds; import it by itself.")
        return real(paths, encoding, only)

    monkeypatch.setattr(looks, "_asked", dies)
    seen_files = {look.name: look for look in looks.looks([tmp_path])}
    assert "took more than 60 seconds" in seen_files["endless.txt"].problem
    assert (seen_files["fine.txt"].sentences, seen_files["fine.txt"].exact) == (30, True)
    monkeypatch.setattr(looks, "MOST_FILES", 2)
    with pytest.raises(ReadError, match="has 3 files"):
        looks.files_of([tmp_path])


def test_larger_labelled_file_is_taken_unless_the_other_is_much_closer() -> None:
    def taken(near: int) -> str:
        words = {"court": near, "x": 10 - near}
        a = labelled("a.conll", 100, words={"court": 1, "y": 9})
        b = labelled("b.conll", 40, types={"DRUG": 40}, words=words)
        [row] = [row for row in propose([a, b, unlabelled("pile.txt", 900, {"court": 5})]).rows if row.part == DIVIDE]
        return row.name

    assert (taken(1), taken(3), taken(9)) == ("a.conll", "a.conll", "b.conll")


def test_long_workbooks_and_documents_are_counted_to_their_end(tmp_path: Path) -> None:
    rows = [f"Clause {n} of the lease ends here." for n in range(8_050)]
    (tmp_path / "deeds.xlsx").write_bytes(documents.xlsx([["text"], *([row] for row in rows[:900])]))
    (tmp_path / "deeds.html").write_text("".join(f"<p>{row}</p>" for row in rows))
    counted = {look.name: (look.sentences, look.exact) for look in looks.looks([tmp_path])}
    assert counted == {"deeds.xlsx": (900, True), "deeds.html": (8_050, True)}
