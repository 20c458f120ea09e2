"""Read annotation tools' exports that are a single JSON object, and convert records of other tools to rows.

A row is `{"text": text, "label": [[start, end, type], ...]}`, with positions in characters. Known exports without text,
and known formats that cannot be read, are rejected with advice.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from core.corpora.formats.annotated import TEXTS, is_usable, whole_text
from core.corpora.formats.folders import APART, TAGTOG
from core.corpora.formats.ledger import Ledger, ReadOptions, Record
from core.corpora.formats.rows import as_row
from core.corpora.formats.webanno import is_webanno
from core.errors import ReadError

Row = Mapping[str, object]
# The value is None for a text that nobody has annotated.
Spans = list[object] | None
# Maximum size of a file that is a single JSON object, in bytes.
MAX_OBJECT = 64 << 20
# Number of characters at the start of a file in which patterns are searched.
_START = 8_000
_PUBTATOR = re.compile(r"\w{1,100}\|t\|.*\n\w{1,100}\|a\|")
_ROOT = re.compile(r"(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>\[]*(?:\[[^\]]*\])?[^>]*>\s*)*<([\w:.-]+)", re.DOTALL)
_PYTHON = re.compile(
    r"""(?:\w{1,50} {0,9}= {0,9})?\[?\s{0,50}\(\s{0,50}["'].{0,500}?["']\s{0,50},\s{0,50}\{\s{0,50}["']entities["']""",
    re.DOTALL,
)
_XML = {"GateDocument": "gate", "collection": "bioc"}
_CONVERT = "export it from its tool as JSONL with character offsets, brat, WebAnno TSV 3 or CoNLL"
_RASA = "is YAML of Rasa, which cannot be read; convert it to JSON (rasa data convert nlu -f json)."
_RASA_MARKDOWN = re.compile(r"(?:<!--.{0,500}?-->\s*)?## ?(?:intent|synonym|regex|lookup):", re.DOTALL)
_ENDINGS = {
    ".spacy": "is a DocBin of spaCy, which is binary; write each Doc.to_json() as a line of JSON, or convert to CoNLL.",
    ".xmi": "is UIMA CAS XMI; export the documents as WebAnno TSV 3.3 (INCEpTION, WebAnno) instead.",
    ".ttl": f"is RDF (for example NIF), which cannot be read; {_CONVERT}.",
    ".yml": _RASA,
    ".yaml": _RASA,
    **{ending: f"{problem}." for ending, problem in APART.items()},
}


def adapted(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records. A record of a known tool is converted to one or more rows with `text` and `label`.

    The first entry of `_ADAPTERS` whose names are all in the record is used. If its function yields no row, the record
    is yielded unchanged.
    """
    for line, record in records:
        adapter = next((adapt for names, adapt in _ADAPTERS if names <= record.keys()), None)
        rows = list(adapter(record)) if adapter else []
        if rows:
            yield from ((line, row) for row in rows)
        else:
            yield line, record


def why_refused(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return why the rows of a known export cannot be read, and what to do; "" for any other rows."""
    return next((reason for fits, reason in _REFUSED if rows and fits(set(columns), rows[0])), "")


def _of_pandas(columns: set[str], row: Row) -> bool:
    """Return True for a table as {column: {row number: value}}, which pandas writes by default."""
    values = list(row.values())
    return all(isinstance(value, Mapping) and value and all(key.isdecimal() for key in value) for value in values)


def _unread(export: str) -> str:
    return f"{export}, which cannot be read; save it as JSON lines with text and label ([[start, end, type]])"


_REFUSED: tuple[tuple[Callable[[set[str], Row], bool], str], ...] = (
    (
        lambda columns, row: {"Begin Offset", "End Offset", "Type"} <= columns,
        "annotations of Amazon Comprehend without the text to which their offsets refer; join them with the documents"
        " and save JSON lines with text and label ([[start, end, type]])",
    ),
    (
        lambda columns, row: {"projectFileVersion", "assets"} <= columns,
        "a project of Azure AI Language, whose texts are in other files; join them and save JSON lines with text and"
        " label ([[start, end, type]])",
    ),
    (
        lambda columns, row: {"body", "target"} <= columns and ("@context" in columns or "id" in columns),
        "web annotations (Recogito, Hypothesis) without the text to which their positions refer; join them with the"
        " text and save JSON lines with text and label ([[start, end, type]])",
    ),
    (
        lambda columns, row: {"start", "end", "word"} <= columns and "text" not in columns,
        "mentions that a transformers pipeline predicted, without the text to which their offsets refer; join them with"
        " the text and save JSON lines with text and label ([[start, end, type]])",
    ),
    (
        lambda columns, row: {"html", "answer"} <= columns and "text" not in columns,
        "answers of Prodigy about html, without a text; annotate with a recipe that shows text, such as ner.manual",
    ),
    (
        lambda columns, row: {"Labeled Data", "Label"} <= columns or {"data_row", "projects"} <= columns,
        _unread("an export of Labelbox"),
    ),
    (
        lambda columns, row: {"content", "labels"} <= columns and "jsonResponse" in str(row.get("labels"))[:2000],
        _unread("an export of Kili"),
    ),
    (
        lambda columns, row: {"Entities", "File"} <= columns,
        _unread("a result of Amazon Comprehend, without the text to which its offsets refer"),
    ),
    (lambda columns, row: {"sents", "vertexSet"} <= columns, _unread("a data set like DocRED")),
    (
        lambda columns, row: {"alias", "meta"} <= columns <= {"alias", "meta", "text", "userDefined"},
        _unread("phrases of Dialogflow, cut into parts"),
    ),
    (lambda columns, row: "luis_schema_version" in columns, _unread("an app of LUIS")),
    (lambda columns, row: {"text_snippet", "annotations"} <= columns, _unread("data of AutoML Natural Language")),
    (
        lambda columns, row: "conversations" in columns and "text" not in columns,
        _unread("conversations for a language model"),
    ),
    (
        _of_pandas,
        "a table written by pandas by column; write it again with to_json(orient='records', lines=True), as JSON lines",
    ),
)


def _row(record: Row, text: str, spans: Spans, *used: str) -> Row:
    """Return a row with the text, the spans, and the fields of the record that are not in `used`."""
    return {"text": text, "label": spans, **{key: value for key, value in record.items() if key not in used}}


def _vertex(record: Row) -> Iterator[Row]:
    """Convert a record of Google Vertex AI or AutoML: `textContent`, and spans in `textSegmentAnnotations`."""
    text, segments = record["textContent"], record["textSegmentAnnotations"]
    if isinstance(text, str) and isinstance(segments, list):
        spans = _fields(segments, "startOffset", "endOffset", "displayName")
        yield _row(record, text, spans, "textContent", "textSegmentAnnotations")


def _ground_truth(record: Row) -> Iterator[Row]:
    """Convert a record of Amazon SageMaker Ground Truth: `source`, and JOB: {`annotations`: {`entities`: spans}}."""
    text = record["source"]
    for job, value in record.items():
        answer = value.get("annotations") if isinstance(value, Mapping) else None
        entities = answer.get("entities") if isinstance(answer, Mapping) else None
        if isinstance(text, str) and isinstance(entities, list):
            yield _row(record, text, _fields(entities, "startOffset", "endOffset", "label"), "source", job)
            return


def _dataturks(record: Row) -> Iterator[Row]:
    """Convert a record of Dataturks: `content`, and a list `annotation` of objects with `label` and `points`.

    The `end` of a point is the position of its last character, not the position after it.
    """
    text, answers = record["content"], record["annotation"]
    if not isinstance(text, str) or not isinstance(answers, list | None):
        return
    spans = None if answers is None else list[object]()
    for answer in answers or ():
        labels, points = (answer.get("label"), answer.get("points")) if isinstance(answer, Mapping) else (None, None)
        kind = labels[0] if isinstance(labels, list) and len(labels) == 1 else labels
        for point in points if isinstance(points, list) else (None,):
            start, end = (point.get("start"), point.get("end")) if isinstance(point, Mapping) else (None, None)
            assert spans is not None
            spans.append([start, end + 1 if isinstance(end, int) else None, kind])
    yield _row(record, text, spans, "content", "annotation")


def _ubiai(record: Row) -> Iterator[Row]:
    """Convert a record of UBIAI: `document`, and spans (start, end, entityLabel) in `tokens`."""
    text, mentions = record["document"], record["tokens"]
    named = isinstance(mentions, list) and all(isinstance(m, Mapping) and "entityLabel" in m for m in mentions)
    if isinstance(text, str) and isinstance(mentions, list) and named:
        yield _row(record, text, _fields(mentions, "start", "end", "entityLabel"), "document", "tokens")


def _cluener(record: Row) -> Iterator[Row]:
    """Convert a record of CLUENER: `text`, and `label` as {type: {mention: [[first character, last character]]}}."""
    text, label = record["text"], record["label"]
    if not isinstance(text, str) or not isinstance(label, Mapping):
        return
    spans = list[object]()
    for kind, mentions in label.items():
        if not isinstance(mentions, Mapping):
            return
        for places in mentions.values():
            for place in places if isinstance(places, list) else ():
                first, last = place if isinstance(place, list) and len(place) == 2 else (None, None)
                spans.append([first, last + 1 if isinstance(last, int) else None, kind])
    yield _row(record, text, spans, "text", "label")


def _gate(record: Row) -> Iterator[Row]:
    """Convert a record of GATE: `text`, and `entities` as {type: [{indices: [start, end]}]}, as in Twitter's JSON.

    Own scripts write {type: [[start, end]]}.
    """
    text, entities = record["text"], record["entities"]
    if not isinstance(text, str) or not isinstance(entities, Mapping):
        return
    spans = list[object]()
    for kind, mentions in entities.items():
        for mention in mentions if isinstance(mentions, list) else (None,):
            place = mention.get("indices") if isinstance(mention, Mapping) else mention
            spans.append([*place, kind] if isinstance(place, list) and len(place) == 2 else None)
    yield _row(record, text, spans, "text", "entities")


def _wrapped(record: Row) -> Iterator[Row]:
    """Yield the records in the list `data`, in which older Hugging Face scripts expect them."""
    rows = record["data"]
    if isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows):
        yield from rows


def _gliner(record: Row) -> Iterator[Row]:
    """Convert a record of GLiNER: `tokenized_text`, and `ner` with [first token, last token, type]."""
    tokens, mentions = record["tokenized_text"], record["ner"]
    if _words(tokens) and isinstance(mentions, list):
        yield _row(record, *_joined(tokens, mentions, 0), "tokenized_text", "ner")


def _dygie(record: Row) -> Iterator[Row]:
    """Convert a record of SciERC or DyGIE++: `sentences` of tokens, and `ner` with token numbers.

    The numbers count from the first token of the document.
    """
    sentences, mentions = record["sentences"], record["ner"]
    if not isinstance(sentences, list) or not isinstance(mentions, list) or not all(map(_words, sentences)):
        return
    first = 0
    for i, tokens in enumerate(sentences):
        own = mentions[i] if i < len(mentions) and isinstance(mentions[i], list) else None
        text, spans = _joined(tokens, own, first)
        yield {"text": text, "label": spans, "doc_id": record.get("doc_key")}
        first += len(tokens)


def _spert(record: Row) -> Iterator[Row]:
    """Convert a record of SpERT or OneIE: `tokens`, and entities with token numbers; `end` is not included."""
    tokens, mentions = record["tokens"], record.get("entities", record.get("entity_mentions"))
    if not _words(tokens) or not isinstance(mentions, list) or isinstance(record.get("text"), str):
        return
    found = list[object]()
    for mention in mentions:
        kind = mention.get("type", mention.get("entity_type")) if isinstance(mention, Mapping) else None
        start, end = (mention.get("start"), mention.get("end")) if isinstance(mention, Mapping) else (None, None)
        found.append([start, end - 1 if isinstance(end, int) else None, kind])
    yield _row(record, *_joined(tokens, found, 0), "tokens", "entities", "entity_mentions", "sentence")


def _words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _fields(items: Sequence[object], *names: str) -> list[object]:
    """Return the named fields of each item, None if missing. The reader later rejects items with missing fields."""
    return [[item.get(name) for name in names] if isinstance(item, Mapping) else item for item in items]


def _joined(tokens: object, mentions: Sequence[object] | None, first: int) -> tuple[str, Spans]:
    """Join tokens by blanks, and return the text and its spans in characters.

    mentions: [first token, last token, type] of each mention; None if unlabelled. first: number of the first token.
    """
    words = [str(word) for word in tokens] if isinstance(tokens, list) else []
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))
    if mentions is None:
        return " ".join(words), None
    spans = list[object]()
    for mention in mentions:
        left, right, kind = mention[:3] if isinstance(mention, list) and len(mention) >= 3 else (None, None, None)
        if isinstance(left, int) and isinstance(right, int) and 0 <= left - first <= right - first < len(words):
            spans.append([starts[left - first], starts[right - first] + len(words[right - first]), kind])
        else:
            spans.append([None, None, kind])
    return " ".join(words), spans


