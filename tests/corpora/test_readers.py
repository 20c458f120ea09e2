"""Readers of text: containers, text columns, splitting, and one clear error for each kind of bad input."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Unpack
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import processes
from core.corpora.corpus import write_sentences
from core.corpora.formats import in_parts, one_file, source
from core.corpora.readers import ReadOptions, ReadReport, read, sniff
from core.errors import Cancelled, ConfigError, EncodingError, InputError, PathError, ReadError
from core.text.words import clean
from tests.corpora.reading import Options, load, write


def zst(content: bytes) -> bytes:
    packed: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return packed


def texts(path: Path, **options: Unpack[Options]) -> tuple[list[str], ReadReport]:
    sentences, report = load(path, **options)
    return [sentence.text for sentence in sentences], report


ROWS = ["The patient came.", "Él vino, señor.", "它 是 好 的", 'She said "no", twice; then left.']


def containers(folder: Path) -> dict[str, Path]:
    """Write the same four rows in every container, each with a number and a document; return {name: file}."""
    table = [{"n": i, "doc": f"d{i}", "text": row} for i, row in enumerate(ROWS)]
    plain = "\n".join(ROWS)
    quoted = [[str(i), f"d{i}", '"' + row.replace('"', '""') + '"'] for i, row in enumerate(ROWS)]
    lines = "\n".join(json.dumps(row) for row in table)
    pq.write_table(pa.Table.from_pylist(table), folder / "a.parquet")
    with (
        pa.OSFile(str(folder / "a.arrow"), "wb") as file,
        pa.ipc.new_stream(file, pa.Table.from_pylist(table).schema) as w,
    ):
        w.write_table(pa.Table.from_pylist(table))
    return {
        "txt": write(folder / "a.txt", plain),
        "crlf": write(folder / "crlf.txt", plain.replace("\n", "\r\n")),
        "cr": write(folder / "cr.txt", plain.replace("\n", "\r")),
        "txt.gz": write(folder / "a.txt.gz", gzip.compress(plain.encode())),
        "two gz members": write(
            folder / "b.txt.gz", gzip.compress(plain[:20].encode()) + gzip.compress(plain[20:].encode())
        ),
        "txt.zst": write(folder / "a.txt.zst", zst(plain.encode())),
        "bom": write(folder / "bom.txt", b"\xef\xbb\xbf" + plain.encode()),
        "utf-16": write(folder / "u16.txt", plain.encode("utf-16")),
        "jsonl": write(folder / "a.jsonl", lines),
        "jsonl.gz": write(folder / "a.jsonl.gz", gzip.compress(lines.encode())),
        "json array": write(folder / "a.json", json.dumps(table, indent=1)),
        "csv": write(folder / "a.csv", "n,doc,text\n" + "\n".join(map(",".join, quoted))),
        "semicolons": write(folder / "s.csv", "n;doc;text\n" + "\n".join(map(";".join, quoted))),
        "tsv": write(folder / "a.tsv", "n\tdoc\ttext\n" + "\n".join(map("\t".join, quoted))),
        "parquet": folder / "a.parquet",
        "arrow": folder / "a.arrow",
    }


def test_every_container_gives_the_same_sentences(tmp_path: Path) -> None:
    for name, path in containers(tmp_path).items():
        found, report = texts(path)
        assert found == [clean(row) for row in ROWS], name
        assert (report.read, report.kept, report.rejected) == (4, 4, 0), name
        preview = sniff(path)
        assert preview.rows == tuple(found), name
        assert not preview.labelled
        assert preview.text_column == report.text_column == (None if "txt" in path.name else "text"), name


@pytest.mark.parametrize("more", ["", ",year"])
def test_a_row_without_a_document_is_no_part_of_a_nameless_document(more: str, tmp_path: Path) -> None:
    cells = [f"Row {i}.,{name}{',1999' * bool(more)}" for i, name in enumerate(("a", "", " ", "a"))]
    path = write(tmp_path / "a.csv", f"text,doc{more}\n" + "\n".join(cells) + "\n")
    assert [s.doc for s in read(path)] == ["a", None, None, "a"]
    docs = ['"b\\ud83d"', "NaN", "null", '""', "{}", "7"]
    year = ', "year": 1999' * bool(more)
    rows = "".join(f'{{"text": "Row.", "doc": {doc}{year}}}\n' for doc in docs)
    assert [s.doc for s in read(write(tmp_path / "a.jsonl", rows))] == ["b", None, None, None, None, "7"]


def test_documents_keep_their_names(tmp_path: Path) -> None:
    files = containers(tmp_path)
    assert [s.doc for s in read(files["csv"])] == ["d0", "d1", "d2", "d3"]
    folder = tmp_path / "many"
    for name in ("b", "a"):
        write(folder / f"{name}.txt", f"One of {name}.\nTwo.\n")
    write(folder / ".hidden.txt", "x\n")
    (folder / "link.txt").symlink_to(files["txt"])
    expected = [("One of a.", "a"), ("Two.", "a"), ("One of b.", "b"), ("Two.", "b")]
    assert [(s.text, s.doc) for s in read(folder)] == expected
    for place in ("x", "y"):
        write(folder / place / "a.txt", f"Of {place}.\n")
    assert [s.doc for s in read(folder)][-2:] == ["x/a", "y/a"]
    for name, content in (("report.2019.txt", b"One.\n"), ("report.2020.txt.gz", gzip.compress(b"One.\n"))):
        write(tmp_path / "dotted" / name, content)
    write(tmp_path / "dotted" / "v1.2.csv", "text\nOne.\n")
    assert [s.doc for s in read(tmp_path / "dotted")] == ["report.2019", "report.2020", "v1.2"]
    mails = [write(tmp_path / f"mail.{n}", "One.\n") for n in range(2)]
    assert [s.doc for s in read(mails[0], ReadOptions(others=(str(mails[1]),)))] == ["mail.0", "mail.1"]
    write(folder / "notes.md", "Three.\n")
    write(folder / "x" / "b.log", "Four.\n")
    _, report = texts(folder)
    assert (report.left_out, [each.file for each in report.problems]) == (2, ["notes.md", "x/b.log"])
    assert {each.reason for each in report.problems} == {"this kind of file cannot be imported"}
    with pytest.raises(PathError, match="no such"):
        texts(tmp_path / "none.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReadError, match="no file that can be read"):
        texts(tmp_path / "empty")


TEXT = "The tenant shall pay the rent on the first day of a month."
PLACED = {"text": TEXT, "file": "lease.pdf", "page": 3}
TASK = {"annotations": [{"result": [{"type": "labels", "value": {"start": 4, "end": 10, "labels": ["PARTY"]}}]}]}


@pytest.mark.parametrize(
    "row",
    [
        PLACED,
        {**PLACED, "label": [[4, 10, "PARTY"]]},  # Doccano
        {**PLACED, "spans": [{"start": 4, "end": 10, "label": "PARTY"}], "answer": "accept"},  # Prodigy
        {"text": TEXT, "meta": {"file": "lease.pdf", "page": 3}, "spans": [], "answer": "accept"},
        {"data": PLACED, **TASK},  # Label Studio
    ],
)
def test_rows_keep_their_file_and_page(tmp_path: Path, row: dict[str, object]) -> None:
    path = write(tmp_path / "labelled.jsonl", f"{json.dumps(row)}\n" * 2)
    assert [sentence.place for sentence in read(path)] == ["lease.pdf, page 3"] * 2


def test_the_place_in_a_row_takes_precedence_over_the_imported_file(tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl", f"{json.dumps(PLACED)}\n{json.dumps({'text': TEXT})}\n")
    write(tmp_path / "beside.html", "<p>Another document.</p>")
    places = [sentence.place for sentence in read(tmp_path)]
    assert sorted(places) == ["beside.html", "lease.pdf, page 3", "rows.jsonl"]


def test_tables_keep_file_and_page_and_invalid_ones_are_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [TEXT], "file": ["lease.pdf"], "page": [3]}), tmp_path / "a.parquet")
    write(tmp_path / "a.csv", f"text,file,page\n{TEXT},lease.pdf,3\n{TEXT},lease.pdf,\n")
    assert [sentence.place for sentence in read(tmp_path / "a.parquet")] == ["lease.pdf, page 3"]
    assert [sentence.place for sentence in read(tmp_path / "a.csv")] == ["lease.pdf, page 3", "lease.pdf"]
    odd: list[tuple[object, object]] = [("lease.pdf", page) for page in ("iv", True, -1, 2.5, [3], "9" * 12, 0)]
    odd += [(file, 3) for file in ("x" * 300, ["a"], None, True)]
    rows = [{"text": TEXT, "file": file, "page": page} for file, page in [("lease.pdf", 3.0), *odd]]
    path = write(tmp_path / "odd.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert [sentence.place for sentence in read(path)] == ["lease.pdf, page 3", *["lease.pdf"] * 7, *[""] * 4]


@pytest.mark.parametrize(
    "file", ["/home/ann/clients/lease.pdf", r"C:\Clients\Mueller\lease.pdf", r"\\server\all\lease.pdf"]
)
def test_absolute_paths_of_another_machine_are_cut_to_the_file_name(tmp_path: Path, file: str) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({**PLACED, "file": file}) + "\n")
    assert [sentence.place for sentence in read(path)] == ["lease.pdf, page 3"]
    inner = write(tmp_path / "b.jsonl", json.dumps({**PLACED, "file": "2024/lease.pdf"}) + "\n")
    assert [sentence.place for sentence in read(inner)] == ["2024/lease.pdf, page 3"]


def test_a_place_is_found_after_many_rows_without_one_and_in_a_nested_column(tmp_path: Path) -> None:
    without = {"text": TEXT, "file": None}
    path = write(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in [without] * 250 + [PLACED]))
    assert [sentence.place for sentence in read(path)][-2:] == ["", "lease.pdf, page 3"]
    pq.write_table(pa.table({"text": [TEXT], "meta": [{"file": "lease.pdf", "page": 3}]}), tmp_path / "a.parquet")
    assert [sentence.place for sentence in read(tmp_path / "a.parquet")] == ["lease.pdf, page 3"]
    named = write(tmp_path / "b.csv", f"file\n{TEXT}\n{TEXT}\n")  # the column `file` contains the text itself
    assert [sentence.place for sentence in read(named, ReadOptions(text_column="file"))] == ["", ""]


def test_the_text_column_is_guessed_shown_and_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,Comment,title\n1,A long comment on it.,Short\n2,Another long comment.,Tiny\n")
    assert sniff(path).text_column == "Comment"
    assert sniff(path).columns == ("id", "Comment", "title")
    found, report = texts(path, text_column="title")
    assert (found, report.text_column) == (["Short", "Tiny"], "title")
    with pytest.raises(ReadError, match="no column 'body'; its columns are id, Comment, title"):
        texts(path, text_column="body")
    keyed = write(
        tmp_path / "keyed.jsonl", '{"The patient was sent home with her daughter on Monday, after a night.": 1}\n'
    )
    with pytest.raises(ReadError, match=r"its columns are The patient [^1]*, after[.]{4} Choose"):
        texts(keyed, text_column="body")
    bare = write(tmp_path / "bare.csv", "1,The first row is a sentence already.\n2,So is the second of them.\n")
    assert texts(bare)[0] == ["The first row is a sentence already.", "So is the second of them."]
    rows = "The rent is due on Monday.,yes\nNo rent is due on Sunday.,no\n"
    asked = write(tmp_path / "asked.csv", f"Text,Has the client signed the lease?\n{rows}")
    assert texts(asked)[0] == ["The rent is due on Monday.", "No rent is due on Sunday."]
    genre = write(tmp_path / "genre.csv", "text,The first of two texts to read.\nlist,The second of two texts.\n")
    assert len(texts(genre)[0]) == 2


def test_documents_are_split_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "Dr. Smith came. He left.\n\nOne line\nof a paragraph. Two.\n")
    assert texts(path)[0] == ["Dr. Smith came. He left.", "One line", "of a paragraph. Two."]
    assert texts(path, split=True)[0] == ["Dr. Smith came.", "He left.", "One line", "of a paragraph.", "Two."]
    found, report = texts(path, split=True, unit="paragraph")
    assert found == ["Dr. Smith came.", "He left.", "One line of a paragraph.", "Two."]
    assert (report.read, report.sentences) == (2, 4)
    assert {s.doc for s in read(path, ReadOptions(split=True, unit="paragraph"))} == {"a.txt:1", "a.txt:3"}


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1, max_size=8
    )
)
def test_any_rows_survive_jsonl_and_csv(rows: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rows")
    kept = [clean(row) for row in rows if clean(row)]
    if not kept:
        return
    jsonl = write(folder / "a.jsonl", "".join(json.dumps({"text": row}) + "\n" for row in rows))
    assert texts(jsonl)[0] == kept
    quoted = "".join('{},"{}"\n'.format(i, row.replace("\r", " ").replace('"', '""')) for i, row in enumerate(rows))
    assert texts(write(folder / "a.csv", "n,text\n" + quoted))[0] == kept


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty.txt": (b"", "empty"),
    "empty.txt.gz": (gzip.compress(b""), "empty"),
    "blank.txt": (b"\n \n\t\n", "no text"),
    "program.txt": (b"\x7fELF\0\0\0text", "binary"),
    "paper.txt": (b"%PDF-1.7 text", "PDF"),
    "brief.txt": (b"PK\x03\x04 docx", "Office"),
    "nomark.txt": (("Some text.\n" * 3).encode("utf-16-le"), ""),
    "latin.txt": ("A line.\nUn café.\nUn été.\n".encode("latin-1"), ""),
    "cut.txt.gz": (gzip.compress(bytes(range(256)) * 999)[:-900], ""),
    "cut.txt.zst": (zst("".join(f"Line {i}.\n" for i in range(9999)).encode())[:-900], ""),
    "damaged.txt.gz": (b"\x1f\x8b\x08\0\0\0\0\0\0\0not gzip at all", ""),
    "table.csv": (b"id,n\n1,2\n3,4\n", ""),
    "headonly.csv": (b"id,text\n", "no rows"),
    "not.parquet": (b"PAR1 nothing", "Parquet"),
    "scalar.json": (b'"just a string"', "JSON object"),
    "cut.json": (b'[{"text": "a"}, {"text": "b', "not JSON"),
    "broken.jsonl": (b"{text: 1}\n", "not JSON"),
    "numbers.jsonl": (b'{"a": 1}\n', "columns are a"),
    "notes.ann": (b"T1\tX 0 1\ta\n", "brat"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_get_one_clear_error(name: str, tmp_path: Path) -> None:
    content, word = BAD_FILES[name]
    path = write(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        texts(path)
    message = str(caught.value)
    assert word in message
    assert name in message
    assert "\n" not in message
    assert message.endswith(".")


def test_a_wrong_encoding_says_where_and_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "latin.txt", "A line.\nUn café.\nUn été.\n".encode("latin-1"))
    with pytest.raises(ReadError, match=r"latin.txt line 2: byte 0xe9 .* cp1252") as caught:
        texts(path)
    assert caught.value.line == 2
    assert texts(path, encoding="cp1252")[0] == ["A line.", "Un café.", "Un été."]
    wrong = write(tmp_path / "wrong.txt", b"One.\nTwo.\nThree \x81.\n")
    with pytest.raises(ReadError, match=r"line 3: .* not cp1252"):
        texts(wrong, encoding="cp1252")
    for name in ("klingon", "rot13", "zlib"):
        with pytest.raises(ConfigError, match=name):
            texts(path, encoding=name)


@pytest.mark.parametrize(
    "encoding",
    ["cp1252", "latin-1", "cp1251", "koi8-r", "gbk", "shift_jis", "utf-16-le", "utf-8"],
)
def test_files_in_utf_8_are_read_as_utf_8_whatever_encoding_the_others_have(tmp_path: Path, encoding: str) -> None:
    known = {"cp1251": "Привет", "koi8-r": "Привет", "gbk": "租金每月支付一次", "shift_jis": "家賃は毎月支払う"}
    own = known.get(encoding, "Miete für März")
    others = ["A line.", f"One – dash{', 租金每月支付一次。租金' if encoding in ('gbk', 'shift_jis') else ''}."]
    write(tmp_path / "all" / "a.txt", "\n".join(others).encode())
    write(tmp_path / "all" / "b.txt", f"{own} one.\n{own} two.\n".encode(encoding))
    write(tmp_path / "all" / "c.txt", b"\xef\xbb\xbfPlain.\n")
    write(tmp_path / "all" / "d.txt", "März.\n".encode("utf-16"))
    late = f"{'x' * 99}\n" * 6000
    write(tmp_path / "all" / "e.txt", f"{late}Späte Zeile, 租金每月支付一次。租金.\n".encode())
    found = texts(tmp_path / "all", encoding=encoding)[0]
    assert found[:-6001] == [*others, f"{own} one.", f"{own} two.", "Plain.", "März."]
    assert found[-1] == "Späte Zeile, 租金每月支付一次。租金."


@pytest.mark.parametrize(("both", "encoding"), [("一些", "gbk"), ("THE CAFÉ’S LEASE", "cp1252")])
def test_text_whose_bytes_are_valid_utf_8_too_stays_in_the_requested_encoding(
    tmp_path: Path, both: str, encoding: str
) -> None:
    assert both.encode(encoding).decode("utf-8") != both
    assert texts(write(tmp_path / "a.txt", f"{both}\n".encode(encoding)), encoding=encoding)[0] == [both]


def test_bad_lines_are_left_out_and_too_many_stop_the_import(tmp_path: Path) -> None:
    lines = [f"Line {i}.".encode() for i in range(500)]
    lines[122] = b"caf\xe9"
    lines[300] = b"a \0 in it" * 2
    path = write(tmp_path / "a.txt", b"Head.\n" * 2000 + b"\n".join(lines))
    found, report = texts(path)
    assert len(found) == 2498
    assert [(p.line, p.kind) for p in report.problems] == [(2123, "rejected"), (2301, "rejected")]
    assert "0xe9" in report.problems[0].reason
    path, report = write(tmp_path / "b.txt", b"caf\xe9\n" * 100_000), ReadReport()
    with pytest.raises(ReadError, match=r"line 1: .*100 such lines"):
        list(read(path, report=report))
    assert report.read == 100


@pytest.mark.parametrize(
    ("name", "first", "last", "megabytes"),
    [
        ("a.txt", "First.\n", "Last.\n", 200),
        ("a.jsonl", '{"text": "First."}\n', '{"text": "Last."}\n', 50),
        ("a.csv", "n,text\n1,First.\n", "2,Last.\n", 50),
        ("a.conll", "First.\tO\n\n", "\nLast.\tO\n", 50),
    ],
)
def test_a_huge_line_is_rejected_without_being_held_in_memory(
    name: str, first: str, last: str, megabytes: int, tmp_path: Path
) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(first.encode())
        for _ in range(megabytes):
            file.write(b"long " * 200_000)
        file.write(b"\n" + last.encode())
    tracemalloc.start()
    try:
        found, report = texts(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == ["First.", "Last."]
    assert [(p.line, p.kind) for p in report.problems] == [(first.count("\n") + 1, "rejected")]
    assert "000 bytes" in report.problems[0].reason
    assert peak < 30e6


@pytest.mark.parametrize("pack", [gzip.compress, zst], ids=["gz", "zst"])
def test_a_compression_bomb_is_refused(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "BOMB_BYTES", 1 << 20)
    bomb = write(tmp_path / "bomb.txt.gz", pack((b"word " * 1000 + b"\n") * 2000))
    with pytest.raises(ReadError, match="more than 200 times its size"):
        texts(bomb)
    fine = write(tmp_path / "fine.txt.gz", pack(b"".join(b"%d words of it.\n" % (i * 7919) for i in range(90_000))))
    assert len(texts(fine)[0]) == 90_000


def test_rejected_rows_are_written_to_the_reject_file(tmp_path: Path) -> None:
    good = '{"text": "Fine."}\n'
    bad = ['{"text": "broken\n', "[1]\n", '{"text": "half \\ud800 pair"}\n', '{"text": 7}\n', '{"no": 1}\n']
    rows = good + "".join(each + good for each in [*bad, "[" * 100_000 + "\n"])
    path = write(tmp_path / "a.jsonl", rows + '{"text": ""}\n{"text": null}\n')
    rejects = tmp_path / "out" / "rejects.jsonl"
    report = ReadReport()
    assert [s.text for s in read(path, report=report, rejects=rejects)] == ["Fine."] * 7
    left_out = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [row["line"] for row in left_out] == [2, 4, 6, 8, 10, 12]
    assert left_out[0]["raw"] == bad[0]
    second = {"file": "a.jsonl", "line": 4, "kind": "rejected", "raw": "[1]\n"}
    assert left_out[1] == {**second, "reason": 'expected a JSON object in braces; name its fields, as in {"text": ...}'}
    assert left_out[0]["reason"].endswith("; write one whole JSON object per line")
    assert [row["reason"].partition("; ")[2] for row in left_out[2:5]] == [
        "remove it",
        "write a text there",
        "add it, or choose another text column",
    ]
    assert len(left_out[5]["raw"]) <= 10_000
    assert (report.read, report.kept, report.rejected, report.empty) == (13, 7, 6, 2)
    assert not any("Fine" in str(problem) for problem in report.problems)


def test_bad_rows_of_a_table_do_not_affect_others(tmp_path: Path) -> None:
    rows = (
        '1,fine one\n2,"over\ntwo lines"\n3,too,many\n4\n5,"never closed\n6,fine six\n7,5" pipe is fine\n,\n8,"x""y"\n'
    )
    path = write(tmp_path / "a.csv", f"n,text\n{rows}")
    found, report = texts(path)
    assert found == ["fine one", "over two lines", "fine six", '5" pipe is fine', 'x"y']
    unclosed = "a quoted cell has no closing quote before a separator or a line's end; add the quote"
    quote = "put quotes around a cell that contains the separator, and double the quotes inside it"
    assert [(p.line, p.reason) for p in report.problems] == [
        (5, f"3 columns, but the header has 2; {quote}"),
        (6, f"1 column, but the header has 2; {quote}"),
        (7, unclosed),
    ]
    assert report.empty == 1
    with pytest.raises(ReadError, match="3 columns, but the header has 2"):  # not a single row is valid
        texts(write(tmp_path / "b.csv", "n,text\n" + "1,2,3\n" * 3))


def sealed(path: Path, folder: Path, options: ReadOptions, *, storing: bool) -> tuple[bytes | str, ReadReport, str]:
    """Return the stored bytes of a file's corpus or the error of its import, the report, and the reject file."""
    report, rejects, stored = ReadReport(), folder / "rejects.jsonl", folder / "a.parquet"
    folder.mkdir()
    sentences = read(path, options, report=report, rejects=rejects, storing=storing)
    try:
        written = write_sentences(stored, sentences, False, 1024)
    except ReadError as error:
        return str(error), report, rejects.read_text()
    return f"{written}".encode() + stored.read_bytes(), report, rejects.read_text() if rejects.exists() else ""


