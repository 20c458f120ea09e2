"""Read rows one at a time from CSV, TSV, JSON, Parquet and Arrow files, and from text with tags or marks in its lines.

A tag follows a word (`Ann/B-PER`). Marks are around a mention (`<PERSON>Ann</PERSON>`).
"""

import codecs
import csv
import io
import json
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from itertools import chain, islice
from pathlib import Path
from typing import IO, BinaryIO, Literal, Self, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.corpora.formats.ledger import TOO_LONG, Ledger, ReadOptions, Record, short
from core.corpora.formats.source import (
    BLOCK_BYTES,
    BOMB_BYTES,
    BOMB_RATIO,
    MAX_RECORD,
    MAX_TEXT,
    Line,
    lines,
    open_stream,
)
from core.corpora.writers import without_quote
from core.errors import EncodingError, ReadError, ResourceError
from core.paths import opened
from core.shown import count
from core.text.sentence import sentence_id
from core.text.tag_styles import UNTYPED
from core.text.words import clean

# Usual names, in lower case, of a column with text.
TEXT_NAMES = (
    *("text", "sentence", "sentences", "content", "body"),
    *("document", "paragraph", "abstract", "note", "review"),
)
# Number of lines that are read to recognise inline tags and marks.
_LINES = 50
# Minimum share of words with a tag, in lines with inline tags.
_SHARE = 0.95
# Matches a marked mention, such as <PERSON>Ann</PERSON> or <ENAMEX TYPE="PERSON" STATUS="OPT">Ann</ENAMEX>.
_MARK = re.compile(
    r"<(?P<tag>[A-Z][A-Z_-]+)(?:\s+TYPE=\"(?P<type>[^\"<>]+)\"(?:\s+[A-Z_]+=\"[^\"<>]*\")*)?>(?P<text>[^<>]+)</(?P=tag)>"
)
# Matches a mention in OpenNLP's training data, such as <START:person> Ann <END>.
_OPENNLP = re.compile(r"(?P<tag><START)(?::(?P<type>[^\s<>]+))?>\s+(?P<text>[^<>]+?)\s+<END>")
_ANY_MARK = re.compile(r"</?[A-Za-z][^<>]*>")
# Matches a line that only begins or ends a document, as in OntoNotes.
_DOC_LINE = re.compile(r"\s*</?DOC\b[^<>]*>\s*")
_HTML = frozenset(
    {"BODY", "CODE", "DIV", "EM", "FONT", "HEAD", "HTML", "LI", "PRE", "SPAN", "STRONG", "TABLE", "TITLE"}
)
_TOO_LONG = "x" * (MAX_TEXT + 1)
_BATCH = 1024  # number of rows converted to Python values at a time; each batch reports progress
_QUOTED = re.compile('"[^"]*"')
_QUOTE = "put quotes around a cell that contains the separator, and double the quotes inside it"
_OBJECT = 'expected a JSON object in braces; name its fields, as in {"text": ...}'
_TAG = re.compile(r"O|[BI]-[A-Z]{2,}\w*")  # matches a tag, but not E-mail, a usual column name


def table(
    path: Path, encoding: str, ledger: Ledger, separator: str | None = None, *, gaps: bool = False
) -> Iterator[Record]:
    """Yield the rows of a CSV or TSV file. A quoted cell may have line breaks. Rows with unclosed quotes are rejected.

    The first row usually names the columns: see `Heading`. In a table that Winnow wrote, the quotes that keep a
    spreadsheet from reading a cell as a formula are removed.
    separator: None to guess it. gaps: True to yield an empty row for each empty line. In tables with one token per row,
    empty rows separate sentences.
    """
    rows = cells_of_rows(path, encoding, ledger, separator, gaps=gaps)
    if first := list(islice(rows, 2)):
        head = Heading.of(first, separator or "")
        yield from _named(head, chain(first[1:] if head.line else first, rows), ledger)


