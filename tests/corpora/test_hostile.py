"""Hostile input: reading takes linear time and bounded memory, and every refusal is one clear sentence."""

import json
import resource
import time
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpora.formats import sentences as module
from core.corpora.formats.ledger import Ledger
from core.corpora.formats.sentences import Span
from core.corpora.readers import ReadOptions, ReadReport, read, sniff
from core.errors import ConfigError, ReadError, ResourceError
from core.projects import runs
from core.text.words import clean, nfc
from tests import hostile
from tests.conftest import entities_of
from tests.corpora.reading import load

Result = TypeVar("Result")
OPTIONS = ReadOptions()


def in_time(work: Callable[[], Result], seconds: float = 5.0) -> Result:
    """Return the result of `work`. The limit is far above the time of linear work, and far below that of quadratic work."""
    began = time.process_time()
    result = work()
    assert time.process_time() - began < seconds
    return result


@pytest.mark.parametrize("split", [False, pytest.param(True, marks=pytest.mark.full)])
def test_sixty_thousand_spans_on_a_line_are_read_in_time(tmp_path: Path, split: bool) -> None:
    path, options = hostile.many_spans(tmp_path), ReadOptions(split=split)
    (sentence,) = in_time(lambda: list(read(path, options)))
    assert len(entities_of(sentence)) == 60_000


NESTED = [[i, 40_000 - i, "X"] for i in range(15_000)]
QUOTED = [{"start": i, "end": i + 1, "label": "X", "text": "b"} for i in range(1, 20_000, 2)]  # none fits
DECOMPOSED = [[4 * i, 4 * i + 3, "X"] for i in range(20_000)]


@pytest.mark.parametrize(
    ("row", "kept", "rejected"),
    [
        ({"text": "a " * 20_000, "label": NESTED}, 1, 14_999),
        ({"text": "a " * 40_000, "spans": QUOTED}, 0, 10_000),
        ({"text": "e\u0301a " * 20_000, "label": DECOMPOSED}, 20_000, 0),
    ],
    ids=["nested", "quoted", "decomposed"],
)
def test_thousands_of_difficult_spans_are_read_in_time(
    tmp_path: Path, row: dict[str, object], kept: int, rejected: int
) -> None:
    path, report = tmp_path / "rows.jsonl", ReadReport()
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (sentence,) = in_time(lambda: list(read(path, ReadOptions(keep_lost=True), report=report)))
    assert (len(entities_of(sentence)), report.rejected_spans) == (kept, rejected)
    assert rejected or {sentence.tokens[e.start] for e in entities_of(sentence)} == {"\u00e9a"}


COMPOSING = st.sampled_from("ae\u0301\u0323 \u0308o\u1100\u1161\u11a8\u0bc6\u0bbe\u0c46\u0cd5x")


@settings(max_examples=300, deadline=None)
@given(text=st.text(COMPOSING, min_size=1, max_size=25), data=st.data())
def test_spans_follow_their_characters_through_nfc(text: str, data: st.DataObject) -> None:
    """The definition of a new offset, `len(NFC(text[:at]))`, takes quadratic time."""
    at = data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6).map(sorted))
    spans = [Span(a, b, "X") for a, b in pairwise(at) if a < b]
    composed, moved, _ = module._composed(text, spans, 1, Ledger(OPTIONS))
    if unicodedata.is_normalized("NFC", text):
        assert (composed, moved) == (text, spans)
        return
    assert composed == unicodedata.normalize("NFC", text)
    slow = [
        (len(unicodedata.normalize("NFC", text[: s.start])), len(unicodedata.normalize("NFC", text[: s.end])))
        for s in spans
    ]
    assert [(s.start, s.end) for s in moved] == [(a, b) for a, b in slow if composed[a:b].strip()]


