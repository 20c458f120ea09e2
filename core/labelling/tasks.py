"""Write sentences to files for labelling tools: without labels, with suggestions, or with labels."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from core.corpora.writers import write_conll, write_file
from core.errors import ConfigError
from core.shown import shown
from core.text.sentence import Sentence
from core.text.words import token_places

Span = tuple[int, int, str]  # (start, end, type), offsets in characters
ENDINGS = {"doccano": ".jsonl", "label-studio": ".json", "prodigy": ".jsonl", "brat": ".zip", "conll": ".conll"}


def write(sentences: Iterable[Sentence], path: Path, tool: str, *, labelled: bool = False) -> int:
    """Write sentences to a file for a labelling tool, and return their number. tool: a key of `ENDINGS`.

    labelled: True if the entities are labels, False if they are suggestions. `view.import_labels` later finds the
    sentence of an answer by its id, the hash of its text. Errors: CorpusError if the tokens of a sentence are not in
    its text.
    """
    rows = list(sentences)
    spans = [_spans(sentence) for sentence in rows]
    if tool == "conll":
        return write_conll(rows, path)
    if tool == "brat":
        data = _brat(rows, spans)
    else:
        tasks = [_TASK[tool](sentence, found, labelled) for sentence, found in zip(rows, spans, strict=True)]
        lines = (f"{json.dumps(task, ensure_ascii=False)}\n" for task in tasks)
        one_list = tool == "label-studio"
        data = (json.dumps(tasks, ensure_ascii=False, indent=1) if one_list else "".join(lines)).encode()
    write_file(data, path)
    return len(rows)


def _spans(sentence: Sentence) -> list[Span]:
    places = token_places(sentence.text, sentence.tokens)
    return [(places[e.start][0], places[e.end - 1][1], e.type) for e in sentence.entities or ()]


def _place(sentence: Sentence) -> dict[str, object]:
    known = {"id": sentence.id, "file": sentence.file, "page": sentence.page}
    return {name: value for name, value in known.items() if value is not None}


def _doccano(sentence: Sentence, spans: list[Span], _labelled: bool) -> dict[str, object]:
    return {"text": sentence.text, "label": [list(span) for span in spans], **_place(sentence)}


def _prodigy(sentence: Sentence, spans: list[Span], labelled: bool) -> dict[str, object]:
    marked = [{"start": start, "end": end, "label": type} for start, end, type in spans]
    answer = {"answer": "accept"} if labelled else {}
    return {"text": sentence.text, "spans": marked, "meta": _place(sentence), **answer}


def _label_studio(sentence: Sentence, spans: list[Span], labelled: bool) -> dict[str, object]:
    found = [
        {
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {"start": start, "end": end, "text": sentence.text[start:end], "labels": [type]},
        }
        for start, end, type in spans
    ]
    data = {"data": {"text": sentence.text, **_place(sentence)}}
    if labelled:
        return {**data, "annotations": [{"result": found}]}
    return {**data, "predictions": [{"result": found}] if found else []}


def check_brat_types(types: Sequence[str]) -> None:
    """Check that all types differ in files for brat. Errors: ConfigError that names two types that do not."""
    written = dict[str, str]()
    for type in types:
        if (other := written.setdefault(brat_type(type), type)) != type:
            raise ConfigError(
                f"{shown(other)!r} and {shown(type)!r} are both {shown(brat_type(type))} in files for brat, whose "
                "types have no blanks; choose another tool, or give one of these types another name."
            )


def brat_type(type: str) -> str:
    """Return a type as files for brat spell it, with underscores, because a blank ends a type there."""
    return "_".join(type.split())


def _brat(sentences: Sequence[Sentence], spans: Sequence[list[Span]]) -> bytes:
    """Return a zip file with two files per sentence: 0001.txt (text) and 0001.ann (entities)."""
    digits = len(str(len(sentences)))
    with ZipFile(out := BytesIO(), "w", ZIP_DEFLATED) as archive:
        for number, (sentence, found) in enumerate(zip(sentences, spans, strict=True), 1):
            name = str(number).zfill(digits)
            marks = (
                f"T{i}\t{brat_type(type)} {start} {end}\t{sentence.text[start:end]}\n"
                for i, (start, end, type) in enumerate(found, 1)
            )
            # `ZipInfo` has a fixed date, so that the same sentences always give the same bytes.
            archive.writestr(ZipInfo(f"{name}.txt"), f"{sentence.text}\n")
            archive.writestr(ZipInfo(f"{name}.ann"), "".join(marks))
    return out.getvalue()


_TASK: Mapping[str, Callable[[Sentence, list[Span], bool], dict[str, object]]] = {
    "doccano": _doccano,
    "label-studio": _label_studio,
    "prodigy": _prodigy,
}
