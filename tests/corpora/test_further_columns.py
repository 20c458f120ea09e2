"""Further columns of rows: which ones each file format keeps, and how they change a corpus."""

import csv
import itertools
import json
import random
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpora import columns
from core.corpora.columns import column_names, distinct_values, matches, value_names, values
from core.corpora.corpus import Corpus
from core.corpora.formats.detect import MOST_KEPT, kind_of
from core.corpora.formats.ledger import ReadOptions
from core.corpora.library import Library
from core.errors import ConfigError
from core.importing import view as corpora
from core.importing.result import SplitResult
from core.projects import runs
from core.results import IntArray
from core.runs.result import read as read_result
from core.shown_command import filter_command
from tests.conftest import Command

ROWS: Sequence[Mapping[str, object]] = (
    {"text": "The court dismissed the appeal .", "year": 1999, "court": "Hamburg"},
    {"text": "The appeal was allowed .", "year": 2004, "court": "Ulm"},
    {"text": "Costs were reserved .", "year": None, "court": "Ulm"},
)
WORDS = ["the", "Theft", "and", "and_so", "Über", "über3", "a", "of", "x-ray", "goods,", "合同", "合同法", "."]
TEXTS = [" ".join(random.Random(i).choices(WORDS, k=6)) for i in range(300)]


def added(path: Path, **options: object) -> Corpus:
    return corpora.find(str(runs.execute("add", {"path": str(path), **options}).result()["corpus"]))


def lost(path: Path) -> list[str]:
    """Return the notes on the columns of a file."""
    return list(kind_of(path, ReadOptions()).notes())


def lines(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def table(path: Path) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist([*ROWS]), path)
    return path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv", "rows.tsv", "rows.parquet"])
def test_every_row_format_keeps_further_columns(home: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".json"):
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    else:
        {"jsonl": lambda path: lines(path, ROWS), "parquet": parquet}.get(name.partition(".")[2], table)(path)
    corpus = added(path)
    assert value_names(corpus) == ["court", "year"]
    assert values(corpus, "court").to_pylist() == ["Hamburg", "Ulm", "Ulm"]
    assert values(corpus, "year").to_pylist() == ["1999", "2004", None]
    assert distinct_values(corpus, "year") == {"1999", "2004"}
    assert values(corpus, "nowhere").to_pylist() == [None] * 3
    [sentences] = corpus.batches()
    assert dict(sentences[0].columns) == {"year": "1999", "court": "Hamburg"}
    assert sentences[2].columns == (("court", "Ulm"),)
    assert corpus.take([1])[0].columns == sentences[1].columns


def test_all_sentences_of_a_row_get_its_columns_and_splits_keep_them(home: Path, tmp_path: Path) -> None:
    text = "The court dismissed the appeal. The costs were reserved. The order stands."
    whole = added(lines(tmp_path / "rows.jsonl", [{"text": text, "year": 1999}] * 4), split=True)
    assert values(whole, "year").to_pylist() == ["1999"] * len(whole)
    assert len(whole) == 12
    part = runs.execute("split", {"corpus": whole.fingerprint, "by": "sentence", "keep_copies": True})
    for each in read_result(runs.get(part.id), SplitResult).parts:
        made = corpora.find(each.corpus)
        assert values(made, "year").to_pylist() == ["1999"] * len(made)


def test_columns_beside_labels_are_kept_and_internal_ones_are_not(home: Path, tmp_path: Path) -> None:
    row = {"id": 7, "text": "Ada wins .", "label": [[0, 3, "PER"]], "_input_hash": 12}
    row["meta"] = {"ward": "3B", "stay": {"days": 4}}
    [[kept]] = added(lines(tmp_path / "rows.jsonl", [row])).batches()
    assert kept.columns == (("id", "7"), ("ward", "3B"))
    assert kept.entities
    assert not lost(tmp_path / "rows.jsonl"), "text, labels and objects of labelled rows are in use"
    row["title"] = "Ada " * 30
    [note] = lost(lines(tmp_path / "rows.jsonl", [row]))
    assert "Values are left out of: title." in note