_ADAPTERS: tuple[tuple[frozenset[str], Callable[[Row], Iterator[Row]]], ...] = (
    (frozenset({"textContent", "textSegmentAnnotations"}), _vertex),
    (frozenset({"content", "annotation"}), _dataturks),
    (frozenset({"document", "tokens"}), _ubiai),
    (frozenset({"tokenized_text", "ner"}), _gliner),
    (frozenset({"sentences", "ner"}), _dygie),
    (frozenset({"source"}), _ground_truth),
    (frozenset({"text", "label"}), _cluener),
    (frozenset({"text", "entities"}), _gate),
    (frozenset({"tokens", "entities"}), _spert),
    (frozenset({"tokens", "entity_mentions"}), _spert),
    (frozenset({"data"}), _wrapped),
)


def refuse_by_ending(path: Path) -> None:
    """Raise ReadError for a file whose extension belongs to a format that cannot be read."""
    if reason := _ENDINGS.get(path.suffix.lower()):
        raise ReadError(path.name, None, reason)


def tool_of(path: Path, head: str, options: ReadOptions) -> str:
    """Return the format of an export that is a single document or object; "" for a file of rows.

    head: first block of the file's text. Errors: ReadError with advice for an export that cannot be read.
    """
    # Search only the start of a file, because the patterns backtrack, which takes long in a long text.
    start = head.lstrip()[:_START]
    if is_webanno(start):
        return "webanno"
    if _PUBTATOR.match(start):
        return "pubtator"
    if _RASA_MARKDOWN.match(start):
        raise ReadError(path.name, 1, "is Markdown of Rasa 1; convert it to JSON (rasa data convert nlu -f json).")
    if start.startswith(("@prefix", "@base", "<http")) and "nif" in start:
        raise ReadError(path.name, 1, f"is NIF, a form of RDF that cannot be read; {_CONVERT}.")
    if _PYTHON.match(start):
        raise ReadError(
            path.name,
            1,
            "is Python source code, as in spaCy's tutorials; save the list with json.dump as a .json file.",
        )
    if start.startswith("<") and path.suffix.lower() in (".xml", ".bioc", ".gate", ".xmi"):
        return _of_xml(path, start)
    if start.startswith("{"):
        content = single_object(path, head, options)
        return "" if content is None else _of_object(path, content)
    return ""


