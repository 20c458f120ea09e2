"""Readers of labelled formats give the same entities and count every repair and loss."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpora.readers import ReadOptions, ReadReport, read, sniff
from core.corpora.writers import write_conll
from core.errors import ReadError
from core.text.schemes import SCHEMES, Scheme, encode
from core.text.sentence import Entity, Sentence, sentence_id
from tests.conftest import entities_of
from tests.corpora.reading import load, surfaces, write


def test_spans_that_do_not_fit_are_repaired_or_listed(tmp_path: Path) -> None:
    text = "Acetylsalicylic acid-free  pills in New York City."
    spans = [[0, 6, "HALF"], [15, 21, "TRIM"], [36, 44, "LOC"], [36, 49, "GPE"], [40, 44, "LOC"]]
    spans += [[2, 2, "X"], [0, 999, "X"], ["a", 3, "X"], [25, 27, "X"]]
    path = write(tmp_path / "a.jsonl", json.dumps({"text": text, "labels": spans}) + "\n")
    rejects = tmp_path / "rejects.jsonl"
    report = ReadReport()
    (sentence,) = read(path, ReadOptions(keep_lost=True), report=report, rejects=rejects)
    assert surfaces(sentence) == [("Acetyl", "HALF"), ("acid -", "TRIM"), ("New York City", "GPE")]
    assert sentence.text == text.replace("  ", " ")
    assert "".join(sentence.tokens) == text.replace(" ", "")
    assert (report.repaired, report.repaired_rows, report.rejected_spans, report.kept) == (2, 1, 6, 1)
    listed = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert len(listed) == 6
    assert {row["line"] for row in listed} == {1}
    assert any("overlaps the GPE" in row["reason"] for row in listed)
    assert all("; " in row["reason"] for row in listed)  # the part after the semicolon says what to do


def test_offsets_in_utf_16_units_are_found_without_quoted_texts(tmp_path: Path) -> None:
    text, names = "😀 😀 Ada Lovelace met Alan Turing , 😀 at Oslo .", ("Ada Lovelace", "Alan Turing", "Oslo")
    spans = [(text.index(name), text.index(name) + len(name), "X") for name in names]
    units = [(*(len(text[:at].encode("utf-16-le")) // 2 for at in span[:2]), "X") for span in spans]
    assert units != spans
    for offsets in (spans, units, units[1:]):
        path = write(tmp_path / "a.jsonl", json.dumps({"text": text, "label": offsets}) + "\n")
        (sentence,), report = load(path)
        assert surfaces(sentence) == [(name, "X") for name in names][-len(offsets) :]
        assert not report.repaired
    part = [(text.index("Love"), text.index("Love") + 4, "X")]  # the annotator marked a part of a word
    path = write(tmp_path / "a.jsonl", json.dumps({"text": text, "label": part}) + "\n")
    (sentence,), report = load(path)
    assert surfaces(sentence) == [("Love", "X")]
    assert report.repaired == 1


@settings(max_examples=50, deadline=None)
@given(text=st.text("ab .Ö\u0301-😀\n", min_size=1, max_size=30), data=st.data())
def test_spans_that_do_not_overlap_are_kept(
    text: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    borders = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [(s, e, "X") for s, e in zip(borders[::2], borders[1::2], strict=False)]
    if not text.strip():
        return
    path = write(tmp_path_factory.mktemp("d") / "a.jsonl", json.dumps({"text": text, "label": spans}) + "\n")
    (sentence,), report = load(path, keep_lost=True)
    assert len(entities_of(sentence)) + report.rejected_spans == len(spans)
    assert report.rejected_spans <= sum(not text[s:e].strip() or text[s] == "\u0301" for s, e, _ in spans)
    assert all(0 <= e.start < e.end <= len(sentence.tokens) for e in entities_of(sentence))
    assert all(token and not any(map(str.isspace, token)) for token in sentence.tokens)


def test_sentences_of_a_single_brat_document_have_its_name(tmp_path: Path) -> None:
    (tmp_path / "lease.txt").write_text("Acme pays .\nBo signs .\n")
    (tmp_path / "lease.ann").write_text("T1\tORG 0 4\tAcme\n")
    assert [sentence.doc for sentence in read(tmp_path / "lease.ann")] == ["lease", "lease"]


def test_brat_lines_are_sentences_unless_an_entity_crosses_lines(tmp_path: Path) -> None:
    text = "First line.\nSecond New\nYork line. More.\n"
    notes = "T1\tLOC 19 27\tNew York\nT2\tX 0 2;4 5\tFi t\nT3\tX 0 5\tWrong\nT4\tbroken\nR1\tRel Arg1:T1 Arg2:T2\n"
    write(tmp_path / "b" / "n.txt", text)
    write(tmp_path / "b" / "n.ann", notes)
    write(tmp_path / "b" / "alone.txt", "No notes.\n")
    with pytest.raises(ReadError, match="none of the 2 rows could be kept"):
        load(tmp_path / "b", format="brat")
    found, report = load(tmp_path / "b", format="brat", keep_lost=True)
    assert [(s.text, s.doc) for s in found] == [("First line.", "n"), ("Second New York line. More.", "n")]
    assert surfaces(found[1]) == [("New York", "LOC")]
    problems = sorted(report.problems, key=lambda problem: problem.line or 0)
    lost = [("span", "n.ann", line) for line in (2, 3, 4)]
    assert [(p.kind, p.file, p.line) for p in problems] == [("rejected", "alone.txt", None), *lost]
    assert all("; " in p.reason for p in problems)  # the part after the semicolon says what to do
    found, _ = load(tmp_path / "b" / "n.txt", split=True, keep_lost=True)
    assert [s.text for s in found] == ["First line.", "Second New York line.", "More."]


TOKENS = ["Ann", "Bo", "met", "Al", "Cy", "in", "New", "York", "."]
ENTITIES = (
    Entity(start=0, end=2, type="PER"),
    Entity(start=3, end=4, type="PER"),
    Entity(start=4, end=5, type="PER"),
    Entity(start=6, end=8, type="LOC"),
)


@pytest.mark.parametrize("scheme", [s for s in SCHEMES if s != "io"])
def test_every_scheme_gives_the_same_entities(scheme: Scheme, tmp_path: Path) -> None:
    tags = encode(ENTITIES, len(TOKENS), scheme)
    rows = list(zip(TOKENS, tags, strict=True))
    variants = {
        "2tab.conll": "".join(f"{a}\t{b}\n" for a, b in rows),
        "4.txt": "-DOCSTART- -X- -X- O\n\n" + "".join(f"{a} NN I-NP {b}\r\n" for a, b in rows) + "\r\n",
        "3.bio": "# id 1\n" + "".join(f"{a}  NN {b}\n" for a, b in rows),
    }
    for name, content in variants.items():
        path = write(tmp_path / name, content)
        (sentence,), report = load(path, scheme=scheme)
        assert (sentence.entities, list(sentence.tokens)) == (ENTITIES, TOKENS)
        assert sentence.text == " ".join(TOKENS)
        assert (report.repaired, report.scheme) == (0, scheme)
        if scheme == "iob1":
            with pytest.raises(ReadError, match="cannot follow"):
                load(path)
        else:
            assert load(path)[1].scheme == scheme
            proposal = sniff(path).scheme
            assert proposal is not None
            assert proposal.scheme == scheme


def test_ambiguity_between_iob1_and_iob2_is_asked_about(tmp_path: Path) -> None:
    path = write(tmp_path / "train.conll", "Bo\tB-PER\n\nIn\tO\nRome\tI-LOC\n.\tO\n")
    with pytest.raises(ReadError, match=r"train.conll line 4: tag 'I-LOC' cannot follow 'O' in IOB2.*iob1") as caught:
        load(path)
    assert caught.value.line == 4
    found, report = load(path, scheme="iob2")
    assert [surfaces(s) for s in found] == [[("Bo", "PER")], [("Rome", "LOC")]]
    assert (report.repaired, report.repaired_rows) == (1, 1)
    assert (report.problems[0].line, report.problems[0].kind) == (4, "repaired")
    found, report = load(path, scheme="iob2", repair=False)
    assert ([s.text for s in found], report.rejected) == (["Bo"], 1)


def test_comments_with_a_tab_are_no_tokens(tmp_path: Path) -> None:
    rows = "# newdoc\tid 4\n# sent\t1\nAcme\tB-ORG\n#1\tO\n\n#\tO\nBob\tB-PER\n"
    found, report = load(write(tmp_path / "a.conll", rows), scheme="iob2")
    assert [list(sentence.tokens) for sentence in found] == [["Acme", "#1"], ["#", "Bob"]]
    assert report.rejected == 0


def test_a_bad_line_rejects_only_its_sentence(tmp_path: Path) -> None:
    good = "Al\tB-PER\n\n"
    bad = ["x\tO\ty\n", "x\n", "x\tPER\n", "x\tS-PER\n", "\tO\n", "a\0b\tO\n"]
    path = write(tmp_path / "a.conll", good * 20 + "".join(f"fine\tO\n{line}\n{good}" for line in bad))
    rejects = tmp_path / "r.jsonl"
    report = ReadReport()
    found = list(read(path, report=report, rejects=rejects, options=ReadOptions(scheme="iob2")))
    assert [s.text for s in found] == ["Al"] * 26
    listed = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [row["line"] for row in listed] == [42, 47, 52, 57, 62, 66]
    assert "3 columns, expected 2" in listed[0]["reason"]
    assert "the value in the tag column is not a valid IOB2 tag" in listed[2]["reason"]
    assert listed[2]["raw"] == "fine\tO\nx\tPER"
    to_do = [row["reason"].partition("; ")[2] for row in listed]
    tag = "expected O or B-, I- before a type"
    empty = "write the token or remove the line"
    assert to_do == ["complete the line", "complete the line", tag, tag, empty, "remove them"]


def test_a_tag_without_a_prefix_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll", "Al\tB-PER\n\n" * 5 + "Bo\tPER\n")
    with pytest.raises(ReadError, match=r"a.conll line 11: .*without a prefix"):
        load(path)
    found, report = load(path, scheme="iob2")  # with the scheme given, only this sentence is rejected
    assert (len(found), report.problems[0].line) == (5, 11)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\tB-X\nb\tE-X\n\nc\tU-X\n", ["line 4", "mixed"]),
        ("a\tS-X\n\nb\tB-X\nc\tO\n", ["line 4", "mixed"]),
        ("a\tO\nb\tB-X\n\nc\tX\nd\tO\n", ["line 4", "prefix"]),
        ("a\tX\nb\tX\n\nc\tB-X\n", ["--tag-column"]),
        ("the\tDT\nrent\tNN\nis\tVBZ\n", ["none of its 2 columns has entity tags", "--tag-column"]),
        ("one\ncolumn\n", ["1 column, expected 2 or more"]),
    ],
)
def test_files_with_invalid_tags_are_refused(content: str, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        load(write(tmp_path / "a.conll", content))
    assert all(word in str(caught.value) for word in words)


def test_tokens_with_blanks_are_split_and_documents_are_numbered(tmp_path: Path) -> None:
    (s,), report = load(write(tmp_path / "a.conll", "in\tO\nNew\u00a0York\tB-LOC\nCity\tI-LOC\n10 000\tO\n"))
    assert s.tokens == ("in", "New", "York", "City", "10", "000")
    assert surfaces(s) == [("New York City", "LOC")]
    assert (report.repaired, report.problems[0].line) == (2, 2)
    doc = "-DOCSTART-\tO\n\nAl\tB-PER\n\nBo\tB-PER\n\n"
    found, _ = load(write(tmp_path / "news.conll", doc * 2))
    assert [s.doc for s in found] == ["news:1", "news:1", "news:2", "news:2"]
    for place in ("x", "y"):
        write(tmp_path / "many" / place / "news.en.conll", doc.replace("Al", f"Al{place}"))
    found, _ = load(tmp_path / "many")
    assert [s.doc for s in found] == ["x/news.en:1", "x/news.en:1", "y/news.en:1", "y/news.en:1"]


def test_splits_of_a_folder_are_never_mixed(tmp_path: Path) -> None:
    for part in ("train", "dev", "test"):
        write(tmp_path / "d" / f"{part}.conll", f"{part}\tO\n")
    with pytest.raises(ReadError, match=r"several sets \(dev, test, train\)"):
        load(tmp_path / "d")
    assert [s.text for s in load(tmp_path / "d", part="validation")[0]] == ["dev"]
    write(tmp_path / "m" / "a.conll", "a\tO\n")
    write(tmp_path / "m" / "b.jsonl", '{"text": "b"}\n')
    with pytest.raises(ReadError, match="labelled and unlabelled"):
        load(tmp_path / "m")


NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def hf_rows() -> list[dict[str, object]]:
    ids = [NAMES.index(tag) for tag in encode(ENTITIES, len(TOKENS), "iob2")]
    return [{"id": "0", "tokens": TOKENS, "ner_tags": ids}, {"id": "1", "tokens": ["None", "."], "ner_tags": [0, 0]}]


def test_files_written_by_datasets_are_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    lists = {"tokens": datasets.Value("string"), "ner_tags": datasets.ClassLabel(names=NAMES)}
    lists = {name: datasets.Sequence(kind) for name, kind in lists.items()}
    features = datasets.Features({"id": datasets.Value("string"), **lists})
    data = datasets.Dataset.from_list(hf_rows(), features=features)
    data.to_parquet(tmp_path / "p" / "data" / "train-00000.parquet")
    data.save_to_disk(tmp_path / "s")
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(tmp_path / "dict")
    for folder, part in (("p", None), ("s", None), ("dict", "test")):
        found, report = load(tmp_path / folder, part=part)
        assert [s.entities for s in found] == [ENTITIES, ()], folder
        assert (report.format, report.scheme) == ("hf", "iob2")


def test_tag_names_come_from_the_data_card_or_the_tags_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(hf_rows()), tmp_path / "train.parquet")
    with pytest.raises(ReadError, match=r"train.parquet line 1: its tags are numbers"):
        load(tmp_path)
    names = {"class_label": {"names": {str(i): name for i, name in enumerate(NAMES)}}}
    card = {"dataset_info": {"features": [{"name": "ner_tags", "sequence": names}]}}
    write(tmp_path / "README.md", f"---\n{json.dumps(card)}\n---\n# A card\n")
    assert load(tmp_path)[0][0].entities == ENTITIES
    write(tmp_path / "README.md", "---\n: [\n---\n")
    with pytest.raises(ReadError, match=r"README.md line 1"):
        load(tmp_path)
    lists = [(["a", "b"], ["O", "B-X"]), (["a"], ["O", "O"]), ("a", [])]
    rows = [{"tokens": tokens, "tags": tags} for tokens, tags in lists]
    found, report = load(write(tmp_path / "j" / "a.jsonl", "".join(json.dumps(r) + "\n" for r in rows)))
    assert [surfaces(s) for s in found] == [[("b", "X")]]
    assert [p.line for p in report.problems] == [2, 3]


words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.tuples(words, st.sampled_from(["O", "X", "Y"])), min_size=1, max_size=6), min_size=1, max_size=4
    ),
    scheme=st.sampled_from(SCHEMES),
)
def test_written_conll_is_read_back_unchanged(
    rows: list[list[tuple[str, str]]], scheme: Scheme, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from core.text.words import clean

    sentences = []
    for row in rows:
        tokens = tuple(clean(word) for word, _ in row)
        text = " ".join(tokens)
        entities = tuple(Entity(start=i, end=i + 1, type=kind) for i, (_, kind) in enumerate(row) if kind != "O")
        if scheme != "io" or all(a.end < b.start for a, b in pairwise(entities)):
            sentences.append(Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=entities))
    if not sentences or any(s.tokens[0] == "-DOCSTART-" for s in sentences):
        return
    path = tmp_path_factory.mktemp("w") / "a.conll"
    assert write_conll(sentences, path, scheme) == len(sentences)
    assert load(path, scheme=scheme)[0] == sentences


@pytest.mark.parametrize("result", [True, 3, "x", {"value": {}}])
def test_a_task_whose_result_is_not_a_list_is_rejected(tmp_path: Path, result: object) -> None:
    tasks = [{"data": {"text": "It rains ."}, "annotations": [{"result": each}]} for each in (result, [])]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    report = ReadReport()
    assert [row.text for row in read(tmp_path / "tasks.json", report=report)] == ["It rains ."]
    assert [problem.reason for problem in report.problems] == [
        'expected a list under "result" of its annotation; export the task again'
    ]


@pytest.mark.parametrize("name", ["rows.jsonl", "spans.jsonl", "rows.parquet", "cells.csv", "dygie.jsonl"])
def test_labelled_rows_keep_a_document_in_a_usual_column(name: str, tmp_path: Path) -> None:
    tagged = [{"tokens": ["Row", str(i)], "ner_tags": ["B-X", "O"], "doc_id": "ab"[i % 2]} for i in range(4)]
    marked = [{"text": f"Row {i}", "label": [[0, 3, "X"]], "docid": "ab"[i % 2]} for i in range(4)]
    nested = [{"doc_key": "ab"[i % 2], "sentences": [["Row", str(i)]], "ner": [[[0, 0, "X"]]]} for i in range(4)]
    by_name: dict[str, list[dict[str, Any]]] = {"rows": tagged, "spans": marked, "dygie": nested}
    rows = by_name.get(name.split(".", maxsplit=1)[0], [])
    path = tmp_path / name
    if name.endswith("jsonl"):
        write(path, "".join(json.dumps(row) + "\n" for row in rows))
    elif name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(tagged), path)
    else:
        cells = "".join(
            f"{i},{word},{tag},{'ab'[i % 2]}\n" for i in range(4) for word, tag in (("Row", "B-X"), (i, "O"))
        )
        write(path, f"sentence,word,tag,doc\n{cells}")
    found, _ = load(path)
    assert [(s.text, s.doc) for s in found] == [(f"Row {i}", "ab"[i % 2]) for i in range(4)]
    assert [surfaces(s) for s in found] == [[("Row", "X")]] * 4
    assert not any(s.columns for s in found), "the document is not kept a second time"