def test_long_empty_nested_and_nan_values_are_left_out(home: Path, tmp_path: Path) -> None:
    row = {"text": "One two three .", "body": "x" * 101, "": "nameless", "n" * 61: "long name", "list": [1], "nan": 0}
    row |= {"empty": " ", "half": "a\ud800b", "kept": " two\twords ", "date": "2020-01-02"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row).replace('"nan": 0', '"nan": NaN') + "\n", encoding="utf-8")
    [[kept]] = added(path).batches()
    assert dict(kept.columns) == {"half": "ab", "kept": "two words", "date": "2020-01-02"}
    [note] = lost(path)
    assert f"Values are left out of: body, {'n' * 60}..., list." in note
    many = {"text": "One two three .", **{f"c{i}": str(i) for i in range(MOST_KEPT + 9)}}
    run = runs.execute("add", {"path": str(lines(tmp_path / "many.jsonl", [many]))})
    [[kept]] = corpora.find(str(run.result()["corpus"])).batches()
    assert [name for name, _ in kept.columns] == [f"c{i}" for i in range(MOST_KEPT)]
    assert "Left out: c20, c21, c22, c23, c24, c25, c26, c27, c28." in " ".join(runs.state(run.id).notes)
    dates = {"text": "One two three .", "day": date(2020, 1, 2), "hour": datetime(2020, 1, 2, 3)}
    pq.write_table(pa.Table.from_pylist([dates]), tmp_path / "rows.parquet")
    [[kept]] = added(tmp_path / "rows.parquet").batches()
    assert dict(kept.columns) == {"day": "2020-01-02", "hour": "2020-01-02T03:00:00"}


def test_document_group_file_and_page_are_not_further_columns(home: Path, tmp_path: Path) -> None:
    row = {"text": "One two three .", "doc_id": "a", "ward": "3B", "file": "notes.pdf", "page": 3, "year": 1999}
    corpus = added(lines(tmp_path / "rows.jsonl", [row]), group_column="ward")
    [[kept]] = corpus.batches()
    assert (kept.doc, kept.group, kept.file, kept.page) == ("a", "3B", "notes.pdf", 3)
    assert kept.columns == (("year", "1999"),)


def test_further_columns_change_the_fingerprint(home: Path, tmp_path: Path) -> None:
    texts = [str(row["text"]) for row in ROWS]
    (tmp_path / "rows.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    plain = added(tmp_path / "rows.txt")
    assert value_names(plain) == []
    alone = added(lines(tmp_path / "alone.jsonl", [{"text": text} for text in texts]))
    with_values = added(lines(tmp_path / "rows.jsonl", ROWS))
    others = added(lines(tmp_path / "others.jsonl", [{**row, "year": 1} for row in ROWS]))
    assert plain.fingerprint == alone.fingerprint
    assert len({plain.fingerprint, with_values.fingerprint, others.fingerprint}) == 3


def test_a_corpus_of_an_older_version_has_no_further_columns(home: Path, tmp_path: Path) -> None:
    corpus = added(lines(tmp_path / "rows.jsonl", ROWS))
    file = corpus.path / "sentences.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["columns"]), file)
    older = Library(home).find(corpus.fingerprint)
    assert older.column("columns").null_count == len(older)
    assert [sentence.columns for batch in older.batches() for sentence in batch] == [()] * 3


def wanted(text: str, query: str, *, whole: bool) -> bool:
    """Return True if the text matches, by Python's regular expressions."""
    if not whole:
        return query.lower() in text.lower()
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in query.split())


@pytest.mark.parametrize(
    "cuts", [(0, 300), (0, 1, 1, 150, 299, 300), (0, 0, 40, 300)], ids=["one", "six", "empty first"]
)
@pytest.mark.parametrize("query", ["the", "A", "of the a", "ÜBER goods", "合同", "and x-ray", ". the", "nowhere", "he"])
def test_matching_rows_do_not_depend_on_how_the_column_is_cut(query: str, cuts: tuple[int, ...]) -> None:
    parts = [TEXTS[a:b] for a, b in itertools.pairwise(cuts)]
    column = pa.chunked_array(parts, type=pa.string())
    for mode in ("words", "substring"):
        rows = [i for i, text in enumerate(TEXTS) if wanted(text, query, whole=mode == "words")]
        assert matches(column, query, mode).tolist() == rows
    assert len(matches(pa.chunked_array([], type=pa.string()), query, "words")) == 0


def test_a_column_in_one_piece_is_divided_among_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    passing, lengths = columns._passing, []

    def kept(texts: pa.ChunkedArray, tests: list[tuple[str, bool]]) -> IntArray:
        lengths.append(len(texts))
        return passing(texts, tests)

    monkeypatch.setattr(columns, "_passing", kept)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    rows = [i for i, text in enumerate(TEXTS) if "the" in text.lower()]
    assert matches(pa.chunked_array([TEXTS]), "the", "substring").tolist() == rows
    assert lengths == [75] * 4


