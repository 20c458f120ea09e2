"""Read texts with character spans: rows of JSON or of a table, HTML (Label Studio), and the .txt and .ann of brat.

In HTML, offsets count within elements of the page. Annotations of HTML are therefore found by their quoted text.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TypeGuard

from core.corpora.formats.ledger import Ledger, Record
from core.corpora.formats.sentences import ANOTHER, Mark, Region, fitted, from_spans
from core.corpora.formats.source import MAX_TEXT, open_bytes, open_stream
from core.errors import EncodingError, ReadError
from core.paths import is_there
from core.text.sentence import Sentence

SPANS = ("label", "labels", "entities", "ents", "spans", "annotations", "annotation", "denotations")
TEXTS = ("text", "data", "content", "sentence")
UNANSWERED = "the text is not fully labelled, so missing labels are unknown, not O"
_CLASSES = "its labels are classes of the whole text, not spans with a start and an end; export a project with spans"
_NUMBERS = (
    "its labels are numbers, and their names are not in the file; export the data from doccano as JSONL (Text label),"
    " or replace the numbers by names"
)
_BINARY = (
    "its answers are about single spans, so the labels of other words are unknown, not O; label the whole text"
    " (ner.correct), or keep such texts with --keep-lost"
)
_DIALOGUE = "its offsets count within the paragraphs of a dialogue, not within a text; use the tag Text in Label Studio"
ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}://|/data/)\S+")  # matches an address in place of a text
_INCOMPLETE = "an annotation without a start, an end and a type; name its fields start, end and label"
_SPAN_LIST, _ENTITIES = re.compile(r"\[.*\]", re.DOTALL), re.compile(r"\{\s*[\"']entities[\"'].*\}", re.DOTALL)
# Views of Prodigy in which an answer is about one span, not about the whole text.
_BINARY_VIEWS = ("ner", "binary")
# Views of Prodigy in which an answer is about the whole text.
_WHOLE_VIEWS = ("choice", "text", "text_input")
# Fields by which Label Studio marks invalid annotations.
_CANCELLED = ("was_cancelled", "was_canceled", "skipped")
# Fields of a row in JSON-MIN or CSV that describe the annotation.
_OF_ANSWER = frozenset({"annotator", "created_at", "updated_at", "annotation_id"})
# HTML elements that end a line of text.
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "h1", "h2"}
    | {"h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul"}
)
_SILENT = frozenset({"script", "style", "head", "template"})
_Named = tuple[str | None, str | None]  # (document, group) of a row
_Place = tuple[str | None, int | None]  # (file, page) of a row
_Columns = tuple[tuple[str, str], ...]  # further columns of a row
_NOWHERE = ((-1, -1),)  # fragment of a mark that was not found in the text; `fitted` rejects the mark


def from_marks(
    text: str,
    marks: Sequence[Mark],
    line: int | None,
    ledger: Ledger,
    *,
    who: str | None = None,
    by_line: bool = False,
    cut_too: bool = False,
    lost: Sequence[Region] = (),
) -> Iterator[Sentence]:
    """Yield the sentences of a text with the annotations of one annotator.

    who: name of the annotator; None if the file names no annotator. by_line, cut_too, lost: see `from_spans`.
    """
    if ledger.panel:
        labels = frozenset((mark.fragments, mark.type) for mark in marks)
        if not ledger.panel.takes(text, labels, who, ledger.listed):
            ledger.skip(line, ANOTHER)
            return
    spans, more = fitted(text, marks, line, ledger)
    yield from from_spans(text, spans, line, ledger, by_line=by_line, cut_too=cut_too, lost=(*lost, *more))


def read_doccano(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of rows with a text and a list of spans, as doccano, spaCy and other tools write them."""
    for line, record in records:
        text, items = _text(record, ledger), _items(record, ledger.fields.spans)
        if text is None:
            ledger.reject(
                line,
                'expected a text under "text" and a list of spans under "label"; add what is missing',
                str(dict(record)),
            )
        elif items is None:
            ledger.skip(line, UNANSWERED)
        elif items and all(isinstance(item, str) for item in items):
            ledger.reject(line, _CLASSES, str(dict(record)))
        else:
            yield from _by_users(text, items, line, record, ledger)


def _text(record: Mapping[str, object], ledger: Ledger) -> str | None:
    column = ledger.options.text_column
    names = (column,) if column else (ledger.fields.text or TEXTS[0], *TEXTS)
    return next((value for name in names if isinstance(value := record.get(name), str)), None)


