"""doccano, from 1.0 to 1.8, and its options."""

import json

from tests.imports.shape import Right, Shape, as_jsonl, read_right, refused, written, zipped
from tests.imports.texts import ENGLISH, FRENCH, GERMAN, JAPANESE, SPANISH

ANA = [
    {"id": 0, "text": "Mara Lind rents hall 7 in Lyon.", "label": [[0, 9, "PER"], [26, 30, "LOC"]]},
    {"id": 1, "text": "Otto Barr pays the Harbour Board.", "label": [[0, 9, "PER"], [19, 32, "ORG"]]},
    {"id": 2, "text": "Hall 9 belongs to Ines Holm.", "label": [[0, 6, "LOC"], [18, 27, "PER"]]},
]
BEN = [
    {"id": 0, "text": "Mara Lind rents hall 7 in Lyon.", "label": [[0, 9, "PER"], [16, 30, "LOC"]]},
    {"id": 1, "text": "Otto Barr pays the Harbour Board.", "label": [[0, 9, "PER"]]},
    {"id": 2, "text": "Hall 9 belongs to Ines Holm.", "label": [[18, 27, "PER"]]},
]

# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("doccano-1.8-jsonl", "doccano 1.8, JSONL: label as [start, end, type], Comments",
        {"admin.jsonl": as_jsonl({"id": i, "text": c.text, "label": c.spans, "Comments": []}
            for i, c in enumerate(ENGLISH, 1))}, read_right(ENGLISH)),
    Shape("doccano-1.0-text-label", "doccano 1.0, JSONL (Text label): labels",
        {"all.json1": as_jsonl({"id": i, "text": c.text, "meta": {}, "annotation_approver": None, "labels": c.spans}
            for i, c in enumerate(FRENCH, 1))}, read_right(FRENCH)),
    Shape("doccano-1.0-numbered-labels",
        "doccano 1.0, JSONL: annotations with the number of a label, whose name is not in the file",
        {"export.jsonl": as_jsonl({"id": i, "text": c.text,
                "annotations": [{"label": {"PER": 1, "LOC": 2, "ORG": 3}[k], "start_offset": s, "end_offset": e,
                        "user": 1} for s, e, k in c.spans], "meta": {}, "annotation_approver": None}
            for i, c in enumerate(ENGLISH, 1))}, refused("number|name", "export|Text label|label")),
    Shape("doccano-1.6-relations", "doccano 1.6, JSONL(relation): entities with start_offset, relations",
        {"admin.jsonl": as_jsonl({"id": i, "text": c.text, "relations": [],
                "entities": [{"id": 10 * i + n, "label": k, "start_offset": s, "end_offset": e}
                    for n, (s, e, k) in enumerate(c.spans)], "Comments": []} for i, c in enumerate(GERMAN, 1))},
        read_right(GERMAN)),
    Shape("doccano-annotators-disagree",
        "doccano/doccano#1965: one file per annotator in the zip, their answers differ",
        {"export.zip": zipped({"ana.jsonl": as_jsonl(ANA), "ben.jsonl": as_jsonl(BEN)})},
        Right(sentences=3,
            mentions={"PER": ["Mara Lind", "Otto Barr", "Ines Holm"], "LOC": ["Lyon", "Hall 9"],
                "ORG": ["Harbour Board"]}, says=("agree",)), options={"annotator": "ana"}, asks="ana"),
    Shape("doccano-annotators-agree", "doccano 1.5 and later, without Share annotations: two files, the same answers",
        {"export.zip": zipped({"ana.jsonl": as_jsonl(ANA), "ben.jsonl": as_jsonl(ANA)})},
        Right(sentences=3,
            mentions={"PER": ["Mara Lind", "Otto Barr", "Ines Holm"], "LOC": ["Lyon", "Hall 9"],
                "ORG": ["Harbour Board"]})),
    Shape("doccano-two-types-on-one-span", "doccano 1.8 with overlapping labels allowed: one span has two types",
        {"admin.jsonl": as_jsonl([*({"id": i, "text": c.text, "label": c.spans} for i, c in enumerate(ENGLISH)),
            {"id": 9, "text": "Kiel paid.", "label": [[0, 4, "LOC"], [0, 4, "ORG"]]}])},
        read_right(ENGLISH, says=("overlap|span",))),
    Shape("doccano-classification", "doccano 1.8, text classification project: label holds classes, no spans",
        {"admin.jsonl": as_jsonl({"id": i, "text": c.text, "label": ["legal"]} for i, c in enumerate(SPANISH))},
        refused("class|span|start")),
    Shape("doccano-japanese", "doccano 1.8, JSONL of Japanese text: mentions within runs without blanks",
        {"admin.jsonl": as_jsonl({"id": i, "text": c.text, "label": c.spans} for i, c in enumerate(JAPANESE))},
        read_right(JAPANESE)),
    Shape("doccano-data-key", "doccano 1.4 to 1.5, JSONL: the text under data",
        {"admin.jsonl": as_jsonl({"id": i, "data": c.text, "label": c.spans} for i, c in enumerate(ENGLISH))},
        read_right(ENGLISH)),
    Shape("doccano-csv", "doccano 1.4 and later, CSV: the labels as text of a list",
        {"admin.csv": written([("id", "text", "label"), *((i, c.text, str(list(c.spans))) for i, c in enumerate(FRENCH))])},
        read_right(FRENCH)),
    Shape("doccano-one-object", "One record of doccano, pretty-printed by an editor",
        {"admin.json": json.dumps({"text": ENGLISH[0].text, "label": ENGLISH[0].spans}, indent=1)},
        read_right(ENGLISH[:1])),
    Shape("doccano-unanswered", "doccano 1.8, JSONL: label is null for a text that nobody annotated",
        {"admin.jsonl": as_jsonl([*({"text": c.text, "label": c.spans} for c in GERMAN),
            {"text": "Der Kran steht.", "label": None}])}, read_right(GERMAN)),
)
