"""Exports of annotation tools: read right, or refused by name; a sentence that lost a span is not gold."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpora.contradictions import ContradictionCounter
from core.corpora.readers import read, sniff
from core.errors import ReadError
from core.text.sentence import Sentence
from tests.corpora.test_labelled import load, surfaces, write

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


def all_surfaces(found: Sequence[Sentence]) -> list[list[tuple[str, str]]]:
    return [surfaces(sentence) for sentence in found]


@pytest.mark.parametrize(
    "bad", [[100, 110, "X"], [5, 5, "X"], ["a", 3, "X"], [10, 28, "X"], [3, 8, "X"], [0, 9, "ORG"]]
)
def test_a_sentence_that_lost_a_span_is_left_out_and_counted_unless_it_is_to_be_kept(tmp_path: Path, bad: Item) -> None:
    rows = [{"text": TEXT, "label": [MARA, LYON, bad]}, {"text": "No rent is due.", "label": []}]
    path = write(tmp_path / "a.jsonl", lines(rows))
    found, report = load(path)
    assert [sentence.text for sentence in found] == ["No rent is due."]
    assert (report.lost, report.rejected_spans, report.rejected) == (1, 1, 1)
    found, report = load(path, keep_lost=True)
    assert (len(found), report.lost, report.rejected_spans) == (2, 0, 1)


def test_a_document_loses_only_the_sentences_that_a_lost_span_may_be_in(tmp_path: Path) -> None:
    text = "Mara left Lyon.\nHis left and right knee hurt.\nLyon wins.\nNo rent is due.\nMara stays.\n"
    notes = "T1\tPER 0 4\tMara\nT2\tBODY 20 24;35 39\tleft knee\nT3\tLOC 57 61\tLyon\nT4\tPER 73 77\tMara\n"
    write(tmp_path / "n.txt", text)
    write(tmp_path / "n.ann", notes)
    found, report = load(tmp_path / "n.txt")
    # T3 is elsewhere than it claims, so the claimed place and each place of its text are in doubt.
    assert all_surfaces(found) == [[("Mara", "PER")]]
    assert (report.lost, report.rejected_spans) == (4, 2)


def test_the_same_span_twice_is_one_and_loses_nothing(tmp_path: Path) -> None:
    found, report = load(write(tmp_path / "a.jsonl", lines([{"text": TEXT, "label": [MARA, MARA, LYON]}])))
    assert all_surfaces(found) == [RIGHT]
    assert (report.rejected_spans, report.lost) == (0, 0)


@pytest.mark.parametrize("unit", ["utf-16-le", "utf-8"])
def test_the_quoted_text_decides_what_offsets_count(tmp_path: Path, unit: str) -> None:
    text = "\U0001f600 José Peña vive en Cádiz."

    def counted(at: int) -> int:
        return len(text[:at].encode(unit)) // (2 if unit == "utf-16-le" else 1)

    mentions = [("José Peña", "PER"), ("Cádiz", "LOC")]
    items = [
        {"start": counted(text.index(m)), "end": counted(text.index(m) + len(m)), "label": t, "text": m}
        for m, t in mentions
    ]
    found, report = load(write(tmp_path / "a.jsonl", lines([{"text": text, "spans": items}])))
    assert all_surfaces(found) == [mentions]
    assert report.rejected_spans == 0


@pytest.mark.parametrize(("end", "counts"), [("\r\n", "\n"), ("\n", "\r\n")])
def test_line_ends_may_count_as_one_character_or_two(tmp_path: Path, end: str, counts: str) -> None:
    rows = ["Mara signs.", "He pays Otto.", "Lyon wins."]
    counted = counts.join(rows)
    notes = "".join(
        f"T{i}\t{kind} {counted.index(name)} {counted.index(name) + len(name)}\t{name}\n"
        for i, (kind, name) in enumerate([("PER", "Mara"), ("PER", "Otto"), ("LOC", "Lyon")])
    )
    write(tmp_path / "a.txt", end.join(rows))
    write(tmp_path / "a.ann", notes)
    found, report = load(tmp_path / "a.txt")
    assert all_surfaces(found) == [[("Mara", "PER")], [("Otto", "PER")], [("Lyon", "LOC")]]
    assert report.rejected_spans == 0


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
# Shapes that tests/imports lacks; the other exports of these tools are there.
SHAPES: Mapping[str, tuple[str, str, str]] = {
    "spaCy pairs a line": ("a.jsonl", "spacy", lines([[TEXT, {"entities": [MARA, LYON]}]])),
    "one object over lines": ("a.json", "doccano", json.dumps({"text": TEXT, "label": [MARA, LYON]}, indent=1)),
    "doccano csv": ("a.csv", "doccano", f"id,text,label\n1,{TEXT},\"[[0, 9, 'PER'], [26, 30, 'LOC']]\"\n"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_rarer_files_of_spacy_and_doccano_give_the_same_entities(tmp_path: Path, name: str) -> None:
    file, kind, content = SHAPES[name]
    found, report = load(write(tmp_path / file, content))
    assert all_surfaces(found) == [RIGHT]
    assert (report.format, report.rejected_spans, report.repaired) == (kind, 0, 0)
    assert sniff(tmp_path / file).labelled


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "Label Studio choices": (
        "a.json",
        json.dumps([{"data": {"text": TEXT}, "annotations": [{"result": [{"value": {"choices": ["legal"]}}]}]}]),
        "choices, and no spans of a text",
    ),
    "NIF": ("a.ttl", "@prefix nif: <x> .\n", "NIF.*brat"),
    "WebAnno 2 layers": (
        "a.tsv",
        "#FORMAT=WebAnno TSV 3.3\n#T_SP=custom.A|value\n#T_SP=custom.B|value\n\n#Text=Lyon wins\n"
        "1-1\t0-4\tLyon\tX\t_\n1-2\t5-9\twins\t_\tY\n",
        r"several layers have spans \(A, B\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_name_with_the_cure(tmp_path: Path, name: str) -> None:
    file, content, words = REFUSED[name]
    with pytest.raises(ReadError, match=words):
        load(write(tmp_path / file, content))


def test_an_entity_in_xml_is_refused(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE collection [<!ENTITY a "x">]><collection>&a;</collection>'
    with pytest.raises(ReadError, match="declares entities"):
        load(write(tmp_path / "a.xml", bomb))


def test_spans_of_markup_are_found_by_their_text_or_lost(tmp_path: Path) -> None:
    def task(text: str) -> dict[str, Any]:
        value = {
            "start": "/p[1]/text()[1]",
            "end": "/p[1]/text()[1]",
            "startOffset": 11,
            "endOffset": 15,
            "text": "Lyon",
        }
        return {"data": {"text": text}, "annotations": [{"result": [{"value": {**value, "hypertextlabels": ["LOC"]}}]}]}

    path = write(
        tmp_path / "a.json", json.dumps([task("<p>Workers in Lyon met.</p>"), task("<p>Lyon beats Lyon.</p>")])
    )
    found, report = load(path)
    assert [(sentence.text, surfaces(sentence)) for sentence in found] == [("Workers in Lyon met.", [("Lyon", "LOC")])]
    assert report.lost == 1


def test_unanswered_texts_are_not_gold(tmp_path: Path) -> None:
    rows = [{"text": TEXT, "label": [MARA]}, {"text": "Nobody saw this.", "label": None}]
    assert len(load(write(tmp_path / "a.jsonl", lines(rows)))[0]) == 1
    tasks = [{**TASK, "annotations": [{"result": RESULT}]}, {**TASK, "annotations": []}]
    tasks += [{**TASK, "annotations": [{"was_cancelled": True, "result": RESULT}]}]
    found, report = load(write(tmp_path / "b.json", json.dumps(tasks)))
    assert (len(found), report.skipped) == (1, 2)
    records = [
        {"fields": {"text": TEXT}, "suggestions": {"ner": {"value": spans(MARA)}}, "responses": {}},
        {"fields": {"text": "b"}, "responses": {"ner": [{"value": [], "user_id": "u", "status": "draft"}]}},
        {"fields": {"text": "c d"}, "responses": {"ner": [{"value": [], "user_id": "u", "status": "submitted"}]}},
    ]
    found, report = load(write(tmp_path / "c.jsonl", lines(records)))
    assert ([sentence.text for sentence in found], report.skipped) == (["c d"], 2)


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
    if tool == "brat":
        for name, answers in (("ana", ANA), ("ben", BEN)):
            for i, (text, label) in enumerate(zip(TEXTS, answers, strict=True)):
                write(folder / "b" / name / f"{i}.txt", text)
                notes = "".join(f"T{n}\t{t} {s} {e}\t{text[s:e]}\n" for n, (s, e, t) in enumerate(label))
                write(folder / "b" / name / f"{i}.ann", notes)
        return folder / "b"
    tasks: list[dict[str, Any]] = [
        {
            "data": {"text": text},
            "annotations": [
                {"completed_by": {"email": who}, "result": [{"value": each} for each in spans(*label, kind="labels")]}
                for who, label in (("ana", ANA[i]), ("ben", BEN[i]))
            ],
        }
        for i, text in enumerate(TEXTS)
    ]
    for task in tasks:
        for answer in task["annotations"]:
            for item in answer["result"]:
                item["value"]["labels"] = [item["value"]["labels"]]
    return write(folder / "ls.json", json.dumps(tasks))


BY_TWO = {
    "ana": ["Mara/B-PER Lind/I-PER rents/O hall/O 7/O in/O Lyon/B-LOC", "Otto/B-PER Barr/I-PER signs/O"],
    "ben": ["Mara/B-PER Lind/I-PER rents/O hall/B-LOC 7/I-LOC in/O Lyon/O", "Otto/B-PER Barr/I-PER signs/O"],
}


def tagged_by_two(folder: Path, how: str) -> Path:
    """Write the same sentences by two people in formats that bring their tokens."""
    pairs = {who: [[word.split("/") for word in text.split()] for text in texts] for who, texts in BY_TWO.items()}
    if how == "CoNLL column":
        named = ["".join(f"{a}\t{who}\t{b}\n" for a, b in each) for who, texts in pairs.items() for each in texts]
        return write(folder / "a.conll", "word\tannotator\ttag\n" + "\n".join(named))
    records = [
        {"tokens": [a for a, _ in each], "ner_tags": [b for _, b in each], "note": "x", "annotator": who}
        for who, texts in pairs.items()
        for each in texts
    ]
    pq.write_table(pa.Table.from_pylist(records), folder / "a.parquet")
    return folder / "a.parquet"


# Exports of doccano, Prodigy and Label Studio by several annotators are in tests/imports.
@pytest.mark.parametrize("tool", ["brat", "CoNLL column", "lists in Parquet"])
def test_people_who_disagree_are_asked_for_and_their_agreement_is_told(tmp_path: Path, tool: str) -> None:
    path = two_people(tmp_path, tool) if tool == "brat" else tagged_by_two(tmp_path, tool)
    with pytest.raises(ReadError, match=r"agree on 1 of the 2 texts.*F1 0\.67.*--annotator NAME.*\(ana, ben\)"):
        load(path)
    for who, second in (("ana", ("Lyon", "LOC")), ("ben", ("hall 7", "LOC"))):
        found, report = load(path, annotator=who)
        assert all_surfaces(found) == [[RIGHT[0], second], [("Otto Barr", "PER")]]
        assert report.agreement
        assert (report.agreement.shared, report.agreement.equal, report.agreement.taken) == (2, 1, who)
    with pytest.raises(ReadError, match="annotator: 'eve' is not in it; its annotators are ana, ben"):
        load(path, annotator="eve")
    agreement = sniff(path).agreement
    assert agreement
    assert (agreement.annotators, agreement.f1) == ({"ana": 2, "ben": 2}, 0.6667)


def test_curated_labels_are_taken_before_those_of_annotators(tmp_path: Path) -> None:
    other = WEBANNO.replace("*\tLOC", "_\t_")
    write(tmp_path / "p" / "annotation" / "a.txt" / "ana.tsv", other)
    write(tmp_path / "p" / "annotation" / "a.txt" / "ben.tsv", WEBANNO.replace("LOC", "ORG"))
    write(tmp_path / "p" / "curation" / "a.txt" / "CURATION_USER.tsv", WEBANNO)
    found, report = load(tmp_path / "p")
    assert all_surfaces(found) == [RIGHT]
    assert report.agreement
    assert report.agreement.taken == "curation"


def test_files_that_share_few_texts_are_no_annotators(tmp_path: Path) -> None:
    rows = [{"text": f"Hall {i} is free.", "label": []} for i in range(9)]
    write(tmp_path / "d" / "a.jsonl", lines([*rows[:5], {"text": TEXT, "label": [MARA]}]))
    write(tmp_path / "d" / "b.jsonl", lines([*rows[5:], {"text": TEXT, "label": [LYON]}]))
    found, report = load(tmp_path / "d")
    assert (len(found), report.agreement) == (11, None)


def test_copies_of_a_file_with_tokens_are_no_annotators(tmp_path: Path) -> None:
    for name in ("train", "train_copy"):
        write(tmp_path / "c" / f"{name}.conll", "Ann B-PER\nowes O\n\nBo B-PER\npays O\n")
    found, report = load(tmp_path / "c")
    assert (len(found), report.agreement) == (4, None)


def test_one_annotator_s_comment_holds_for_the_sentences_below(tmp_path: Path) -> None:
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
    with pytest.raises(ReadError, match="annotator: 'ana' is not in it"):
        load(path, annotator="ana")