def _of_xml(path: Path, start: str) -> str:
    root = found[1] if (found := _ROOT.match(start)) else ""
    if root in _XML:
        return _XML[root]
    if root == "xmi:XMI" or "uima" in start:
        raise ReadError(path.name, 1, "is UIMA CAS XMI; export the documents as WebAnno TSV 3.3 instead.")
    raise ReadError(path.name, 1, f"is XML (<{root}>), but only GATE and BioC can be read; {_CONVERT}.")


def single_object(path: Path, head: str, options: ReadOptions) -> Mapping[str, Any] | None:
    """Return the file's content if it is a single JSON object; None for JSON lines and any other content."""
    first, _, rest = head.strip().partition("\n")
    if rest.strip() and _is_json(first):
        return None
    try:
        content = json.loads(whole_text(path, Ledger(options), MAX_OBJECT) or "null")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _of_object(path: Path, content: Mapping[str, Any]) -> str:
    """Return the tool that exports its rows within an object like `content`; "" if the object itself is a row."""
    if "%FEATURE_STRUCTURES" in content or "%TYPES" in content:
        raise ReadError(path.name, 1, "is UIMA CAS JSON; export the documents as WebAnno TSV 3.3 instead.")
    if "annotatable" in content and "entities" in content:
        raise ReadError(path.name, 1, TAGTOG)
    tool = next((tool for tool, rows in _ROWS_OF.items() if rows(content) is not None), "")
    known = tool or why_refused(list(content), [content])
    if not known and not any(isinstance(content.get(name), str) for name in TEXTS):
        lists = [name for name in content if name != "data" and _with(content, name, _is_text)]
        if lists:
            names = ", ".join(map(repr, lists))
            problem = f"is one JSON object whose rows are in {names}; save each list as a .json file of its own."
            raise ReadError(path.name, 1, problem)
    return tool


