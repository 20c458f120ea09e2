"""Exports of annotation tools are read correctly or refused with a reason; sentences that lost a span are left out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from core.corpora.checks import ContradictionCounter
from core.corpora.readers import read, sniff
from core.errors import ReadError
from tests.corpora.reading import all_surfaces, load, surfaces, write

Item = list[Any]  # start, end, type
TEXT = "Mara Lind rents hall 7 in Lyon."
MARA: Item
HALL: Item
LYON: Item
MARA, HALL, LYON = [0, 9, "PER"], [16, 22, "LOC"], [26, 30, "LOC"]
RIGHT = [("Mara Lind", "PER"), ("Lyon", "LOC")]


def lines(rows: Sequence[object]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def spans(*items: Item, kind: str = "label") -> list[dict[str, Any]]:
    return [{"start": start, "end": end, kind: label} for start, end, label in items]


@pytest.mark.parametrize(
    "bad", [[100, 110, "X"], [5, 5, "X"], ["a", 3, "X"], [10, 28, "X"], [3, 8, "X"], [0, 9, "ORG"]]
)
def test_sentences_that_lost_a_span_are_left_out_unless_keep_lost(tmp_path: Path, bad: Item) -> None:
    rows = [{"text": TEXT, "label": [MARA, LYON, bad]}, {"text": "No rent is due.", "label": []}]
    path = write(tmp_path / "a.jsonl", lines(rows))
    found, report = load(path)
    assert [sentence.text for sentence in found] == ["No rent is due."]
    assert (report.lost, report.rejected_spans, report.rejected) == (1, 1, 1)
    found, report = load(path, keep_lost=True)
    assert (len(found), report.lost, report.rejected_spans) == (2, 0, 1)


def test_only_sentences_that_may_contain_a_lost_span_are_left_out(tmp_path: Path) -> None:
    text = "Mara left Lyon.\nHis left and right knee hurt.\nLyon wins.\nNo rent is due.\nMara stays.\n"
    notes = "T1\tPER 0 4\tMara\nT2\tBODY 20 24;35 39\tleft knee\nT3\tLOC 57 61\tLyon\nT4\tPER 73 77\tMara\n"
    write(tmp_path / "n.txt", text)
    write(tmp_path / "n.ann", notes)
    found, report = load(tmp_path / "n.txt")
    # T3 is not at the offsets that it gives, so sentences at these offsets or with its text are in doubt.
    assert all_surfaces(found) == [[("Mara", "PER")]]
    assert (report.lost, report.rejected_spans) == (4, 2)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("original/note.ann", "beside it; put each .ann file into the folder of the .txt file"),  # as in CADEC
        ("text/note.ANN", "rename it to .ann"),
        ("text/note.a1", "rename the .a1 files to .ann"),
        ("concept/note.con", "convert them to brat or CoNLL"),
    ],
)
def test_annotations_that_are_not_read_are_named_with_advice(tmp_path: Path, name: str, reason: str) -> None:
    for file, content in (("text/note.txt", f"{TEXT}\n"), (name, "T1\tPER 0 9\tMara Lind\n")):
        (tmp_path / "n" / file).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / "n" / file, content)
    found, report = load(tmp_path / "n")
    assert [sentence.entities for sentence in found] == [None]
    assert report.left_out == 1
    assert reason in report.problems[0].reason


def test_a_repeated_span_counts_once_and_loses_no_sentence(tmp_path: Path) -> None:
    found, report = load(write(tmp_path / "a.jsonl", lines([{"text": TEXT, "label": [MARA, MARA, LYON]}])))
    assert all_surfaces(found) == [RIGHT]
    assert (report.rejected_spans, report.lost) == (0, 0)


def test_byte_offsets_are_recognised_by_the_quoted_text(tmp_path: Path) -> None:
    text, mentions = "\U0001f600 José Peña vive en Cádiz.", [("José Peña", "PER"), ("Cádiz", "LOC")]
    starts = [len(text[: text.index(mention)].encode()) for mention, _ in mentions]
    items = [
        {"start": start, "end": start + len(mention.encode()), "label": kind, "text": mention}
        for start, (mention, kind) in zip(starts, mentions, strict=True)
    ]
    found, report = load(write(tmp_path / "a.jsonl", lines([{"text": text, "spans": items}])))
    assert all_surfaces(found) == [mentions]
    assert report.rejected_spans == 0


def test_offsets_may_count_a_line_end_as_two_characters(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "Mara signs.\nHe pays Otto.\nLyon wins.")
    write(tmp_path / "a.ann", "T0\tPER 0 4\tMara\nT1\tPER 21 25\tOtto\nT2\tLOC 28 32\tLyon\n")
    found, report = load(tmp_path / "a.txt")
    assert all_surfaces(found) == [[("Mara", "PER")], [("Otto", "PER")], [("Lyon", "LOC")]]
    assert report.rejected_spans == 0


def test_windows_line_ends_in_pubtator_are_no_part_of_a_type(tmp_path: Path) -> None:
    article = "{0}|t|Mara sees Lyon\n{0}|a|Otto signs.\n{0}\t0\t4\tMara\tPER\n{0}\t10\t14\tLyon\tLOC\n\n"
    text = "".join(article.format(number) for number in range(3))
    unix, _ = load(write(tmp_path / "unix.txt", text))
    windows, report = load(write(tmp_path / "windows.txt", text.replace("\n", "\r\n")))
    assert windows == unix
    assert all_surfaces(windows)[0] == [("Mara", "PER"), ("Lyon", "LOC")]
    assert (report.rejected_spans, report.lost) == (0, 0)


TASK: dict[str, Any] = {"data": {"text": TEXT}, "predictions": [{"result": []}]}
RESULT = [
    {"type": "labels", "value": {"start": s, "end": e, "text": TEXT[s:e], "labels": [t]}} for s, e, t in (MARA, LYON)
]
WEBANNO = r"""#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value