def both(
    path: Path, folder: Path, options: ReadOptions, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[bytes | str, ReadReport, str]]:
    """Return what `sealed` returns if one process reads a file, and if several processes do."""
    alone = sealed(path, folder / "alone", options, storing=False)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    monkeypatch.setattr(in_parts, "PAYS", 1)
    monkeypatch.setattr(in_parts, "_BATCH", 4096)
    monkeypatch.setattr(one_file, "from_text", Mock(side_effect=AssertionError("read in this process")))
    return [alone, sealed(path, folder / "together", options, storing=True)]


@pytest.mark.parametrize(("split", "n_bad"), [(False, 3), (True, 3), (False, 400)])
def test_several_processes_read_the_same_text_with_the_same_account(
    split: bool, n_bad: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"The rent of flat {i} is due. It is {i} EUR in M\u00fcnchen.".encode() for i in range(3000)]
    for i in range(n_bad):
        rows[500 + 3 * i : 502 + 3 * i] = [b"caf\xe9 " + bytes([48 + i % 10]), b""]
    rows[7], rows[1601], rows[2999] = b"a\0b", b"x" * 1_000_001, b"  "
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"\n".join(rows)))
    alone, together = both(path, tmp_path, ReadOptions(split=split, format="txt"), monkeypatch)
    assert together == alone
    assert alone[1].rejected == (5 if n_bad == 3 else 101)
    assert isinstance(alone[0], bytes if n_bad == 3 else str)