@dataclass(frozen=True, slots=True)
class Heading:
    """Names of a table's columns, and its separator. line: line number of the names; 0 if the first row is data."""

    names: Sequence[str]
    line: int
    separator: str

    @classmethod
    def of(cls, first: Sequence[tuple[int, Sequence[str]]], separator: str) -> Self:
        """Return the heading of a table. first: (line, cells) of its first two rows.

        The first row is data, and the columns are named 1, 2, ..., if it has a cell of five words or more, or a tag (O,
        B-PER). It may have such a cell if another cell is the usual name of a column with text, and names one.
        """
        (line, cells), *second = first
        names = [cell.strip() for cell in cells]
        texts = zip(names, second[0][1] if second else (), strict=False)
        named = any(name.lower() in TEXT_NAMES and _is_long(text) for name, text in texts)
        if not named and not is_own(names) and any(_is_long(name) or _TAG.fullmatch(name) for name in names):
            return cls([str(i + 1) for i in range(len(cells))], 0, separator)
        return cls(list(map(without_quote, names)) if is_own(names) else names, line, separator)


def heading(path: Path, encoding: str, separator: str | None) -> Heading:
    """Return the heading of a CSV or TSV file. separator: None to guess it."""
    with open_stream(path, encoding) as stream:
        source = _Pushback(lines(stream), separator or "")
        first = list(islice(_table_rows(source, Ledger(ReadOptions()), gaps=False), 2))
    return Heading.of(first or [(0, [])], source.separator)


def _is_long(cell: str) -> bool:
    return len(cell.split()) >= 5


def is_own(names: Sequence[str]) -> bool:
    """Return True if a table's first columns are named as in Winnow's exports."""
    return list(names[:2]) == ["id", "text"]


def is_own_row(cells: Sequence[str]) -> bool:
    """Return True if Winnow wrote a row of an `is_own` table: its id is the hash of its text."""
    return cells[0] == sentence_id(clean(without_quote(cells[1])))


def rows_with_lines(rows: Iterable[Line], separator: str) -> Iterator[list[Line]]:
    """Yield the lines of each row of a table, several if a quoted cell has line breaks.

    rows: all lines, as `source.lines` yields them.
    """
    source = _Pushback(iter(rows), separator)
    for line in source:
        yield [line, *(_closing(source) if _opens(line, separator) else ())]


def _opens(line: Line, separator: str) -> bool:
    """Return True if the last cell of a line is quoted and continues on the next line."""
    _, raw, fits = line
    with suppress(UnicodeDecodeError):
        return fits and b'"' in raw and _quote(raw.decode(), separator, inside=False) == "open"
    return False


def rows_under(head: Heading, rows: Iterable[Line], ledger: Ledger) -> Iterator[Record]:
    """Yield the rows of a table after its heading. rows: lines of complete rows, as `source.lines` yields them."""
    cells = _table_rows(_Pushback(iter(rows), head.separator), ledger, gaps=False)
    return _named(head, (row for row in cells if row[0] > head.line), ledger)


def _named(head: Heading, rows: Iterable[tuple[int, list[str]]], ledger: Ledger) -> Iterator[Record]:
    own = is_own(head.names)
    for line, cells in rows:
        if not cells:
            yield line, {}
        elif len(cells) == len(head.names):
            meant = map(without_quote, cells) if own and is_own_row(cells) else cells
            yield line, dict(zip(head.names, meant, strict=True))
        else:
            ledger.reject(
                line, f"{count(len(cells), 'column')}, but the header has {len(head.names)}; {_QUOTE}", "\t".join(cells)
            )


