"""Word vectors in text, as word2vec and fastText (a first line `N D`) and GloVe (none) write them, plain or packed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from core.corpora.formats.source import lines, open_stream
from core.errors import ReadError
from core.results import FloatArray

MOST_NUMBERS = 10_000  # of a vector
LONGEST = 200  # bytes of a word; what is longer is an address or a table


@dataclass(slots=True, kw_only=True)
class VectorTable:
    """Content of a file: words in its order, each once, and the length of their vectors.

    again: lines of words that were there before, of which the first counts. unusable: lines whose word no token can be:
    empty, with blanks in it, or far too long. whole: the file was read to its end.
    """

    words: list[str] = field(default_factory=list)
    dimension: int = 0
    again: int = 0
    unusable: int = 0
    whole: bool = True


def read_vectors(
    path: Path, rows: BinaryIO, *, most_words: int = 0, tick: Callable[[int], None] = lambda _: None
) -> VectorTable:
    """Read a line at a time; a vector's float32 goes to `rows` at once, so that only words are held in memory.

    most_words: the first so many, 0: all. tick: told the packed bytes read so far.

    Errors: PathError; ReadError for the first line that is wrong, and for a header that the lines belie.
    """
    if path.name.lower().removesuffix(".gz").endswith(".bin"):
        raise ReadError(path.name, None, "is binary by its name; save the vectors as text (word2vec's, .vec, .txt).")
    with open_stream(path, "utf-8", tick) as stream:
        return _table(path.name, stream, rows, most_words)


def _table(file: str, stream: IO[bytes], rows: BinaryIO, most_words: int) -> VectorTable:
    table, known, promised, read = VectorTable(), set[str](), None, 0
    for number, line, fits in lines(stream):
        if not fits:
            raise ReadError(file, number, "is longer than 1 MB; write one word and its numbers on each line.")
        fields = line.rstrip(b" \t\r\n").replace(b"\t", b" ").split(b" ")
        if number == 1 and (header := _header(fields)):
            promised, table.dimension = header
            _check_dimension(file, 1, table.dimension)
            continue
        if fields == [b""]:
            continue
        if most_words and len(table.words) == most_words:
            table.whole = False
            return table
        read += 1
        if not table.dimension:
            table.dimension = len(fields) - 1
            _check_dimension(file, number, table.dimension)
        word, vector = _parted(file, number, fields, table.dimension)
        text = _text(file, number, word)
        if text.split() != [text] or len(word) > LONGEST:
            table.unusable += 1
        elif text in known:
            table.again += 1
        else:
            known.add(text)
            table.words.append(text)
            rows.write(vector.tobytes())
    if promised is not None and read != promised:
        what = f"says that {promised:,} words follow, and {read:,} do; get the file again, or mend this line."
        raise ReadError(file, 1, what)
    if not table.words:
        raise ReadError(file, None, "holds no word with a vector; write a word and its numbers on each line.")
    return table


def _header(fields: list[bytes]) -> tuple[int, int] | None:
    """`(words, numbers)`, where a first line says so."""
    if len(fields) != 2 or not all(part.isdigit() and len(part) < 19 for part in fields):
        return None
    words, dimension = map(int, fields)
    return words, dimension


def _check_dimension(file: str, number: int, dimension: int) -> None:
    if not 0 < dimension <= MOST_NUMBERS:
        what = f"gives a word {dimension:,} numbers; expected are 1 to {MOST_NUMBERS:,}, a blank before each."
        raise ReadError(file, number, what)


def _parted(file: str, number: int, fields: list[bytes], dimension: int) -> tuple[bytes, FloatArray]:
    """A line's word and vector. A word may have blanks, as some of GloVe's do, but no numbers after its first part."""
    n = len(fields) - dimension
    between = fields[1:n]
    if n < 1 or (between and all(_number(part) is not None for part in between)):
        what = f"has {len(fields) - 1:,} numbers, where {dimension:,} are expected; write as many for every word."
        raise ReadError(file, number, what)
    values = [_number(part) for part in fields[n:]]
    if None in values:
        wrong = fields[n + values.index(None)][:40].decode("utf-8", "replace")
        raise ReadError(file, number, f"{wrong!r} is not a number; write a word, then {dimension:,} numbers.")
    with np.errstate(over="ignore"):
        vector = np.array(values, dtype=np.float64).astype(np.float32)
    if not np.isfinite(vector).all():
        raise ReadError(file, number, "a number is not finite (NaN, infinity or too large); leave that word out.")
    return b" ".join(fields[:n]), vector


def _number(part: bytes) -> float | None:
    try:
        return None if b"_" in part else float(part)
    except ValueError:
        return None


def _text(file: str, number: int, word: bytes) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise ReadError(file, number, "its word is not UTF-8; save the file as UTF-8.") from error
