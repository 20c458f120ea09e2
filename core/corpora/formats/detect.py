"""Recognise how a file stores rows (its container), what the rows contain, and which column has the text."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import islice
from math import isnan
from pathlib import Path, PurePath

from core.corpora.annotators import is_annotator
from core.corpora.formats.annotated import SPANS, TEXTS, why_no_spans, with_lists
from core.corpora.formats.conll import looks_like_columns, looks_like_conll
from core.corpora.formats.documents import document_format, is_document, sheet_rows
from core.corpora.formats.fields import fields_of, one_per_row, span_fields
from core.corpora.formats.folders import COLUMN_SUFFIXES, is_brat
from core.corpora.formats.ledger import NAMES, RECORDS, Fields, Ledger, ReadOptions, Record
from core.corpora.formats.name_lists import ENDINGS
from core.corpora.formats.other_tools import adapted, object_rows, refuse_by_ending, tool_of, why_refused
from core.corpora.formats.rows import (
    TEXT_NAMES,
    arrow_rows,
    arrow_schema,
    inline_rows,
    json_array,
    json_lines,
    looks_inline,
    table,
)
from core.corpora.formats.source import BLOCK_BYTES, PACKED, open_bytes, open_stream
from core.corpora.formats.token_tables import Cells, cells_of, is_sentence_column, listed, listed_tags, tag_columns
from core.errors import OptionsError, ReadError
from core.text.sentence import PLACE
from core.text.words import clean

HEAD = 200  # number of rows that are read to recognise a file
# Maximum number of further columns, and maximum numbers of characters in their names and values.
MOST_KEPT, LONGEST_NAME, LONGEST_VALUE = 20, 60, 100
LISTED = 20  # maximum number of columns that a note or error names
# Columns of labelled data, which are never kept as further columns.
_IDLE = frozenset({"text", "tokens", "spans", "entities", "label", "labels", "answer"})
LONGEST_FILE = 255  # maximum number of characters of a file name in all file systems
_PATH = re.compile(r"/|\\\\|[A-Za-z]:[/\\]")
_DOC_NAMES = ("doc", "doc_id", "document_id", "docid")
# JSON objects in which annotation tools store further columns of a row.
_WITHIN = ("meta", "metadata", "data")
# Formats of tables of texts. If the user chooses one of them, labels are not read.
_TABLES = ("csv", "tsv", "jsonl", "parquet", "xlsx")
# Formats whose files are documents, not rows.
_WHOLE = frozenset({"webanno", "pubtator", "gate", "bioc"})
# The formats in `_WHOLE`, and formats that are a single JSON object.
_TOOLS = _WHOLE | {"rasa", "lighttag", "spacy"}


@dataclass(frozen=True, slots=True)
class FileKind:
    """Format and layout of a file.

    format: a value of `ledger.Format`. container: how the file stores rows, see `_container`. columns: names of the
    columns, () without columns. placed: True if rows name the file, and perhaps the page, from which their text
    comes. others: names of further columns to keep, at most `MOST_KEPT`. cells: columns of tokens and tags in a table
    of labelled tokens, None for any other file. fields: fields of labelled rows that have no usual name. left_out:
    names of further columns that are not kept because there are more than `MOST_KEPT`. partly: names of further columns
    with a value in the first rows that cannot be kept: a long text, a list or an object.
    """

    format: str
    container: str
    encoding: str
    columns: tuple[str, ...] = ()
    text_column: str | None = None
    doc_column: str | None = None
    group_column: str | None = None
    placed: bool = False
    others: tuple[str, ...] = ()
    cells: Cells | None = None
    fields: Fields = field(default_factory=Fields)
    left_out: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()

    def notes(self) -> Iterator[str]:
        """Yield a note for the user for columns that are left out, and one for columns that may lose values."""
        if self.left_out:
            yield (
                f"At most {MOST_KEPT} further columns are kept. Left out: {_some(self.left_out)}. "
                "To keep one of these, delete other columns from the file."
            )
        if self.partly:
            yield (
                f"A further column keeps values of at most {LONGEST_VALUE} characters, no lists and no objects. Its"
                f" name has at most {LONGEST_NAME} characters. Values are left out of: {_some(self.partly)}. To keep"
                " them, shorten them in the file."
            )


def _some(names: Sequence[str]) -> str:
    """Return the first names of columns, separated by commas, and the number of the others.

    Long names are cut: without a header, the first row gives the names, and sentences do not belong in a run's log.
    """
    more = f" and {n} more" if (n := len(names) - LISTED) > 0 else ""
    short = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in names[:LISTED]]
    return ", ".join(short) + more


def suffix(path: PurePath) -> str:
    """Return the file's extension in lower case, ignoring those of packed files."""
    endings = [ending.lower() for ending in path.suffixes]
    while endings and endings[-1] in PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def records(path: Path, kind: FileKind, ledger: Ledger) -> Iterator[Record]:
    """Yield the rows of a file that has columns. For a table of labelled tokens, yield one row per sentence."""
    rows = _rows(path, kind, ledger)
    return listed(rows, kind.cells, ledger, kind.doc_column) if kind.cells else rows