def cells_of_rows(
    path: Path, encoding: str, ledger: Ledger, separator: str | None = None, *, gaps: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of each row of a CSV or TSV file. separator, gaps: see `table`."""
    with open_stream(path, encoding, ledger.tick) as stream:
        yield from _table_rows(_Pushback(lines(stream), separator or ""), ledger, gaps=gaps)


class _Pushback:
    """Iterator of lines. Lines that a caller puts into `returned` are yielded again. separator: "" while unknown."""

    def __init__(self, source: Iterator[Line], separator: str) -> None:
        self._source, self.returned, self.separator = source, deque[Line](), separator

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        return self.returned.popleft() if self.returned else next(self._source)


def _table_rows(source: _Pushback, ledger: Ledger, *, gaps: bool) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(MAX_TEXT)
    begun = False
    for line, raw, fits in source:
        if not fits:
            ledger.reject(line, TOO_LONG.format(MAX_TEXT), raw.decode("utf-8", "replace"))
            continue
        if raw.isspace():
            if gaps and begun:
                yield line, []
            continue
        begun = True
        try:
            text = raw.decode()
            source.separator = source.separator or guess_separator(text)
            if b'"' in raw and _quote(text, source.separator, inside=False) == "open":
                text = _rest_of_row(text, source, line, ledger)
            if text:
                yield line, next(csv.reader([text], delimiter=source.separator, strict=True))
        except UnicodeDecodeError as error:
            ledger.undecodable(line, error, raw)
        except csv.Error as error:
            ledger.reject(line, f"not a row of a table ({short(error)}); {_QUOTE}", raw.decode("utf-8", "replace"))


def _rest_of_row(text: str, source: _Pushback, line: int, ledger: Ledger) -> str:
    """Return `text`, which opens a quoted cell, and the following lines up to the closing quote.

    If there is no closing quote, reject the row and return "".
    """
    if taken := _closing(source):
        try:
            return text + b"".join(raw for _, raw, _ in taken).decode()
        except UnicodeDecodeError as error:
            ledger.undecodable(line, error, text.encode())
            return ""
    ledger.reject(line, "a quoted cell has no closing quote before a separator or a line's end; add the quote", text)
    return ""


def _closing(source: _Pushback) -> list[Line]:
    """Take the next lines from `source` up to a cell's closing quote. If there is none, take no line and return []."""
    taken, size, state = list[Line](), 0, "open"
    for item in source:
        taken.append(item)
        size += len(item[1])
        state = _quote(item[1].decode("utf-8", "replace"), source.separator, inside=True)
        if not item[2] or size > MAX_TEXT or state != "open":
            break
    if state == "closed":
        return taken
    source.returned.extendleft(reversed(taken))
    return []


def _quote(text: str, separator: str, *, inside: bool) -> Literal["open", "closed", "broken"]:
    """Return "open" if `text` ends within a quoted cell, else "closed"; "broken" if its quotes are invalid.

    Quotes within an unquoted cell are ignored. Quotes are invalid if a quoted cell has a quote that is neither doubled
    nor the last character of the cell. This happens if a quote is never closed and a later row has another quote. The
    later row is then not read as part of the cell.
    inside: True if `text` begins within a quoted cell.
    """
    at = 0
    if not inside and text.startswith('"'):
        at, inside = 1, True
    while True:
        if inside:
            at = text.find('"', at) + 1
            if not at:
                return "open"
            if text.startswith('"', at):
                at += 1
                continue
            if not text.startswith((separator, "\r", "\n"), at) and at < len(text):
                return "broken"
            inside = False
        at = text.find(separator + '"', at)
        if at < 0:
            return "closed"
        at, inside = at + 2, True


def guess_separator(header: str) -> str:
    """Return the most frequent separator in the header, outside of quotes: tab, comma, semicolon or `|`."""
    return max("\t,;|", key=_QUOTED.sub("", header).count)


def looks_inline(head: str) -> bool:
    """Return True if the first lines of `head`, a file's first block, have inline tags or marked mentions."""
    first = [line for line in head.split("\n")[:-1] or [head] if _has_words(line)][:_LINES]
    return bool(first) and (bool(separator(first)) or _marked(first) is not None)


def _has_words(line: str) -> bool:
    return bool(line.strip()) and not _DOC_LINE.fullmatch(line)


def separator(first: list[str]) -> str:
    """Return the character (`|`, `/` or `_`) that separates each word from its tag in these lines; "" if there is none.

    At least a fifth of the tags must be O, so that fractions and web addresses are not taken for tagged words.
    """
    for mark in "|/_":
        words = [word for line in first for word in line.split()]
        tags = Counter(word.rpartition(mark)[2] for word in words if word.rpartition(mark)[0])
        if sum(tags.values()) >= _SHARE * len(words) and tags["O"] >= 0.2 * len(words) and len(tags) > 1:
            return mark
    return ""


def _marked(first: list[str]) -> "re.Pattern[str] | None":
    """Return the pattern of the marks around mentions, such as <PERSON>; None without marks, or with other markup."""
    text = "\n".join(first)
    for pattern in (_MARK, _OPENNLP):
        kinds = {found["tag"] for found in pattern.finditer(text)}
        if kinds and not kinds & _HTML and not _ANY_MARK.search(pattern.sub("", text)):
            return pattern
    return None


def inline_rows(path: Path, encoding: str, ledger: Ledger) -> Iterator[Record]:
    """Yield one row per line: its tokens and tags if words have inline tags, else its text and spans."""
    with open_stream(path, encoding) as stream:
        whole = (raw.decode("utf-8", "replace") for _, raw, _ in lines(stream))
        head = list(islice(filter(_has_words, whole), _LINES))
    mark, pattern = separator(head), _marked(head) or _MARK
    with open_stream(path, encoding, ledger.tick) as stream:
        for line, raw, fits in lines(stream):
            if not fits:
                ledger.reject(line, TOO_LONG.format(MAX_TEXT), raw.decode("utf-8", "replace"))
                continue
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                ledger.undecodable(line, error, raw)
                continue
            if text.strip() if mark else _has_words(text):
                untyped = ledger.options.entity_type or UNTYPED
                yield line, _tagged(text, mark) if mark else _spans(text.strip(), pattern, untyped)


def _tagged(text: str, mark: str) -> dict[str, object]:
    """Return the tokens and tags of a line. A word without a tag gets an empty tag. Its line is rejected later.

    mark: character between a word and its tag.
    """
    words = [word.split(mark) if mark == "|" else word.rsplit(mark, 1) for word in text.split()]
    return {"tokens": [word[0] for word in words], "ner_tags": [word[-1] if len(word) > 1 else "" for word in words]}


def _spans(text: str, pattern: "re.Pattern[str]", untyped: str) -> dict[str, object]:
    """Return a row with the text without marks, and a span for each marked mention.

    untyped: type of mentions whose marks name no type, as in OpenNLP.
    """
    plain, spans, at = "", list[list[object]](), 0
    for found in pattern.finditer(text):
        plain += unescape(text[at : found.start()])
        mention = unescape(found["text"])
        kind = found["type"] or (untyped if pattern is _OPENNLP else found["tag"])
        spans.append([len(plain), len(plain) + len(mention), kind])
        plain, at = plain + mention, found.end()
    return {"text": plain + unescape(text[at:]), "label": spans}


def json_lines(path: Path, encoding: str, ledger: Ledger) -> Iterator[Record]:
    """Yield (line number, object) for each line. A line that is not a JSON object is rejected."""
    with open_stream(path, encoding, ledger.tick) as stream:
        yield from json_rows(lines(stream, MAX_RECORD), ledger)


def json_rows(rows: Iterable[Line], ledger: Ledger) -> Iterator[Record]:
    """Yield (line number, object) for each line, as `json_lines`. rows: lines as `source.lines` yields them."""
    for line, raw, fits in rows:
        if not fits:
            ledger.reject(line, TOO_LONG.format(MAX_RECORD), raw.decode("utf-8", "replace"))
        elif not raw.isspace():
            try:
                value = json.loads(raw.decode())
            except UnicodeDecodeError as error:
                ledger.undecodable(line, error, raw)
                continue
            except (ValueError, RecursionError) as error:
                ledger.reject(
                    line,
                    f"not JSON ({short(error)}); write one whole JSON object per line",
                    raw.decode("utf-8", "replace"),
                )
                continue
            if (record := as_row(value)) is not None and not isinstance(value, str):
                yield line, record
            else:
                ledger.reject(line, _OBJECT, raw.decode("utf-8", "replace"))


def json_array(path: Path, encoding: str, ledger: Ledger) -> Iterator[Record]:
    """Yield the objects of one or more JSON arrays, one by one. A string becomes an object `{"text": string}`.

    Errors: ReadError at the first broken object, because the start of the next object cannot be found.
    """
    with open_stream(path, encoding, ledger.tick) as stream:
        feed = _Feed(stream, path.name)
        if feed.next_mark() not in ("[", "{"):
            raise ReadError(path.name, 1, "expected a JSON array that begins with [, or one JSON object per line.")
        decoder = json.JSONDecoder()
        while (mark := feed.next_mark()) in ("[", "{"):
            if mark == "{":  # an object outside of an array, which may span several lines
                line, value = feed.line, feed.take(decoder)
                if isinstance(value, dict):
                    yield line, value
                continue
            feed.at += 1
            yield from _objects(feed, path.name, ledger)
        if mark:
            raise ReadError(path.name, feed.line, "more text follows the JSON array's closing ]; export it again.")


def _objects(feed: "_Feed", name: str, ledger: Ledger) -> Iterator[Record]:
    """Yield the objects of an array, and move past its closing bracket."""
    decoder = json.JSONDecoder()
    while (mark := feed.next_mark()) != "]":
        if mark == "":
            raise ReadError(name, feed.line, "the JSON array is cut off before its closing ]; copy it again.")
        if mark == ",":
            feed.at += 1
            continue
        line, value = feed.line, feed.take(decoder)
        if (record := as_row(value)) is not None:
            yield line, record
        elif value is None:
            ledger.skip(line, "a text without annotations")
        else:
            ledger.reject(line, _OBJECT, json.dumps(value))
    feed.at += 1


def as_row(value: object) -> Mapping[str, object] | None:
    """Return a JSON value as a row; None if it cannot be a row.

    A row is an object, a string, or a pair [text, {"entities": entities}] or [text, {"spans": {name: spans}}], as spaCy
    writes it, or a list of pairs [token, tag].
    """
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        text, notes = value
        if notes is None or isinstance(notes, dict):
            groups = (notes or {}).get("spans")  # {name of a group: spans}, for spaCy's spancat
            own = {"spans": groups} if isinstance(groups, dict) else {}
            return {"text": text, "ents": (notes or {}).get("entities"), **own}
    if isinstance(value, list) and value and all(map(_is_tagged, value)):
        return {"tokens": [pair[0] for pair in value], "ner_tags": [pair[-1] for pair in value]}
    return None


def _is_tagged(value: object) -> bool:
    """Return True for a token and its tag in a list, perhaps with other strings such as a part of speech between."""
    return isinstance(value, list) and len(value) > 1 and all(isinstance(each, str) for each in value)


class _Feed:
    """Reads the values of a JSON text one by one. Only the text of one value, and the block after it, is in memory."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.text, self.at, self.line = "", 0, 1

    def next_mark(self) -> str:
        """Return the next character that is not white space, without moving past it; "" at the end."""
        while True:
            start = self.at
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            self.line += self.text.count("\n", start, self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more(BLOCK_BYTES):
                return ""

    def take(self, decoder: json.JSONDecoder) -> object:
        """Return the JSON value that comes next, and move past it. Errors: ReadError if it is broken or too long."""
        while True:
            try:
                value, end = decoder.raw_decode(self.text, self.at)
            except (ValueError, RecursionError) as error:
                left = len(self.text) - self.at
                # Double the text after each failed attempt to parse it. All failed attempts together then parse less
                # than twice as much text as the value has.
                if left > MAX_RECORD or not self._more(max(left, BLOCK_BYTES)):
                    raise ReadError(
                        self._name,
                        self.line,
                        f"not JSON, or an object of more than {MAX_RECORD:,} bytes ({short(error)}); export it again"
                        " with one JSON object per line.",
                    ) from error
                continue
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            return value

    def _more(self, size: int) -> bool:
        raw = self._stream.read(size)
        try:
            new = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self.line + self.text.count("\n", self.at) + raw[: error.start].count(b"\n")
            raise EncodingError(
                self._name, line, "these bytes are not UTF-8; give the file's encoding, for example cp1252 or latin-1."
            ) from error
        self.text, self.at = self.text[self.at :] + new, 0
        return bool(raw)


def arrow_rows(path: Path, columns: Sequence[str] | None, ledger: Ledger) -> Iterator[Record]:
    """Yield (row number from 1, row) of a Parquet or Arrow file. columns: columns to read, None for all.

    Errors: ReadError for any other file, and for a file that unpacks to far more than its size; ResourceError if memory
    runs out; PathError.
    """
    row = 0
    try:
        with _Bounded(opened(path)) as file:
            size, arrow = os.fstat(file.fileno()).st_size, path.suffix == ".arrow"
            # An Arrow stream does not store its number of rows.
            total = 0 if arrow else pq.read_metadata(file).num_rows
            for batch in _arrow_batches(file, columns) if arrow else _parquet_batches(file, size, path, columns):
                for record in _rows(batch):
                    row += 1
                    yield row, record
                ledger.tick(size * row // max(total, row, 1) if total else 0)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ReadError(
            path.name, row + 1, f"not a readable Parquet or Arrow file ({short(error)}); write it again."
        ) from error
    except MemoryError as error:
        raise _too_large(path) from error


def look_through(path: Path) -> None:
    """Check a Parquet file that Winnow wrote, by reading it to its end. Errors: ReadError if it is damaged."""
    try:
        with _Bounded(path.open("rb")) as file:
            for _ in _parquet_batches(file, os.fstat(file.fileno()).st_size, path, None):
                pass
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise ReadError(path.name, None, f"not a readable Parquet file ({short(error)}); write it again.") from error


class _Bounded(io.BufferedReader):
    """File that never reads past its end. Otherwise Arrow would allocate gigabytes to read a forged length."""

    def __init__(self, file: BinaryIO) -> None:
        self._owner = file  # keep a reference, because garbage collection would close the file
        super().__init__(cast(io.BufferedReader, file).raw)
        self._size = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def _too_large(path: Path) -> ResourceError:
    return ResourceError(
        f"{path.name}: reading it needs more memory than is available; it may be damaged or forged. Write it again in"
        " smaller row groups."
    )


def _arrow_batches(file: BinaryIO, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    # Two formats have the extension .arrow: streams (written by `datasets`), and files with a list of their batches.
    try:
        batches: Iterable[pa.RecordBatch] = pa.ipc.open_stream(file)
    except pa.ArrowInvalid:
        file.seek(0)
        reader = pa.ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    for batch in batches:
        batch.validate(full=True)  # an invalid offset would make Arrow read outside the batch
        kept = batch.select(columns) if columns else batch
        yield from (kept.slice(i, _BATCH) for i in range(0, len(kept), _BATCH))


def _parquet_batches(file: BinaryIO, size: int, path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, buffer_size=1 << 20) as parquet:
        _refuse_bomb(path, size, parquet.metadata)
        texts = [field.name for field in parquet.schema_arrow if field.type in (pa.string(), pa.large_string())]
    # Read texts as dictionaries, so that a text shared by a thousand rows is in memory only once.
    with pq.ParquetFile(file, buffer_size=1 << 20, read_dictionary=texts) as parquet:
        rows = 0
        for batch in parquet.iter_batches(batch_size=_BATCH, columns=columns):
            batch.validate(full=True)  # checks that texts are valid UTF-8
            rows += len(batch)
            yield batch
        if rows != (told := parquet.metadata.num_rows):
            raise ReadError(
                path.name,
                None,
                f"has {rows:,} readable rows, but its footer declares {told:,}; it may be damaged or forged. Write it "
                "again.",
            )


def _refuse_bomb(path: Path, size: int, metadata: pq.FileMetaData) -> None:
    """Raise ReadError if a column of a row group unpacks to over `BOMB_RATIO` times the file's size.

    The unpacked size is taken from the metadata.
    """
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    columns = (group.column(i) for group in groups for i in range(group.num_columns))
    largest = max((column.total_uncompressed_size for column in columns), default=0)
    # The limit is an eighth of `BOMB_BYTES`, because a page of a column is unpacked as a whole, not in blocks.
    if largest > BOMB_BYTES // 8 and largest > BOMB_RATIO * size:
        raise ReadError(
            path.name,
            None,
            f"has a column that unpacks to more than {BOMB_RATIO} times the file's size, as a zip bomb does; if you "
            "trust the file, write it again yourself.",
        )


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Return the rows as Python values. Rows with the same stored text share one string.

    A column may refer to one huge text a thousand times. A text that is too long is therefore not copied. It is
    replaced by a text that is one letter longer than the limit, so that the reader rejects the rows with this text.
    """
    columns = [
        _shared_texts(column) if pa.types.is_dictionary(column.type) else column.to_pylist() for column in batch.columns
    ]
    return (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))


def _shared_texts(column: pa.DictionaryArray) -> list[str | None]:
    lengths = pc.binary_length(column.dictionary).to_pylist()
    texts = [
        text.as_py() if (length or 0) <= MAX_TEXT else _TOO_LONG
        for text, length in zip(column.dictionary, lengths, strict=True)
    ]
    return [None if index is None else texts[index] for index in column.indices.to_pylist()]


def arrow_schema(path: Path) -> pa.Schema:
    """Return the schema of a Parquet or Arrow file. Errors: ReadError if the file is neither."""
    try:
        with _Bounded(opened(path)) as file:
            if path.suffix != ".arrow":
                return pq.read_schema(file)
            try:
                return pa.ipc.open_stream(file).schema
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_file(file).schema
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ReadError(
            path.name, None, f"not a readable Parquet or Arrow file ({short(error)}); write it again."
        ) from error
    except MemoryError as error:
        raise _too_large(path) from error