def test_a_megabyte_of_combining_marks_is_normalised_in_time() -> None:
    text = "a" + "\u0301\u0323" * 200_000
    composed = in_time(lambda: clean(text))
    assert composed.startswith("\u1ea1")
    assert nfc("a" + "\u0301\u0323" * 10) == unicodedata.normalize("NFC", "a" + "\u0301\u0323" * 10)
    long = "o\u0308 e\u0301 " * 1_000
    assert nfc(long) == unicodedata.normalize("NFC", long)


def test_a_data_card_with_exponential_yaml_aliases_is_refused_in_time(tmp_path: Path) -> None:
    folder = hostile.yaml_aliases(tmp_path)
    with pytest.raises(ReadError, match="its tags are numbers without names"):
        in_time(lambda: sniff(folder))


@pytest.mark.parametrize(
    "metadata",
    [
        *(b"\xff\xfe", b"{", b"[" * 100_000, b'{"features": {"ner_tags": {"names": {"x": 1}}}}'),
        *(b'{"a":' * 700 + b"1" + b"}" * 700, b'{"ner_tags":' + b'{"a":' * 700 + b"1" + b"}" * 701),
    ],
)
def test_invalid_parquet_metadata_is_refused(tmp_path: Path, metadata: bytes) -> None:
    table = pa.table({"tokens": [["a", "b"]], "ner_tags": [[0, 1]]}).replace_schema_metadata({b"huggingface": metadata})
    pq.write_table(table, tmp_path / "train.parquet")
    with pytest.raises(ReadError):
        load(tmp_path / "train.parquet")


@pytest.mark.parametrize("value", hostile.FORGED)
def test_a_forged_arrow_file_is_refused_before_it_is_used(tmp_path: Path, value: int) -> None:
    """Negative or falling offsets, and those beyond the buffer, crash the process or expose its memory."""
    path = hostile.forged(tmp_path, value)
    for work in (lambda: sniff(path), lambda: load(path)):
        with pytest.raises(ReadError, match="not a readable Parquet or Arrow file"):
            work()


def test_a_forged_length_does_not_allocate_gigabytes(tmp_path: Path) -> None:
    """An Arrow stream begins with the length of its first message. Arrow reads any file named .arrow in this way."""
    path = tmp_path / "forged.arrow"
    path.write_bytes(b"\xff\xff\xff\xff" + (1_800_000_000).to_bytes(4, "little") + b"id,doc,text" * 20)
    usual = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + (1 << 30), usual[1]))
    try:
        with pytest.raises(ReadError, match="not a readable Parquet or Arrow file"):
            load(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


@pytest.mark.parametrize("spoilt", [b"Zo\xc3", b"te\xc3t"])
def test_a_parquet_file_whose_texts_or_names_are_not_utf8_is_refused(tmp_path: Path, spoilt: bytes) -> None:
    path = tmp_path / "bytes.parquet"
    pq.write_table(pa.table({"text": ["Zoe pays ."]}), path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"Zoe" if spoilt[:1] == b"Z" else b"text", spoilt))
    for work in (lambda: sniff(path), lambda: load(path)):
        with pytest.raises(ReadError, match="not a readable Parquet or Arrow file"):
            work()


def test_a_parquet_footer_with_a_wrong_number_of_rows_is_refused(tmp_path: Path) -> None:
    path = numbered(tmp_path)
    forged = path.read_bytes()
    at = forged.index(b"\x16\xd8\x04", len(forged) - 4 - int.from_bytes(forged[-8:-4], "little"))  # the number 300
    path.write_bytes(forged[:at] + b"\x16\xd6\x04" + forged[at + 3 :])  # 299
    with pytest.raises(ReadError, match=r"has 300 readable rows, but its footer declares 299"):
        load(path)


def test_false_parquet_statistics_lose_no_row(tmp_path: Path) -> None:
    """The forged statistics name a wrong smallest and largest text, from which a reader may skip rows."""
    path = numbered(tmp_path)
    honest = path.read_bytes()
    split = len(honest) - 8 - int.from_bytes(honest[-8:-4], "little")
    lying = honest[split:].replace(b"Clause 0 pays", b"zzzzzz 0 pays").replace(b"Clause 99 pays", b"AAAAAA 99 pays")
    assert lying != honest[split:]
    path.write_bytes(honest[:split] + lying)
    assert len(load(path)[0]) == 300


