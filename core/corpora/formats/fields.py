"""Find the text among the fields of labelled rows. Users of a tool choose the names of these fields.

The choice is made once per file. If it were made per row, some rows of a file would get the text of another field.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from core.corpora.formats.annotated import ADDRESS, answers_of, parts_of, texts_of
from core.corpora.formats.ledger import Fields
from core.corpora.formats.tool_rows import argilla_answers, argilla_texts

Row = Mapping[str, object]


def fields_of(shape: str, rows: Sequence[Row]) -> Fields:
    """Return the fields of a file with labelled rows. shape: format of the rows. rows: first rows of the file."""
    if shape == "labelstudio":
        return Fields(text=_text_field((texts_of(row), answers_of(row)) for row in rows))
    if shape == "argilla":
        answers = ([item for _, items in argilla_answers(row) for item in items] for row in rows)
        return Fields(text=_text_field(zip(map(argilla_texts, rows), answers, strict=True)))
    return Fields()


def _text_field(rows: Iterable[tuple[Mapping[str, str], Sequence[object]]]) -> str | None:
    """Return the field whose texts fit most annotations; None without texts.

    If several fit equally, return "text", or else the field with the longest texts. rows: (texts by field, annotations)
    of each row.
    """
    fits, sizes = Counter[str](), Counter[str]()
    for texts, items in rows:
        for name, text in texts.items():
            fits[name] += sum(_fit(item, text) for item in items)
            sizes[name] += 0 if ADDRESS.fullmatch(text) else len(text)
    return max(sizes, key=lambda name: (fits[name], name == "text", sizes[name]), default=None)


def _fit(item: object, text: str) -> int:
    """Return 2 if an annotation fits a text, 1 if only its quoted text occurs there, else 0."""
    start, end, _, quote = parts_of(item)
    placed = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)
    if not isinstance(quote, str):
        return 2 * placed
    return (placed and text[start:end] == quote) + (quote in text)
