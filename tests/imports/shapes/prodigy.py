"""Prodigy: db-out of its recipes."""

from tests.imports.shape import Clause, Right, Shape, as_jsonl, clause, clauses, read_right, refused
from tests.imports.texts import ENGLISH, FRENCH, GERMAN

# Records and tables: ruff would give each field its own line.
# fmt: off


def example(each: Clause, number: int, **more: object) -> dict[str, object]:
    """Return an answer of ner.manual."""
    places = each.tokens()
    spans = [{"start": s, "end": e, "token_start": next(i for i, (left, _) in enumerate(places) if left == s),
            "token_end": next(i for i, (_, right) in enumerate(places) if right == e), "label": k}
        for s, e, k in each.spans]
    return {"text": each.text, "_input_hash": 1000 + number, "_task_hash": -number,
        "tokens": [{"text": each.text[s:e], "start": s, "end": e, "id": i, "ws": True}
            for i, (s, e) in enumerate(places)], "_view_id": "ner_manual", "spans": spans, "answer": "accept", **more}


def binary(text: str, span: tuple[int, int, str], answer: str, number: int) -> dict[str, object]:
    """Return an answer of ner.teach: one span, yes or no."""
    start, end, label = span
    return {"text": text, "_input_hash": hash_of(text), "_task_hash": number,
        "spans": [{"start": start, "end": end, "label": label, "score": 0.5, "source": "model"}], "_view_id": "ner",
        "_binary": True, "answer": answer}


def hash_of(text: str) -> int:
    return sum(map(ord, text))


TEXT = "Jule Keller rents berth 3 in Emden."
TWO = clauses("""
    [PER Mara Lind] rents hall 7 in [LOC Lyon].
    Mara [LOC Lind] rents hall 7 in [LOC Lyon].
""")

SHAPES = (
    Shape("prodigy-manual", "Prodigy 1.11, db-out of ner.manual; answers reject and ignore among them",
        {"annotations.jsonl": as_jsonl([*(example(c, n) for n, c in enumerate(GERMAN)),
            example(clause("[PER Nobody] left."), 90, answer="reject"),
            example(clause("[PER Nobody] came."), 91, answer="ignore")])}, read_right(GERMAN)),
    Shape("prodigy-binary",
        "support.prodi.gy/t/641: ner.teach asks about one span at a time, a text comes once per question",
        {"annotations.jsonl": as_jsonl([binary(TEXT, (0, 11, "PER"), "accept", 1),
            binary(TEXT, (29, 34, "LOC"), "accept", 2), binary(TEXT, (18, 25, "LOC"), "reject", 3),
            *(example(c, n) for n, c in enumerate(GERMAN))])},
        Right(sentences=len(GERMAN), mentions=read_right(GERMAN).mentions,
            says=("1 text has only binary answers.*unknown",))),
    Shape("prodigy-binary-only",
        "Prodigy 1.10, db-out of ner.teach alone: read as gold, all that was not asked would count as O",
        {"annotations.jsonl": as_jsonl([binary(TEXT, (0, 11, "PER"), "accept", 1),
            binary(TEXT, (29, 34, "LOC"), "reject", 2)])}, refused("unknown, not O", "--keep-lost")),
    Shape("prodigy-annotators", "Prodigy 1.12, two named sessions: the same _input_hash twice, with _annotator_id",
        {"annotations.jsonl": as_jsonl([example(TWO[0], 1, _annotator_id="notes-ana", _session_id="notes-ana"),
            example(TWO[1], 1, _annotator_id="notes-ben", _session_id="notes-ben"),
            *(example(c, n, _annotator_id=f"notes-{who}", _session_id=f"notes-{who}") for who in ("ana", "ben")
                for n, c in enumerate(ENGLISH[1:], 2))])},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree",)), options={"annotator": "notes-ana"},
        asks="notes-ana"),
    Shape("prodigy-plain-spans", "Prodigy 1.4, spans without token numbers and without an answer",
        {"annotations.jsonl": as_jsonl({"text": c.text,
                "spans": [{"start": s, "end": e, "label": k} for s, e, k in c.spans]} for c in FRENCH)},
        read_right(FRENCH)),
    Shape("prodigy-text-classification", "Prodigy 1.11, db-out of textcat.manual: options and accept, no spans",
        {"annotations.jsonl": as_jsonl({"text": c.text,
                "options": [{"id": "LEGAL", "text": "LEGAL"}, {"id": "OTHER", "text": "OTHER"}], "accept": ["LEGAL"],
                "_view_id": "choice", "answer": "accept"} for c in ENGLISH)}, Right(sentences=4, labelled=False)),
    Shape("prodigy-two-recipes", "Prodigy 1.11, db-out of a data set of ner.manual and textcat.teach: a class is no span",
        {"both.jsonl": as_jsonl([*({"text": c.text, "spans": [{"start": s, "end": e, "label": k} for s, e, k in c.spans],
                "answer": "accept", "_view_id": "ner_manual"} for c in ENGLISH),
            {"text": "Otto Barr rents a crane.", "label": "LEASE", "answer": "accept", "_view_id": "classification"}])},
        read_right(ENGLISH, says=("whole text",))),
    Shape("prodigy-overlapping-spans", "Prodigy 1.11, spans.manual: spans may overlap",
        {"annotations.jsonl": as_jsonl([*(example(c, n) for n, c in enumerate(ENGLISH)),
            {"text": "The Port of Lyon Fund pays Otto Barr.", "_input_hash": 77, "_task_hash": 77,
                "spans": [{"start": 4, "end": 21, "token_start": 1, "token_end": 4, "label": "ORG"},
                    {"start": 12, "end": 16, "token_start": 3, "token_end": 3, "label": "LOC"}],
                "_view_id": "spans_manual", "answer": "accept"}])},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("overlap|span",))),
    Shape("prodigy-html", "Prodigy 1.11, view html or blocks: the row has html and no text",
        {"annotations.jsonl": as_jsonl({"html": f"<b>{c.text}</b>", "_view_id": "html", "answer": "accept"}
            for c in ENGLISH)}, refused("text|html")),
)
