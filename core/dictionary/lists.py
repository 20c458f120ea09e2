"""Read lists of names: text, CSV, and pickles of plain containers. A list becomes a labelled corpus of names."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from core import isolated
from core.dictionary import pickled
from core.dictionary.unpacked import unpacked
from core.errors import PathError, ReadError
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean

MOST_LETTERS = 500  # of a name; longer ones are left out
MOST_OF_TYPE = 40  # letters
SECONDS = 120  # time limit for one pickle
_HEADS = (
    ("name", "names", "term", "text"),
    ("type", "types", "label", "entity", "class"),
)  # of a CSV file

_reader = isolated.Isolated(pickled.__name__, "export the names as text", SECONDS, spare=False)


def read_list(path: Path, type: str = "") -> list[Sentence]:
    """Return the names of a list, each as a sentence with one entity; equal names once.

    `.txt` and `.tsv` hold a name per line, or a name, a tab and its type; `.csv` holds names in its first column and
    types in its second, with or without a heading; `.pkl` holds names as the keys of its largest dictionary, or as a
    list. All may be compressed (`.gz`, `.bz2`). Names that cannot be printed are left out. type: type of names without
    one. Errors: PathError; ResourceError; ReadError with the line of the first name without a type, and for a file that
    is too large, damaged or not plain.
    """
    if not path.is_file():
        raise PathError(f"{path}: there is no such file; check the path.")
    endings = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(endings) if suffix in (".txt", ".tsv", ".csv", ".pkl")), ".txt")
    found: dict[tuple[str, str], Sentence] = {}
    for line, name, own in _of_pickle(path) if kind == ".pkl" else _of_text(path, commas=kind == ".csv"):
        kept, words = own or type, clean(name)
        if not words or len(words) > MOST_LETTERS or not words.isprintable():
            continue
        if not kept or not kept.isprintable() or len(kept) > MOST_OF_TYPE or any(letter.isspace() for letter in kept):
            raise ReadError(path.name, line, "is a name without a type of one word; give one: FILE=TYPE.")
        tokens = tuple(words.split())
        entity = Entity(start=0, end=len(tokens), type=kept)
        found[words, kept] = Sentence(id=sentence_id(words), tokens=tokens, text=words, entities=(entity,))
    if not found:
        raise ReadError(path.name, None, "holds no name; write one on each line.")
    return list(found.values())


def _of_text(path: Path, *, commas: bool) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, type or ""), without empty lines and without the heading of a CSV file."""
    data = unpacked(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadError(path.name, data.count(b"\n", 0, error.start) + 1, "is not UTF-8; save it as UTF-8.") from error
    if not commas:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                name, _, own = line.partition("\t")
                yield number, name, own.strip()
        return
    rows = csv.reader(io.StringIO(text))
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            first = rows.line_num == 1 and len(cells) > 1
            if any(cells) and not (first and cells[0].lower() in _HEADS[0] and cells[1].lower() in _HEADS[1]):
                yield rows.line_num, cells[0], cells[1] if len(cells) > 1 else ""
    except csv.Error as error:
        raise ReadError(path.name, rows.line_num, f"is no CSV ({error}); correct the quotes.") from error


def _of_pickle(path: Path) -> Iterator[tuple[None, str, str]]:
    """Yield the names of a pickle, without types. A separate process reads it (`pickled.py`)."""
    names = _reader.ask(path.name, path=str(path))
    assert isinstance(names, list)
    yield from ((None, str(name), "") for name in names)