def _items(record: Mapping[str, object], field: str | None) -> list[object] | None:
    """Return the list of spans in a row, None if the row was not annotated. field: field of the spans, if known."""
    if field is not None:
        return value if isinstance(value := record.get(field), list) else None
    named = [value for key in SPANS if isinstance(value := record.get(key), list)]
    by_name = record.get("spans")  # spaCy writes {name of a group of spans: spans}
    groups = [value for value in by_name.values() if isinstance(value, list)] if isinstance(by_name, Mapping) else []
    free = [value for value in record.values() if isinstance(value, list) and value and _is_span(value[0])]
    # Prefer lists with items, because spaCy and flair also write empty lists.
    found = next(iter([*filter(None, named), *filter(None, groups), *named, *groups, *free]), None)
    # An annotated row without a list has no spans: Label Studio then leaves the column out.
    return [] if found is None and record.get("annotation_id") is not None else found


def _is_span(value: object) -> bool:
    return isinstance(value, Mapping) and "start" in value and "end" in value


def _by_users(
    text: str, items: list[object], line: int, record: Mapping[str, object], ledger: Ledger
) -> Iterator[Sentence]:
    """Yield the sentences of a row. If its spans name several users (old doccano), each user is an annotator."""
    users = dict.fromkeys(item.get("user") for item in items if isinstance(item, Mapping))
    if len(users) > 1:
        for user in users:
            own = [item for item in items if isinstance(item, Mapping) and item.get("user") == user]
            marks, lost = marks_of(own, text, line, ledger)
            yield from from_marks(text, marks, line, ledger, who=str(user), lost=lost)
        return
    who = record.get("annotator")
    marks, lost = marks_of(items, text, line, ledger)
    yield from from_marks(
        text, marks, line, ledger, who=None if not who else _person(who), by_line=is_markup(items), lost=lost
    )


def _person(value: object) -> str:
    """Return an annotator's name: the mail address, user name or id in a JSON object, or any other value as text."""
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("username") or value.get("id")
    return str(value)


