"""Exports: five columns in every format, no formulas for spreadsheets, and complete files or none."""

import csv
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from core.corpora.readers import read
from core.corpora.writers import Row, further_names, harmless, write_card, write_conll, write_selection
from core.errors import ConfigError, CorpusError, PathError
from core.importing import view as corpora
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean
from tests.corpora.test_further_columns import added, lines

TEXTS = ["=1+1|cmd", "+1", "-1", "@SUM(A1)", "＝1", 'She said "no", twice.', "Él vino.", "Plain."]
ROWS: list[Row] = [
    {"id": sentence_id(text), "text": text, "row": 10 * i, "score": float("nan") if i == 7 else -0.5 * i, "rank": i + 1}
    for i, text in enumerate(TEXTS)
]


def expected() -> list[dict[str, object]]:
    return [{**row, "score": None if row["score"] != row["score"] else row["score"]} for row in ROWS]


def test_every_export_format_has_every_row(tmp_path: Path) -> None:
    for ending in ("txt", "jsonl", "parquet", "csv"):
        path = tmp_path / "deep" / f"s.{ending}"
        assert write_selection(iter(ROWS), path) == len(ROWS)
        assert [s.text for s in read(path)] == TEXTS
    folder = tmp_path / "deep"
    assert [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()] == expected()
    assert pq.read_table(folder / "s.parquet").to_pylist() == expected()
    assert sorted(os.listdir(folder)) == ["s.csv", "s.jsonl", "s.parquet", "s.txt"]
    many = (Row(id=f"{i:016x}", text=f"Row {i}.", row=i, score=1.0, rank=i + 1) for i in range(20_000))
    assert write_selection(many, tmp_path / "m.parquet") == 20_000
    assert pq.ParquetFile(tmp_path / "m.parquet").num_row_groups == 3  # streamed in blocks


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "s.txt"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_selection(ROWS, pipe)
    assert pipe.is_fifo()
    assert os.read(reader, 10_000).decode().splitlines() == TEXTS
    os.close(reader)


def test_further_columns_files_and_pages_are_exported(tmp_path: Path) -> None:
    names = further_names(["source", "score", "=year"])
    assert names == {"source": "source", "score": "column_score", "=year": "=year"}
    rows: list[Row] = [{**ROWS[-2], "more": {"source": "legal", "column_score": "7"}}, {**ROWS[-2]}]
    for ending in ("jsonl", "parquet", "csv", "txt"):
        write_selection(rows, tmp_path / f"s.{ending}", more=tuple(names.values()))
    written = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert [(row["source"], row["column_score"], row["=year"]) for row in written] == [
        ("legal", "7", None),
        (None, None, None),
    ]
    assert [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()] == written
    head = (tmp_path / "s.csv").read_text(encoding="utf-8-sig").splitlines()[0]
    assert head == "id,text,row,score,rank,source,column_score,'=year"
    write_selection(
        [{**ROWS[-2], "more": {"tags": "a", "selected": "b"}}], tmp_path / "t.parquet", more=("tags", "selected")
    )
    [row] = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert (row["tags"], row["selected"]) == (
        "a",
        "b",
    )  # text, although other exports have such columns of another type
    placed: list[Row] = [{**ROWS[-1], "score": 1.0, "file": "in/=a.pdf", "page": 3}, {**ROWS[-1], "score": 1.0}]
    for ending in ("jsonl", "parquet", "csv", "txt"):
        write_selection(placed, tmp_path / f"s.{ending}", kept=("file", "page"))
    written = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert [(row["file"], row["page"]) for row in written] == [("in/=a.pdf", 3), (None, None)]
    assert [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()] == written
    assert (tmp_path / "s.csv").read_text(encoding="utf-8-sig").splitlines()[0] == "id,text,row,score,rank,file,page"