def damaged_json(n_bad: int, n: int) -> bytes:
    """Return lines of JSON: `n` rows, four rejected ones, an empty one, and `n_bad` in another encoding."""
    facts = [
        {"text": f"Flat {i} is let. It has {i} rooms.", "doc": f"d{i // 9}", "year": 1990 + i % 9} for i in range(n)
    ]
    rows = [json.dumps(fact).encode() for fact in facts]
    rows[300:300] = [b'{"text": "caf\xe9"}'] * n_bad
    rows[250:250] = [b"{no json", b'{"text": 7}', b'{"doc": "d"}', b'{"text": ""}', b" "]
    return b"\n".join([*rows, json.dumps({"text": "x" * 1_000_001}).encode()])


def damaged_csv(n_bad: int, n: int) -> bytes:
    """Return a table of `n` rows, some of two lines, four rejected ones, and `n_bad` in another encoding."""
    rows = [f'"Flat {i}, ""A"", is let.\nIt has {i} rooms.",d{i // 9},{1990 + i % 9}'.encode() for i in range(n)]
    rows[300:300] = [b'"caf\xe9",a,1'] * n_bad
    rows[250:250] = [b"one,two", b'"never closed,a,1', b'"broken" here,a,1', b",a,1", b"", b"y" * 1_000_001]
    return b"\n".join([b"text,doc,year", *rows, b'"open at the end,a,1'])