def read_prodigy(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of Prodigy's rows. Rows with the answer reject or ignore are skipped.

    A row is `{"text", "spans": [{start, end, label}], "answer"}`. A binary answer (recipe ner.teach) is about one span
    and does not label the rest of the text. Texts with binary answers are counted and left out. With the option
    `keep_lost`, each text with binary answers gives one sentence with its accepted spans.
    """
    binary: dict[tuple[str | None, str], list[Record]] = {}
    # Texts with binary answers are yielded last. The ledger must then have what the text's own first row says.
    named: dict[tuple[str | None, str], tuple[_Named, _Place, _Columns]] = {}
    for line, record in records:
        answer = record.get("answer", "accept")
        text, items = record.get("text"), record.get("spans") or []
        session = record.get("_annotator_id") or record.get("_session_id")
        who = str(session) if session else None
        if isinstance(text, str) and isinstance(items, list) and _is_binary(record, items):
            binary.setdefault((who, text), []).append((line, record))
            named.setdefault((who, text), (ledger.named, ledger.place, ledger.columns))
        elif record.get("_view_id") == "classification" or (
            record.get("_view_id") in _WHOLE_VIEWS and "spans" not in record
        ):
            ledger.skip(line, "an answer about the whole text, not about spans")
        elif answer != "accept":
            meaning = answer if answer in ("reject", "ignore") else "none of accept, reject and ignore"
            ledger.skip(line, f"the answer is {meaning}")
        elif not isinstance(text, str) or not isinstance(items, list):
            ledger.reject(
                line, 'expected a text under "text" and a list under "spans"; add what is missing', str(dict(record))
            )
        else:
            marks, lost = marks_of(items, text, line, ledger)
            yield from from_marks(text, marks, line, ledger, who=who, lost=lost)
    for (who, text), rows in binary.items():
        ledger.named, ledger.place, ledger.columns = named[who, text]
        yield from _gathered(text, rows, who, ledger)


def _is_binary(record: Mapping[str, object], items: Sequence[object]) -> bool:
    scored = any(isinstance(item, Mapping) and "score" in item for item in items)
    return (
        bool(record.get("_binary"))
        or record.get("_view_id") in _BINARY_VIEWS
        or (scored and "_view_id" not in record and len(items) == 1)
    )


def _gathered(text: str, rows: Sequence[Record], who: str | None, ledger: Ledger) -> Iterator[Sentence]:
    """Yield a sentence with the accepted spans of all binary answers about a text, if `keep_lost` is set."""
    accepted = [
        item
        for _, record in rows
        if record.get("answer") == "accept" and isinstance(items := record.get("spans"), list)
        for item in items
    ]
    first, *others = (line for line, _ in rows)
    kept = bool(accepted) and ledger.options.keep_lost
    if not kept:
        ledger.skip(first, _BINARY if accepted else f"none of its spans was accepted; {UNANSWERED}")
    for line in others:
        ledger.skip(line, f"a further binary answer about the text in line {first}")
    if accepted:
        ledger.partial(first)
    if not kept:
        return
    marks, lost = marks_of(list(dict.fromkeys(map(_frozen, accepted))), text, first, ledger)
    yield from from_marks(text, marks, first, ledger, who=who, lost=lost)


def _frozen(item: object) -> tuple[object, ...]:
    if not isinstance(item, Mapping):
        return (item,)
    return item.get("start"), item.get("end"), item.get("label")


def read_label_studio(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of Label Studio's tasks (`data`, `annotations`), or of its rows in JSON-MIN or CSV.

    Predictions and cancelled annotations are skipped.
    """
    for line, task in records:
        data = task.get("data")
        if "annotation_id" in task and not isinstance(data, Mapping):
            yield from _of_min(line, task, ledger)
            continue
        text = _task_text(texts_of(task), ledger)
        answers = task.get("annotations", task.get("completions"))
        if text is not None and ADDRESS.fullmatch(text):
            reason = "its text is an address, but offsets need the text at this address; put the text into the task"
            ledger.reject(line, reason, str(dict(task)))
            continue
        if text is None or not isinstance(answers, list):
            ledger.reject(
                line,
                'expected a task with a text in "data", and with "annotations"; export it as JSON',
                str(dict(task)),
            )
            continue
        given = [a for a in answers if isinstance(a, Mapping) and not any(map(a.get, _CANCELLED))]
        given = [a for a in given if a.get("ground_truth")] or given
        if not given:
            predicted = "; its predictions are not annotations" if task.get("predictions") else ""
            ledger.skip(line, f"a task without an annotation{predicted}")
        for i, answer in enumerate(given):
            by = answer.get("completed_by") or (f"annotation {i + 1}" if len(given) > 1 else None)
            yield from _answer(text, answer, _person(by) if by else None, line, ledger)


def _of_min(line: int, record: Mapping[str, object], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a row in Label Studio's JSON-MIN or CSV, which has the fields of task and annotation."""
    text = _task_text(texts_of(record), ledger)
    if text is None:
        ledger.reject(line, "expected a column with the text of the task; export that column too", str(dict(record)))
        return
    answer = {"result": [{"value": item} for item in answers_of(record)]}
    yield from _answer(text, answer, _person(record["annotator"]) if record.get("annotator") else None, line, ledger)


def _answer(text: str, answer: Mapping[str, object], who: str | None, line: int, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a Label Studio task, with the labels of one of its annotations."""
    result = answer.get("result") or []
    if not isinstance(result, list):
        ledger.reject(
            line, 'expected a list under "result" of its annotation; export the task again', str(dict(answer))
        )
        return
    values = [item["value"] for item in result if isinstance(item, Mapping) and isinstance(item.get("value"), Mapping)]
    if any("paragraphlabels" in value for value in values):
        ledger.reject(line, _DIALOGUE, str(dict(answer)))
        return
    items = [value for value in values if "labels" in value or "hypertextlabels" in value]
    marks, lost = marks_of(items, text, line, ledger)
    if is_markup(items):
        text = rendered(text)
    yield from from_marks(text, marks, line, ledger, who=who, by_line=is_markup(items), lost=lost)


def why_no_spans(tasks: Sequence[Mapping[str, object]]) -> str:
    """Return why tasks of Label Studio have no spans of text; "" if they may have spans.

    Annotations without a result are ignored.
    """
    kinds = set[str]()
    for task in tasks:
        for answer in _lists_of(task.get("annotations", task.get("completions"))):
            for item in _lists_of(answer.get("result")):
                value = item.get("value")
                kinds.update(map(str, value) if isinstance(value, Mapping) else ())
    if not kinds or kinds & {"labels", "hypertextlabels"}:
        return ""
    if "paragraphlabels" in kinds:
        return _DIALOGUE
    what = ", ".join(sorted(kind for kind in kinds if kind.endswith("labels") or kind == "choices")) or "other answers"
    return f"its tasks have {what}, but no spans of a text; use the tags Text and Labels in Label Studio"


def _lists_of(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _task_text(texts: Mapping[str, str], ledger: Ledger) -> str | None:
    """Return the text of a task. texts: see `texts_of`."""
    if column := ledger.options.text_column:
        return texts.get(column)
    names = (name for name in (ledger.fields.text, "text") if name in texts)
    # Tasks of one file may have different fields. The longest value is probably the text, not a title.
    return next((texts[name] for name in names if name), max(texts.values(), key=len, default=None))


def texts_of(task: Mapping[str, object]) -> dict[str, str]:
    """Return the values that may be the text of a task of Label Studio, or of a row in JSON-MIN or CSV, by field."""
    data = task.get("data")
    fields = data if isinstance(data, Mapping) else task if "annotation_id" in task else {}
    names = [name for name in fields if fields is data or name not in _OF_ANSWER]
    return {name: value for name in names if isinstance(value := fields[name], str)}


def answers_of(task: Mapping[str, object]) -> list[object]:
    """Return the regions of all annotations of a task of Label Studio, or of a row in JSON-MIN or CSV."""
    if "annotation_id" in task and not isinstance(task.get("data"), Mapping):
        # Each control has a field of its own. Other fields, such as lists of choices, have no regions.
        return [item for value in task.values() for item in _lists_of(value)]
    results = (answer.get("result") for answer in _lists_of(task.get("annotations", task.get("completions"))))
    return [item.get("value") for result in results for item in _lists_of(result)]


def marks_of(items: Sequence[object], text: str, line: int, ledger: Ledger) -> tuple[list[Mark], list[Region]]:
    """Return the usable annotations as `Mark`s, and the regions of the text whose annotations could not be used."""
    marks, lost = list[Mark](), list[Region]()
    for item in items:
        start, end, kind, quote = parts_of(item)
        if isinstance(kind, list) and kind:
            for other in kind[1:]:
                ledger.reject_span(
                    line, f"a second type {str(other)[:40]!r} for the span from {start} to {end}; keep one"
                )
                lost.append((start, end) if _whole(start) and _whole(end) else (0, len(text)))
            kind = kind[0]
        if _whole(kind) and _whole(start):
            raise ReadError(ledger.file, line, f"{_NUMBERS}.")
        if isinstance(start, str) and isinstance(kind, str) and is_markup([item]):
            marks += by_text(item, kind, text)
            continue
        start, end = number(start), number(end)
        if not _whole(start) or not _whole(end) or not isinstance(kind, str):
            ledger.reject_span(line, _INCOMPLETE, str(item))
            lost.append((0, len(text)))
            continue
        marks.append(Mark(((start, end),), kind, quote if isinstance(quote, str) else None))
    return marks, lost


def parts_of(item: object) -> tuple[object, object, object, object]:
    """Return (start, end, type, quoted text) of an annotation, None if missing. In Argilla 1, the type comes first."""
    if isinstance(item, list | tuple) and len(item) >= 3:
        a, b, c = item[:3]
        return (b, c, a, None) if isinstance(a, str) and not a.isdecimal() else (a, b, c, None)
    if not isinstance(item, Mapping):
        return None, None, None, None
    place = item.get("span")  # an object in PubAnnotation, a pair in Japanese data sets
    if isinstance(place, Mapping):
        item = {**item, **place}
    elif isinstance(place, list) and len(place) == 2:
        item = {**item, "start": place[0], "end": place[1]}
    start = next((item[name] for name in ("start", "start_offset", "begin", "start_pos") if name in item), None)
    end = next((item[name] for name in ("end", "end_offset", "end_pos") if name in item), None)
    names = ("label", "labels", "hypertextlabels", "type", "entity", "entity_type", "label_type", "obj", "tag")
    kind = next((item[name] for name in names if name in item), None)
    if isinstance(kind, list) and all(isinstance(each, Mapping) for each in kind):  # types in flair's format
        kind = [each.get("value") for each in kind]
    return start, end, kind, item.get("text")


def is_usable(item: object) -> bool:
    """Return True if an annotation has a start, an end and a type."""
    start, end, kind, _ = parts_of(item)
    kinds = kind if isinstance(kind, list) and kind else [kind]
    named = all(isinstance(each, str) and each for each in kinds)
    return _whole(number(start)) and _whole(number(end)) and named


def number(value: object) -> object:
    """Convert a decimal string, or a float without decimals (from pandas), to an int; return other values unchanged."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value


def _whole(value: object) -> TypeGuard[int]:
    # Exclude bool, because it is a subclass of int.
    return isinstance(value, int) and not isinstance(value, bool)


def with_lists(record: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row, in which values with lists of spans as text (in JSON or Python notation) are parsed."""
    read = {name: items for name in record if name not in TEXTS and (items := _spans_in(record[name])) is not None}
    return {**record, **read} if read else record


def _spans_in(cell: object) -> list[object] | None:
    """Parse a cell with a list of spans in JSON or Python notation. Return None for any other cell.

    The list may be in an object {"entities": list}, as in spaCy's pairs.
    """
    if not isinstance(cell, str) or not (_SPAN_LIST.fullmatch(cell) or _ENTITIES.fullmatch(cell)):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        value = value.get("entities") if isinstance(value, dict) else value
        if isinstance(value, list) and all(isinstance(item, dict | list | tuple) for item in value):
            return value
    return None


def read_brat(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the lines of a .txt file as sentences, with the annotations in the .ann file of the same name."""
    notes = path.with_suffix(".ann")
    if not is_there(notes):
        ledger.reject(
            None, "there is no .ann file of the same name in its folder; add it, empty if nothing is annotated"
        )
        return
    text = whole_text(path, ledger)
    if text is None:
        return
    ledger.file = notes.name
    with open_bytes(notes) as stream:
        empty = not stream.peek(1)
    content = "" if empty else whole_text(notes, ledger)
    marks, lost = list[Mark](), list[Region]()
    for line, row in enumerate((content or "").split("\n"), 1):
        if row.startswith("T"):
            mark = _brat_mark(row, line)
            if mark is None:
                ledger.reject_span(
                    line, "expected an id, a tab, and a type with its start and end; complete the line", row
                )
                lost.append((0, len(text)))
            else:
                marks.append(mark)
    if content is not None:
        # The ledger names the .ann file for problems with annotations, and the .txt file for sentences.
        for sentence in from_marks(text, marks, None, ledger, by_line=True, lost=lost):
            ledger.file = path.name
            yield sentence
        ledger.file = path.name


def whole_text(path: Path, ledger: Ledger, most: int = MAX_TEXT) -> str | None:
    """Return the whole text of a file. If the file has more than `most` bytes, reject it and return None."""
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        raw = stream.read(most + 1)
    if len(raw) > most:
        ledger.reject(None, f"more than {most:,} bytes in one document; divide it")
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise EncodingError(path.name, line, "not UTF-8; give the files' encoding, for example cp1252.") from error


def _brat_mark(row: str, line: int) -> Mark | None:
    """Parse brat's line `T1<TAB>Type start end;start end<TAB>text`. Return None for any other line."""
    parts = row.rstrip("\r").split("\t")
    kind, _, numbers = parts[1].partition(" ") if len(parts) > 1 else ("", "", "")
    pairs = [pair.split(" ") for pair in numbers.split(";")]
    if not kind or any(len(pair) != 2 or not all(number.isdecimal() for number in pair) for pair in pairs):
        return None
    fragments = tuple((int(start), int(end)) for start, end in pairs)
    return Mark(fragments, kind, parts[2] if len(parts) > 2 else None, line, parts[0])


class _Text(HTMLParser):
    """Collects the text of an HTML page, one line per block element."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in _SILENT
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(self._silent - (tag in _SILENT), 0)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")


def is_markup(items: Sequence[object]) -> bool:
    """Return True if the offsets of annotations count within HTML elements."""
    return any(isinstance(item, Mapping) and ("hypertextlabels" in item or "startOffset" in item) for item in items)


@lru_cache(maxsize=2)  # cached, because it is called for each annotation of a page
def rendered(markup: str) -> str:
    """Return the text of an HTML page, one line per block element. Text without tags is returned unchanged."""
    if "<" not in markup:
        return markup
    parser = _Text()
    parser.feed(markup)
    parser.close()
    lines = (line.strip(" ") for line in "".join(parser.parts).split("\n"))
    return "\n".join(filter(None, lines)).strip()


def by_text(item: object, kind: str, markup: str) -> Iterator[Mark]:
    """Yield an annotation of an HTML page as a `Mark`, at the position of its quoted text.

    If the quoted text does not occur exactly once in the page, the mark has a position that `fitted` rejects.
    kind: type of the annotation.
    """
    quote = item.get("text") if isinstance(item, Mapping) else None
    text = rendered(markup)
    sought = " ".join(quote.replace("\\n", " ").split()) if isinstance(quote, str) else ""
    plain, places = _even(text)
    start = plain.find(sought) if sought else -1
    if start >= 0 and plain.find(sought, start + 1) < 0:
        yield Mark(((places[start], places[start + len(sought) - 1] + 1),), kind, str(quote))
    else:
        yield Mark(_NOWHERE, kind)


@lru_cache(maxsize=2)
def _even(text: str) -> tuple[str, tuple[int, ...]]:
    """Replace each run of white space by one blank. Return the result, and each character's position in `text`."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        even = " " if char.isspace() else char
        if even != " " or chars[-1:] != [" "]:
            chars.append(even)
            places.append(place)
    return "".join(chars), tuple(places)
