"""Documents: text with file and page from each format, and a clear error for each hostile file."""

import errno
import gzip
import io
import os
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from core import isolated
from core.corpora.columns import placed
from core.corpora.documents import markup, office, reading
from core.corpora.documents.extract import Extract
from core.corpora.formats import documents as formats
from core.corpora.formats import folders, source
from core.corpora.readers import ReadOptions, sniff
from core.errors import Cancelled, PathError, ReadError
from core.importing import view as corpora
from core.importing.result import AddResult
from core.projects import runs
from core.runs.result import read as read_result
from core.text.sentence import place, sentence_id
from pages.ui.widgets import entity_html, place_html
from tests import documents as make
from tests.corpora.reading import load, write
from tests.waiting import until

LEFT = ["The landlord lets the flat to the ten-", "ant for five years. The rent is due on", "the first day of every month at noon.",
        "The tenant pays it by a bank transfer", "to the account that stands in Annex A."]  # fmt: skip
RIGHT = ["The deposit is held in an account by", "the landlord. It bears interest at the", "usual rate, and is paid back after the",
         "lease has ended, within two months of", "that day, less what is owed by then."]  # fmt: skip


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read documents in this process. One test covers the separate process, which takes long to start."""
    monkeypatch.setattr(isolated, "is_isolated", lambda: True)


def lease() -> bytes:
    """Make pages with running heads and numbers; the first has two columns, the second is a scan."""
    head, foot = (60, 810, "Lease of Acme Ltd."), 30
    first = [head, *make.lines(LEFT), *make.lines(RIGHT, 330), (290, foot, "1")]
    third = [head, *make.lines(["The tenant takes out an insurance which", "covers"]), (290, foot, "3")]
    ends = make.lines(["the whole flat. It ends in May.", "Rent"], top=760)
    return make.pdf([first, [], third, [head, *ends, (200, 746, "900 EUR"), (290, foot, "4")]])


def mixed(folder: Path) -> Path:
    tracked = "<w:p><w:r><w:t>The fee is </w:t></w:r><w:del><w:r><w:delText>nine</w:delText></w:r></w:del>"
    tracked += "<w:ins><w:r><w:t>ten</w:t></w:r></w:ins><w:r><w:t> dollars.</w:t></w:r></w:p>"
    row = "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in ("Rent", "1,000 EUR"))
    write(folder / "a.pdf", lease())
    body = f"{tracked}<w:tbl><w:tr>{row}</w:tr></w:tbl>"
    write(folder / "in" / "b.docx", make.docx(["The buyer pays. The seller delivers."], body=body))
    write(folder / "c.html", make.html("<p>One <b>clause</b>.<br>Another.</p><script>x</script><p>Zo\u00eb's.</p>"))
    write(folder / "d.eml", make.eml("Dear all,\r\n\r\nplease find\r\nit here. It is signed.\r\n", attached="x.pdf"))
    write(folder / "e.rtf", make.rtf(["One deed. Two deeds.", "A third."]))
    write(folder / "f.odt", make.odt(["An open text."]))
    write(folder / "g.xlsx", make.xlsx([["id", "text"], [1, "A cell of text."]], [["text"], ["On sheet two."]]))
    write(folder / "h.txt", "A plain line .\n")
    write(folder / "i.pdf", b"PK\x03\x04 no PDF")
    write(folder / "j.png", b"\x89PNG")
    return folder


EXPECTED = [
    ("a.pdf", 1, "The landlord lets the flat to the tenant for five years."),
    ("a.pdf", 1, "The rent is due on the first day of every month at noon."),
    ("a.pdf", 1, "The tenant pays it by a bank transfer to the account that stands in Annex A."),
    ("a.pdf", 1, "The deposit is held in an account by the landlord."),
    ("a.pdf", 1, "It bears interest at the usual rate, and is paid back after the lease has ended, within two months of that"
                 " day, less what is owed by then."),
    ("a.pdf", 3, "The tenant takes out an insurance which covers the whole flat."),
    ("a.pdf", 4, "It ends in May."),
    ("a.pdf", 4, "Rent 900 EUR"),
    ("c.html", None, "One clause."), ("c.html", None, "Another."), ("c.html", None, "Zo\u00eb's."),
    ("d.eml", None, "The lease"), ("d.eml", None, "Dear all,"), ("d.eml", None, "please find it here."),
    ("d.eml", None, "It is signed."),
    ("e.rtf", None, "One deed."), ("e.rtf", None, "Two deeds."), ("e.rtf", None, "A third."),
    ("f.odt", None, "An open text."),
    ("g.xlsx", 1, "A cell of text."), ("g.xlsx", 2, "On sheet two."),
    ("h.txt", None, "A plain line ."),
    ("in/b.docx", None, "The buyer pays."), ("in/b.docx", None, "The seller delivers."),
    ("in/b.docx", None, "The fee is ten dollars."), ("in/b.docx", None, "Rent 1,000 EUR"),
]  # fmt: skip


def test_a_mixed_folder_is_one_corpus_with_file_and_page(tmp_path: Path, home: Path) -> None:
    """The import reads each document in its own process and counts every page, row and file."""
    run = runs.execute("add", {"path": str(mixed(tmp_path / "deeds"))})
    result = read_result(runs.get(run.id), AddResult)
    corpus = corpora.find(result.corpus)
    assert result.name == "deeds"
    rows = [row for block in corpus.batches() for row in block]
    assert [(row.file, row.page, row.text) for row in rows] == EXPECTED
    assert {row.doc for row in rows if row.file == "in/b.docx"} == {"in/b.docx"}
    assert [row.place for row in rows][7:9] == ["a.pdf, page 4", "c.html"]
    assert place("g.xlsx", 2) == "g.xlsx, sheet 2"
    shown = entity_html(rows[0], ()) + place_html(rows[0].place)
    assert shown == f'{rows[0].text} <small class="w-place">a.pdf, page 1</small>'
    assert placed(corpus)
    assert corpus.column("page").to_pylist() == [page for _, page, _ in EXPECTED]
    assert (result.read, result.kept, result.rejected, result.skipped) == (20, 18, 1, 1)
    assert (result.pages, result.blank_pages, result.margins, result.left_out) == (4, 1, 6, 1)
    assert {(problem.file, problem.reason.split(";")[0]) for problem in result.problems} == {
        ("a.pdf", "1 of 4 pages have no text (scanned?): page 2"),
        ("d.eml", "1 attachments were not read: x.pdf"),
        ("i.pdf", "does not fit its extension, because it is a zip archive or an Office document"),
        ("j.png", "not a text file but a picture"),
    }
    assert "1 of 4 pages have no text (scanned?): a.pdf page 2." in run.state().notes


@pytest.mark.usefixtures("in_process")
def test_a_zip_gives_the_same_sentences_as_its_folder(tmp_path: Path, home: Path) -> None:
    folder = mixed(tmp_path / "deeds")
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    inner = make.zipped({"z.txt": "x"})
    path = write(tmp_path / "all.zip", make.zipped({**files, "../out.txt": "x", "/etc/x.txt": "x", "in.zip": inner}))
    run = runs.execute("add", {"path": str(path)})
    result = read_result(runs.get(run.id), AddResult)
    rows = [row for block in corpora.find(result.corpus).batches() for row in block]
    assert [(row.file, row.page, row.text) for row in rows] == EXPECTED
    reasons = {problem.file: problem.reason for problem in result.problems}
    assert reasons["../out.txt"] == reasons["/etc/x.txt"] == "its path leads out of the archive"
    assert reasons["in.zip"] == "a zip archive inside another; unpack it, and add it separately"
    assert not list(tmp_path.rglob("out.txt"))
    assert not list(home.glob("unpacked/*"))


def test_only_zip_members_with_too_long_paths_are_left_out(tmp_path: Path, home: Path) -> None:
    deep, long = "folder/" * 500 + "a.txt", ("f" * 150 + "/") * 30 + "b.txt"
    path = write(tmp_path / "all.zip", make.zipped({deep: "x", long: "x", "c.txt": "The rent is due.\n"}))
    listing = folders.listed(path, ReadOptions())
    assert list(listing.names.values()) == ["c.txt"]
    reasons = [why.partition(";")[0] for why in listing.left_out.values()]
    assert reasons == ["it is more than 40 folders deep", "its name or path is too long"]
    assert [row.text for row in load(path)[0]] == ["The rent is due."]


def test_folders_list_files_with_every_column_extension(tmp_path: Path) -> None:
    names = sorted(f"a{ending}" for ending in folders.COLUMN_SUFFIXES)
    for name in names:
        write(tmp_path / name, b"The O\n")
    assert sorted(folders.listed(tmp_path, ReadOptions()).names.values()) == names


def test_folders_list_packed_files(tmp_path: Path) -> None:
    names = [f"{i}.txt{ending}" for i, ending in enumerate(source.PACKED)]
    for name in names:
        write(tmp_path / name, gzip.compress(b"The rent is due.\n"))
    assert sorted(folders.listed(tmp_path, ReadOptions()).names.values()) == names
    assert [row.text for row in load(tmp_path)[0]] == ["The rent is due."] * 3


def test_archives_that_do_not_fit_are_refused(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("core.corpora.uploads.MAX_UNPACKED", 1_000)
    with pytest.raises(ReadError, match="unpacks to 1,601 bytes, more than 1,000"):
        sniff(write(tmp_path / "b.zip", make.zipped({"a.txt": os.urandom(800).hex(), "b.txt": "x"})))
    monkeypatch.setattr("core.corpora.uploads.shutil.copyfileobj", full)
    path = write(tmp_path / "all.zip", make.zipped({"a.txt": "x"}))
    with pytest.raises(PathError, match=r"^all\.zip: cannot be unpacked \(No space left on device\); free some space"):
        folders.listed(path, ReadOptions())


@pytest.mark.usefixtures("in_process")
def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    one, other = (
        write(tmp_path / "x" / "a.odt", make.odt(["One."])),
        write(tmp_path / "y" / "a.odt", make.odt(["Two."])),
    )
    rows, _ = load(one, others=(str(other), str(write(tmp_path / "c.txt", "Three\n"))))
    assert [(row.file, row.text) for row in rows] == [("a.odt", "One."), ("y/a.odt", "Two."), ("c.txt", "Three")]


LAUGH = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
FETCH = '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"E\0n\0c\0r\0y\0p\0t\0e\0d\0"


def spoilt_sheet(head: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(make.xlsx([["text"], ["x"]]))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    return make.zipped({**members, name: head.encode() + members[name].split(b"?>", 1)[-1]})


def locked_zip() -> bytes:
    data = bytearray(make.zipped({"a.txt": "x"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "laughs": (
        "a.docx",
        lambda: make.docx(["&b;"], head=LAUGH),
        "declares XML entities or a document type, as attacks do",
    ),
    "fetches": (
        "a.odt",
        lambda: make.odt(["x"], head=FETCH),
        "declares XML entities or a document type, as attacks do",
    ),
    "sheet laughs": ("a.xlsx", lambda: spoilt_sheet(LAUGH), "declares XML entities or a document type, as attacks do"),
    "bomb": ("a.docx", lambda: make.docx(["x"], more={"word/big.xml": b" " * (40 << 20)}), "as a zip bomb does"),
    "large": ("a.docx", lambda: make.docx(["x" * 3_000]), "unpacks to .* more than 2,000; divide it"),
    "pages": ("a.pdf", lambda: make.pdf([make.lines(["x"])], n_pages=10_000), "has 10,000 pages, more than 5,000"),
    "locked pdf": ("a.pdf", lambda: make.pdf([make.lines(["x"])], encrypted=True), "protected by a password"),
    "locked docx": ("a.docx", lambda: OLE, "has a password, or is an old Office file"),
    "locked xlsx": ("a.xlsx", lambda: OLE, "has a password, or is an old Office file"),
    "cut pdf": ("a.pdf", lambda: b"%PDF-1.7\n1 0 obj", "is damaged, cut off or not a PDF"),
    "cut docx": ("a.docx", lambda: make.docx(["x"])[:200], "is damaged or was cut off"),
    "cut xlsx": ("a.xlsx", lambda: make.xlsx([["text"], ["x"]])[:900], "is damaged or was cut off"),
    "cut xml": ("a.docx", lambda: make.zipped({"word/document.xml": "<a><b>"}), "word/document.xml is damaged"),
    "another zip": ("a.odt", lambda: make.docx(["x"]), "is a zip archive, not an OpenDocument text"),
    "another type": ("a.docx", lambda: make.pdf([[]]), "does not fit its extension, because it is a PDF"),
    "text as pdf": ("a.pdf", lambda: b"text", r"its content does not fit the extension \.pdf, or is damaged"),
    "pdf as text": ("a.txt", lambda: make.pdf([[]]), "not a text file but a PDF; give it the extension .pdf"),
    "no mail": ("a.eml", lambda: b"just text", "is not a mail"),
    "scans": ("a.pdf", lambda: make.pdf([[], []]), r"2 of 2 pages have no text \(scanned\?\): pages 1-2; recognise"),
    "nothing": ("a.docx", lambda: make.docx([]), "has no text"),
    "locked zip": ("a.zip", locked_zip, "protected by a password"),
    "zip bomb": ("a.zip", lambda: make.zipped({"a.txt": b" " * (40 << 20)}), "as a zip bomb does"),
    "many": ("a.zip", lambda: make.zipped({f"{i}.txt": "x" for i in range(30)}), "has 30 files, more than 20"),
    "empty zip": ("a.zip", lambda: make.zipped({"a.exe": "x"}), "has no file that can be read"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("which", HOSTILE)
def test_a_hostile_document_is_refused_with_a_clear_error(
    which: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, data, words = HOSTILE[which]
    if which == "large":
        monkeypatch.setattr("core.corpora.documents.office.MAX_XML", 2_000)
    if which == "many":
        monkeypatch.setattr(office, "MAX_MEMBERS", 20)
    path = write(tmp_path / name, data())
    with pytest.raises(ReadError, match=f"^{name}: .*{words}"):
        load(path)
    assert not list(home.glob("unpacked/*.part"))


@pytest.mark.usefixtures("in_process")
def test_macros_and_missing_columns_of_a_sheet_are_reported(tmp_path: Path) -> None:
    rows, report = load(write(tmp_path / "a.docm", make.docx(["A deed."], more={"word/vbaProject.bin": b"x"})))
    assert [row.text for row in rows] == ["A deed."]
    assert [problem.reason for problem in report.problems] == ["its macros were neither read nor run"]
    sheets = make.xlsx([["id", "text"], [1, "A cell of text."]], [["id", "other"], [2, "No text."]])
    _, report = load(write(tmp_path / "g.xlsx", sheets), text_column="text")
    assert [problem.reason for problem in report.problems] == [
        "sheet 'Sheet1': it has no 'text'; add it, or choose another text column"
    ]


@pytest.mark.usefixtures("in_process")
def test_a_sheet_may_have_long_column_names_and_an_exported_csv_saved_as_a_sheet_keeps_its_texts(
    tmp_path: Path,
) -> None:
    mark = sentence_id("- The rent; + 5%.")
    sheets = make.xlsx(
        [["text", "Has the client signed the lease?"], ["The rent is due on Monday.", "yes"]],
        [["id", "text", "client"], [mark, "'- The rent; '+ 5%.", "'=A"]],
    )
    rows, _ = load(write(tmp_path / "a.xlsx", sheets))
    assert [(row.text, dict(row.columns)) for row in rows] == [
        ("The rent is due on Monday.", {"Has the client signed the lease?": "yes"}),
        ("- The rent; + 5%.", {"id": mark, "client": "=A"}),
    ]


def paragraphs(read: Callable[[BinaryIO, str], Extract], data: bytes) -> list[str]:
    return [paragraph.text for paragraph in read(io.BytesIO(data), "a").paragraphs]


@pytest.mark.parametrize(
    "around",
    [
        "<nav><ul><li>Home<li><a href='/t'>Terms of use</a></ul></nav>{}",
        "<div class='related' role='navigation'><div>Home</div><br><a>Terms of use</a></div>{}",
        "<nav><ul><li>Home<li>Terms of use<main>{}</main>",  # the navigation is not closed
    ],
)
def test_the_navigation_of_a_web_page_is_not_read(around: str) -> None:
    page = make.html(around.format("<p>One clause.</p><p>Another.</p>"))
    assert paragraphs(markup.read_html, page) == ["One clause.", "Another."]


@pytest.mark.parametrize("note", ["{\\*\\footnote \\chftn{\\b A \\{note\\}.}}", "{\\footnote A \\{note\\}.}"])
def test_rtf_footnotes_follow_the_text(note: str) -> None:
    expected = ["One deed.", "A third.", "A {note}."]
    assert paragraphs(markup.read_rtf, make.rtf([f"One{note} deed.", "A third."])) == expected
    assert paragraphs(markup.read_rtf, make.rtf(["One deed.", f"A third.{note[:-1]}"])[:-1]) == expected


def test_documents_are_read_in_a_separate_process(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both previews and imports ask a separate process."""

    def refuse(**_: object) -> None:
        raise AssertionError("read in this process")

    monkeypatch.setattr("core.corpora.documents.reading.answer", refuse)
    path = write(tmp_path / "a.pdf", lease())
    assert corpora.preview(path).rows[0].startswith("The landlord")
    assert not isolated.is_isolated()
    assert load(path)[1].pages == 4