@pytest.mark.parametrize(("end", "n_bad"), [("", 2), ("", 400), ("cut off", 2)])
@pytest.mark.parametrize(("content", "line"), [(damaged_json, 252), (damaged_csv, 502)])
def test_several_processes_read_the_same_table_with_the_same_account(
    content: Callable[[int, int], bytes],
    line: int,
    end: str,
    n_bad: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = gzip.compress(content(n_bad, 9000 if end else 1000))
    path = tmp_path / ("a.jsonl.gz" if content is damaged_json else "a.csv.gz")
    path.write_bytes(whole[: len(whole) * 3 // 4] if end else whole)
    alone, together = both(path, tmp_path, ReadOptions(split=True, doc_column="doc"), monkeypatch)
    assert together == alone
    assert isinstance(alone[0], bytes if n_bad == 2 and not end else str)
    assert alone[1].rejected >= 4
    assert f'"line": {line}' in alone[2]
    if n_bad == 2 and not end:
        assert (alone[1].kept, alone[1].sentences, alone[1].empty) == (1000, 2000, 1)


def test_several_processes_read_the_same_rows_of_a_table_without_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.tsv", "".join(f"{i}\tThe rent of flat {i} is due today.\n" for i in range(500)))
    alone, together = both(path, tmp_path, ReadOptions(), monkeypatch)
    assert together == alone
    assert alone[1].kept == 500


def test_several_processes_read_the_same_parquet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"The rent of flat {i} is due." for i in range(3000)]
    texts[7:9] = ["", "x" * 1_000_001]
    days = [date(2020, 1, 1 + i % 9) for i in range(3000)]
    table = pa.table({"text": [*texts[:20], None, *texts[21:]], "doc": [i // 9 for i in range(3000)], "day": days})
    pq.write_table(table, tmp_path / "a.parquet")
    alone, together = both(tmp_path / "a.parquet", tmp_path, ReadOptions(), monkeypatch)
    assert together == alone
    assert (alone[1].kept, alone[1].empty, alone[1].rejected) == (2997, 2, 1)


def test_a_json_array_on_one_line_is_read_in_pieces(tmp_path: Path) -> None:
    rows = [{"text": f"Row {i} of a long file, {'x' * 90}."} for i in range(20_000)]
    path = write(tmp_path / "a.json", json.dumps(rows))
    found, _ = texts(path)
    assert found == [row["text"] for row in rows]
    with pytest.raises(ReadError, match="line 1"):
        texts(write(tmp_path / "b.json", json.dumps(rows)[:-1000]))


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz"])
@pytest.mark.parametrize(
    "content", ['[{"text": "One."},\n {"text": "Two."}]\n', '\n[\n{"text": "One."}]\n[{"text": "Two."}]\n']
)
def test_a_json_array_is_read_under_any_extension(name: str, content: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, gzip.compress(content.encode()) if name.endswith("gz") else content)
    assert texts(path)[0] == ["One.", "Two."]


def test_errors_in_a_json_array_name_their_line(tmp_path: Path) -> None:
    _, report = texts(write(tmp_path / "a.jsonl", '[{"text": "One."},\n7,\n{"text": "Two."}]\n'))
    assert [(p.line, p.reason) for p in report.problems] == [
        (2, 'expected a JSON object in braces; name its fields, as in {"text": ...}')
    ]
    wrong = (("{text: 1}]", "line 2: not JSON"), ("", "line 2: .* cut off"), ("]\n and more", "line 3: more"))
    for ending, words in wrong:
        with pytest.raises(ReadError, match=words):
            texts(write(tmp_path / "a.jsonl", '[{"text": "One."},\n' + ending))
    found, report = texts(write(tmp_path / "b.jsonl", '["One."]\n{"text": "Two."}\n'))  # JSON Lines, not one array
    assert (found, [p.line for p in report.problems]) == (["Two."], [1])


def test_sniff_lists_problems_of_the_first_rows(tmp_path: Path) -> None:
    look = sniff(write(tmp_path / "a.txt", "One.\nUn café.\n".encode("latin-1")))
    assert [(p.file, p.line) for p in look.problems] == [("a.txt", 2)]
    assert look.n_undecodable == 1
    with pytest.raises(EncodingError, match=r"line 2: byte 0xe9 .* give its encoding"):
        sniff(write(tmp_path / "a.csv", "n,text\n1,Un café.\n".encode("latin-1")))


def test_reading_reports_progress_and_can_be_cancelled(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "A line of text.\n" * 40_000)
    seen: list[tuple[int, int]] = []
    list(read(path, progress=lambda done, total: seen.append((done, total))))
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1] == (640_000, 640_000)

    def stop() -> None:
        raise Cancelled("asked to")

    with pytest.raises(Cancelled):
        list(read(path, check=stop))


@pytest.mark.real
@pytest.mark.parametrize(("name", "n"), [("wikitext2-valid", 7086), ("wikipedia-people", 22422)])
def test_real_corpora_are_read_whole(name: str, n: int, real_data: Path) -> None:
    found, report = texts(real_data / "unlabeled" / f"{name}.txt.gz")
    assert (len(found), report.rejected, report.format) == (n, 0, "txt")