def test_a_part_has_the_sentences_with_the_values_of_each_column(home: Path, tmp_path: Path, command: Command) -> None:
    rows = [{"text": f"Row {i} .", "year": 1999 + i % 3, "court": ("Ulm, Nord", "Bonn")[i % 2]} for i in range(12)]
    rows.append({"text": "Without values ."})
    corpus = added(lines(tmp_path / "rows.jsonl", rows), doc_column="court")
    years = corpora.filter_values(corpus)["year"]
    assert years == {"1999": 4, "2000": 4, "2001": 4}
    part = corpora.filtered(corpus, {"year": ["1999", "2001"], "doc": ["Bonn"]})
    assert [s.text for s in next(part.batches())] == [f"Row {i} ." for i in range(12) if i % 2 and i % 3 != 1]
    assert values(part, "year").to_pylist() == ["1999", "2001"] * 2
    assert (part.name, part.derived) == ("rows, 1999, 2001, Bonn", True)
    code, _, problem = command("corpus", "filter", corpus.fingerprint, "--where", "doc=Ulm, Nord")
    assert code == 0, problem
    [made] = [each for each in corpora.listed() if each.name == "rows, Ulm, Nord"]
    assert len(made) == 6
    assert filter_command(made).endswith("corpus filter rows --where 'doc=Ulm, Nord'")
    for value in ("Ulm,", "Ulm, b=c", "a, b", 'say "b"'):
        whole = corpora.filtered(
            added(lines(tmp_path / "one.jsonl", [{"text": value, "x": value}, {"text": "b", "x": "b"}])), {"x": [value]}
        )
        before = len(corpora.listed())
        assert command(*shlex.split(filter_command(whole))[3:])[0] == 0
        assert len(corpora.listed()) == before  # the same corpus
    for where, why in (
        ({"where": ["x"]}, "no column 'where'; its columns are doc, year"),
        ({"year": ["1999", "2020"]}, "no sentence of rows has '2020' in year"),
        ({"year": ["1999", "2000", "2001"], "doc": ["Ulm, Nord", "Bonn"]}, None),
        ({"year": ["1999"], "page": ["1"]}, "no column 'page'"),
    ):
        if why is None:
            assert len(corpora.filtered(corpus, where)) == 12
            continue
        with pytest.raises(ConfigError, match=re.escape(why)):
            corpora.filtered(corpus, where)
    same = corpora.filtered(corpus, {"doc": ["Ulm, Nord", "Bonn"]})
    with pytest.raises(ConfigError, match="all sentences have these values"):
        corpora.filtered(same, {"year": ["1999", "2000", "2001"]})
    assert command("corpus", "filter", corpus.fingerprint, "--where", "year")[0] == 2


def test_columns_with_too_many_values_or_one_are_no_filters(home: Path, tmp_path: Path) -> None:
    rows = [{"text": f"Row {i} .", "number": i, "kind": "a", "half": "b" if i % 2 else None} for i in range(501)]
    found = corpora.filter_values(added(lines(tmp_path / "rows.jsonl", rows)))
    assert found == {"half": {"b": 250}}


def test_a_further_column_may_be_named_group_doc_or_file(home: Path, tmp_path: Path) -> None:
    rows = [{"text": f"Row {i} .", "group": "ab"[i % 2], "year": 1999 + i % 3} for i in range(6)]
    corpus = added(lines(tmp_path / "rows.jsonl", rows))
    assert column_names(corpus) == ["group", "year"]
    assert corpora.filter_values(corpus)["group"] == {"a": 3, "b": 3}
    assert len(corpora.filtered(corpus, {"group": ["a"]})) == 3
    # A column of this name and a group of another column: the group counts.
    both = added(lines(tmp_path / "both.jsonl", rows), group_column="year")
    assert column_names(both) == ["group"]
    assert corpora.filter_values(both) == {"group": {"1999": 2, "2000": 2, "2001": 2}}
    cells = "".join(
        f"{i},w{i}{j},{tag},{'ab'[i % 2]}.txt,g\n" for i in range(6) for j, tag in enumerate(("B-X", "O", "O"))
    )
    (tmp_path / "cells.csv").write_text(f"sentence,word,tag,file,group\n{cells}", encoding="utf-8")
    labelled = added(tmp_path / "cells.csv")
    assert corpora.filter_values(labelled) == {"file": {"a.txt": 3, "b.txt": 3}}
    [sentences] = added(tmp_path / "cells.csv", doc_column="file", group_column="group").batches()
    assert (sentences[0].doc, sentences[0].group, sentences[0].columns) == ("a.txt", "g", ())


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_column_without_a_value_in_the_first_rows_is_kept(suffix: str, tmp_path: Path) -> None:
    rows = [
        {"text": f"Party {i} signed .", "client": "Ada" if i > 300 else None, "nothing": None, "year": 2001}
        for i in range(400)
    ]
    path = tmp_path / f"a.{suffix}"
    if suffix == "jsonl":
        lines(path, rows)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    corpus = added(path)
    assert set(column_names(corpus)) == {"client", "year"}
    assert corpora.filter_values(corpus)["client"] == {"Ada": 99}