def test_a_page_with_a_huge_character_number_is_left_out_alone(tmp_path: Path, in_process: None) -> None:
    folder = tmp_path / "in"
    write(folder / "a.html", "<p>&#" + "9" * 5_000)
    write(folder / "b.txt", "The rent is due in May.\n")
    write(folder / "c.html", "<p>The tenant pays it.")
    assert sniff(folder).files == ("a.html", "b.txt", "c.html")
    sentences, report = load(folder)
    assert [sentence.file for sentence in sentences] == ["b.txt", "c.html"]
    why = "cannot be read as html (its reader failed: ValueError); save it again, or save its text as UTF-8 .txt"
    assert [(each.file, each.kind, each.reason) for each in report.problems] == [("a.html", "rejected", why)]


def test_any_exception_of_a_reader_becomes_an_error_of_its_file(
    tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Extract:
        raise ZeroDivisionError("the patient's name")

    monkeypatch.setitem(reading._READERS, "eml", fail)
    write(tmp_path / "in/a.eml", "Subject: a\n\nb")
    write(tmp_path / "in/b.txt", "The rent is due in May.\n")
    assert [sentence.file for sentence in load(tmp_path / "in")[0]] == ["b.txt"]
    with pytest.raises(ReadError, match=r"^a\.eml: cannot be read as eml \(its reader failed: ZeroDivisionError\); "):
        load(tmp_path / "in/a.eml")


def test_several_documents_are_read_at_a_time_and_stored_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each pair, the second ends first. A damaged document is an error of its file."""
    monkeypatch.setattr(formats, "cores", lambda: 2)
    two = threading.Barrier(2)

    def answer(what: str, _: object, **asked: Any) -> object:
        two.wait(30)
        time.sleep(0.2 if int(what[0]) % 2 == 0 else 0)
        if what == "3.html":
            raise ReadError(what, None, "is damaged.")
        return reading.answer(**asked)

    monkeypatch.setattr(formats._reader, "ask", answer)
    for i in range(6):
        write(tmp_path / "in" / f"{i}.html", f"<p>Clause {i}.</p>")
    sentences, report = load(tmp_path / "in")
    assert [(each.file, each.text) for each in sentences] == [(f"{i}.html", f"Clause {i}.") for i in (0, 1, 2, 4, 5)]
    assert [(each.file, each.kind, each.reason) for each in report.problems] == [("3.html", "rejected", "is damaged")]


def test_large_documents_are_read_alone_and_the_end_of_an_import_ends_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "cores", lambda: 2)
    monkeypatch.setattr(formats, "AHEAD", 40)
    asked, ended = list[str](), list[str]()

    def answer(what: str, check: Callable[[], object], **_: object) -> object:
        asked.append(what)
        if what != "a.html":
            try:
                while True:
                    check()
                    time.sleep(0.01)
            except Cancelled:
                ended.append(what)
                raise
        return Extract().written()

    monkeypatch.setattr(formats._reader, "ask", answer)
    files = [write(tmp_path / name, f"<p>{'x' * n}") for name, n in (("a.html", 99), ("b.html", 9), ("c.html", 9))]
    ahead = formats.Ahead(files, ReadOptions(), lambda: None)
    ahead.take(files[0])
    assert asked == ["a.html"]
    with ThreadPoolExecutor(1) as waiting:
        cancelled = waiting.submit(ahead.take, files[1])
        until(lambda: len(asked) == 3)
        ahead.close()
    assert isinstance(cancelled.exception(), Cancelled)
    assert sorted(ended) == ["b.html", "c.html"]


def test_a_cancelled_import_ends_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The waiting process checks every second whether it was cancelled."""
    from tests.test_isolated import apart as ended

    def stop() -> None:
        raise Cancelled("stopped")

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0), ended(60) as made, pytest.raises(Cancelled):
        made.ask("a.pdf", stop, how="hang", pipe=str(pipe))
