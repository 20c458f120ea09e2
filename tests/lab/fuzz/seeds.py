"""Small valid inputs of every reader, which the fuzzer corrupts."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.formats.ledger import ReadOptions
from tests import documents

LINES = (
    "The buyer pays Acme Ltd. 5 dollars .",
    "Zo\u00eb met Ren\u00e9 in Z\u00fcrich . She left .",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e",
    "e\u0301 \U0001f600 \u5317\u4eac\u5927\u5b66",
)
TOKENS = (
    ("Acme", "Ltd.", "pays", "Zo\u00eb", "."),
    ("In", "Z\u00fcrich", "it", "rains", "."),
    ("Nobody", "knows", "."),
)
TAGS = (("B-ORG", "I-ORG", "O", "B-PER", "O"), ("O", "B-LOC", "O", "O", "O"), ("O", "O", "O"))
NAMES = ("O", "B-ORG", "I-ORG", "B-PER", "B-LOC")
TEXT = "Acme Ltd. pays Zo\u00eb .\nIt rains ."


@dataclass(frozen=True)
class Seed:
    """A valid input. files: content by name. path: name of the file to read; "" for the whole folder."""

    files: Mapping[str, bytes]
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _one(name: str, content: bytes | str, **options: Any) -> Seed:
    return Seed({name: content.encode() if isinstance(content, str) else content}, name, options)


def _lines(rows: Sequence[object]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def whole(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def packed(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(data)
    return bytes(sink.getvalue())


def _columns(separator: str = "\t", middle: str = "") -> str:
    sentences = (zip(tokens, tags, strict=True) for tokens, tags in zip(TOKENS, TAGS, strict=True))
    blocks = ("".join(f"{token}{separator}{middle}{tag}\n" for token, tag in rows) for rows in sentences)
    return "-DOCSTART-" + separator + middle + "O\n\n# id = 1\n" + "\n".join(blocks)


def _spans(*keys: str) -> list[dict[str, object]]:
    start, end, kind = keys
    return [{start: 0, end: 9, kind: "ORG"}, {start: 15, end: 18, kind: "PER"}]


_TEXTS = pa.table({"doc_id": ["a", "a", "b", None], "text": list(LINES), "n": [1, 2, 3, 4]})
_NUMBERED = pa.table(
    {"tokens": [list(row) for row in TOKENS], "ner_tags": [[NAMES.index(tag) for tag in row] for row in TAGS]}
)
_FEATURES = {"ner_tags": {"feature": {"names": list(NAMES), "_type": "ClassLabel"}, "_type": "Sequence"}}
_FEATURED = _NUMBERED.replace_schema_metadata({b"huggingface": json.dumps({"info": {"features": _FEATURES}})})
_CARD = (
    "---\ndataset_info:\n  features:\n  - name: ner_tags\n    sequence:\n      class_label:\n        names:\n"
    + "".join(f"          '{i}': {name}\n" for i, name in enumerate(NAMES))
)
_ROWS = [
    {"tokens": tokens, "ner_tags": [NAMES.index(tag) for tag in tags]}
    for tokens, tags in zip(TOKENS, TAGS, strict=True)
]
_TASKS = [
    {
        "id": 1,
        "data": {"text": TEXT},
        "annotations": [
            {
                "was_cancelled": False,
                "result": [
                    {"type": "labels", "value": {"start": 0, "end": 9, "text": "Acme Ltd.", "labels": ["ORG"]}},
                    {"type": "labels", "value": {"start": 15, "end": 18, "text": "Zo\u00eb", "labels": ["PER"]}},
                ],
            }
        ],
    },
    {"id": 2, "data": {"text": "It rains ."}, "annotations": []},
]
_DOCCANO = [{"id": 1, "text": TEXT, "label": [[0, 9, "ORG"], [15, 18, "PER"]]}, {"text": "It rains .", "label": []}]
_NEWER = [{"text": TEXT, "entities": _spans("start_offset", "end_offset", "label"), "relations": []}]
_PRODIGY = [
    {"text": TEXT, "spans": _spans("start", "end", "label"), "answer": "accept"},
    {"text": "It rains .", "spans": [], "answer": "reject"},
]
_BRAT = "T1\tORG 0 9\tAcme Ltd.\nT2\tPER 15 18\tZo\u00eb\nR1\tpays Arg1:T1 Arg2:T2\n"
_ARGILLA = [
    {"text": TEXT, "prediction": None, "annotation": [["ORG", 0, 9]], "status": "Validated"},
    {"fields": {"text": TEXT}, "responses": {"q": [{"value": _spans("start", "end", "label"), "user_id": "u"}]}},
    {"text": TEXT, "q.responses": [_spans("start", "end", "label")], "q.responses.users": ["u"]},
]
_TRAINING = [
    {
        "id": 0,
        "paragraphs": [{"sentences": [{"tokens": [{"orth": "Acme", "ner": "U-ORG"}, {"orth": ".", "ner": "O"}]}]}],
    }
]
_LIGHTTAG = {
    "examples": [{"content": TEXT, "annotations": _spans("start", "end", "tag"), "seen_by": [{"annotator": "a"}]}]
}
_RASA = {"rasa_nlu_data": {"common_examples": [{"text": TEXT, "entities": _spans("start", "end", "entity")}]}}
_PASSAGE = {
    "offset": 10,
    "text": TEXT,
    "annotations": [{"infons": {"type": "ORG"}, "text": "Acme Ltd.", "locations": [{"offset": 10, "length": 9}]}],
}
_BIOC = (
    '<?xml version="1.0"?><!DOCTYPE collection SYSTEM "BioC.dtd"><collection><document><id>1</id><passage>'
    "<offset>10</offset><text>Acme Ltd. pays .</text><annotation><infon key='type'>ORG</infon>"
    '<location offset="10" length="9"/><text>Acme Ltd.</text></annotation></passage></document></collection>'
)
_GATE = (
    '<GateDocument><TextWithNodes><Node id="0"/>Acme Ltd.<Node id="9"/> pays .</TextWithNodes>'
    '<AnnotationSet Name="Key"><Annotation Type="ORG" StartNode="0" EndNode="9"/></AnnotationSet></GateDocument>'
)
_WEBANNO = (
    "#FORMAT=WebAnno TSV 3.3\n#T_SP=a.b.NamedEntity|value\n\n#Text=Acme Ltd. pays .\n1-1\t0-4\tAcme\tORG[1]\n"
    "1-2\t5-9\tLtd.\tORG[1]|X[2]\n1-3\t10-14\tpays\t_\n1-4\t15-16\t.\t*\n\n#Text=It rains .\n2-1\t17-19\tIt\t_\n"
)
_WEBANNO_TWO = " # a.b.NamedEntity | value\n#id=1\n#text=Acme pays .\n1-1\tAcme\tB-ORG\n1-2\tpays\tO\n\n"
_PUBTATOR = "7|t|Acme Ltd. pays .\n7|a|It rains .\n7\t0\t9\tAcme Ltd.\tORG\tX\n\n8|t|Rain .\n8|a|\n"
_PLAIN = "\n".join(LINES) + "\n\nA last one .\n"
_COLUMN = ["one line of this column", "another line of it here", "a third line of it here", "and a fourth line of it"]
_TABLE = 'id,doc,text\n1,a,"The buyer, pays"\n2,a,"He said ""no"" .\nAnd left ."\n3,b,Plain text here .\n'

# Keys are formats of `ReadOptions`, compressions and archives. A test reads every seed and checks its detected format.
SEEDS: Mapping[str, Sequence[Seed]] = {
    "txt": [
        _one("plain.txt", _PLAIN),
        _one("plain.txt", _PLAIN, split=True),
        _one("paragraphs.txt", _PLAIN, unit="paragraph"),
        _one("wide.txt", _PLAIN.encode("utf-16")),
        _one("old.txt", "Zo\u00eb pays .\r\nRen\u00e9 too .\r\n".encode("cp1252"), encoding="cp1252"),
        _one("mac.txt", "One line .\rAnother line .\r"),
    ],
    "jsonl": [
        _one("rows.jsonl", _lines([{"text": line, "doc": "d"} for line in LINES])),
        _one("rows.json", json.dumps([{"id": 1, "body": line} for line in LINES], indent=1)),
    ],
    "csv": [_one("rows.csv", _TABLE), _one("semicolons.csv", _TABLE.replace(",", ";"), text_column="text")],
    "tsv": [_one("rows.tsv", _TABLE.replace(",", "\t"))],
    "parquet": [
        _one("rows.parquet", parquet(_TEXTS)),
        _one("rows.arrow", stream(_TEXTS)),
        _one("whole.arrow", whole(_TEXTS)),
    ],
    "conll": [
        _one("tagged.conll", _columns()),
        _one("tagged.bio", _columns(" ", "NN _ ")),
        _one("strict.conll", _columns(), repair=False, scheme="iob2"),
        Seed({"train.conll": _columns().encode(), "dev.conll": _columns().encode()}, "", {"part": "dev"}),
    ],
    "doccano": [_one("doccano.jsonl", _lines(_DOCCANO)), _one("newer.jsonl", _lines(_NEWER), split=True)],
    "labelstudio": [_one("tasks.json", json.dumps(_TASKS)), _one("tasks.jsonl", _lines(_TASKS))],
    "prodigy": [_one("prodigy.jsonl", _lines(_PRODIGY))],
    "spacy": [
        _one("pairs.json", json.dumps([[TEXT, {"entities": [[0, 9, "ORG"]]}], ["It rains .", {"entities": []}]])),
        _one("training.json", json.dumps(_TRAINING)),
        _one("docs.jsonl", _lines([{"text": TEXT, "ents": _spans("start", "end", "label")}])),
    ],
    "argilla": [_one("records.jsonl", _lines(_ARGILLA))],
    "lighttag": [_one("lighttag.json", json.dumps(_LIGHTTAG))],
    "rasa": [_one("nlu.json", json.dumps(_RASA, indent=1))],
    "webanno": [_one("note.tsv", _WEBANNO), _one("old.tsv", _WEBANNO_TWO)],
    "bioc": [
        _one("bioc.xml", _BIOC),
        _one("bioc.json", json.dumps({"documents": [{"id": "1", "passages": [_PASSAGE]}]})),
    ],
    "pubtator": [_one("articles.txt", _PUBTATOR)],
    "gate": [_one("note.xml", _GATE)],
    "names": [
        _one("names.csv", 'name;type\n"Acme; Ltd";ORG\nAnn Lee;PER\n', format="names"),
        _one("names.txt", "Ann Lee\nOslo\tLOC\n", format="names", entity_type="PER"),
    ],
    "brat": [Seed({"note.txt": TEXT.encode(), "note.ann": _BRAT.encode()}, "")],
    "hf": [
        _one("features.parquet", parquet(_FEATURED)),
        _one("features.arrow", stream(_FEATURED)),
        _one(
            "named.jsonl", _lines([{"words": tokens, "ner": tags} for tokens, tags in zip(TOKENS, TAGS, strict=True)])
        ),
        Seed({"train.jsonl": _lines(_ROWS).encode(), "README.md": _CARD.encode()}, ""),
        Seed(
            {"train.jsonl": _lines(_ROWS).encode(), "dataset_info.json": json.dumps({"features": _FEATURES}).encode()},
            "",
        ),
    ],
    "pdf": [
        _one("deed.pdf", documents.pdf([documents.lines(LINES[:1]), [], documents.lines(["It rains. She left."])])),
        _one("columns.pdf", documents.pdf([[*documents.lines(_COLUMN), *documents.lines(_COLUMN, 330)]])),
        Seed({"a.pdf": documents.pdf([documents.lines(LINES[:1])]), "b.txt": _PLAIN.encode()}, ""),
    ],
    "docx": [_one("deed.docx", documents.docx(LINES)), _one("deed.docm", documents.docx(LINES[:2]))],
    "odt": [_one("deed.odt", documents.odt(LINES))],
    "rtf": [_one("deed.rtf", documents.rtf(["It rains. She left.", "A {\\b second} \\u233? one."]))],
    "html": [
        _one("deed.html", documents.html(f"<p>{LINES[0]}<br>{LINES[1]}</p><table><tr><td>a<td>b</tr></table>")),
        _one("old.htm", documents.html(LINES[1]).decode().encode("cp1252"), encoding="cp1252"),
    ],
    "eml": [_one("deed.eml", documents.eml(LINES[0])), _one("more.eml", documents.eml(LINES[1], attached="x.pdf"))],
    "xlsx": [
        _one("deed.xlsx", documents.xlsx([["id", "text"], *enumerate(LINES)], [["text"], ["On another sheet ."]]))
    ],
    "zip": [_one("all.zip", documents.zipped({"a.txt": _PLAIN, "in/b.docx": documents.docx(LINES), "../c.txt": "x"}))],
    "gzip": [
        _one("plain.txt.gz", packed(_PLAIN.encode(), "gzip")),
        _one("tagged.conll.gz", packed(_columns().encode(), "gzip")),
    ],
    "zstd": [
        _one("plain.txt.zst", packed(_PLAIN.encode(), "zstd")),
        _one("rows.jsonl.zst", packed(_lines(_DOCCANO).encode(), "zstd")),
    ],
}


_VECTORS = "und 0.5 -1.25 3\nZ\u00fcrich 1e-3 2 .5\n. . 1 1 1\n\u5317\u4eac 0 0 7\n"
VECTORS = (
    _one("glove.txt", _VECTORS),
    _one("few.vec", "4 3\n" + _VECTORS),
    _one("few.vec.gz", packed(f"4 3\n{_VECTORS}".encode(), "gzip")),
)


def options_of(seed: Seed) -> ReadOptions:
    return ReadOptions(**seed.options)
