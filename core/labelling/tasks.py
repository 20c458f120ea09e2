"""Sentences of a queue as files that labelling tools open, with the tagger's entities as suggestions."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from core.files import write_atomic
from core.text.sentence import Sentence
from core.text.words import token_places

Span = tuple[int, int, str]  # start and end in characters, type


def write(sentences: Iterable[Sentence], path: Path, tool: str) -> int:
    """Write sentences for a tool of `TOOLS`, and return their number. Their `entities` are the suggestions.

    Every task has the sentence's id, which joins the answers to it. Errors: CorpusError if tokens are not in the text.
    """
    tasks = [TOOLS[tool](sentence, _spans(sentence)) for sentence in sentences]
    if tool == "label-studio":  # it reads one list
        text = json.dumps(tasks, ensure_ascii=False, indent=1)
    else:
        text = "".join(f"{json.dumps(task, ensure_ascii=False)}\n" for task in tasks)
    write_atomic(path, text.encode())
    return len(tasks)


def _spans(sentence: Sentence) -> list[Span]:
    places = token_places(sentence.text, sentence.tokens)
    return [(places[e.start][0], places[e.end - 1][1], e.type) for e in sentence.entities or ()]


def _place(sentence: Sentence) -> dict[str, object]:
    known = {"id": sentence.id, "file": sentence.file, "page": sentence.page}
    return {name: value for name, value in known.items() if value is not None}


def _doccano(sentence: Sentence, spans: list[Span]) -> dict[str, object]:
    return {"text": sentence.text, "label": [list(span) for span in spans], **_place(sentence)}


def _prodigy(sentence: Sentence, spans: list[Span]) -> dict[str, object]:
    marked = [{"start": start, "end": end, "label": type} for start, end, type in spans]
    return {"text": sentence.text, "spans": marked, "meta": _place(sentence)}


def _label_studio(sentence: Sentence, spans: list[Span]) -> dict[str, object]:
    found = [
        {
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {"start": start, "end": end, "text": sentence.text[start:end], "labels": [type]},
        }
        for start, end, type in spans
    ]
    return {"data": {"text": sentence.text, **_place(sentence)}, "predictions": [{"result": found}] if found else []}


TOOLS: Mapping[str, Callable[[Sentence, list[Span]], dict[str, object]]] = {
    "doccano": _doccano,
    "label-studio": _label_studio,
    "prodigy": _prodigy,
}
