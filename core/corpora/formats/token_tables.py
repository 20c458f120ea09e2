"""Tables that hold labelled tokens: one token per row, or a sentence's tokens and tags as lists within cells.

`cells_of` recognises them from their first rows; `listed` turns them into the rows that `hf` reads, one sentence each,
with `tokens` and `tags`.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.corpora.annotators import is_annotator
from core.corpora.formats.hf import TAGS, TOKENS
from core.corpora.formats.layout import further_note
from core.corpora.formats.ledger import Ledger, ReadOptions, Record
from core.errors import OptionsError
from core.text.tag_styles import Style, style_of

MOST_TOKENS = 50_000  # a longer "sentence" means that the column of sentences is another one
_ITEM = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,'"\[\]]+)""")
TAG_NAMES = frozenset({*TAGS, "label", "entity", "entities", "ner_tag", "iob", "bio", "iob_tag", "tag_ner"})
_TOKEN_NAMES = (*TOKENS, "token", "word", "form", "sentence", "sentences", "text")
_SENTENCE = re.compile(r"sent|satz|phrase|frase|zin|oraci", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Where a table keeps tokens and tags.

    how: "rows" for one token per row, "cells" for a sentence per row. sentence: the column that says where a sentence
    begins, "" if empty rows do. annotator: the column that names who labelled a token, "" for none. style: of the tags,
    or of the names of their numbers; None for numbers without a style. numbers: whether the tags are class numbers.
    further: other columns that hold entity tags and are left out.
    """

    how: Literal["rows", "cells"]
    tokens: str
    tags: str
    sentence: str = ""
    annotator: str = ""
    style: Style | None = None
    numbers: bool = False
    further: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Notes for the user on how the columns were read."""
        notes = [self.style.note] if self.style is not None and self.style.kind == "untyped" else []
        if self.further:
            notes.append(further_note(self.tags, self.further))
        return notes

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that are no further information on a row."""
        return (self.tokens, self.tags, self.sentence, *TOKENS, *TAGS)


Row = Mapping[str, object]


def cells_of(name: str, columns: Sequence[str], rows: Sequence[Row], options: ReadOptions) -> Cells | None:
    """Recognise a table of labelled tokens; None for any other table.

    name: of the file. Errors: OptionsError for one token per row where nothing says where sentences begin.
    """
    return _in_cells(columns, rows, options) or _in_rows(name, columns, rows, options)


def listed(records: Iterator[Record], cells: Cells, ledger: Ledger) -> Iterator[Record]:
    """Yield a row per sentence with its `tokens`, its `tags` in the usual spelling, and its further columns."""
    ledger.note(cells.notes)
    return _grouped(records, cells, ledger) if cells.how == "rows" else _parsed(records, cells)


def _in_cells(columns: Sequence[str], rows: Sequence[Row], options: ReadOptions) -> Cells | None:
    parsed = {name: [sequence(row.get(name)) for row in rows] for name in columns}
    in_text = {
        name: any(isinstance(row.get(name), str) and is_list(str(row[name])) for row in rows) for name in columns
    }
    for tags in columns:
        style = _style([tag for items in parsed[tags] for tag in items], options)
        numbers = in_text[tags] and style is None and all(tag.isdecimal() for items in parsed[tags] for tag in items)
        certain = style is not None and not style.syntax and (style.kind in ("letters", "suffix") or in_text[tags])
        if not (certain or (numbers and tags.lower() in TAG_NAMES)):
            continue
        like_it = [name for name in columns if name != tags and alike(parsed[name], parsed[tags])]
        if like_it:
            tokens = min(like_it, key=lambda name: (_hint(name), -len({t for items in parsed[name] for t in items})))
            return Cells(how="cells", tokens=tokens, tags=tags, style=style)
    return None


def _in_rows(name: str, columns: Sequence[str], rows: Sequence[Row], options: ReadOptions) -> Cells | None:
    values = {column: [_cell(row.get(column)) for row in rows] for column in columns}
    styles = {
        column: style
        for column in columns
        if (style := _style([value for value in values[column] if value], options)) is not None
        and not style.syntax
        and (style.kind in ("letters", "suffix") or column.lower() in TAG_NAMES)
    }
    if not styles:
        return None
    tags = min(styles, key=lambda column: (not styles[column].entities, column.lower() not in TAG_NAMES))
    words = [column for column in columns if column not in styles and _single_words(values[column])]
    if options.tag_column in styles:
        tags = options.tag_column
    further = [each for each, style in styles.items() if each != tags and style.entities]
    annotator = next(filter(is_annotator, columns), "")
    sentence = _sentences(columns, values, {tags, annotator})
    words = [column for column in words if column != sentence]
    if not words:
        return None
    tokens = min(words, key=lambda column: (_hint(column), -len(set(values[column]))))
    empty = any(not token and not tag for token, tag in zip(values[tokens], values[tags], strict=True))
    if not sentence and not empty:
        raise OptionsError(
            name,
            1,
            f"it has one token per row ({tokens} and {tags}), and no column says where a sentence begins. Add a column"
            " with the sentence's number, or an empty row after each sentence.",
        )
    return Cells(
        how="rows",
        tokens=tokens,
        tags=tags,
        sentence=sentence,
        annotator=annotator,
        style=styles[tags],
        further=tuple(further),
    )


def _style(tags: Sequence[str], options: ReadOptions) -> Style | None:
    counts = Counter(tags)
    return style_of(counts, type=options.entity_type) if options.entity_type else style_of(counts)


def _hint(name: str) -> int:
    return _TOKEN_NAMES.index(name.lower()) if name.lower() in _TOKEN_NAMES else len(_TOKEN_NAMES)


def _cell(value: object) -> str:
    return "" if value is None else str(value).strip()


def _single_words(values: Sequence[str]) -> bool:
    """Return True for a column of words: nearly no blank within a cell, and letters in some."""
    filled = [value for value in values if value]
    words = sum(" " not in value for value in filled)
    return len(filled) > 1 and words >= 0.98 * len(filled) and any(c.isalpha() for value in filled for c in value)


def _sentences(columns: Sequence[str], values: Mapping[str, Sequence[str]], taken: set[str]) -> str:
    """The column whose values number sentences: each in one run of rows, at least two rows on average; "" if none."""
    runs: dict[str, int] = {}
    for column in columns:
        starts = [value for at, value in enumerate(values[column]) if value and _begins(values[column], at)]
        # By its name alone a column is believed if the first rows hold one sentence, or if its numbers begin again.
        named = bool(_SENTENCE.search(column))
        unique = named or len(set(starts)) == len(starts)
        if column not in taken and unique and (1 if named else 2) <= len(starts) <= len(values[column]) / 2:
            runs[column] = len(starts)
    return max(runs, key=lambda column: (bool(_SENTENCE.search(column)), runs[column]), default="")


def _begins(column: Sequence[str], at: int) -> bool:
    before = next((column[i] for i in range(at - 1, -1, -1) if column[i]), None)
    return column[at] != before


def alike(words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> bool:
    """Return True if nearly all rows have as many words as tags, several in some of them."""
    same = sum(len(a) == len(b) for a, b in zip(words, tags, strict=True))
    return same >= 0.9 * len(tags) and sum(map(len, tags)) >= 2 * len(tags)


def is_list(cell: str) -> bool:
    cell = cell.strip()
    return cell[:1] == "[" and cell[-1:] == "]"


def sequence(cell: object) -> list[str]:
    """Items of a cell: of a list in the text of JSON, Python or numpy, else what blanks separate."""
    if isinstance(cell, list):
        return [str(item) for item in cell]
    if not isinstance(cell, str):
        return []
    return _items(cell.strip()) if is_list(cell) else cell.split()


def _items(cell: str) -> list[str]:
    try:
        value = json.loads(cell)
        if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
            return [str(item) for item in value]
    except (ValueError, RecursionError):
        pass
    # numpy puts no comma between items, so Python would join neighbours into one string: items are read one by one.
    return [_unquoted(found) for found in _ITEM.finditer(cell[1:-1])]


def _unquoted(found: "re.Match[str]") -> str:
    text = found.group()
    if text[0] not in "'\"":
        return text
    try:
        return str(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text[1:-1]


def _translated(tags: Sequence[str], style: Style | None) -> list[str] | list[int]:
    if style is None:
        return [int(tag) if tag.isdecimal() else -1 for tag in tags]
    return style.sentence(list(tags))


def _parsed(records: Iterator[Record], cells: Cells) -> Iterator[Record]:
    for line, row in records:
        tokens, tags = sequence(row.get(cells.tokens)), sequence(row.get(cells.tags))
        others = {name: value for name, value in row.items() if name not in cells.used}
        yield line, {**others, "tokens": tokens, "tags": _translated(tags, None if cells.numbers else cells.style)}


def _grouped(records: Iterator[Record], cells: Cells, ledger: Ledger) -> Iterator[Record]:
    tokens: list[str] = []
    tags: list[str] = []
    start, others, current = 0, dict[str, object](), ""
    annotator = cells.annotator

    def sentence() -> Record:
        return start, {**others, "tokens": tokens, "tags": _translated(tags, cells.style)}

    for line, row in records:
        token, tag = _cell(row.get(cells.tokens)), _cell(row.get(cells.tags))
        number = _cell(row.get(cells.sentence)) if cells.sentence else ""
        number = f"{number}\n{_cell(row.get(annotator))}" if number and annotator else number
        if tokens and ((number and number != current) or not (token or tag)):
            yield sentence()
            tokens, tags = [], []
        current = number or current
        if not token:
            if tag:
                ledger.repair(line, 1, "a row without a token was left out")
            continue
        if not tokens:
            start, others = line, {name: value for name, value in row.items() if name not in cells.used}
        if len(tokens) < MOST_TOKENS:
            tokens.append(token)
            tags.append(tag or "O")
        else:
            ledger.reject(line, f"a sentence of more than {MOST_TOKENS:,} tokens; name its sentences in a column")
    if tokens:
        yield sentence()