def _rows(path: Path, kind: FileKind, ledger: Ledger) -> Iterator[Record]:
    if kind.container == "jsonl":
        return adapted(json_lines(path, kind.encoding, ledger))
    if kind.container == "json":
        return adapted(json_array(path, kind.encoding, ledger))
    if kind.container == "inline":
        return inline_rows(path, kind.encoding, ledger)
    if kind.container in ("xlsx", "object"):
        return sheet_rows(path, ledger) if kind.container == "xlsx" else object_rows(path, kind.format, ledger)
    if kind.container == "arrow":
        taken: tuple[str | None, ...] = (kind.text_column,)
        if kind.format == "hf":
            taken = tag_columns(kind.columns) or ()
        taken = (kind.cells.tokens, kind.cells.tags, kind.cells.sentence) if kind.cells else taken
        texts = [name for name in TEXTS if name in kind.columns] if kind.format == "hf" else ()
        taken = (*taken, *texts, *filter(is_annotator, kind.columns))
        place = (name for name in PLACE if kind.placed and name in kind.columns)
        columns = list(
            dict.fromkeys(name for name in (*taken, kind.doc_column, kind.group_column, *place, *kind.others) if name)
        )
        within = kind.placed and "file" not in kind.columns
        named = not within and kind.format in ("hf", "parquet") and set(columns) <= set(kind.columns)
        return arrow_rows(path, columns if named else None, ledger)
    separator = "\t" if kind.container == "tsv" else None
    return table(path, kind.encoding, ledger, separator, gaps=kind.cells is not None or not kind.format)


