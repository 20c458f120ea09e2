"""Label Studio, from 0.7 to 1.x: every text export."""

import csv
import io

from tests.imports.shape import Clause, Right, Shape, as_json, clause, clauses, read_right, refused
from tests.imports.texts import DUTCH, ENGLISH, FRENCH, GERMAN, POLISH, SPANISH

# Records and tables: ruff would give each field its own line.
# fmt: off

EMOJI = clauses("""
    🙂 [PER Mara Lind] left [LOC Lyon].
    Rent 🏭🏭 is due to the [ORG Harbour Board].
""")
PAGES = clauses("""
    [PER Mara Lind] rents hall 7 in [LOC Lyon].
    Halls & cranes of the [ORG Harbour Board].
""")


def regions(each: Clause, *, utf16: bool = False) -> list[dict[str, object]]:
    """Return the result of an annotation: one region per mention."""

    def at(offset: int) -> int:
        return len(each.text[:offset].encode("utf-16-le")) // 2 if utf16 else offset

    return [{"value": {"start": at(s), "end": at(e), "text": each.text[s:e], "labels": [k]}, "id": f"r{s}",
            "from_name": "label", "to_name": "text", "type": "labels", "origin": "manual"} for s, e, k in each.spans]


def task(number: int, each: Clause, *, answers: list[dict[str, object]] | None = None) -> dict[str, object]:
    """Return a task as the export `JSON` writes it."""
    answer = {"id": number, "completed_by": 1, "result": regions(each), "was_cancelled": False, "ground_truth": False}
    return {"id": number, "annotations": [answer] if answers is None else answers, "file_upload": "tasks.json",
        "drafts": [], "predictions": [], "data": {"text": each.text}, "meta": {}, "inner_id": number,
        "total_annotations": 1}


def hypertext(each: Clause, *, anywhere: bool) -> dict[str, object]:
    """Return a task of a HyperText project. anywhere: add the offsets in the text of newer versions."""
    html = each.text.replace("&", "&amp;")
    results = []
    for s, e, k in each.spans:
        value: dict[str, object] = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": s,
            "endOffset": e, "text": each.text[s:e], "hypertextlabels": [k]}
        if anywhere:
            value["globalOffsets"] = {"start": s, "end": e}
        results.append({"value": value, "from_name": "l", "to_name": "t", "type": "hypertextlabels"})
    return {"id": 1, "data": {"text": f"<p>{html}</p>"}, "annotations": [{"id": 1, "result": results}]}


def min_regions(each: Clause, *kinds: str, labels: bool = True) -> list[dict[str, object]]:
    """Return the regions of a field of JSON-MIN. kinds: only these types; all if none is given."""
    given = [(s, e, k) for s, e, k in each.spans if not kinds or k in kinds]
    return [{"start": s, "end": e, "text": each.text[s:e], **({"labels": [k]} if labels else {})} for s, e, k in given]


