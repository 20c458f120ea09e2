"""Read tables of labelled tokens. A row has lists of tokens and tags (Hugging Face), lists as text, or a single token.

Data sets store parts of speech, chunks and entities as lists of equal length, and any of these may be named `tags`.
`listed_tags` and `cells_of` recognise the column of entity tags from the first rows, by the spelling of its values
(`text.tag_styles`). If they find no such column, the import asks the user. `listed` converts a table to rows with
`tokens` and `tags`, one sentence per row. `read_hf` reads these rows.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.corpora.annotators import is_annotator
from core.corpora.formats.annotated import TEXTS
from core.corpora.formats.conll import ASK, further_note, kin
from core.corpora.formats.ledger import Ledger, ReadOptions, Record
from core.corpora.formats.rows import arrow_schema
from core.corpora.formats.sentences import Tagged, from_tags
from core.corpora.formats.source import open_bytes
from core.errors import OptionsError, PathError, ReadError
from core.paths import is_there, user_path
from core.text.schemes import Detector, Scheme
from core.text.sentence import Sentence
from core.text.tag_styles import Style, is_lettered, of_sentences, parts_of_speech, style_of

_BEGINS = ("B-", "S-", "U-")
TOKENS = ("tokens", "words")
Names = Callable[[], list[str] | None]  # function that returns the names of class numbers, called if tags are numbers
TAGS = ("ner_tags", "tags", "ner", "labels", "tag")
# Files with {class name: number} in the folder of a data set.
NUMBERED = ("label.json", "label2id.json")
# Maximum number of bytes that are read of a data set's description.
_LONGEST = 1_000_000
# Column names that are preferred if several columns have entity tags.
_BEST = ("ner_tags", "ner")
# Number of sentences to show as examples when the user must choose the tag column.
_EXAMPLES = 3
# Maximum number of columns in an example.
_MOST_SHOWN = 4
# Columns that are read as text if there are no tags.
_TEXTS = frozenset({"text", "sentence", "content", "document"})
Row = Mapping[str, object]
MOST_TOKENS = 50_000  # maximum number of tokens in a sentence; if there are more, sentences are not separated correctly
_ITEM = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,'"\[\]]+)""")
TAG_NAMES = frozenset({*TAGS, "label", "entity", "entities", "ner_tag", "iob", "bio", "iob_tag", "tag_ner"})
_TOKEN_NAMES = (*TOKENS, "token", "word", "form", "sentence", "sentences", "text")
_SENTENCE = re.compile(r"sent|satz|phrase|frase|zin|oraci", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Columns of a table of labelled tokens.

    how: "rows" for one token per row, "cells" for one sentence per row. tokens, tags: columns of the tokens and the
    tags. sentence: column that numbers sentences, "" if empty rows separate them. annotator: column with the annotator
    of a token, "" without one. style: spelling of the tags, or of the class names if tags are numbers; None for numbers
    without names. numbers: True if the tags are class numbers. further: other columns with entity tags, which are left
    out.
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
        """Notes for the user on how the table's columns were interpreted."""
        notes = [self.style.note] if self.style is not None and self.style.kind == "untyped" else []
        if self.further:
            notes.append(further_note(self.tags, self.further))
        return notes

    @property
    def used(self) -> tuple[str, ...]:
        """Columns of tokens, tags and sentence numbers, which are not kept as further columns of a sentence."""
        return (self.tokens, self.tags, self.sentence, *TOKENS, *TAGS)


def tag_columns(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return the names of the token column and the tag column if both have a usual name, else None."""
    tokens = next((name for name in TOKENS if name in columns), None)
    tags = next((name for name in TAGS if name in columns), None)
    return (tokens, tags) if tokens and tags else None


def tag_names(path: Path, tags: str) -> list[str] | None:
    """Return the class names for the numbers in the column `tags`, None if they are not found.

    The names come from the file's metadata, dataset_info.json, the header of the data set's card, or label.json.
    """
    if path.suffix in (".parquet", ".arrow"):
        stored = (arrow_schema(path).metadata or {}).get(b"huggingface")
        if stored and (names := _names_in(_stored(stored, path), tags, path)):
            return names
    for folder in _around(path):
        for name in ("dataset_info.json", "dataset_infos.json", "README.md"):
            if is_there(file := folder / name) and (names := _names_in(_metadata(file), tags, file)):
                return names
        # These files do not say to which column their class names belong. The column must have a usual name.
        if any(part in tags.lower() for part in ("ner", "tag", "label")):
            for name in NUMBERED:
                if is_there(file := folder / name) and (names := _by_number(_metadata(file))):
                    return names
    return None


def _by_number(numbers: object) -> list[str] | None:
    """Return the names of {name: number} in the order of their numbers; None if the numbers are not 0 to n - 1."""
    if not isinstance(numbers, Mapping) or sorted(numbers.values(), key=str) != sorted(range(len(numbers)), key=str):
        return None
    return sorted(numbers, key=numbers.__getitem__)


def _around(path: Path) -> Iterator[Path]:
    """Yield the folder of a data set's file, and the parent of this folder, if Winnow may read them."""
    for folder in list(path.parents)[:2]:
        try:
            allowed = user_path(folder)
        except PathError:
            continue
        yield allowed


def _stored(metadata: bytes, path: Path) -> object:
    try:
        return json.loads(metadata)
    except (ValueError, RecursionError) as error:
        raise ReadError(
            path.name, None, "the description of its columns cannot be read; write the file again."
        ) from error


def _metadata(file: Path) -> object:
    with open_bytes(file) as stream:
        text = stream.read(_LONGEST).decode("utf-8", "replace")
    try:
        if file.suffix == ".json":
            return json.loads(text)
        import yaml

        return yaml.safe_load(text.split("\n---", 1)[0]) if text.startswith("---") else None
    except (ValueError, RecursionError) as error:
        raise ReadError(
            file.name, None, "not readable as the description of a data set; repair or remove it."
        ) from error
    except Exception as error:
        raise ReadError(file.name, 1, "its header is not YAML; repair or remove it.") from error


def _names_in(description: object, tags: str, file: Path) -> list[str] | None:
    try:
        return _names(description, tags, set())
    except RecursionError as error:
        raise ReadError(file.name, None, "its description nests too deeply; write the file again.") from error


def _names(value: object, tags: str, seen: set[int]) -> list[str] | None:
    """Return the class names of column `tags` in a data set's description, None if missing.

    The names are searched at any depth, because versions of `datasets` nest features differently. seen: ids of values
    that were searched. Without it, nine lines of YAML with aliases could form a tree with billions of paths.
    """
    if not isinstance(value, Mapping | list) or id(value) in seen:
        return None
    seen.add(id(value))
    if isinstance(value, Mapping):
        feature = value.get(tags) if value.get("name") != tags else value
        if feature is not None and (names := _class_names(feature, set())):
            return names
    parts = value.values() if isinstance(value, Mapping) else value
    return next((names for part in parts if (names := _names(part, tags, seen))), None)


def _class_names(value: object, seen: set[int]) -> list[str] | None:
    if isinstance(value, Mapping) and id(value) not in seen:
        seen.add(id(value))
        names = value.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        if isinstance(names, Mapping) and all(str(key).isdecimal() for key in names):  # {'0': 'O', ...} in a card
            return [str(names[key]) for key in sorted(names, key=int)]
        return next((class_names for part in value.values() if (class_names := _class_names(part, seen))), None)
    return None


def read_hf(records: Iterator[Record], names: Names, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """Yield one sentence per row with lists of tokens and tags, and with its text if a column has it."""
    for line, record in records:
        if row := _tagged(line, record, names, ledger):
            tokens, tags = row
            text = next((value for name in TEXTS if isinstance(value := record.get(name), str)), "")
            row_of = Tagged(ledger.doc, tokens, tags, [line] * len(tokens), who=annotator_of(record), text=text)
            yield from from_tags(row_of, scheme, ledger)


def annotator_of(record: Mapping[str, object]) -> str | None:
    """Return the name or number of a row's annotator, None without one."""
    values = (value for name, value in record.items() if is_annotator(name) and isinstance(value, str | int))
    return next((str(value).strip() for value in values if str(value).strip()), None)


def detect(records: Iterator[Record], names: Names, ledger: Ledger, detector: Detector) -> None:
    """Pass the tags of all rows to `detector`, which finds the label scheme."""
    for line, record in records:
        if row := _tagged(line, record, names, ledger):
            detector.add(row[1], [line] * len(row[1]))


def _tagged(
    line: int, record: Mapping[str, object], names: Names, ledger: Ledger
) -> tuple[list[str], list[str]] | None:
    pair = tag_columns(list(record))
    tokens, tags = (record[pair[0]], record[pair[1]]) if pair else (None, None)
    if not isinstance(tokens, list) or not isinstance(tags, list) or not all(isinstance(t, str) for t in tokens):
        ledger.reject(line, "expected a list of tokens and a list of tags; complete the row", str(dict(record)))
        return None
    if len(tokens) != len(tags):
        ledger.reject(line, f"{len(tokens)} tokens but {len(tags)} tags; give one tag per token", str(dict(record)))
        return None
    if not tokens:
        ledger.report.empty += 1
        return None
    if all(isinstance(tag, str) for tag in tags):
        return _without_blanks(tokens, tags, line, ledger)
    class_names = names()
    if class_names is None:
        raise ReadError(
            ledger.file,
            line,
            "its tags are numbers without names; store the class names in the data set's features, or in"
            " dataset_info.json or label.json ({name: number}) in the same folder.",
        )
    if not all(isinstance(tag, int) and 0 <= tag < len(class_names) for tag in tags):
        ledger.reject(
            line, f"a tag outside 0 to {len(class_names) - 1}, so without a name; correct the number", str(dict(record))
        )
        return None
    return _without_blanks(tokens, [class_names[tag] for tag in tags], line, ledger)


def _without_blanks(tokens: list[str], tags: list[str], line: int, ledger: Ledger) -> tuple[list[str], list[str]]:
    """Drop tokens of white space that do not begin an entity. Return the other tokens and their tags.

    spaCy makes tokens of white space from line breaks. Dropped tokens are counted as repairs.
    """
    if all(map(str.strip, tokens)):
        return tokens, tags
    pairs = zip(tokens, tags, strict=True)
    kept = [(token, tag) for token, tag in pairs if token.strip() or tag.startswith(_BEGINS)]
    if len(kept) < len(tokens):
        ledger.repair(line, len(tokens) - len(kept), "tokens that are only white space were left out")
    return [token for token, _ in kept], [tag for _, tag in kept]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with one list of values per row.

    numbers: True if the values are class numbers. named: True if the class numbers have names. counts: {value or class
    name: number of occurrences}. style: spelling of the tags, None if the values are not entity tags.
    """

    name: str
    numbers: bool
    named: bool
    counts: Mapping[str, int]
    style: Style | None

    @property
    def entities(self) -> bool:
        """True if the values are entity tags. Tags without B- or I- count only in a column with a usual name."""
        style = self.style
        if style is None or style.syntax or not style.entities:
            return False
        return style.kind != "types" or self.name.lower() in TAG_NAMES

    @property
    def what(self) -> str:
        """Description of the values, for an error message."""
        if self.style is not None and self.style.syntax:
            return "chunks or semantic roles"
        if all(value.isdecimal() for value in self.counts):
            return "numbers without names"
        return "parts of speech" if parts_of_speech(self.counts) else "values in no known spelling of tags"


def listed_tags(path: Path, columns: Sequence[str], rows: Sequence[Row], options: ReadOptions) -> Cells | None:
    """Recognise the tag column among columns of lists, and return the table's columns.

    Return None if `read_hf` can read the rows unchanged, or if no column has tokens. Errors: OptionsError if no column
    has entity tags, or if several columns have tags of different types.
    """
    cells = {name: [row.get(name) for row in rows] for name in columns}
    lists = {
        name: [
            sequence(value) if isinstance(value, list) or (isinstance(value, str) and is_list(value)) else []
            for value in values
        ]
        for name, values in cells.items()
    }
    tokens = next((name for name in TOKENS if name in columns and any(lists[name])), None)
    if tokens is None:
        return None
    found = {
        name: _column(name, path, rows, lists[name], options)
        for name in columns
        if name != tokens and alike(lists[tokens], lists[name])
    }
    asked = _asked(path.name, columns, found, options)
    held = sorted((each for each in found.values() if each.entities), key=_rank)
    if asked is None and not held:
        if problem := _problem(columns, found, options):
            named = [problem[0]] if problem[0] else list(found)
            raise OptionsError(path.name, 1, f"{problem[1]}; {ASK}.", _examples(lists, tokens, named))
        return None
    first, further = (asked, [each for each in held if each is not asked]) if asked else (held[0], held[1:])
    unlike = [each.name for each in further if not (first.style and each.style and kin(first.style, each.style))]
    if asked is None and unlike and first.name.lower() not in _BEST:
        named = [first.name, *unlike]
        problem_is = f"the columns {' and '.join(named)} have tags of different types"
        raise OptionsError(path.name, 1, f"{problem_is}; {ASK}.", _examples(lists, tokens, named))
    usual = first.style is not None and first.style.usual and not further
    if usual and tag_columns(columns) == (tokens, first.name) and isinstance(rows[0].get(tokens), list):
        return None
    return Cells(
        how="cells",
        tokens=tokens,
        tags=first.name,
        style=first.style or Style(kind="types"),
        numbers=first.numbers,
        further=tuple(each.name for each in further),
    )


def _column(
    name: str, path: Path, rows: Sequence[Row], lists: Sequence[Sequence[str]], options: ReadOptions
) -> _Column:
    counts = Counter(item for items in lists for item in items)
    numbers = all(value.isdecimal() for value in counts) and not _strings(rows, name)
    names = tag_names(path, name) if numbers and counts else None
    if names:
        counts = Counter({_name(names, value): n for value, n in counts.items()})
    style = style_of(counts, type=options.entity_type) if options.entity_type else style_of(counts)
    if style and not numbers and of_sentences(style, lists):
        style = None
    return _Column(name, numbers, names is not None, counts, style)


def _strings(rows: Iterable[Row], name: str) -> bool:
    values = (row.get(name) for row in rows)
    return any(isinstance(item, str) for value in values if isinstance(value, list) for item in value)


def _name(names: Sequence[str], number: str) -> str:
    return names[int(number)] if len(number) < 6 and int(number) < len(names) else number


def _asked(name: str, columns: Sequence[str], found: Mapping[str, _Column], options: ReadOptions) -> _Column | None:
    """Return the column that the options request by its name, or by its number from 1; None without a request.

    name: name of the file. found: columns with one value per token. Errors: OptionsError if the requested column is not
    in `found`.
    """
    asked = options.tag_column
    if not asked:
        return None
    if asked not in columns and asked.isdecimal() and 1 <= int(asked) <= len(columns):
        asked = columns[int(asked) - 1]
    if asked not in found:
        there = ", ".join(found) or "none"
        raise OptionsError(
            name, 1, f"column {asked!r} does not have one value per token; choose one of these columns: {there}."
        )
    return found[asked]


def _rank(column: _Column) -> tuple[bool, int]:
    """Return a sort key for columns with entity tags: first those with B- or I-, then those with a usual name."""
    typed = column.style is not None and column.style.kind == "types"
    return typed, TAGS.index(column.name) if column.name in TAGS else len(TAGS)


def _problem(columns: Sequence[str], found: Mapping[str, _Column], options: ReadOptions) -> tuple[str, str] | None:
    """Return (column or "", problem) if no column has entity tags and the user must name the column; else None."""
    pair = tag_columns(columns)
    if options.scheme != "auto":  # by choosing a label scheme, the user has declared that there are entity tags
        return None
    if pair is None:
        if not found or any(name.lower() in _TEXTS for name in columns):
            return None
        return "", f"none of its lists ({', '.join(found)}) has entity tags"
    column = found.get(pair[1])
    if column is None or _reported(column):
        return None
    return column.name, f"column {column.name} has {column.what}, not entities"


def _reported(column: _Column) -> bool:
    """Return True if reading a column will succeed, or will raise a more exact error message than `_problem` has."""
    if column.style is not None:
        return not column.style.syntax
    # The readers report numbers without names, and the scheme's detector reports mixed spellings with a line number.
    return (column.numbers and not column.named) or any(map(is_lettered, column.counts))


def _examples(lists: Mapping[str, Sequence[Sequence[str]]], tokens: str, named: Sequence[str]) -> list[str]:
    """Return the first sentences, each token with its values in the columns `named`: `Ann/NNP owes/VBZ`."""
    shown = [lists[tokens], *(lists[name] for name in named[:_MOST_SHOWN])]
    sentences = (
        " ".join("/".join(values) for values in zip(*row, strict=False)) for row in zip(*shown, strict=True) if row[0]
    )
    return [sentence for sentence, _ in zip(sentences, range(_EXAMPLES), strict=False)]


def cells_of(name: str, columns: Sequence[str], rows: Sequence[Row], options: ReadOptions) -> Cells | None:
    """Recognise a table of labelled tokens, and return its columns; None for any other table.

    name: name of the file. Errors: OptionsError if a row is one token, but neither a column nor empty rows separate the
    sentences.
    """
    return _in_cells(columns, rows, options) or _in_rows(name, columns, rows, options)


def listed(records: Iterator[Record], cells: Cells, ledger: Ledger, doc: str | None = None) -> Iterator[Record]:
    """Yield one row per sentence, with `tokens`, `tags` in the usual spelling, and further columns.

    doc: column that names the document of a row, None without one.
    """
    ledger.note(cells.notes)
    return _grouped(records, cells, ledger, doc) if cells.how == "rows" else _parsed(records, cells)


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
            f"it has one token per row ({tokens} and {tags}), and no column numbers the sentences. Add a column with"
            " the sentence's number, or an empty row after each sentence.",
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
    """Return True if a column has single words: almost no cell has a blank, and some cells have letters."""
    filled = [value for value in values if value]
    words = sum(" " not in value for value in filled)
    return len(filled) > 1 and words >= 0.98 * len(filled) and any(c.isalpha() for value in filled for c in value)


def is_sentence_column(name: str) -> bool:
    """Return True if a column of this name probably numbers sentences, such as `Sentence #` or `sentence_id`."""
    return bool(_SENTENCE.search(name))


def _sentences(columns: Sequence[str], values: Mapping[str, Sequence[str]], taken: set[str]) -> str:
    """Return the column that numbers sentences, "" if there is none.

    The rows with the same value must be consecutive, and each value must have at least two rows on average.
    taken: columns that have another use.
    """
    runs: dict[str, int] = {}
    for column in columns:
        starts = [value for at, value in enumerate(values[column]) if value and _begins(values[column], at)]
        # A column named like `sentence` may number a single sentence, and may start again from 1 in each document. Any
        # other column must number at least two sentences, each with a different number.
        named = is_sentence_column(column)
        unique = named or len(set(starts)) == len(starts)
        if column not in taken and unique and (1 if named else 2) <= len(starts) <= len(values[column]) / 2:
            runs[column] = len(starts)
    return max(runs, key=lambda column: (is_sentence_column(column), runs[column]), default="")


def _begins(column: Sequence[str], at: int) -> bool:
    before = next((column[i] for i in range(at - 1, -1, -1) if column[i]), None)
    return column[at] != before


def alike(words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> bool:
    """Return True if nearly all rows have as many words as tags, and if rows have at least two tags on average."""
    same = sum(len(a) == len(b) for a, b in zip(words, tags, strict=True))
    return same >= 0.9 * len(tags) and sum(map(len, tags)) >= 2 * len(tags)


def is_list(cell: str) -> bool:
    cell = cell.strip()
    return cell[:1] == "[" and cell[-1:] == "]"


def sequence(cell: object) -> list[str]:
    """Return the items of a cell: a list, a list in JSON, Python or numpy notation, or words separated by blanks."""
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
    # Parse items one by one, because numpy writes no commas between strings, and Python would join these strings.
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


def _grouped(records: Iterator[Record], cells: Cells, ledger: Ledger, doc: str | None) -> Iterator[Record]:
    tokens: list[str] = []
    tags: list[str] = []
    start, others, current = 0, dict[str, object](), ""
    annotator, document = cells.annotator, ""

    def sentence() -> Record:
        return start, {**others, "tokens": tokens, "tags": _translated(tags, cells.style)}

    for line, row in records:
        token, tag = _cell(row.get(cells.tokens)), _cell(row.get(cells.tags))
        number = _cell(row.get(cells.sentence)) if cells.sentence else ""
        number = f"{number}\n{_cell(row.get(annotator))}" if number and annotator else number
        # The numbers of sentences may start again in each document. Its name may be only in its first row.
        document = (_cell(row.get(doc)) if doc else "") or document
        number = f"{number}\n{document}" if number and document else number
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
            others |= {doc: document} if doc and document else {}
        if len(tokens) < MOST_TOKENS:
            tokens.append(token)
            tags.append(tag or "O")
        else:
            ledger.reject(line, f"a sentence of more than {MOST_TOKENS:,} tokens; add a column with sentence numbers")
    if tokens:
        yield sentence()