def kind_of(path: Path, options: ReadOptions) -> FileKind:
    """Return the kind of `path`, from its extension, its first block and the options. Errors: ReadError."""
    container = _container(path, options)
    if container in ("txt", "conll", "brat", NAMES):
        return FileKind(container, container, options.encoding)
    if container in _TOOLS:
        whole = container in _WHOLE and not (container == "bioc" and suffix(path) == ".json")
        return FileKind(container, "whole" if whole else "object", options.encoding)
    choice = options.format
    if is_document(path) and choice not in ("auto", container):
        raise OptionsError(path.name, None, f"is {container}, not {choice}; choose the format {container} or auto.")
    if is_document(path) and container != "xlsx":
        return FileKind(container, "document", options.encoding)
    if choice in ("txt", "conll", "brat"):
        raise OptionsError(
            path.name, 1, f"looks like {container}, not {choice}; choose the format {container} or auto."
        )
    columns, rows = _first_rows(path, container, options)
    if reason := why_refused(columns, rows):
        raise ReadError(path.name, 1, f"{reason}.")
    _check_named(path, rows, options)
    if choice not in _TABLES:
        rows = [with_lists(row) for row in rows]
    shape = choice if choice == "hf" or choice in RECORDS else _shape(columns, rows)
    shape = "" if choice in _TABLES else shape
    tokens_in = choice in ("auto", "hf", "xlsx") and options.text_column is None and not shape
    lists_in = container != "inline" and (shape == "hf" or tokens_in)
    cells = listed_tags(path, columns, rows, options) if lists_in else None
    if cells is None and tokens_in:
        cells = cells_of(path.name, columns, rows, options)
    if cells:
        named = (None, options.doc_column or _usual_doc(columns, cells.used), options.group_column)
        others, left_out, partly = _others(rows, *_IDLE, *cells.used, *named, labelled=True)
        return FileKind(
            "hf",
            container,
            options.encoding,
            tuple(columns),
            *named,
            False,
            others,
            cells,
            left_out=left_out,
            partly=partly,
        )
    rows = [row for row in rows if row]  # empty rows matter only in a table with one token per row
    placed = any("file" in part for row in rows for part in _parts(row))
    if shape == "labelstudio" and (reason := why_no_spans(rows)):
        raise ReadError(path.name, 1, f"{reason}.")
    if shape:
        asked = (options.text_column, options.doc_column or _usual_doc(columns), options.group_column)
        fields = fields_of(path.name, shape, rows)
        used = (*_IDLE, *asked, fields.text, *(PLACE if placed else ()))
        others, left_out, partly = _others(rows, *used, labelled=True)
        return FileKind(
            shape, container, options.encoding, tuple(columns), *asked, placed, others, None, fields, left_out, partly
        )
    return _text_table(path, container, columns, rows, options, placed=placed)


def _is_columns(path: Path, options: ReadOptions) -> bool:
    """Return True if a table has a token on each line and empty lines between sentences."""
    with open_stream(path, options.encoding) as stream:
        return looks_like_columns(stream.read(BLOCK_BYTES).decode("utf-8", "replace"), table=True)


def _text_table(
    path: Path,
    container: str,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    options: ReadOptions,
    *,
    placed: bool,
) -> FileKind:
    """Return the kind of a table of texts. Errors: OptionsError if the text column is missing."""
    if container == "tsv" and options.format == "auto" and options.text_column is None and _is_columns(path, options):
        return FileKind("conll", "conll", options.encoding)  # the CoNLL reader then asks the user for the tag column
    text_column = options.text_column or guess_text_column(columns, rows)
    name = {"arrow": "parquet", "json": "jsonl"}.get(container, container)
    nested = any(isinstance(value, list | Mapping) for row in rows for value in row.values())
    if nested and not options.text_column and text_column and _single_words(text_column, rows):
        text_column = None
    if text_column is None or text_column not in columns:
        problem = "no column has text" if text_column is None else f"there is no column {text_column!r}"
        within = " If the text is within lists or objects, save JSON lines with text and label ([[start, end, type]])."
        advice = f"Choose the text column.{within if nested else ''}"
        raise OptionsError(path.name, 1, f"{problem}; its columns are {_some(columns) or 'none'}. {advice}")
    if options.format not in _TABLES and one_per_row(text_column, rows):
        raise OptionsError(
            path.name,
            1,
            f"it has one mention per row. Save one row per text, with its mentions as a list [[start, end, type]] in a"
            f" column label, or read only the texts with --format {'xlsx' if container == 'xlsx' else name}.",
        )
    named = (text_column, options.doc_column or _usual_doc(columns, (text_column,)), options.group_column)
    placed = placed and text_column not in PLACE
    others, left_out, partly = _others(rows, *named, *(PLACE if placed else ()))
    return FileKind(
        name,
        container,
        options.encoding,
        tuple(columns),
        *named,
        placed,
        others,
        left_out=left_out,
        partly=partly,
    )


def _single_words(column: str, rows: Sequence[Mapping[str, object]]) -> bool:
    """Return True if a column without a usual name has only names or numbers of rows, such as `doc-7`."""
    values = [value for row in rows if isinstance(value := row.get(column), str)]
    return column.lower() not in TEXT_NAMES and all(value.isascii() and " " not in value.strip() for value in values)