def numbered(folder: Path) -> Path:
    path = folder / "numbered.parquet"
    pq.write_table(pa.table({"text": [f"Clause {number} pays ." for number in range(300)]}), path)
    return path


def test_an_import_survives_a_file_that_crashes_its_reader(tmp_path: Path, home: Path) -> None:
    path = hostile.aborting(tmp_path)
    message = r"process that read it crashed.*save it as CSV|not a readable Parquet"
    with pytest.raises((ResourceError, ReadError), match=message):
        runs.execute("add", {"path": str(path)})
    assert not list(home.glob("corpora/*"))


def test_errors_that_quote_huge_names_stay_short(tmp_path: Path) -> None:
    """Errors quote columns, tags and words of a row, which may be huge."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"x" * 70_000: 1}) + "\n", encoding="utf-8")
    (tmp_path / "a.conll").write_text(f"Acme\tB-{'x' * 70_000}\nLtd.\tI-{'y' * 70_000}\n\n", encoding="utf-8")
    with pytest.raises(ReadError, match="no column has text") as raised:
        load(tmp_path / "a.jsonl")
    assert len(str(raised.value)) < 1_000
    assert str(raised.value).endswith("Choose the text column.")
    report = ReadReport()
    assert list(read(tmp_path / "a.conll", ReadOptions(scheme="iob2"), report=report))
    assert max(len(problem.reason) for problem in report.problems) < 1_000


@pytest.mark.parametrize("encoding", ["idna", "punycode", "unicode_escape", "undefined", "hex"])
def test_codecs_that_are_not_file_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("Zo\u00eb .\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="is not known"):
        sniff(tmp_path / "a.txt", ReadOptions(encoding=encoding))


def test_a_parquet_dictionary_bomb_is_rejected_row_by_row(tmp_path: Path) -> None:
    """The file has 2 KB, and 20 GB if each row held its own copy. The rows are rejected because they are too long."""
    path = hostile.dictionary_bomb(tmp_path)
    assert path.stat().st_size < 10_000
    found, report = load(path)
    assert [sentence.text for sentence in found] == ["a short one"]
    assert report.rejected == 1_000


def test_rows_of_one_stored_text_are_rejected_without_a_copy_each(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    rows = pa.array([0] * 500 + [1, 1], pa.int32())
    texts = pa.DictionaryArray.from_arrays(rows, pa.array(["y" * 2_000_000, "a short one"]))
    pq.write_table(pa.table({"text": texts}), path, compression="none")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, report = load(path)
    assert [sentence.text for sentence in found] == ["a short one"] * 2
    assert report.rejected == 500
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KB; a copy per row would take 1 GB


def test_a_parquet_page_that_unpacks_to_200_mb_is_refused(tmp_path: Path) -> None:
    path = hostile.page_bomb(tmp_path)
    with pytest.raises(ReadError, match="as a zip bomb does"):
        sniff(path)


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.full)])
def test_millions_of_empty_lines_are_refused_in_time(tmp_path: Path, packed: bool) -> None:
    path = hostile.empty_lines(tmp_path)
    if not packed:
        path = tmp_path / "lines.txt"
        path.write_bytes(b"a\n" + b" \n" * 30_000_000)
    with pytest.raises(ReadError, match="2 MB of empty lines"):
        in_time(lambda: sniff(path))
    with pytest.raises(ReadError, match="2 MB of empty lines"):
        in_time(lambda: list(read(path)))


def test_a_million_empty_lines_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "gap.txt").write_bytes(b"a line .\n" + b"\n" * 1_000_000 + b"another .\n")
    assert [row.text for row in load(tmp_path / "gap.txt")[0]] == ["a line .", "another ."]