def label_csv() -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["text", "id", "label", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"])
    for number, each in enumerate(SPANISH, 1):
        label = [{"start": s, "end": e, "text": each.text[s:e], "labels": [k]} for s, e, k in each.spans]
        rows.writerow([each.text, number, as_json(label) if label else "", 1, number, "2026-01-02", "2026-01-02", 3.5])
    return out.getvalue()


OTHER = clause("Mara [LOC Lind] rents hall 7 in [LOC Lyon].")

SHAPES = (
    Shape("label-studio-json", "Label Studio 1.x, export as JSON: with a cancelled answer, relations and a choice",
        {"project-1.json": as_json([*(task(n, c) for n, c in enumerate(GERMAN, 1)),
            task(9, OTHER, answers=[{"id": 8, "result": regions(OTHER), "was_cancelled": True}]),
            task(10, clause("[PER Ines Holm] left [LOC Kiel]."),
                answers=[{"id": 11,
                    "result": [*regions(clause("[PER Ines Holm] left [LOC Kiel].")),
                        {"from_id": "r0", "to_id": "r15", "type": "relation", "direction": "right"},
                        {"type": "choices", "value": {"choices": ["clear"]}, "from_name": "c",
                            "to_name": "text"}]}])])},
        read_right([*GERMAN, clause("[PER Ines Holm] left [LOC Kiel].")])),
    Shape("label-studio-json-min", "Label Studio 1.x, export as JSON-MIN: regions under the name of the control",
        {"project-2.json": as_json([{"text": c.text, "id": n,
                "label": [{"start": s, "end": e, "text": c.text[s:e], "labels": [k]} for s, e, k in c.spans],
                "annotator": 1, "annotation_id": n, "created_at": "2026-01-02T03:04:05Z",
                "updated_at": "2026-01-02T03:04:05Z", "lead_time": 3.5} for n, c in enumerate(FRENCH, 1)])},
        read_right(FRENCH)),
    Shape("label-studio-csv", "Label Studio 1.x, export as CSV: regions as JSON in a cell, empty where there is none",
        {"project-3.csv": label_csv()}, read_right(SPANISH)),
    Shape("label-studio-completions", "Label Studio 0.7, completions",
        {"result.json": as_json([{"id": n, "data": {"text": c.text},
                "completions": [{"id": 1, "lead_time": 2.0, "result": regions(c)}], "predictions": []}
            for n, c in enumerate(POLISH)])}, read_right(POLISH)),
    Shape("label-studio-hypertext",
        "HumanSignal/label-studio#1164: HyperText regions count within an element of the page",
        {"project-4.json": as_json([hypertext(c, anywhere=False) for c in PAGES])},
        read_right(PAGES, without=("<p>", "&amp;"))),
    Shape("label-studio-hypertext-global-offsets",
        "Label Studio 1.5 and later, HyperText: globalOffsets in the text without markup",
        {"project-5.json": as_json([hypertext(c, anywhere=True) for c in PAGES])},
        read_right(PAGES, without=("<p>", "&amp;"))),
    Shape("label-studio-two-annotators", "Label Studio 1.x with overlap 2: two answers to a task, which differ",
        {"project-6.json": as_json([task(1, ENGLISH[0],
                answers=[{"id": 1, "completed_by": 1, "result": regions(ENGLISH[0])},
                    {"id": 2, "completed_by": 2, "result": regions(OTHER)}]),
            *(task(n, c, answers=[{"id": n * 2 + i, "completed_by": i, "result": regions(c)} for i in (1, 2)])
                for n, c in enumerate(ENGLISH[1:], 2))])},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree",)), options={"annotator": "1"},
        asks="annotator"),
    Shape("label-studio-predictions-alone", "Label Studio 1.x: tasks with a model's predictions and no annotation",
        {"project-7.json": as_json([{**task(n, c, answers=[]),
                "predictions": [{"model_version": "v1", "result": regions(c)}]} for n, c in enumerate(DUTCH, 1)])},
        refused("annotation|predict")),
    Shape("label-studio-paragraphs", "Label Studio 1.x, Paragraphs: a dialogue, regions count within a turn",
        {"project-8.json": as_json([{"id": 1,
            "data": {"dialogue": [{"author": "Clerk", "text": "Who rents hall 7?"},
                {"author": "Guard", "text": "Mara Lind does, in Lyon."}]},
            "annotations": [{"id": 1,
                "result": [{"value": {"start": "1", "end": "1", "startOffset": 0, "endOffset": 9, "text": "Mara Lind",
                            "paragraphlabels": ["PER"]}, "from_name": "label", "to_name": "text",
                        "type": "paragraphlabels"},
                    {"value": {"start": "1", "end": "1", "startOffset": 19, "endOffset": 23, "text": "Lyon",
                            "paragraphlabels": ["LOC"]}, "from_name": "label", "to_name": "text",
                        "type": "paragraphlabels"}]}]}])}, refused("dialogue|paragraph", "Text")),
    Shape("label-studio-text-by-address",
        'Label Studio 1.x, <Text valueType="url">: the task holds an address, the offsets belong to the text behind it',
        {"project-9.json": as_json([{**task(n, c), "data": {"text": f"https://files.example.org/notes/{n}.txt"}}
            for n, c in enumerate(ENGLISH, 1)])}, refused("address|URL|text")),
    Shape("label-studio-emoji", "Label Studio 1.x: offsets count UTF-16 units, as browsers do",
        {"project-10.json": as_json([{"id": n, "data": {"text": c.text},
                "annotations": [{"id": n, "result": regions(c, utf16=True)}]} for n, c in enumerate(EMOJI, 1)])},
        read_right(EMOJI)),
    Shape("label-studio-own-field",
        "Label Studio 1.x: the text under a name of the project's own, beside a title and a number",
        {"project-12.json": as_json([{**task(n, c), "data": {"title": "Note", "note_text": c.text, "page": 7}}
            for n, c in enumerate(FRENCH, 1)])}, read_right(FRENCH)),
    Shape("label-studio-images", "Label Studio 1.x: an image project, RectangleLabels",
        {"project-11.json": as_json([{"id": 1, "data": {"image": "/data/upload/1/quay.png"},
            "annotations": [{"id": 1,
                "result": [{"type": "rectanglelabels",
                    "value": {"x": 1.0, "y": 2.0, "width": 5.0, "height": 5.0, "rectanglelabels": ["Crane"]}}]}]}])},
        refused("text|image|picture")),
    Shape("label-studio-choices", "Label Studio 1.x: a project of text classification",
        {"project-12.json": as_json([{"data": {"text": c.text},
            "annotations": [{"result": [{"value": {"choices": ["legal"]}}]}]} for c in ENGLISH])},
        refused("choices, but no spans of a text")),
    Shape("label-studio-long-other-field",
        "Label Studio 1.x: the text under a name of the project's own, beside a title that may be longer",
        {"project-13.json": as_json([{**task(n, c), "data": {"tweet": c.text,
            "title": "A title about the harbour. " * (n % 2 * 5 + 1)}} for n, c in enumerate(FRENCH, 1)])},
        read_right(FRENCH, without=("title",))),
    Shape("label-studio-json-min-long-address", "Label Studio 1.x, JSON-MIN: an address that is longer than the text",
        {"project-14.json": as_json([{"tweet": c.text, "url": f"https://harbour.example.org/{'notes/' * 20}{n}", "id": n,
            "ner": min_regions(c), "annotator": 1, "annotation_id": n} for n, c in enumerate(ENGLISH, 1)])},
        read_right(ENGLISH)),
    Shape("label-studio-json-min-two-controls",
        "Label Studio 1.x, JSON-MIN: two controls with labels and one with choices, each in a field of its own",
        {"project-15.json": as_json([{"text": c.text, "id": n,
            "tone": [{**region, "choices": ["calm"]} for region in min_regions(c, labels=False)],
            "people": min_regions(c, "PER"), "places": min_regions(c, "LOC", "ORG"),
            "annotator": 1, "annotation_id": n, "lead_time": 3.5} for n, c in enumerate(ENGLISH, 1)])},
        read_right(ENGLISH)),
)
