"""Argilla 1 and 2, and Rubrix before it."""

from tests.imports.shape import Clause, Right, Shape, as_json, as_jsonl, clause, read_right
from tests.imports.texts import ENGLISH, FRENCH, GERMAN, POLISH, SPANISH


def spans(each: Clause) -> list[dict[str, object]]:
    return [{"label": k, "start": s, "end": e} for s, e, k in each.spans]


def words(each: Clause) -> list[str]:
    return [each.text[s:e] for s, e in each.tokens()]


# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("argilla-1-json",
        "Argilla 1.x, DatasetForTokenClassification to_pandas().to_json(orient='records'): annotation as [type, start, end]",
        {"records.json": as_json([{"text": c.text, "tokens": words(c), "prediction": [["LOC", 0, 4, 0.3]],
                "prediction_agent": "model-v1", "annotation": [[k, s, e] for s, e, k in c.spans],
                "annotation_agent": "argilla", "id": f"id-{n}", "metadata": {}, "status": "Validated",
                "event_timestamp": None, "metrics": {}} for n, c in enumerate(GERMAN)])}, read_right(GERMAN)),
    Shape("argilla-1-dataset",
        "Argilla 1.x, to_datasets().to_json(): annotation as dictionaries; status Default has no answer",
        {"records.jsonl": as_jsonl([*({"text": c.text, "tokens": words(c), "prediction": None, "annotation": spans(c),
                    "status": "Validated", "id": str(n)} for n, c in enumerate(FRENCH)),
            {"text": "Paul Morel part.", "tokens": ["Paul", "Morel", "part", "."],
                "prediction": [{"label": "PER", "start": 0, "end": 4, "score": 0.4}], "annotation": None,
                "status": "Default", "id": "99"}])}, read_right(FRENCH)),
    Shape("argilla-2-records", "Argilla 2.x, dataset.records.to_json(): fields, suggestions, responses by question",
        {"records.json": as_json([*({"id": f"id-{n}", "fields": {"text": c.text}, "metadata": {},
                    "suggestions": {"span_label": {"value": [], "score": None, "agent": None}},
                    "responses": {"span_label": [{"value": spans(c), "user_id": "4e9588d6"}]}, "vectors": {},
                    "status": "completed", "_server_id": f"s-{n}"} for n, c in enumerate(SPANISH)),
            {"id": "id-99", "fields": {"text": "Raúl Peña espera."}, "metadata": {},
                "suggestions": {"span_label": {"value": [{"label": "PER", "start": 0, "end": 4}], "score": None,
                    "agent": "m"}}, "responses": {}, "vectors": {}, "status": "pending", "_server_id": "s-99"}])},
        read_right(SPANISH)),
    Shape("argilla-2-flat", "Argilla 2.x, records.to_list(flatten=True): span_label.responses, one list per user",
        {"records.json": as_json([{"id": str(n), "status": "completed", "_server_id": f"s-{n}", "text": c.text,
                "span_label.responses": [spans(c)], "span_label.responses.users": ["4e9588d6"],
                "span_label.responses.status": ["submitted"]} for n, c in enumerate(POLISH)])}, read_right(POLISH)),
    Shape("argilla-2-two-users", "Argilla 2.x with two users: two responses to a record, which differ",
        {"records.json": as_json([{"id": str(n), "fields": {"text": c.text}, "metadata": {}, "suggestions": {},
                "responses": {"span_label": [{"value": spans(c), "user_id": "user-ana"},
                    {"value": spans(clause("Mara [LOC Lind] rents hall 7 in [LOC Lyon].") if n == 0 else c),
                        "user_id": "user-ben"}]}, "status": "completed"} for n, c in enumerate(ENGLISH)])},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree",)), options={"annotator": "user-ana"},
        asks="user-ana"),
    Shape("argilla-2-title-and-review",
        "Argilla 2.x: two fields with names of the user's own; a title may be longer than the review",
        {"records.json": as_json([{"id": str(n), "fields": {"title": "A title about the harbour. " * (n % 2 * 5 + 1),
                "review": c.text}, "responses": {"span_label": [{"value": spans(c), "user_id": "u"}]},
                "status": "completed"} for n, c in enumerate(ENGLISH)])}, read_right(ENGLISH, without=("title",))),
    Shape("argilla-2-two-questions", "Argilla 2.x: two span questions about one text, a column for each",
        {"records.json": as_json([{"id": str(n), "status": "completed", "review": c.text,
                **{key: value for name, kinds in (("people", ("PER",)), ("places", ("LOC", "ORG")))
                    for key, value in ((f"{name}.responses", [[s for s in spans(c) if s["label"] in kinds]]),
                        (f"{name}.responses.users", ["u"]), (f"{name}.responses.status", ["submitted"]))}}
            for n, c in enumerate(ENGLISH)])}, read_right(ENGLISH)),
)