def test_no_formula_survives_in_a_csv(tmp_path: Path) -> None:
    write_selection(ROWS, tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == ["'" + text if text[0] in "=+-@＝" else text for text in TEXTS]
    assert [row["score"] for row in rows][:2] == ["-0.0", "-0.5"]
    assert rows[7]["score"] == ""


@pytest.mark.parametrize("text", ["He paid ;=1+1; and left", "x; +cmd", "a;\t@b", 'a;"=1";b', "=1", "；no"])
def test_no_cell_is_a_formula_if_semicolons_separate_cells(text: str) -> None:
    cells = next(csv.reader([str(harmless(text))], delimiter=";"))
    assert not any(cell.strip().startswith(("=", "+", "-", "@")) for cell in cells)
    assert harmless("a; b; c - d") == "a; b; c - d"


def test_an_export_of_an_imported_export_keeps_every_column(home: Path, tmp_path: Path) -> None:
    path = lines(tmp_path / "rows.jsonl", [{"text": f"Row {i} .", "id": i} for i in range(3)])
    for number in range(2):
        corpus = added(path)
        path = tmp_path / f"export-{number}.jsonl"
        corpora.export(corpus.fingerprint, path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    ids = [sentence_id(f"Row {i} .") for i in range(3)]
    assert [list(row.values()) for row in rows] == [[mark, f"Row {i} .", str(i), mark] for i, mark in enumerate(ids)]
    assert further_names(["column_id", "id"]) == {"column_id": "column_id", "id": "column_column_id"}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_imported_export_has_the_same_texts_and_values(ending: str, home: Path, tmp_path: Path) -> None:
    asked = "Who has signed the old lease?"
    texts = ("- The lessee pays; + 5% rent.", "'Rent' is due.", 'The deposit; -- two;"+1" rents.')
    before = added(lines(tmp_path / "rows.jsonl", [{"text": text, "-client": "-", asked: "=Ann"} for text in texts]))
    corpora.export(before.fingerprint, tmp_path / f"out.{ending}")
    after = added(tmp_path / f"out.{ending}")
    assert [each.text for batch in after.batches() for each in batch] == list(texts)
    assert corpora.filter_values(after).keys() == {"id"}  # the other columns have one value
    assert int(corpora.matching(after, {"-client": ["-"], asked: ["=Ann"]}).sum()) == len(texts)
    if ending == "csv":  # a file of another program keeps its quotes
        (tmp_path / "other.csv").write_text("id,text\n1,'- The lessee pays the rent.\n", encoding="utf-8")
        assert [each.text for each in read(tmp_path / "other.csv")] == ["'- The lessee pays the rent."]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_an_imported_export_of_labels_keeps_the_text(ending: str, home: Path, tmp_path: Path) -> None:
    text = "Lessee (Acme Corp.) pays, in full; 5% =  more."
    corpus = added(lines(tmp_path / "rows.jsonl", [{"text": text, "label": [[8, 17, "PARTY"]]}]))
    corpora.export(corpus.fingerprint, tmp_path / f"out.{ending}")
    before, after = (next(each.batches())[0] for each in (corpus, added(tmp_path / f"out.{ending}")))
    assert (after.id, after.text, after.tokens, after.entities) == (
        before.id,
        before.text,
        before.tokens,
        before.entities,
    )
    assert before.text == clean(text)


@pytest.mark.parametrize("text", ["Ann owes", "A nnowes Bob", "AnnowesBob!", "Ann  owes Bob of Rome", ""])
def test_a_text_that_is_not_the_tokens_is_not_stored(text: str, tmp_path: Path) -> None:
    row = {"text": text, "tokens": ["Ann", "owes", "Bob"], "ner_tags": ["S-PER", "O", "S-PER"]}
    [sentence] = read(lines(tmp_path / "rows.jsonl", [row]))
    assert sentence.text == "Ann owes Bob"


def test_a_failed_export_leaves_nothing_and_keeps_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="not labelled"):
        write_conll([Sentence(id="0" * 16, tokens=("a",), text="a")], tmp_path / "a.conll")
    broken: Row = {"id": "x"}  # type: ignore[typeddict-item]  # has no text
    (tmp_path / "s.jsonl").write_text("old")
    for ending in ("txt", "jsonl", "parquet", "csv"):
        with pytest.raises(KeyError):
            write_selection([ROWS[0], broken], tmp_path / f"s.{ending}")
    assert os.listdir(tmp_path) == ["s.jsonl"]
    assert (tmp_path / "s.jsonl").read_text() == "old"
    with pytest.raises(ConfigError, match=r"\.xlsx"):
        write_selection(ROWS, tmp_path / "s.xlsx")
    with pytest.raises(ConfigError, match="names a folder"):
        write_selection(ROWS, tmp_path / "S_C-20.2pct")
    with pytest.raises(PathError, match="cannot be written"):
        write_selection(ROWS, tmp_path / "s.jsonl" / "below.txt")


def test_a_token_that_begins_like_a_document_is_read_again(tmp_path: Path) -> None:
    tokens = ("-DOCSTART-X", "pays", "-DOCSTART--X-")
    text = " ".join(tokens)
    written = [Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=(Entity(start=0, end=1, type="PER"),))]
    write_conll(written * 2, tmp_path / "a.conll")
    assert [(one.tokens, one.entities) for one in read(tmp_path / "a.conll")] == [(tokens, written[0].entities)] * 2


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "txt"])
def test_an_exported_folder_opens_in_datasets(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "S_C"
    rows = [Row({**row, "score": 1.5}) for row in ROWS]
    write_selection(rows, folder / f"my s: #1.{ending}")
    write_selection(rows[:1], folder / "other.jsonl")
    about = {"strategy": "cos-mlm", "seed": 1, "note": "a | b <i>\n---\nc", "types": {"PER": 3}}
    write_card(folder, data_file=f"my s: #1.{ending}", title="S_C: ---", about=about)
    data = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert [text.removeprefix("'") for text in data["text"]] == TEXTS
    if ending != "txt":
        assert data.column_names == ["id", "text", "row", "score", "rank"]
        assert data["row"][:] == [row["row"] for row in rows]
    assert r"| note | a \| b &lt;i> --- c |" in (folder / "README.md").read_text(encoding="utf-8")
