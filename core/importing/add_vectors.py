"""`vectors-import`: read pre-trained word vectors from a file (Dai et al. 2019, Table 5)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from pydantic import field_validator

from core.config import Config, option
from core.corpora.formats.source import lines, open_stream
from core.encoders import vectors
from core.encoders.vectors import ImportResult
from core.errors import ConfigError, ReadError
from core.importing.add import LONGEST_NAME, proposed_name
from core.kind import Job, Kind
from core.paths import user_path
from core.reporter import Reporter
from core.results import FloatArray
from core.runs.store import RunStore, is_run_id
from core.shown import in_utf8, shown

# Maximum dimension of a vector.
MOST_NUMBERS = 10_000
# Maximum number of bytes of a word. Longer entries are not words but, for example, web addresses.
LONGEST = 200


@dataclass(slots=True, kw_only=True)
class VectorTable:
    """Words of a file with vectors, and counts of its lines.

    words: distinct words, in the order of the file. dimension: numbers per vector. again: number of lines that repeat a
    word; the first line with a word is used. unusable: number of lines whose word cannot be a token, because it is
    empty, has a blank or is too long. whole: True if the file was read to its end.
    """

    words: list[str] = field(default_factory=list)
    dimension: int = 0
    again: int = 0
    unusable: int = 0
    whole: bool = True


def read_vectors(
    path: Path, rows: BinaryIO, *, most_words: int = 0, tick: Callable[[int], None] = lambda _: None
) -> VectorTable:
    """Read a file line by line, and write each vector to `rows` (float32) at once, so that memory holds only the words.

    most_words: maximum number of words to read, 0 for all. tick: called with the number of compressed bytes read.

    Errors: PathError; ReadError for the first wrong line, and for a header with a wrong number of words.
    """
    if path.name.lower().removesuffix(".gz").endswith(".bin"):
        raise ReadError(path.name, None, "has the extension of a binary file; save the vectors as text (.vec, .txt).")
    with open_stream(path, "utf-8", tick) as stream:
        return _table(path.name, stream, rows, most_words)


def _table(file: str, stream: IO[bytes], rows: BinaryIO, most_words: int) -> VectorTable:
    table, known, promised, read = VectorTable(), set[str](), None, 0
    for number, line, fits in lines(stream):
        if not fits:
            raise ReadError(file, number, "is longer than 1 MB; write one word and its numbers per line.")
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
        what = f"announces {promised:,} words, but {read:,} follow; download the file again, or correct this line."
        raise ReadError(file, 1, what)
    if not table.words:
        raise ReadError(file, None, "has no word with a vector; write one word and its numbers per line.")
    return table


def _header(fields: list[bytes]) -> tuple[int, int] | None:
    """Return (number of words, numbers per word) if these fields of the first line are a header, else None."""
    if len(fields) != 2 or not all(part.isdigit() and len(part) < 19 for part in fields):
        return None
    words, dimension = map(int, fields)
    return words, dimension


def _check_dimension(file: str, number: int, dimension: int) -> None:
    if not 0 < dimension <= MOST_NUMBERS:
        what = f"has {dimension:,} numbers per word, expected 1 to {MOST_NUMBERS:,}; put a blank before each number."
        raise ReadError(file, number, what)


def _parted(file: str, number: int, fields: list[bytes], dimension: int) -> tuple[bytes, FloatArray]:
    """Return a line's word and vector.

    A word may contain blanks, as in GloVe, unless all its parts after the first are numbers. Errors: ReadError.
    """
    n = len(fields) - dimension
    between = fields[1:n]
    if n < 1 or (between and all(_number(part) is not None for part in between)):
        what = f"has {len(fields) - 1:,} numbers, expected {dimension:,}; write {dimension:,} numbers for every word."
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


class AddVectorsConfig(Config):
    """Options of an import of word vectors: the file to read, and a name for the vectors."""

    path: str = option(..., "A text file of word vectors (word2vec, GloVe, fastText's .vec), also compressed as .gz.")
    name: str = option("", "Name for --imported-vectors; the file's name if left out.", max_length=LONGEST_NAME)
    most_words: int = option(
        200_000,
        "Number of words to read; 0 reads all. Most files begin with frequent words. A tagger stores all words read.",
        unit="words",
        ge=0,
    )

    @field_validator("path")
    @classmethod
    def _named_in_utf8(cls, path: str) -> str:
        if not in_utf8(path):
            raise ValueError("its name is not in UTF-8; rename the file")
        return path

    @field_validator("name")
    @classmethod
    def _no_run_id(cls, name: str) -> str:
        if is_run_id(name) or "," in name:
            raise ValueError("is a run's id or contains a comma; choose another name")
        return name


def run(config: AddVectorsConfig, job: Job) -> ImportResult:
    """Import word vectors.

    Artifacts: `words.txt`, one word per line in the order of the file; `vectors.npy`, (n, d) float32.
    """
    path = user_path(config.path)
    name = shown(config.name) or proposed_name(path).replace(",", " ")
    if others := [run_id for run_id, other in vectors.imports(RunStore(job.home)).items() if other.name == name]:
        raise ConfigError(f"name: {others[0]} has the name {name} already; choose another name, or remove that run.")
    job.context.stage(f"reading {shown(path.name)}")
    draft = job.context.run.chunks / "rows.f32"
    try:
        result = _read(config, job, path, draft, name)
    finally:
        draft.unlink(missing_ok=True)
    if result.again or result.unusable:
        job.context.note(
            f"{result.again:,} lines repeat a word of an earlier line and were ignored; {result.unusable:,} lines were "
            "left out because their words are empty, too long or have blanks."
        )
    return result


def _read(config: AddVectorsConfig, job: Job, path: Path, draft: Path, name: str) -> ImportResult:
    # If the path is not a file, `read_vectors` raises the error.
    size = path.stat().st_size if path.is_file() else 0
    with draft.open("wb") as rows:
        tick = partial(_progress, job.context, size)
        table = read_vectors(path, rows, most_words=config.most_words, tick=tick)
    shape = (len(table.words), table.dimension)
    vectors.write_words(job.context.run, table.words, np.memmap(draft, np.float32, "r", shape=shape))
    return ImportResult(
        name=name,
        words=len(table.words),
        dimension=table.dimension,
        again=table.again,
        unusable=table.unusable,
        whole=table.whole,
    )


def _progress(report: Reporter, size: int, done: int) -> None:
    report.check()
    report.progress(done // 1000, max(size // 1000, 1), "KB")


KIND = Kind(
    "vectors-import",
    AddVectorsConfig,
    run,
    ImportResult,
    title=lambda run: f"Read word vectors {run.config['name'] or run.config['path'].rsplit('/', 1)[-1]}",
    outcome=lambda result, _: result.says,
    page="Training",
    command=("vectors", "add"),
    positional=("path",),
    reuse=False,
)
