"""Exports of further tools and data sets become spans of characters, or are refused by name with the cure."""

import json
from pathlib import Path

import pytest

from core.corpora.readers import read
from core.errors import ReadError
from tests.conftest import entities_of

TEXT = "Mara Lind left Lyon"
RECORDS = {
    "vertex": {
        "textContent": TEXT,
        "textSegmentAnnotations": [
            {"startOffset": 0, "endOffset": 9, "displayName": "PER"},
            {"startOffset": 15, "endOffset": 19, "displayName": "LOC"},
        ],
    },
    "ground truth": {
        "source": TEXT,
        "job": {
            "annotations": {
                "entities": [
                    {"startOffset": 0, "endOffset": 9, "label": "PER"},
                    {"startOffset": 15, "endOffset": 19, "label": "LOC"},
                ]
            }
        },
    },
    "dataturks": {
        "content": TEXT,
        "annotation": [
            {"label": ["PER"], "points": [{"start": 0, "end": 8, "text": "Mara Lind"}]},
            {"label": ["LOC"], "points": [{"start": 15, "end": 18, "text": "Lyon"}]},
        ],
    },
    "ubiai": {
        "document": TEXT,
        "tokens": [
            {"start": 0, "end": 9, "entityLabel": "PER"},
            {"start": 15, "end": 19, "entityLabel": "LOC"},
        ],
    },
    "cluener": {"text": TEXT, "label": {"PER": {"Mara Lind": [[0, 8]]}, "LOC": {"Lyon": [[15, 18]]}}},
    "gate": {"text": TEXT, "entities": {"PER": [{"indices": [0, 9]}], "LOC": [{"indices": [15, 19], "rule": "r"}]}},
    "data": {"version": "1", "data": [{"tokens": TEXT.split(), "ner_tags": ["B-PER", "I-PER", "O", "B-LOC"]}]},
    "gliner": {"tokenized_text": TEXT.split(), "ner": [[0, 1, "PER"], [3, 3, "LOC"]]},
    "scierc": {
        "doc_key": "d",
        "sentences": [["Rent", "rises"], TEXT.split()],
        "ner": [[], [[2, 3, "PER"], [5, 5, "LOC"]]],
    },
}


@pytest.mark.parametrize("tool", RECORDS)
def test_a_record_of_a_further_tool_keeps_its_mentions(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "export.manifest"
    path.write_text(json.dumps(RECORDS[tool]) + "\n")
    sentence = list(read(path))[-1]
    mentions = [(" ".join(sentence.tokens[e.start : e.end]), e.type) for e in entities_of(sentence)]
    assert mentions == [("Mara Lind", "PER"), ("Lyon", "LOC")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "File,Line,Begin Offset,End Offset,Type\nd.txt,0,0,4,PER\n", "Amazon Comprehend"),
        ("a.json", '[{"id": "#1", "body": [{"value": "PER"}], "target": {"selector": []}}]', "web annotations"),
        ("a.json", '{"projectFileVersion": "2022-05-01", "assets": {"documents": []}}', "Azure AI Language"),
        ("a.json", '{"text": {"0": "Mara left."}, "label": {"0": [[0, 4, "PER"]]}}', "orient='records'"),
    ],
)
def test_an_export_without_its_text_is_refused_by_name(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ReadError, match=said):
        list(read(tmp_path / name))


def test_numbered_tags_are_named_by_label_json(tmp_path: Path) -> None:
    (tmp_path / "label.json").write_text('{"O": 0, "B-PER": 1, "I-PER": 2}')
    (tmp_path / "train.json").write_text('{"tokens": ["Mara", "Lind", "left"], "tags": [1, 2, 0]}\n')
    (sentence,) = read(tmp_path)
    assert [(e.start, e.end, e.type) for e in entities_of(sentence)] == [(0, 2, "PER")]