def _usual_doc(columns: Sequence[str], used: Sequence[str] = ()) -> str | None:
    """Return the column with a usual name for the document of a row, None without one. used: columns of another use."""
    return next((name for name in _DOC_NAMES if name in columns and name not in used), None)


def named_in(record: Mapping[str, object], column: str | None) -> str | None:
    """Return a column's value as text, from a row or its metadata; None if there is no value."""
    value = next((part[column] for part in _parts(record) if column in part), None) if column else None
    if not isinstance(value, str | int | float) or (isinstance(value, float) and isnan(value)):
        return None
    return clean(str(value).encode("utf-8", "ignore").decode()) or None  # drops halves of surrogate pairs


def values_in(record: Mapping[str, object], columns: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (column, value as text) for each of `columns` that has a short value in a row or its metadata."""
    nested = any(key in record for key in _WITHIN)
    pairs = ((name, record.get(name)) for name in columns)
    if nested:
        pairs = ((name, next((part[name] for part in _parts(record) if name in part), None)) for name in columns)
    return tuple((name, words) for name, value in pairs if value is not None and (words := _in_words(value)))


def _in_words(value: object) -> str:
    if isinstance(value, str):
        return _short(value) if len(value) <= 2 * LONGEST_VALUE else ""
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, int | float) or (isinstance(value, float) and isnan(value)):
        return ""
    words = str(value)
    return words if len(words) <= LONGEST_VALUE else ""


@lru_cache(maxsize=4096)  # cached, because many rows have the same value
def _short(text: str) -> str:
    words = clean(text.encode("utf-8", "ignore").decode())
    return words if len(words) <= LONGEST_VALUE else ""


def _others(
    rows: Sequence[Mapping[str, object]], *used: str | None, labelled: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the further columns of a file that are not in `used`: (kept, left out, partly lost), in the file's order.

    A column that is empty in all of `rows` is kept too, because it may have values in later rows. If there are more
    than `MOST_KEPT` columns, empty ones are left out first. A column is partly lost if one of its values in `rows`
    cannot be kept. labelled: True for labelled rows. Their texts, lists and objects are then probably in use, and are
    not called lost.
    """
    parts = [part for row in rows for part in _parts(row)]
    names = dict.fromkeys(name for part in parts for name in part if isinstance(name, str))
    offered = [name for name in names if name not in used and not name.startswith("_") and name]
    kept = [name for name in offered if len(name) <= LONGEST_NAME]
    short = [name for name in kept if any(values_in(row, (name,)) for row in rows)]
    empty = [name for name in kept if all(_is_empty(part.get(name)) for part in parts)]
    chosen, left_out = {*islice((*short, *empty), MOST_KEPT)}, tuple(short[MOST_KEPT:])
    known = {*left_out, *((*TEXTS, *TEXT_NAMES) if labelled else ())}
    partly = (
        name
        for name in offered
        if name not in known and any(_is_lost(name, part.get(name), labelled=labelled) for part in parts)
    )
    return tuple(name for name in kept if name in chosen), left_out, tuple(partly)


def _is_lost(name: str, value: object, *, labelled: bool) -> bool:
    """Return True if a value of a further column cannot be kept."""
    if _is_empty(value) or (isinstance(value, list | Mapping) and (labelled or not value or name in _WITHIN)):
        return False
    return len(name) > LONGEST_NAME or not _in_words(value)


def _is_empty(value: object) -> bool:
    return (
        value is None or (isinstance(value, float) and isnan(value)) or (isinstance(value, str) and not value.strip())
    )


def place_in(record: Mapping[str, object]) -> tuple[str | None, int | None]:
    """Return the (file, page) that a row or its metadata names, None for a missing value.

    An absolute path is cut to its file name, because the path is probably from another machine.
    """
    file, page = (next((part[name] for part in _parts(record) if name in part), None) for name in PLACE)
    name = file.encode("utf-8", "ignore").decode() if isinstance(file, str) else ""
    named = clean(re.split(r"[/\\]", name)[-1] if _PATH.match(name) else name)
    if not named or len(named) > LONGEST_FILE:
        return None, None
    number = str(page).removesuffix(".0")  # pandas writes page 3 as 3.0 if other pages are missing
    return named, int(number) or None if number.isdecimal() and len(number) < 10 else None


def _parts(record: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield record
    yield from (part for key in _WITHIN if isinstance(part := record.get(key), Mapping))


def _check_named(path: Path, rows: Sequence[Mapping[str, object]], options: ReadOptions) -> None:
    """Raise OptionsError for a requested column that no row has."""
    columns = dict.fromkeys(str(name) for row in rows for part in _parts(row) for name in part)
    for column in (options.doc_column, options.group_column):
        if column and column not in columns:
            raise OptionsError(
                path.name, 1, f"there is no column {column!r}; choose one of its columns: {_some(list(columns))}."
            )


def _container(path: Path, options: ReadOptions) -> str:
    """Return the container of a file: the syntax in which it stores rows.

    It is txt, conll, brat, names, jsonl, json, csv, tsv, inline, arrow, or the format of a tool or a document.
    """
    choice = options.format
    if choice == NAMES:
        if suffix(path) not in ENDINGS:
            raise OptionsError(path.name, None, f"is not a list of names; save it as one of {', '.join(ENDINGS)}.")
        return NAMES
    if is_document(path):
        return document_format(path)
    if looks_like_arrow(path):
        return "arrow"
    if choice == "auto" and is_brat(path):
        return "brat"
    if choice in ("txt", "conll", "brat", "csv", "tsv"):
        return choice
    return _of_text(path, options)


def _of_text(path: Path, options: ReadOptions) -> str:
    """Return the container of a text file, from the format that the user has chosen and the file's first block."""
    choice = options.format
    refuse_by_ending(path)
    with open_stream(path, options.encoding) as stream:
        head = stream.read(BLOCK_BYTES).decode("utf-8", "replace")
    if choice in _WHOLE and choice != "bioc":
        return choice
    tool = tool_of(path, head, options) if choice == "auto" or choice in _TOOLS else ""
    return tool or _by_content(path, choice, head)


def looks_like_arrow(path: Path) -> bool:
    """Return True if a file will be read as Parquet or Arrow, that is, by native code."""
    with open_bytes(path) as stream:
        return stream.peek(4)[:4] == b"PAR1" or suffix(path) in (".parquet", ".arrow")


def _by_content(path: Path, choice: str, head: str) -> str:
    ending, start = suffix(path), head.lstrip()[:1]
    if ending == ".ann" or not (start or len(head) > 1000):
        problem = "is a brat file whose text is in a .txt file" if ending == ".ann" else "the file has no text"
        raise ReadError(path.name, None, f"{problem}; choose a file with at least one line of text.")
    if choice in ("jsonl", "hf") or choice in RECORDS or ending in (".json", ".jsonl", ".json1", ".ndjson"):
        lines = ending in (".jsonl", ".json1", ".ndjson") and head.lstrip()[1:].lstrip()[:1] not in ("{", "")
        # A first line with only a brace begins a JSON object that spans several lines.
        spread = head.lstrip().partition("\n")[0].strip() == "{"
        return "json" if (start == "[" and not lines) or spread else "jsonl"
    if (
        start == "{" and ending not in (*COLUMN_SUFFIXES, ".csv", ".tsv") and _is_object(head)
    ):  # JSON lines with an unusual extension, for example .manifest
        return "jsonl"
    if ending in COLUMN_SUFFIXES or ((ending != ".csv" or _has_gaps(head)) and looks_like_conll(head)):
        return "tsv" if _numbers_sentences(head) else "conll"
    if ending not in (".csv", ".tsv") and looks_inline(head):
        return "inline"
    if ending not in (".csv", ".tsv") and looks_like_columns(head):
        return "conll"  # the CoNLL reader then asks the user for the tag column
    return ending[1:] if ending in (".csv", ".tsv") else "txt"


def _has_gaps(head: str) -> bool:
    """Return True if a first block has empty lines, and columns that are separated by tabs or blanks.

    In such a .csv file, quotation marks are tokens. They do not begin a cell.
    """
    first, *rest = head.splitlines() or [""]
    return ("\t" in first or not any(mark in first for mark in ",;|")) and not all(line.strip() for line in rest)


def _numbers_sentences(head: str) -> bool:
    """Return True if the first line of a first block names a column that numbers sentences.

    Such a table has no empty lines. A reader of CoNLL would take it for a single sentence.
    """
    first, *rest = head.splitlines()
    names = first.split("\t")
    return len(names) > 2 and any(map(is_sentence_column, names)) and all(line.strip() for line in rest[:-1])


def _is_object(head: str) -> bool:
    """Return True if the first line of `head`, a file's first block, is a JSON object."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(head.lstrip().split("\n", 1)[0]), dict)
    return False


def _first_rows(path: Path, container: str, options: ReadOptions) -> tuple[list[str], list[Mapping[str, object]]]:
    ledger = Ledger(options)
    ledger.file = path.name
    rows = [row for _, row in islice(records(path, FileKind("", container, options.encoding), ledger), HEAD)]
    if not rows and ledger.report.problems:
        ledger.judge_encoding()
        first = ledger.report.problems[0]
        raise ReadError(path.name, first.line, f"{first.reason}; no row could be read as {container}.")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if container == "arrow" and not columns:
        columns = arrow_schema(path).names
    if not rows:
        raise ReadError(path.name, None, f"it has no rows (columns: {_some(columns) or 'none'}); choose another file.")
    return columns, rows


def _shape(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return the format of labelled rows; "" for unlabelled rows."""

    def lists(name: str) -> bool:
        return any(isinstance(row.get(name), list) for row in rows)

    def text_and(*names: str) -> bool:
        return any(isinstance(row.get(text), str) for row in rows for text in TEXTS) and any(map(lists, names))

    pair = tag_columns(columns)
    tasks = any(isinstance(row.get("data"), Mapping) for row in rows) and (lists("annotations") or lists("completions"))
    few = "annotation_id" in columns and ("lead_time" in columns or "annotator" in columns)  # JSON-MIN of Label Studio
    shapes = {
        "labelstudio": tasks,
        "argilla": any(map(_of_argilla, rows)),
        "hf": pair is not None and all(map(lists, pair)),
        "spacy": lists("paragraphs") or text_and("ents") or any(isinstance(row.get("spans"), Mapping) for row in rows),
        "prodigy": text_and("spans"),
        "doccano": text_and(*SPANS) or bool(span_fields(rows)),
    }
    return "labelstudio" if few else next((name for name, has in shapes.items() if has), "")


def _of_argilla(row: Mapping[str, object]) -> bool:
    """Return True if a row is a record of Argilla 1 or 2, even if its fields were flattened into columns."""
    if isinstance(row.get("fields"), Mapping):
        return "responses" in row or "suggestions" in row
    return {"annotation", "prediction"} <= row.keys() or any(str(name).endswith(".responses") for name in row)


def guess_text_column(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str | None:
    """Return the column with a usual name, or else with the longest texts; None if no column has text with letters."""
    usual = {name.lower(): name for name in reversed(columns)}
    for name in TEXT_NAMES:
        if name in usual and any(isinstance(row.get(usual[name]), str) for row in rows):
            return usual[name]

    def length(name: str) -> int:
        values = [value for row in rows if isinstance(value := row.get(name), str)]
        return sum(map(len, values)) if any(char.isalpha() for value in values for char in value) else 0

    best = max(columns, key=length, default=None)
    return best if best is not None and length(best) else None
