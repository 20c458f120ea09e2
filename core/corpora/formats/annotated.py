"""Character spans: Doccano's JSONL, Label Studio's JSON, Prodigy's JSONL, brat's pairs of .txt and .ann."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from core.corpora.formats.ledger import Ledger, Record
from core.corpora.formats.sentences import Span, from_spans
from core.corpora.formats.source import MAX_TEXT, open_bytes, open_stream
from core.errors import EncodingError
from core.paths import is_there
from core.text.sentence import Sentence


def read_doccano(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """`{"text", "label" | "labels" | "entities": [[start, end, type] | {start_offset, end_offset, label}]}`."""
    column = ledger.options.text_column or "text"
    for line, record in records:
        text = record.get(column)
        items = next(
            (value for key in ("label", "labels", "entities") if isinstance(value := record.get(key), list)), None
        )
        if not isinstance(text, str) or items is None:
            ledger.reject(line, f'expected a text under "{column}" and a list under "label"', str(dict(record)))
            continue
        yield from from_spans(text, list(_spans(items, text, line, ledger)), line, ledger)


def read_prodigy(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """`{"text", "spans": [{start, end, label}], "answer"}`; answers reject and ignore are skipped."""
    for line, record in records:
        answer = record.get("answer", "accept")
        text, items = record.get("text"), record.get("spans") or []
        if answer != "accept":
            meaning = answer if answer in ("reject", "ignore") else "none of accept, reject and ignore"
            ledger.skip(line, f"the answer is {meaning}")
        elif not isinstance(text, str) or not isinstance(items, list):
            ledger.reject(line, 'expected a text under "text" and a list under "spans"', str(dict(record)))
        else:
            yield from from_spans(text, list(_spans(items, text, line, ledger)), line, ledger)


def read_label_studio(records: Iterator[Record], ledger: Ledger) -> Iterator[Sentence]:
    """Tasks with `data` and `annotations`: the first annotation that was not cancelled, by its offsets."""
    for line, task in records:
        data = task.get("data")
        text = _task_text(data, ledger.options.text_column) if isinstance(data, Mapping) else None
        answers = task.get("annotations", task.get("completions"))
        if text is None or not isinstance(answers, list):
            ledger.reject(line, 'expected a task with "data" that holds a text, and "annotations"', str(dict(task)))
            continue
        given = [a for a in answers if isinstance(a, Mapping) and not a.get("was_cancelled")]
        if not given:
            ledger.skip(line, "a task without an annotation")
            continue
        if len(given) > 1:
            ledger.reject_span(line, f"{len(given) - 1} further annotations of the same task; the first was taken")
        result = given[0].get("result") or []
        if not isinstance(result, list):
            ledger.reject(line, 'expected a list under "result" of its annotation', str(dict(task)))
            continue
        items = [
            item["value"]
            for item in result
            if isinstance(item, Mapping) and isinstance(item.get("value"), Mapping) and "labels" in item["value"]
        ]
        yield from from_spans(text, list(_spans(items, text, line, ledger)), line, ledger)


def _task_text(data: Mapping[str, object], column: str | None) -> str | None:
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    if column or "text" in texts:
        return texts.get(column or "text")
    # Fields are named freely there: the longest is the text, others are titles and numbers.
    return max(texts.values(), key=len, default=None)


def _spans(items: list[object], text: str, line: int, ledger: Ledger) -> Iterator[Span]:
    for item in items:
        start = end = kind = None
        if isinstance(item, list | tuple) and len(item) >= 3:
            start, end, kind = item[:3]
        elif isinstance(item, Mapping):
            start, end = item.get("start", item.get("start_offset")), item.get("end", item.get("end_offset"))
            kind = item.get("label", item.get("labels", item.get("type")))
        if isinstance(kind, list) and kind:
            for other in kind[1:]:
                ledger.reject_span(line, f"a second type {str(other)[:40]!r} for the span from {start} to {end}")
            kind = kind[0]
        if not _whole(start) or not _whole(end) or not isinstance(kind, str):
            ledger.reject_span(line, "an annotation without a start, an end and a type", str(item))
            continue
        given_text = item.get("text") if isinstance(item, Mapping) else None
        yield Span(*_by_characters(text, start, end, given_text), kind)


def _whole(value: object) -> TypeGuard[int]:
    # To Python JSON's true is the integer 1.
    return isinstance(value, int) and not isinstance(value, bool)


def _by_characters(text: str, start: int, end: int, given_text: object) -> tuple[int, int]:
    """Offsets in characters. A browser counts UTF-16 units: believed where only that gives the text `said`."""
    if not isinstance(given_text, str) or text[start:end] == given_text or max(text, default="") < "\U00010000":
        return start, end
    units = text.encode("utf-16-le", "surrogatepass")
    before = len(units[: 2 * start].decode("utf-16-le", "replace"))
    inside = units[2 * start : 2 * end].decode("utf-16-le", "replace")
    return (before, before + len(inside)) if inside == given_text else (start, end)


def read_brat(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """A .txt with its .ann beside it; a line of the text is a sentence."""
    notes = path.with_suffix(".ann")
    if not is_there(notes):
        ledger.reject(None, "no .ann file beside it")
        return
    text = _whole_text(path, ledger)
    if text is None:
        return
    ledger.file = notes.name
    with open_bytes(notes) as stream:
        empty = not stream.peek(1)
    content = "" if empty else _whole_text(notes, ledger)
    spans = [
        span
        for line, row in enumerate((content or "").split("\n"), 1)
        if row.startswith("T") and (span := _brat_span(row, text, line, ledger))
    ]
    ledger.file = path.name
    if content is not None:
        yield from from_spans(text, spans, None, ledger, by_line=True)


def _whole_text(path: Path, ledger: Ledger) -> str | None:
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        raw = stream.read(MAX_TEXT + 1)
    if len(raw) > MAX_TEXT:
        ledger.reject(None, f"more than {MAX_TEXT:,} bytes in one document; cut it into several")
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise EncodingError(path.name, line, "not UTF-8; give the files' encoding, for example cp1252.") from error


def _brat_span(row: str, text: str, line: int, ledger: Ledger) -> Span | None:
    """`T1<TAB>Type start end<TAB>text`."""
    parts = row.rstrip("\r").split("\t")
    fields = parts[1].split(" ") if len(parts) > 1 else []
    if len(parts) > 1 and ";" in parts[1]:
        ledger.reject_span(line, f"{parts[0]} is discontinuous; only one run of characters can be an entity", row)
    elif len(fields) != 3 or not (fields[1].isdecimal() and fields[2].isdecimal()):
        ledger.reject_span(line, "expected an id, a tab, and a type with its start and end", row)
    else:
        start, end = int(fields[1]), int(fields[2])
        if len(parts) > 2 and " ".join(text[start:end].split()) != " ".join(parts[2].split()):
            ledger.reject_span(line, f"{parts[0]}: the text from {start} to {end} is not the one given", row)
        else:
            return Span(start, end, fields[0])
    return None
