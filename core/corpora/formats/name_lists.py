"""Read lists of names with types: text with a name per line, or CSV. A name becomes a sentence with one entity."""

from collections.abc import Iterable, Iterator, Sequence

from core.corpora.formats.ledger import Ledger
from core.errors import OptionsError
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean

ENDINGS = (".txt", ".tsv", ".csv")
# Maximum number of letters in a name.
MOST_LETTERS = 500
# Maximum number of letters in an entity type.
MOST_OF_TYPE = 40
# Possible headings, in the first line, of the column with names and of the column with their types.
_NAME = ("name", "names", "term", "text")
_TYPE = ("type", "types", "label", "entity", "class")


def named(name: str, type: str) -> Sentence | str:
    """Return a name as a sentence with one entity, or the reason why it cannot be a name."""
    words = clean(name)
    if not words:
        return "an empty name; write the name or remove the row"
    if not words.isprintable():
        return "a name with characters that cannot be printed; remove them"
    if len(words) > MOST_LETTERS:
        return f"a name of more than {MOST_LETTERS} letters; shorten it or remove the row"
    if words.startswith("="):
        return "a formula of a spreadsheet, not a name; save the values"
    tokens = tuple(words.split())
    entity = Entity(start=0, end=len(tokens), type=type)
    return Sentence(id=sentence_id(words), tokens=tokens, text=words, entities=(entity,))


def check_type(file: str, line: int | None, type: str) -> None:
    """Check the entity type of a name. Errors: OptionsError if the type is missing, or is not a single word."""
    if not type:
        why = "is a name without a type; give the type of such names (--entity-type, or --list FILE=TYPE)."
        raise OptionsError(file, line, why)
    if not type.isprintable() or len(type) > MOST_OF_TYPE or any(letter.isspace() for letter in type):
        why = f"has a type that is not one word of at most {MOST_OF_TYPE} letters; correct the type."
        raise OptionsError(file, line, why)


def read_names(rows: Iterable[tuple[int, Sequence[str]]], ledger: Ledger, *, table: bool) -> Iterator[Sentence]:
    """Yield the names of a list as sentences. Skip a name that occurred before with the same type.

    rows: (line, cells) of each row; the cells are a name, or a name and its type. If the first row has headings, the
    columns may be in any order, and further columns are ignored. table: True for CSV, in which the only column may have
    a heading too. A name without a type gets the type in the option `entity_type`. Rows with an unusable name are
    rejected.
    Errors: OptionsError for too many columns, and those of `check_type`.
    """
    seen = set[tuple[str, str]]()
    for line, name, own in _pairs(rows, ledger, table=table):
        type = own or ledger.options.entity_type
        sentence = named(name, type)
        if isinstance(sentence, str):
            ledger.reject(line, sentence, name)
            continue
        check_type(ledger.file, line, type)
        if (sentence.text, type) in seen:
            ledger.skip(line, "a name that occurred before with the same type")
            continue
        seen.add((sentence.text, type))
        ledger.keep(1)
        ledger.report.sentences += 1
        yield sentence


def _pairs(rows: Iterable[tuple[int, Sequence[str]]], ledger: Ledger, *, table: bool) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, type or "") of each row. Empty rows and the row of headings are left out."""
    columns: tuple[int, int] | None = None  # indices of the columns with names and types; -1 if there are no types
    width, how = 2, 'Correct the line, or add a first line with the column names "name" and "type".'
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if columns is None:
            columns = _columns([cell.lower() for cell in cells], table=table)
            if columns:
                width, how = max(len(cells), 2), "Correct the line."
                continue
            columns = (0, 1)
        if len(cells) > width:
            raise OptionsError(ledger.file, line, f"has {len(cells)} columns, expected at most {width}. {how}")
        name, type = (cells[i] if 0 <= i < len(cells) else "" for i in columns)
        yield line, name, type


def _columns(heads: Sequence[str], *, table: bool) -> tuple[int, int] | None:
    """Return the indices of the columns with names and types (-1 for none) if `heads` are headings, else None."""
    name = next((i for i, head in enumerate(heads) if head in _NAME), -1)
    type = next((i for i, head in enumerate(heads) if head in _TYPE), -1)
    alone = table and len(heads) == 1  # in a .txt file, the first line "name" is a name, not a heading
    return (name, type) if name >= 0 and (type >= 0 or alone or len(heads) > 2) else None
