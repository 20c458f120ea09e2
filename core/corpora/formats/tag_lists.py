"""Which column of JSON or Parquet rows holds the entity tags, decided from the first rows.

Data sets keep parts of speech, chunks and entities as lists that are as long as the list of tokens, and `tags` may name
any of them. The column whose values are entity tags (`text.tag_styles`) is read; if there is none, the import asks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.corpora.formats.hf import TAGS, TOKENS, tag_columns, tag_names
from core.corpora.formats.layout import ASK, kin
from core.corpora.formats.ledger import ReadOptions
from core.corpora.formats.token_tables import TAG_NAMES, Cells, alike, is_list, sequence
from core.errors import OptionsError
from core.text.tag_styles import Style, is_lettered, of_sentences, parts_of_speech, style_of

_BEST = ("ner_tags", "ner")  # names that leave no doubt if several columns hold entities
_EXAMPLES = 3
_MOST_SHOWN = 4  # columns of an example
_TEXTS = frozenset({"text", "sentence", "content", "document"})  # columns that are read if there are no tags
Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Column:
    """A list column. numbers: whether it holds class numbers; named: whether these have names.

    counts: how often each value occurs, by its class name if it has one.
    """

    name: str
    numbers: bool
    named: bool
    counts: Mapping[str, int]
    style: Style | None

    @property
    def entities(self) -> bool:
        """Return True if the values are entity tags. Bare types are believed only under a usual name."""
        style = self.style
        if style is None or style.syntax or not style.entities:
            return False
        return style.kind != "types" or self.name.lower() in TAG_NAMES

    @property
    def what(self) -> str:
        """Kind of the values, as an error names it."""
        if self.style is not None and self.style.syntax:
            return "chunks or roles"
        if all(value.isdecimal() for value in self.counts):
            return "numbers without names"
        return "parts of speech" if parts_of_speech(self.counts) else "other values than entity tags"


def listed_tags(path: Path, columns: Sequence[str], rows: Sequence[Row], options: ReadOptions) -> Cells | None:
    """Recognise the column of the tags; None if `hf` reads the rows as they are, or if they hold no such lists.

    Errors: OptionsError if no list, or more than one, holds entity tags.
    """
    lists = {name: [_list(row.get(name)) for row in rows] for name in columns}
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
        problem_is = f"the columns {' and '.join(named)} hold tags of different types"
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


def _list(value: object) -> list[str]:
    return sequence(value) if isinstance(value, list) or (isinstance(value, str) and is_list(value)) else []


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
    """The column that the options name, by its name or its number from 1."""
    asked = options.tag_column
    if not asked:
        return None
    if asked not in columns and asked.isdecimal() and 1 <= int(asked) <= len(columns):
        asked = columns[int(asked) - 1]
    if asked not in found:
        there = ", ".join(found) or "none"
        raise OptionsError(name, 1, f"column {asked!r} holds no list as long as the tokens; such columns: {there}.")
    return found[asked]


def _rank(column: _Column) -> tuple[bool, int]:
    """Order of columns with entities: position letters before bare types, then the usual names."""
    typed = column.style is not None and column.style.kind == "types"
    return typed, TAGS.index(column.name) if column.name in TAGS else len(TAGS)


def _problem(columns: Sequence[str], found: Mapping[str, _Column], options: ReadOptions) -> tuple[str, str] | None:
    """(column, question) if the rows hold no entities but seem to; None if they are read as they are."""
    pair = tag_columns(columns)
    if options.scheme != "auto":  # says that they are entity tags, whatever they look like
        return None
    if pair is None:
        if not found or any(name.lower() in _TEXTS for name in columns):
            return None
        return "", f"none of its lists ({', '.join(found)}) holds entity tags"
    column = found.get(pair[1])
    if column is None or _reported(column):
        return None
    return column.name, f"column {column.name} holds {column.what}, not entities"


def _reported(column: _Column) -> bool:
    """Return True if the readers find nothing wrong with a column or have an error of their own for it."""
    if column.style is not None:
        return not column.style.syntax
    # Numbers without names; spellings that are mixed, which the scheme's detector reports with a line.
    return (column.numbers and not column.named) or any(map(is_lettered, column.counts))


def _examples(lists: Mapping[str, Sequence[Sequence[str]]], tokens: str, named: Sequence[str]) -> list[str]:
    """The first sentences, each token with its values: `Ann/NNP owes/VBZ`."""
    shown = [lists[tokens], *(lists[name] for name in named[:_MOST_SHOWN])]
    sentences = (
        " ".join("/".join(values) for values in zip(*row, strict=False)) for row in zip(*shown, strict=True) if row[0]
    )
    return [sentence for sentence, _ in zip(sentences, range(_EXAMPLES), strict=False)]
