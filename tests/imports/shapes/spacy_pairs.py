"""spaCy and tools around it, and Rasa."""

import zlib

from tests.imports.shape import Right, Shape, as_json, as_jsonl, block, read_right, refused
from tests.imports.texts import ENGLISH, FRENCH, GERMAN, SPANISH

# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("spacy-2-pairs",
        "explosion/spaCy#2515: TRAIN_DATA of spaCy 2 as JSON, [text, {entities: [[start, end, type]]}]",
        {"train.json": as_json([[c.text, {"entities": c.spans}] for c in ENGLISH])}, read_right(ENGLISH)),
    Shape("spacy-2-train-json",
        "spaCy 2 training format (spacy convert): paragraphs, sentences, tokens with ner in BILUO",
        {"train.json": as_json([{"id": 0,
            "paragraphs": [{"raw": " ".join(c.text for c in FRENCH),
                "sentences": [{"tokens": [{"id": i, "orth": t, "tag": "-",
                                "ner": "O" if letter == "O" else f"{letter}-{kind}"}
                            for i, (t, letter, kind) in enumerate(c.tagged("BILOU"))], "brackets": []}
                    for c in FRENCH]}]}])}, read_right(FRENCH)),
    Shape("spacy-3-doc-to-json", "spaCy 3, Doc.to_json(): text, ents, tokens",
        {"docs.jsonl": as_jsonl({"text": c.text, "ents": [{"start": s, "end": e, "label": k} for s, e, k in c.spans],
                "sents": [{"start": 0, "end": len(c.text)}],
                "tokens": [{"id": i, "start": s, "end": e} for i, (s, e) in enumerate(c.tokens())]} for c in SPANISH)},
        read_right(SPANISH)),
    Shape("spacy-3-span-groups", "spaCy 3.4 and later, Doc.to_json() with span groups: spans of spancat under a key",
        {"docs.jsonl": as_jsonl({"text": c.text, "ents": [],
                "spans": {"sc": [{"start": s, "end": e, "label": k, "kb_id": ""} for s, e, k in c.spans]},
                "tokens": [{"id": i, "start": s, "end": e} for i, (s, e) in enumerate(c.tokens())]} for c in SPANISH)},
        read_right(SPANISH)),
    Shape("spacy-2-missing-values",
        "spaCy 2 training format: ner is - where nobody knows, as offsets_to_biluo_tags writes misaligned spans",
        {"train.json": as_json([{"id": 0,
            "paragraphs": [{"raw": "Mara left. Otto-Barr stayed.",
                "sentences": [{"tokens": [{"id": 0, "orth": "Mara", "ner": "U-PER"},
                        {"id": 1, "orth": "left", "ner": "O"}, {"id": 2, "orth": ".", "ner": "O"}]},
                    {"tokens": [{"id": 3, "orth": "Otto-Barr", "ner": "-"}, {"id": 4, "orth": "stayed", "ner": "O"},
                        {"id": 5, "orth": ".", "ner": "O"}]}]}]}])}, Right(sentences=1, mentions={"PER": ["Mara"]})),
    Shape("displacy-manual", "displaCy, manual=True: text, ents, title",
        {"ents.json": as_json([{"text": c.text, "ents": [{"start": s, "end": e, "label": k} for s, e, k in c.spans],
                "title": None} for c in GERMAN])}, read_right(GERMAN)),
    Shape("ner-annotator",
        "tecoholic/ner-annotator: {classes, annotations: [[text, {entities}]]}, null for a text without an answer",
        {"annotations.json": as_json({"classes": ["PER", "LOC", "ORG"],
            "annotations": [*([c.text, {"entities": c.spans}] for c in ENGLISH), None]})}, read_right(ENGLISH)),
    Shape("python-train-data", "spaCy tutorials: TRAIN_DATA = [...] saved as Python, with round brackets",
        {"train_data.txt": "TRAIN_DATA = [\n"
            + "".join(f"    ({c.text!r}, {{'entities': {list(c.spans)!r}}}),\n" for c in ENGLISH) + "]\n"},
        refused("JSON|json")),
    Shape("docbin", "spaCy 3, DocBin.to_disk(): train.spacy",
        {"train.spacy": zlib.compress(b"\x84\xa7version\xa30.1\xa5attrs\x9c\xcd\x01\xe6\xa6tokens\xc4\x08"
            + bytes(range(64)))}, refused("spaCy|DocBin", "to_json|JSON|CoNLL|conll")),
    Shape("rasa-json", "Rasa NLU 1.x: rasa_nlu_data, common_examples with start, end, value, entity",
        {"nlu.json": as_json({"rasa_nlu_data": {"common_examples": [{"text": c.text, "intent": "inform",
                    "entities": [{"start": s, "end": e, "value": c.text[s:e].lower(), "entity": k}
                        for s, e, k in c.spans]} for c in ENGLISH], "regex_features": []}})}, read_right(ENGLISH)),
    Shape("rasa-1-markdown", "Rasa 1: nlu.md, [Lyon](city) in lists of examples",
        {"nlu.md": "## intent:rent\n- rent a hall in [Lyon](city)\n- does [Mara Lind](person) pay\n"},
        refused("Rasa", "JSON")),
    Shape("rasa-markdown", "Rasa 2 and 3: nlu.yml, [Lyon](city) within the examples",
        {"nlu.yml": block("""
            version: "3.1"
            nlu:
            - intent: rent
              examples: |
                - rent a hall in [Lyon](city)
                - does [Mara Lind](person) pay
        """)}, refused("Rasa|JSON|yml|read")),
    Shape("spacy-overlapping-entities", "spaCy's errors E103 and E1010: two entities of one text overlap",
        {"train.json": as_json([*([c.text, {"entities": c.spans}] for c in ENGLISH),
            ["The Port of Lyon Fund pays Otto Barr.",
                {"entities": [[4, 21, "ORG"], [12, 16, "LOC"], [27, 36, "PER"]]}]])},
        Right(sentences=4,
            mentions={"PER": ["Mara Lind", "Otto Barr", "Ines Holm"], "ORG": ["Harbour Board"] * 2,
                "LOC": ["Lyon"] * 2}, says=("overlap|span",))),
    Shape("spacy-2-pairs-by-line", "TRAIN_DATA of spaCy 2 as JSON lines: a pair per line",
        {"train.jsonl": as_jsonl([c.text, {"entities": c.spans}] for c in ENGLISH)}, read_right(ENGLISH)),
    Shape("spacy-3-pairs-of-spancat", "spaCy 3.1 and later, pairs for spancat: spans under the name of a group",
        {"train.json": as_json([[c.text, {"spans": {"sc": c.spans}}] for c in ENGLISH])}, read_right(ENGLISH)),
)
