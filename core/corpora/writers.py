"""Write exports: selections and corpora (txt, jsonl, csv, parquet), data cards, and labelled sentences (CoNLL).

Every file is written under a temporary name and renamed when it is complete.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, NotRequired, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import ConfigError, CorpusError, PathError
from core.files import replacing
from core.text.schemes import Scheme, encode
from core.text.sentence import PLACE, Sentence

Format = Literal["txt", "jsonl", "csv", "parquet", "folder"]
FORMATS: Mapping[str, Format] = {".txt": "txt", ".jsonl": "jsonl", ".csv": "csv", ".parquet": "parquet"}
COLUMNS = ("id", "text", "row", "score", "rank")
# Columns that are exported if the corpus has them.
KEPT = ("doc", "group", *PLACE)
# A column for each of `hygiene.FLAGS`.
FLAGGED = ("duplicate", "near_duplicate", "test_leak", "too_short", "too_long")
# Columns with True or False in exports from a map.
MARKS = ("selected", *FLAGGED)


class Row(TypedDict):
    """A selected sentence.

    row: number of the sentence's row in the corpus. score, rank: None for a sentence without a score; rank is 1 for the
    best. doc, group, file, page: see `Sentence`. more: {further column: value}. marks: {column of `MARKS`: value};
    empty for a sentence of T_C, which is neither selected nor checked.
    """

    id: str
    text: str
    row: int
    score: float | None
    rank: int | None
    doc: NotRequired[str | None]
    group: NotRequired[str | None]
    file: NotRequired[str | None]
    page: NotRequired[int | None]
    more: NotRequired[Mapping[str, str | None]]
    marks: NotRequired[Mapping[str, bool]]


_BLOCK = 8192  # number of rows per row group of a Parquet file
_TYPES = {
    "id": pa.string(),
    "text": pa.string(),
    "row": pa.int64(),
    "score": pa.float64(),
    "rank": pa.int64(),
    "doc": pa.string(),
    "group": pa.string(),
    "file": pa.string(),
    "page": pa.int32(),
    "tokens": pa.list_(pa.string()),
    "tags": pa.list_(pa.string()),
    **dict.fromkeys(MARKS, pa.bool_()),
}
# {column: type of the column in Parquet}
_Columns = Mapping[str, pa.DataType]
# {column: value in a row}
_Values = dict[str, object]
# Matches a file extension such as ".doc", but not the ".2pct" of "20.2pct".
_ENDING = re.compile(r"\.[A-Za-z]\w*")
# A spreadsheet computes a cell that begins with one of these characters (OWASP, CSV injection).
_CELL_START = re.compile(r'(^|;"?\s*+)(?=[=+\-@\t\r\n＝＋－＠])')
# Matches the quote that `harmless` puts before such a character.
_QUOTED_START = re.compile(r"""(^|;"?\s*+)'(?=[=+\-@\t\r\n＝＋－＠])""")

CARD = "---\nconfigs:"  # beginning of the README.md of an exported folder
MODEL_CARD = "---\n"  # beginning of the README.md of a model


def format_of(path: Path) -> Format:
    """Return the format for a path's extension; "folder" without one. Errors: ConfigError for any other extension."""
    if format_by_ending := FORMATS.get(path.suffix.lower()):
        return format_by_ending
    if _ENDING.fullmatch(path.suffix) and not path.is_dir():
        raise ConfigError(
            f"output: {path.name!r} has none of the extensions {', '.join(FORMATS)}; use one, or --format folder."
        )
    return "folder"


def further_names(
    names: Iterable[str], kept: Sequence[str] = (), columns: Sequence[str] = (*COLUMNS, *PLACE)
) -> dict[str, str]:
    """Return {further column: its name in an export}. A name that another column has gets the prefix "column_".

    The prefix is repeated until the name is free. names: further columns. kept, columns: names of the other columns of
    the export.
    """
    further = list(names)
    taken, found = {*columns, *kept}, dict[str, str]()
    for name in sorted(further, key=taken.__contains__):  # columns that keep their name come first
        free = name
        while free in taken:
            free = f"column_{free}"
        taken.add(free)
        found[name] = free
    return {name: found[name] for name in further}