def _is_text(row: object) -> bool:
    """Return True for a row with a text, False for a span that quotes its text."""
    usual = isinstance(row, dict) and any(isinstance(row.get(name), str) for name in TEXTS)
    return usual and not is_usable(row)


def _listed(content: Mapping[str, Any], *names: str) -> list[Any] | None:
    """Return the list at `content[name][name]...`, for all `names` in order; None if there is no list."""
    value: Any = content
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else None


def _with(content: Mapping[str, Any], name: str, fits: Callable[[object], bool]) -> list[Any] | None:
    """Return the list `content[name]` if `fits` returns True for any of its items, else None."""
    rows = _listed(content, name)
    return rows if rows and any(map(fits, rows)) else None


_ROWS_OF: dict[str, Callable[[Mapping[str, Any]], list[Any] | None]] = {
    "rasa": lambda content: _listed(content, "rasa_nlu_data", "common_examples"),
    "lighttag": lambda content: _with(content, "examples", lambda row: isinstance(row, dict) and "content" in row),
    "bioc": lambda content: (
        _with(content, "documents", lambda row: isinstance(row, dict) and "passages" in row)
        or _listed(content, "PubTator3")
    ),
    "spacy": lambda content: (
        _with(content, "annotations", lambda row: isinstance(row, list))  # written by the tool NER Annotator
        or ([content] if _listed(content, "paragraphs") is not None else None)
    ),
}


def object_rows(path: Path, tool: str, ledger: Ledger) -> Iterator[Record]:
    """Yield the rows within a file that is a single JSON object. Their line number is always 1."""
    content = json.loads(whole_text(path, ledger, MAX_OBJECT) or "{}")
    for row in _ROWS_OF[tool](content) or ():
        if (record := as_row(row)) is not None:
            yield 1, record
        else:
            ledger.skip(1, "a text without annotations" if row is None else "an item without text and annotations")