#Text=Mara Lind rents hall 7 in Lyon.
1-1	0-4	Mara	NNP	*[1]	PER[1]
1-2	5-9	Lind	NNP	*[1]	PER[1]
1-3	10-15	rents	VBZ	_	_
1-4	16-20	hall	NN	_	_
1-5	21-22	7	CD	_	_
1-6	23-25	in	IN	_	_
1-7	26-30	Lyon	NNP	*	LOC
1-8	30-31	.	.	_	_
"""


def test_xml_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE collection [<!ENTITY a "x">]><collection>&a;</collection>'
    with pytest.raises(ReadError, match="declares XML entities"):
        load(write(tmp_path / "a.xml", bomb))


def test_spans_in_markup_are_found_by_their_text_or_lost(tmp_path: Path) -> None:
    place = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": 11, "endOffset": 15}
    answer = {"result": [{"value": {**place, "text": "Lyon", "hypertextlabels": ["LOC"]}}]}
    texts = ("<p>Workers in Lyon met.</p>", "<p>Lyon beats Lyon.</p>")
    tasks = [{"data": {"text": text}, "annotations": [answer]} for text in texts]
    found, report = load(write(tmp_path / "a.json", json.dumps(tasks)))
    assert [(sentence.text, surfaces(sentence)) for sentence in found] == [("Workers in Lyon met.", [("Lyon", "LOC")])]
    assert report.lost == 1


def test_texts_without_an_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    answer = {"result": RESULT}
    tasks = [{**TASK, "annotations": each} for each in ([answer], [], [{**answer, "was_cancelled": True}])]
    found, report = load(write(tmp_path / "b.json", json.dumps(tasks)))
    assert (len(found), report.skipped) == (1, 2)
    records = [
        {"fields": {"text": TEXT}, "suggestions": {"ner": {"value": spans(MARA)}}, "responses": {}},
        *({"fields": {"text": s}, "responses": {"ner": [{"value": [], "status": s}]}} for s in ("draft", "submitted")),
    ]
    found, report = load(write(tmp_path / "c.jsonl", lines(records)))
    assert ([sentence.text for sentence in found], report.skipped) == (["submitted"], 2)
    rows = [{"text": f"{each}.", "spans": list[str](), "answer": each} for each in ("accept", "reject", "ignore")]
    found, report = load(write(tmp_path / "d.jsonl", lines([*rows, {"text": "none.", "spans": []}])))
    assert ([(s.text, s.entities) for s in found], report.skipped) == ([("accept.", ()), ("none.", ())], 2)


def test_texts_with_binary_answers_are_left_out_unless_they_are_kept(tmp_path: Path) -> None:
    def row(answer: str, *items: Item, text: str = TEXT) -> dict[str, Any]:
        return {"text": text, "spans": spans(*items), "answer": answer, "_view_id": "ner", "_binary": True}

    rows = [row("accept", MARA), row("accept", LYON), row("reject", HALL), row("reject", [0, 2, "X"], text="No rent.")]
    full = {"text": "Otto Barr signs.", "spans": spans([0, 9, "PER"]), "answer": "accept", "_view_id": "ner_manual"}
    path = write(tmp_path / "a.jsonl", lines([*rows, full]))
    found, report = load(path)
    assert [sentence.text for sentence in found] == ["Otto Barr signs."]
    assert (report.partial, report.skipped, report.kept) == (1, 4, 1)
    assert any("unknown, not O" in problem.reason for problem in report.problems)
    found, report = load(path, keep_lost=True)
    assert all_surfaces(found)[-1] == RIGHT
    assert (report.partial, report.skipped, report.kept) == (1, 3, 2)


def test_texts_with_binary_answers_keep_the_columns_of_their_own_rows(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": f"Otto Barr signs page {i}.", "spans": spans([0, 9, "PER"]), "answer": "accept", "_view_id": "ner"}
        for i in range(2)
    ]
    rows = [{**row, "doc_id": f"d{i}", "meta": {"source": f"s{i}", "file": f"f{i}"}} for i, row in enumerate(rows)]
    found, _ = load(write(tmp_path / "a.jsonl", lines([*rows, rows[0]])), keep_lost=True)
    assert [(s.doc, s.file, s.columns) for s in found] == [(f"d{i}", f"f{i}", (("source", f"s{i}"),)) for i in range(2)]


ANA: list[list[Item]] = [[MARA, LYON], [[0, 9, "PER"]]]
BEN: list[list[Item]] = [[MARA, HALL], [[0, 9, "PER"]]]
TEXTS: list[str] = [TEXT, "Otto Barr signs."]


def two_people(folder: Path, tool: str) -> Path:
    """Write the same texts by two people, as a tool exports them."""
    if tool == "doccano":
        with ZipFile(folder / "d.zip", "w") as archive:
            for name, answers in (("ana", ANA), ("ben", BEN)):
                rows = [{"text": text, "label": label} for text, label in zip(TEXTS, answers, strict=True)]
                archive.writestr(f"{name}.jsonl", lines(rows))
        return folder / "d.zip"
    people = [("ana", ANA), ("ben", BEN)]
    tasks: list[dict[str, Any]] = [{"data": {"text": text}, "annotations": []} for text in TEXTS]
    for who, task, answer in ((who, *pair) for who, answers in people for pair in zip(tasks, answers, strict=True)):
        result = [{"value": {"start": start, "end": end, "labels": [label]}} for start, end, label in answer]
        task["annotations"].append({"completed_by": {"email": who}, "result": result})
    return write(folder / "ls.json", json.dumps(tasks))


# Exports of several annotators in other formats are shapes in tests/imports.
def test_import_asks_for_an_annotator_and_reports_their_agreement(tmp_path: Path) -> None:
    path = two_people(tmp_path, "doccano")
    with pytest.raises(ReadError, match=r"agree on 1 of the 2 texts.*F1 0\.67.*--annotator NAME.*\(ana, ben\)"):
        load(path)
    for who, second in (("ana", ("Lyon", "LOC")), ("ben", ("hall 7", "LOC"))):
        found, report = load(path, annotator=who)
        assert all_surfaces(found) == [[RIGHT[0], second], [("Otto Barr", "PER")]]
        assert report.agreement
        assert (report.agreement.shared, report.agreement.equal, report.agreement.taken) == (2, 1, who)
    with pytest.raises(ReadError, match="annotator: 'eve' labelled no text here; choose one of ana, ben"):
        load(path, annotator="eve")
    agreement = sniff(path).agreement
    assert agreement
    assert (agreement.annotators, agreement.f1) == ({"ana": 2, "ben": 2}, 0.6667)


def test_annotators_are_named_after_the_whole_name_of_their_file(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    with ZipFile(two_people(tmp_path, "doccano")) as archive:
        for name in ("ana", "ben"):
            write(folder / f"export.{name}.jsonl", archive.read(f"{name}.jsonl"))
    with pytest.raises(ReadError, match=r"agree on 1 of the 2 texts.*\(export\.ana, export\.ben\)"):
        load(folder)
    found, _ = load(folder, annotator="export.ben")
    assert all_surfaces(found) == [[RIGHT[0], ("hall 7", "LOC")], [("Otto Barr", "PER")]]


def test_curated_labels_are_taken_before_those_of_annotators(tmp_path: Path) -> None:
    other = WEBANNO.replace("*\tLOC", "_\t_")
    write(tmp_path / "p" / "annotation" / "a.txt" / "ana.tsv", other)
    write(tmp_path / "p" / "annotation" / "a.txt" / "ben.tsv", WEBANNO.replace("LOC", "ORG"))
    write(tmp_path / "p" / "curation" / "a.txt" / "CURATION_USER.tsv", WEBANNO)
    found, report = load(tmp_path / "p")
    assert all_surfaces(found) == [RIGHT]
    assert report.agreement
    assert report.agreement.taken == "curation"


def test_files_that_share_few_texts_are_not_annotators(tmp_path: Path) -> None:
    rows = [{"text": f"Hall {i} is free.", "label": []} for i in range(9)]
    write(tmp_path / "d" / "a.jsonl", lines([*rows[:5], {"text": TEXT, "label": [MARA]}]))
    write(tmp_path / "d" / "b.jsonl", lines([*rows[5:], {"text": TEXT, "label": [LYON]}]))
    found, report = load(tmp_path / "d")
    assert (len(found), report.agreement) == (11, None)
    for name in ("train", "train_copy"):  # a copy of a file
        write(tmp_path / "c" / f"{name}.conll", "Ann B-PER\nowes O\n\nBo B-PER\npays O\n")
    found, report = load(tmp_path / "c")
    assert (len(found), report.agreement) == (4, None)


def test_an_annotator_comment_applies_to_the_sentences_below_it(tmp_path: Path) -> None:
    sentences = [f"Ann B-PER\nowes O\n\nBo {tag}\npays O\n\n" for tag in ("B-PER", "O")]
    path = write(tmp_path / "a.conll", f"# annotator: ana\n{sentences[0]}# annotator: ben\n{sentences[1]}")
    found, report = load(path, annotator="ben")
    assert all_surfaces(found) == [[("Ann", "PER")], []]
    assert report.agreement
    assert (report.agreement.shared, report.agreement.equal) == (2, 1)


def test_unnamed_annotators_are_counted_and_the_import_says_how_to_name_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll", "Ann B-PER\nowes O\n\nAnn O\nowes O\n")
    counter = ContradictionCounter()
    assert len(list(counter.watched(read(path)))) == 2
    assert (counter.found.texts, counter.found.sentences) == (1, 2)
    assert "--annotator NAME" in counter.found.in_words
    with pytest.raises(ReadError, match="annotator: 'ana' cannot be chosen, because no text here has several"):
        load(path, annotator="ana")


@pytest.mark.parametrize(
    "line",
    [
        "The km/h of 1/2 and 3/4 and/or n/a and c/o Lind.",
        "snake_case and other_names in some_code here_too",
        "a|b|c d|e|f",
        "<b>Mara</b> left <I>Lyon</I>.",
        "<TITLE>Mara</TITLE> left.",
        "<PERSON> signed at <PLACE>.",
        "Mara said <PERSON>Lind</PERSON> and <br> nothing else.",
    ],
)
def test_ordinary_text_stays_unlabelled(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "notes.txt", f"{line}\n{line}s\n")
    assert sniff(path).format == "txt"
    assert [sentence.entities for sentence in read(path)] == [None, None]


def test_a_sentence_with_an_untagged_word_is_left_out(tmp_path: Path) -> None:
    whole = "Mara/PERSON left/O Lyon/PLACE in/O May/O and/O stayed/O in/O Kiel/PLACE ./O\n"
    path = write(tmp_path / "notes.txt", 3 * whole + whole.replace("May/O", "May"))
    assert len(load(path, scheme="io")[0]) == 3