def write_selection(
    rows: Iterable[Row],
    path: Path,
    format: Format | None = None,
    *,
    marks: Sequence[str] = (),
    kept: Sequence[str] = (),
    more: Sequence[str] = (),
) -> int:
    """Write rows (`id, text, row, score, rank`, best first) to a file and return their number.

    marks: columns of `MARKS` to write. kept: columns to write among doc, group, file and page. more: names of further
    columns. format: None to use the format of `path`'s extension. A txt file has only the texts, one per line. In a csv
    file, a quote is put before text that a spreadsheet would read as a formula. If writing fails, no file remains.
    Errors: ConfigError for any other extension; PathError if the file cannot be written.
    """
    writers = {"txt": _txt, "jsonl": _jsonl, "csv": _csv, "parquet": _parquet}
    format = format or format_of(path)
    if format not in writers:
        raise ConfigError(f"output: {path.name!r} names a folder; give it one of the extensions {', '.join(FORMATS)}.")
    columns = _columns((*COLUMNS, *marks, *kept), more)
    with output_file(path) as file:
        return writers[format]((_values(row, columns) for row in rows), file, columns)


def write_corpus(
    sentences: Iterable[Sentence], path: Path, *, labelled: bool, kept: Sequence[str] = (), names: Sequence[str] = ()
) -> int:
    """Write the sentences of a corpus to a file and return their number.

    Labelled sentences get two further columns, their tokens and their IOB2 tags. kept, names: results of `kept_names`
    and `value_names` for the corpus. Errors: ConfigError for any other extension, and for labels in a .csv;
    CorpusError for an unlabelled sentence in a .conll; PathError.
    """
    if path.suffix.lower() == ".conll":
        return write_conll(sentences, path)
    format = FORMATS.get(path.suffix.lower())
    if format is None or (labelled and format == "csv"):
        why = "cannot hold labels" if format else "names no format"
        endings = ".jsonl, .parquet or .conll" if labelled else ", ".join(FORMATS)
        raise ConfigError(f"output: {path.name!r} {why}; give it the extension {endings}.")
    columns = ("id", "text", *(("tokens", "tags") if labelled else ()))
    further = further_names(names, kept, columns)
    rows = (_of_sentence(sentence, (*columns, *kept), further) for sentence in sentences)
    writers = {"txt": _txt, "jsonl": _jsonl, "csv": _csv, "parquet": _parquet}
    with output_file(path) as file:
        return writers[format](rows, file, _columns((*columns, *kept), further.values()))


def _columns(own: Iterable[str], further: Iterable[str]) -> _Columns:
    # Further columns are always text, even if they are named like a column that this export lacks, such as "tags".
    return {name: _TYPES[name] for name in own} | dict.fromkeys(further, pa.string())


def _of_sentence(sentence: Sentence, columns: Sequence[str], further: Mapping[str, str]) -> _Values:
    """Return {column: value} for a sentence. further: {further column: its name in the export}."""
    tags = None if sentence.entities is None else encode(sentence.entities, len(sentence.tokens), "iob2")
    known: _Values = {
        "id": sentence.id,
        "text": sentence.text,
        "tokens": list(sentence.tokens),
        "tags": tags and list(tags),
        **{name: getattr(sentence, name) for name in KEPT},
    }
    own = dict(sentence.columns)
    return {name: known[name] for name in columns} | {new: own.get(name) for name, new in further.items()}


def write_conll(sentences: Iterable[Sentence], path: Path, scheme: Scheme = "iob2") -> int:
    """Write a line `token<TAB>tag` per token, and an empty line after each sentence. Return the number of sentences.

    Errors: CorpusError for an unlabelled sentence.
    """
    count = 0
    with output_file(path) as out:
        for count, sentence in enumerate(sentences, 1):  # noqa: B007  the last count is the result
            if sentence.entities is None:
                raise CorpusError(f"{path.name}: sentence {sentence.id} is not labelled; export it as text.")
            tags = encode(sentence.entities, len(sentence.tokens), scheme)
            lines = "".join(f"{token}\t{tag}\n" for token, tag in zip(sentence.tokens, tags, strict=True))
            out.write(f"{lines}\n".encode())
    return count


