"""Find the text and the spans among the fields of labelled rows. Users of a tool choose the names of these fields.

The choice is made once per file. If it were made per row, some rows of a file would get the text of another field.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from core.corpora.formats.annotated import ADDRESS, SPANS, TEXTS, answers_of, is_usable, number, parts_of, texts_of
from core.corpora.formats.ledger import Fields
from core.corpora.formats.tool_rows import argilla_answers, argilla_texts
from core.errors import OptionsError

# Lists of positions in the text that are not its labels.
_NOT_LABELS = frozenset(
    {"tokens", "words", "sents", "sentences", "predictions", "prediction", "suggestions", "relations", "paragraphs"}
)
# Minimum share of spans that must begin and end with a word; otherwise they probably count tokens, not characters.
_ALIGNED = 0.8
# Number of annotations per row and field that are compared with the text. A row may have 60,000.
_COMPARED = 50
Row = Mapping[str, object]


def fields_of(name: str, shape: str, rows: Sequence[Row]) -> Fields:
    """Return the fields of a file with labelled rows.

    name: name of the file. shape: format of its rows. rows: its first rows. Errors: OptionsError if several fields have
    spans.
    """
    if shape == "labelstudio":
        return Fields(text=_text_field((texts_of(row), answers_of(row)) for row in rows))
    if shape == "argilla":
        answers = ([item for _, items in argilla_answers(row) for item in items] for row in rows)
        return Fields(text=_text_field(zip(map(argilla_texts, rows), answers, strict=True)))
    if shape != "doccano":
        return Fields()
    spans = span_fields(rows)
    text = None if _usual_text(rows) else _text_field((_texts(row), _items(row, spans)) for row in rows)
    if any(
        isinstance(value, list) and any(not isinstance(v, str) for v in value) for row in rows for value in _usual(row)
    ):
        return Fields(text=text)
    if len(spans) > 1:
        problem = f"several fields have spans ({', '.join(spans)}); rename the field with the labels to label"
        raise OptionsError(name, 1, f"{problem}, or read only the texts with --format jsonl.")
    return Fields(text=text, spans=next(iter(spans), None))


def span_fields(rows: Sequence[Row]) -> list[str]:
    """Return the fields that have lists of spans with types in some rows, for rows with a text."""
    found = list[str]()
    for name in dict.fromkeys(name for row in rows for name in row if name not in _NOT_LABELS):
        pairs = [(_texts(row), value[:_COMPARED]) for row in rows if isinstance(value := row.get(name), list) and value]
        usable = [(texts, item) for texts, items in pairs for item in items if is_usable(item)]
        n = sum(len(items) for _, items in pairs)
        aligned = sum(any(_is_aligned(item, text) for text in texts.values()) for texts, item in usable)
        # Segments of speech and sections of a document cover their texts. They are no mentions.
        whole = sum(any(_covers(item, text) for text in texts.values()) for texts, item in usable)
        if usable and min(len(usable), aligned) >= _ALIGNED * n and whole <= n / 2:
            found.append(name)
    return found


def one_per_row(column: str, rows: Sequence[Row]) -> bool:
    """Return True if each row has one span, whose start, end and type are in columns of their own.

    column: column of the texts.
    """
    texts = [(row, text) for row in rows if isinstance(text := row.get(column), str)]
    return len(texts) > 1 and all(is_usable(row) and _is_aligned(row, text) for row, text in texts)


def _texts(row: Row) -> dict[str, str]:
    return {name: value for name, value in row.items() if isinstance(value, str)}


def _items(row: Row, names: Sequence[str]) -> list[object]:
    return [item for name in names if isinstance(value := row.get(name), list) for item in value]


def _usual(row: Row) -> list[object]:
    return [row[name] for name in SPANS if name in row]


def _usual_text(rows: Sequence[Row]) -> bool:
    return any(isinstance(row.get(name), str) for row in rows for name in TEXTS)


def _covers(item: object, text: str) -> bool:
    start, end = map(number, parts_of(item)[:2])
    return start == 0 and isinstance(end, int) and end >= len(text.rstrip())


def _is_aligned(item: object, text: str) -> bool:
    """Return True if an annotation begins and ends with a word of an ASCII text, or if it is within any other text."""
    start, end = map(number, parts_of(item)[:2])
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end <= len(text):
        return False
    borders = (text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1])
    return not text.isascii() or not any(len(pair) == 2 and pair.isalnum() for pair in borders)


def _text_field(rows: Iterable[tuple[Mapping[str, str], Sequence[object]]]) -> str | None:
    """Return the field whose texts fit most annotations; None without texts.

    If several fit equally, return "text", or else the field with the longest texts. rows: (texts by field, annotations)
    of each row.
    """
    fits, sizes = Counter[str](), Counter[str]()
    for texts, items in rows:
        for name, text in texts.items():
            fits[name] += sum(_fit(item, text) for item in items[:_COMPARED])
            sizes[name] += 0 if ADDRESS.fullmatch(text) else len(text)
    return max(sizes, key=lambda name: (fits[name], name == "text", sizes[name]), default=None)


def _fit(item: object, text: str) -> int:
    """Return how well an annotation fits a text, from 0 to 4.

    A span that quotes the text counts 2 more than another one, and so does one that begins and ends with a word.
    """
    start, end = map(number, parts_of(item)[:2])
    quotes = [value for value in item.values() if isinstance(value, str)] if isinstance(item, Mapping) else []
    if not isinstance(start, int) or not isinstance(end, int):  # the path of an element in HTML
        return any(quote in text for quote in quotes if len(quote) > 1)
    if not 0 <= start < end <= len(text):
        return 0
    return 2 * (text[start:end] in quotes) + 2 * _is_aligned(item, text)
