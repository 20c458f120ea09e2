"""Read exports of further annotation tools: spaCy, Argilla, LightTag, BioC, PubTator, GATE."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from core.corpora.formats.annotated import UNANSWERED, from_marks, marks_of, read_doccano, whole_text
from core.corpora.formats.ledger import Ledger, Record
from core.corpora.formats.sentences import Mark, Region, Tagged, from_tags
from core.errors import ReadError
from core.text.sentence import Sentence

MAX_PUBTATOR = 64 << 20  # maximum size of a PubTator file, in bytes
_TITLE = re.compile(r"(\w{1,40})\|([ta])\|(.*)")
MAX_XML = 32 << 20  # maximum size of an XML file, in bytes
_SERVICE = frozenset(
    ("Token", "SpaceToken", "DEFAULT_TOKEN", "Sentence", "Split", "Lookup", "paragraph", "VG", "NounChunk", "Temp")
)
_MARKUP, _KEY = "Original markups", "Key"
# Fields of a record of Argilla that describe the record, if its own fields are not in `fields`.
_OF_RECORD = frozenset(
    {"id", "_server_id", "external_id", "status", "annotation_agent", "prediction_agent", "event_timestamp", "vectors"}
)


def read_spacy(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of spaCy's records: a text with entities, or paragraphs of sentences with BILUO tags."""
    for line, record in records:
        if isinstance(record.get("paragraphs"), list):
            yield from _paragraphs(line, record, ledger)
        else:
            yield from read_doccano(iter([(line, record)]), ledger)


def _paragraphs(line: int, record: Mapping[str, Any], ledger: Ledger) -> Iterator[Sentence]:
    for paragraph in _dicts(record["paragraphs"]):
        if "entities" in paragraph and isinstance(paragraph.get("raw"), str):
            row = {"text": paragraph["raw"], "entities": paragraph["entities"]}
            yield from read_doccano(iter([(line, row)]), ledger)
            continue
        for sentence in _dicts(paragraph.get("sentences")):
            tokens = _dicts(sentence.get("tokens"))
            words: list[Any] = [each.get("orth") for each in tokens]
            tags: list[Any] = [each.get("ner", "-") for each in tokens]
            if "-" in tags:
                ledger.skip(line, f"a sentence has tokens without a tag; {UNANSWERED}")
            elif words and all(isinstance(each, str) and each for each in (*words, *tags)):
                yield from from_tags(Tagged(ledger.doc, words, tags, [line] * len(words)), "bilou", ledger)
            else:
                ledger.reject(line, 'expected tokens with "orth" and "ner"; add what is missing', str(sentence))