def write_file(data: bytes, path: Path) -> None:
    """Write bytes to a file. If writing fails, no file remains. Errors: PathError if the file cannot be written."""
    with output_file(path) as out:
        out.write(data)


def write_card(folder: Path, *, data_file: str, title: str, about: Mapping[str, object]) -> Path:
    """Write the data card `README.md` and return its path. Its header makes `datasets.load_dataset` load `data_file`.

    about: {name: value} for the rows of the card's table (strategy, budget, corpora, seed ...).
    """
    header = json.dumps({"config_name": "default", "data_files": [{"split": "train", "path": data_file}]})
    table = "".join(f"| {_cell(key)} | {_cell(value)} |\n" for key, value in about.items())
    legend = "\n`row`: row number in the corpus. `score`: score in the strategy's own unit. `rank`: 1 is the best.\n"
    columns = "" if data_file.endswith(".txt") else legend
    card = folder / "README.md"
    # JSON is valid YAML, so file names that are quoted as in JSON are correct in the YAML header.
    text = f"{CARD}\n- {header}\n---\n\n# {_cell(title)}\n\n| what | value |\n|---|---|\n{table}{columns}"
    with output_file(card) as out:
        out.write(text.encode())
    return card


def spare_readme(folder: Path, begins: str = CARD) -> None:
    """Refuse a folder with a README.md that Winnow did not write, because an export would replace it.

    begins: text with which the README.md of the export begins. Errors: ConfigError.
    """
    with suppress(OSError), (folder / "README.md").open("rb") as card:
        if card.read(len(begins)) != begins.encode():
            raise ConfigError(f"output: {folder} has a README.md, which would be replaced; give another folder.")


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _txt(rows: Iterable[_Values], out: BinaryIO, columns: _Columns) -> int:
    return sum(bool(out.write((" ".join(str(row["text"]).split()) + "\n").encode())) for row in rows)


def _jsonl(rows: Iterable[_Values], out: BinaryIO, columns: _Columns) -> int:
    return sum(bool(out.write((json.dumps(row, ensure_ascii=False) + "\n").encode())) for row in rows)


def _csv(rows: Iterable[_Values], out: BinaryIO, columns: _Columns) -> int:
    text = TextIOWrapper(out, encoding="utf-8-sig", newline="")  # Excel recognises UTF-8 only by its byte order mark
    writer = csv.writer(text)
    writer.writerow([harmless(name) for name in columns])
    count = sum(bool(writer.writerow([harmless(value) for value in row.values()])) for row in rows)
    text.detach()
    return count


def harmless(value: object) -> object:
    """Return a cell for a .csv, with a quote (') before text that a spreadsheet would read as a formula.

    Text after a semicolon also gets a quote, because a German Excel separates cells by semicolons. It removes a
    quotation mark (") at the start of a cell.
    """
    return _CELL_START.sub(r"\1'", value) if isinstance(value, str) else value


def without_quote(cell: str) -> str:
    """Return a cell of a .csv without the quotes that `harmless` put before formulas."""
    return _QUOTED_START.sub(r"\1", cell)


def _parquet(rows: Iterable[_Values], out: BinaryIO, columns: _Columns) -> int:
    count = 0
    stream, schema = iter(rows), pa.schema(list(columns.items()))
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        while block := list(islice(stream, _BLOCK)):
            writer.write_table(pa.Table.from_pylist(block, schema=schema))
            count += len(block)
    return count


def _values(row: Row, columns: Iterable[str]) -> _Values:
    """Return {column: value} for a selected sentence. NaN becomes None, because JSON has no NaN."""
    score = None if row["score"] is None or row["score"] != row["score"] else float(row["score"])
    values: _Values = {
        "id": str(row["id"]),
        "text": str(row["text"]),
        "row": int(row["row"]),
        "score": score,
        "rank": row["rank"],
        **row.get("marks", {}),
        **{name: row.get(name) for name in KEPT},
        **row.get("more", {}),
    }
    return {name: values.get(name) for name in columns}


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """Yield the file to write for an output that a user named. Its folder is made, and it is replaced when complete.

    Errors: PathError if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise PathError(f"{path}: cannot be written ({error.strerror or error}); choose another path.") from error
