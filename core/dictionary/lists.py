"""Read lists of names: text, CSV, and pickles of plain containers. A list becomes a labelled corpus of names."""

import bz2
import csv
import gzip
import io
import pickle
import pickletools
from collections.abc import Iterator, Mapping
from pathlib import Path

from core.errors import PathError, ReadError
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean

MOST_BYTES = 200_000_000  # of a list, unpacked
MOST_LETTERS = 500  # of a name; longer ones are left out
_PLAIN = """
    PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE EMPTY_DICT EMPTY_LIST
    EMPTY_TUPLE EMPTY_SET DICT LIST TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS ADDITEMS
"""
# Instructions of a pickle that make only dictionaries, lists, tuples, sets, text and numbers. All others are refused,
# in particular those that import or call anything.
PLAIN = frozenset(_PLAIN.split())


def read_list(path: Path, type: str = "") -> list[Sentence]:
    """Return the names of a list, each as a sentence with one entity; equal names once.

    `.txt` and `.tsv` hold a name per line, or a name, a tab and its type; `.csv` holds names in its first column and
    types in its second; `.pkl` holds names as the keys of its largest dictionary, or as a list. All may be compressed
    (`.gz`, `.bz2`). type: type of names without one. Errors: PathError; ReadError with the line of the first name
    without a type, and for a file that is too large, damaged or not plain.
    """
    if not path.is_file():
        raise PathError(f"{path}: there is no such file; check the path.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    data = _unpacked(path, suffixes[-1] if suffixes else "")
    kind = next((suffix for suffix in reversed(suffixes) if suffix in (".txt", ".tsv", ".csv", ".pkl")), ".txt")
    pairs = _of_pickle(path, data) if kind == ".pkl" else _of_lines(path, data, "," if kind == ".csv" else "\t")
    found: dict[tuple[str, str], Sentence] = {}
    for line, name, own in pairs:
        kept, words = own or type, clean(name)
        if not words or len(words) > MOST_LETTERS:
            continue
        if not kept or any(letter.isspace() for letter in kept):
            raise ReadError(
                path.name, line, "is a name without a type; write the type after it, or give one: FILE=TYPE."
            )
        tokens = tuple(words.split())
        entity = Entity(start=0, end=len(tokens), type=kept)
        found[words, kept] = Sentence(id=sentence_id(words), tokens=tokens, text=words, entities=(entity,))
    if not found:
        raise ReadError(path.name, None, "holds no name; write one on each line.")
    return list(found.values())


def _unpacked(path: Path, suffix: str) -> bytes:
    """Return the bytes of a file. Errors: ReadError if it is damaged, or larger than `MOST_BYTES`."""
    try:
        with path.open("rb") as raw:
            packed = {".gz": lambda: gzip.GzipFile(fileobj=raw), ".bz2": lambda: bz2.BZ2File(raw)}
            data = packed.get(suffix, lambda: raw)().read(MOST_BYTES + 1)
    except (OSError, EOFError) as error:
        raise ReadError(path.name, None, "cannot be unpacked; copy it again.") from error
    if len(data) > MOST_BYTES:
        raise ReadError(path.name, None, f"is larger than {MOST_BYTES / 1e6:.0f} MB; give a shorter list of names.")
    return data


def _of_lines(path: Path, data: bytes, delimiter: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, type or ""), without empty lines."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadError(path.name, data.count(b"\n", 0, error.start) + 1, "is not UTF-8; save it as UTF-8.") from error
    rows = csv.reader(
        io.StringIO(text), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    )
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, row[0], row[1].strip() if len(row) > 1 else ""
    except csv.Error as error:
        raise ReadError(path.name, rows.line_num, f"is no CSV ({error}); correct the quotes.") from error


class _Unpickler(pickle.Unpickler):
    """Refuses every class and function, in addition to the check of the instructions."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"{module}.{name}")


def _of_pickle(path: Path, data: bytes) -> Iterator[tuple[None, str, str]]:
    """Yield the names of a pickle of plain containers, without types."""
    refused = ReadError(path.name, None, "is no pickle of plain lists and dictionaries; export the names as text.")
    try:
        if any(code.name not in PLAIN for code, *_ in pickletools.genops(data)):
            raise refused
        value = _Unpickler(io.BytesIO(data)).load()
    except (ValueError, pickle.UnpicklingError, EOFError, LookupError, TypeError, MemoryError, RecursionError) as error:
        raise refused from error
    names = _largest(value)
    if names is None:
        raise ReadError(path.name, None, "holds neither a dictionary of names nor a list of them; export them as text.")
    yield from ((None, name, "") for name in names if isinstance(name, str))


def _largest(value: object) -> Mapping[object, object] | list[object] | None:
    """Return the largest dictionary among a value and its values; a list, if the value is one."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    return max((value, *(each for each in value.values() if isinstance(each, dict))), key=len)