def read_argilla(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of records of Argilla 1 and 2. Suggestions, predictions and drafts are ignored."""
    for line, record in records:
        status = str(record.get("status") or "").lower()
        text = _argilla_text(record, ledger)
        if text is None:
            ledger.reject(line, 'expected a text under "text" or in "fields"; add the text', str(dict(record)))
            continue
        answers = list(argilla_answers(record))
        if status == "discarded" and "fields" not in record:
            answers = []
        if not answers:
            ledger.skip(
                line, f"no submitted answer (suggestions, drafts and discarded answers are ignored); {UNANSWERED}"
            )
        several = len(answers) > 1
        for i, (who, items) in enumerate(answers):
            marks, lost = marks_of(items, text, line, ledger)
            name = who or (f"annotator {i + 1}" if several else None)
            yield from from_marks(text, marks, line, ledger, who=name, lost=lost)


def _argilla_text(record: Mapping[str, Any], ledger: Ledger) -> str | None:
    texts = argilla_texts(record)
    names = [ledger.options.text_column] if ledger.options.text_column else [ledger.fields.text, "text"]
    return next((texts[name] for name in names if name in texts), None)


def argilla_texts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that may be the text of a record of Argilla, by field."""
    fields = record.get("fields")
    if not isinstance(fields, Mapping):
        # In a table, the columns of a question have names such as `span_label.responses`.
        fields = {name: value for name, value in record.items() if name not in _OF_RECORD and "." not in name}
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def argilla_answers(record: Mapping[str, Any]) -> Iterator[tuple[str | None, list[Any]]]:
    """Yield (user, spans) of each submitted answer in a record of any Argilla version. user: None if unknown.

    A user's spans of all questions are one answer. Otherwise, the text would be read once per question.
    """
    if isinstance(record.get("annotation"), list):  # Argilla 1.x
        yield str(record.get("annotation_agent") or "") or None, record["annotation"]
    answers = dict[tuple[str, int], list[Any]]()
    for i, response in _argilla_responses(record):
        if response.get("status", "submitted") in ("submitted", None) and _are_spans(response.get("value")):
            user = str(response.get("user_id") or "")
            answers.setdefault((user, 0 if user else i), []).extend(response["value"])
    for (user, _), items in answers.items():
        yield user or None, items


def _argilla_responses(record: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (number among the answers to its question, answer) of each answer to a question of a record.

    An answer is an object with `value`, `user_id` and, if known, `status`.
    """
    responses = record.get("responses")
    if isinstance(responses, list):  # Argilla 1.x, feedback data set: a response answers all questions
        for i, response in enumerate(_dicts(responses)):
            values = response.get("values")
            for answer in _dicts(list(values.values())) if isinstance(values, dict) else ():
                yield i, {**response, "value": answer.get("value")}
    if isinstance(responses, Mapping):  # Argilla 2.x: {question: responses}
        for question in responses.values():
            yield from enumerate(_dicts(question))
    for name, values in record.items():
        if name.endswith(".responses") and isinstance(values, list):  # Argilla 2.x as a table: a column per question
            users, states = record.get(f"{name}.users"), record.get(f"{name}.status")
            for i, value in enumerate(values):
                yield i, {"value": value, "user_id": _at(users, i), "status": _at(states, i)}
        elif name != "responses" and _are_responses(values):  # feedback data set as a table
            yield from enumerate(_dicts(values))


def _at(values: object, i: int) -> object:
    return values[i] if isinstance(values, list) and i < len(values) else None


def _are_spans(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "start" in each for each in value)


def _are_responses(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, Mapping) and "user_id" in e for e in value)


def read_lighttag(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of LightTag's records. Of reviewed annotations, read only those marked as correct."""
    for line, record in records:
        text, items = record.get("content"), record.get("annotations")
        if not isinstance(text, str) or not isinstance(items, list):
            ledger.reject(
                line, 'expected "content" and a list under "annotations"; add what is missing', str(dict(record))
            )
            continue
        found = _dicts(items)
        if any(each.get("correct") is not None for each in found):
            answers: dict[str | None, list[Any]] = {None: [each for each in found if each.get("correct")]}
        else:
            answers = _by_annotator(found, record.get("seen_by"))
        if not answers:
            ledger.skip(line, UNANSWERED)
        for who, own in answers.items():
            marks = [{**each, "label": each.get("tag"), "text": each.get("value")} for each in own]
            fitting, lost = marks_of(marks, text, line, ledger)
            yield from from_marks(text, fitting, line, ledger, who=who, lost=lost)


def _by_annotator(items: Sequence[Mapping[str, Any]], seen_by: object) -> dict[str | None, list[Any]]:
    """Return {annotator: annotations}, with [] for an annotator who saw the text but marked nothing."""
    people = {_annotator(each): list[Any]() for each in _dicts(seen_by)}
    for item in items:
        for each in _dicts(item.get("annotated_by")) or [{}]:
            people.setdefault(_annotator(each), []).append(item)
    if len(people) > 1 and None in people:  # drop annotations without an annotator if others have one
        people.pop(None)
    return people


def _annotator(value: Mapping[str, Any]) -> str | None:
    who = value.get("annotator") or value.get("annotator_id")
    return str(who) if who else None


def read_bioc(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of the passages in BioC documents.

    An annotation may have several locations. It may belong to the document, a passage, or a sentence of a passage.
    """
    for line, document in records:
        doc = ledger.doc
        ledger.doc = str(document.get("id") or "") or doc
        parts = list[tuple[str, dict[str, Any]]]()
        outer = _dicts(document.get("annotations"))  # annotations that do not belong to the parts that are read
        for passage in _dicts(document.get("passages")):
            inner = [part for part in _dicts(passage.get("sentences")) if part.get("text")]
            outer += _dicts(passage.get("annotations")) if inner else []
            parts += [(text, part) for part in inner or [passage] if isinstance(text := part.get("text"), str)]
        placed = [(*_extent(each), each) for each in outer]
        for text, part in parts:
            start = _number(part.get("offset")) or 0
            end = start + len(text)
            own = _dicts(part.get("annotations"))
            own += [each for first, last, each in placed if first < end and start < last]
            yield from _passage(text, {**part, "annotations": own}, line, ledger)
        borders = [(start := _number(part.get("offset")) or 0, start + len(text)) for text, part in parts]
        for first, last, each in placed:
            if not any(first < end and start < last for start, end in borders):
                ledger.reject_span(
                    line, "an annotation outside of all passages and sentences; correct its offset", str(each)
                )
        ledger.doc = doc


def _extent(annotation: Mapping[str, Any]) -> tuple[float, float]:
    """Return the start of an annotation's first location and the end of its last one.

    An annotation without a location gets an extent that overlaps every text.
    """
    locations = _dicts(annotation.get("locations"))
    places = [(_number(each.get("offset")), _number(each.get("length"))) for each in locations]
    known = [(start, start + n) for start, n in places if start is not None and n is not None]
    return (min(start for start, _ in known), max(end for _, end in known)) if known else (-inf, inf)


def _passage(text: str, part: Mapping[str, Any], line: int, ledger: Ledger) -> Iterator[Sentence]:
    marks, lost, offset = list[Mark](), list[Region](), _number(part.get("offset")) or 0
    for each in _dicts(part.get("annotations")):
        infons = each.get("infons")
        kind = infons.get("type") if isinstance(infons, Mapping) else None
        places = [
            (_number(place.get("offset")), _number(place.get("length"))) for place in _dicts(each.get("locations"))
        ]
        if not kind or not places or any(start is None or length is None for start, length in places):
            ledger.reject_span(line, "an annotation without a type and a location; add what is missing", str(each))
            lost.append((0, len(text)))
            continue
        fragments = tuple((a - offset, a - offset + n) for a, n in places if a is not None and n is not None)
        quote = each.get("text")
        marks.append(Mark(fragments, str(kind), quote if isinstance(quote, str) else None))
    yield from from_marks(text, marks, line, ledger, cut_too=True, lost=lost)


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else None


def _dicts(values: object) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def read_pubtator(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of the title and abstract of each article in a PubTator file."""
    whole = whole_text(path, ledger, MAX_PUBTATOR)
    line = 1
    for block in re.split(r"\n[ \t]*(?=\r?\n)", whole or ""):
        yield from _article(block, line, ledger)
        line += block.count("\n") + 1


def _article(block: str, line: int, ledger: Ledger) -> Iterator[Sentence]:
    texts, marks, doc = list[str](), list[Mark](), ledger.doc
    for i, row in enumerate(each.rstrip("\r") for each in block.split("\n")):
        cells = row.split("\t")
        if found := _TITLE.fullmatch(row):
            ledger.doc = found[1]
            texts.append(found[3])
        elif len(cells) >= 5 and cells[1].isdecimal() and cells[2].isdecimal():
            marks.append(Mark(((int(cells[1]), int(cells[2])),), cells[4], cells[3], line + i))
    if texts:
        yield from from_marks("\n".join(texts), marks, line, ledger, by_line=True, cut_too=True)
    ledger.doc = doc


def parsed(path: Path, ledger: Ledger) -> Element | None:
    """Return the root element of an XML file. If the file is too long, reject it and return None. Errors: ReadError."""
    text = whole_text(path, ledger, MAX_XML)
    if text is None:
        return None
    try:
        root: Element = fromstring(text.encode())
    except DefusedXmlException as error:
        raise ReadError(path.name, 1, "declares XML entities, as attacks do; export it again.") from error
    except ParseError as error:
        raise ReadError(path.name, error.position[0], "is not well-formed XML; export it again.") from error
    except (ValueError, LookupError, RecursionError) as error:
        raise ReadError(path.name, 1, "cannot be read as XML; export it again as UTF-8.") from error
    return root


def read_gate(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a GATE document. Each named annotation set is taken for the work of one annotator.

    If there is a set "Key" (the gold labels in GATE), only this set is read.
    """
    root = parsed(path, ledger)
    body = None if root is None else root.find("TextWithNodes")
    if root is None or body is None:
        if root is not None:
            raise ReadError(path.name, 1, "has no TextWithNodes; save it in GATE as GATE XML.")
        return
    text, nodes = _with_nodes(body)
    sets = dict(_sets(root, nodes))
    named = {name: marks for name, marks in sets.items() if name}
    chosen = {_KEY: named[_KEY]} if _KEY in named else named or {"": sets.get("", [])}
    for name, marks in chosen.items():
        who = name if len(chosen) > 1 else None
        yield from from_marks(text, marks, None, ledger, who=who, by_line=True, cut_too=True)


def _with_nodes(body: Element) -> tuple[str, dict[str, int]]:
    """Return the text, and {id of a node: its character position in the text}."""
    text, nodes = body.text or "", dict[str, int]()
    for node in body:
        nodes[node.get("id", "")] = len(text)
        text += node.tail or ""
    return text, nodes


def _sets(root: Element, nodes: dict[str, int]) -> Iterator[tuple[str, list[Mark]]]:
    """Yield (name, annotations) of each annotation set. Annotations of tokens, sentences and markup are left out."""
    for each in root.iter("AnnotationSet"):
        name = each.get("Name", "")
        if name == _MARKUP:
            continue
        found = [item for item in each.iter("Annotation") if item.get("Type", "") not in _SERVICE]
        places = [
            (nodes.get(item.get("StartNode", ""), -1), nodes.get(item.get("EndNode", ""), -1), item.get("Type", ""))
            for item in found
        ]
        if places or name in ("", _KEY):
            yield name, [Mark(((start, end),), kind) for start, end, kind in places]


def read_bioc_xml(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a BioC collection in XML, which is converted to BioC's JSON first."""
    root = parsed(path, ledger)
    if root is not None:
        yield from read_bioc(((1, _as_json(document)) for document in root.iter("document")), ledger)


def _as_json(element: Element) -> dict[str, Any]:
    """Convert an element of BioC XML to BioC's JSON."""
    value: dict[str, Any] = {
        "id": element.findtext("id", element.get("id", "")),
        "infons": {each.get("key", ""): each.text or "" for each in element.findall("infon")},
        "offset": element.findtext("offset", "0"),
        "text": element.findtext("text"),
        "locations": [dict(each.attrib) for each in element.findall("location")],
    }
    for name in ("passage", "sentence", "annotation"):
        value[f"{name}s"] = [_as_json(each) for each in element.findall(name)]
    return value
