"""Rows of Parquet and Arrow files, one at a time."""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.corpora.formats.ledger import Ledger, Record, short
from core.corpora.formats.source import BOMB_BYTES, BOMB_RATIO, MAX_TEXT
from core.errors import ReadError, ResourceError
from core.paths import opened

_TOO_LONG = "x" * (MAX_TEXT + 1)
_BATCH = 1024  # rows that are Python values at once; after each, progress is told


def arrow_rows(path: Path, columns: Sequence[str] | None, ledger: Ledger) -> Iterator[Record]:
    """Rows of a Parquet or Arrow file with their numbers, from 1 on. columns: those alone; None: all.

    Errors: ReadError where it is no such file, or a bomb; ResourceError where memory does not hold it; PathError.
    """
    row = 0
    try:
        with _Bounded(opened(path)) as file:
            size, arrow = os.fstat(file.fileno()).st_size, path.suffix == ".arrow"
            # A stream does not know its rows before they were read.
            total = 0 if arrow else pq.read_metadata(file).num_rows
            for batch in _arrow_batches(file, columns) if arrow else _parquet_batches(file, size, path, columns):
                for record in _rows(batch):
                    row += 1
                    yield row, record
                ledger.tick(size * row // max(total, row, 1) if total else 0)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ReadError(path.name, row + 1, f"not a readable Parquet or Arrow file ({short(error)}).") from error
    except MemoryError as error:
        raise _too_large(path) from error


def look_through(path: Path) -> None:
    """Check that a Parquet file of ours is sound, by reading it to its end. Errors: ReadError where it is not."""
    try:
        with _Bounded(path.open("rb")) as file:
            for _ in _parquet_batches(file, os.fstat(file.fileno()).st_size, path, None):
                pass
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise ReadError(path.name, None, f"not a readable Parquet file ({short(error)}).") from error


class _Bounded(io.BufferedReader):
    """A file of which no more is asked than it has: a forged length would make room for gigabytes first."""

    def __init__(self, file: BinaryIO) -> None:
        self._owner = file  # which would close what this reads, were it let go of
        super().__init__(cast(io.BufferedReader, file).raw)
        self._size = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self.tell(), 0)
        return super().read(left if size is None or size < 0 else min(size, left))


def _too_large(path: Path) -> ResourceError:
    return ResourceError(
        f"{path.name}: reading it needs more memory than there is, as a damaged or forged file makes it; write it again"
        " in smaller row groups."
    )


def _arrow_batches(file: BinaryIO, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    # Two formats end in .arrow: streams, as `datasets` writes them, and files, whose batches are listed at their end.
    try:
        batches: Iterable[pa.RecordBatch] = pa.ipc.open_stream(file)
    except pa.ArrowInvalid:
        file.seek(0)
        reader = pa.ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    for batch in batches:
        batch.validate(full=True)  # an offset may point anywhere; Arrow believes it, and reads there
        kept = batch.select(columns) if columns else batch
        yield from (kept.slice(i, _BATCH) for i in range(0, len(kept), _BATCH))


def _parquet_batches(file: BinaryIO, size: int, path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, buffer_size=1 << 20) as parquet:
        _refuse_bomb(path, size, parquet.metadata)
        texts = [field.name for field in parquet.schema_arrow if field.type in (pa.string(), pa.large_string())]
    # Texts as dictionaries: one that a thousand rows share is held once.
    with pq.ParquetFile(file, buffer_size=1 << 20, read_dictionary=texts) as parquet:
        rows = 0
        for batch in parquet.iter_batches(batch_size=_BATCH, columns=columns):
            batch.validate(full=True)  # its texts may be no UTF-8
            rows += len(batch)
            yield batch
        if rows != (told := parquet.metadata.num_rows):
            raise ReadError(
                path.name,
                None,
                f"holds {rows:,} rows that can be read, and by its own footer {told:,}, as a damaged or forged file "
                "does; write it again.",
            )


def _refuse_bomb(path: Path, size: int, metadata: pq.FileMetaData) -> None:
    """Errors: ReadError for a file by whose own account one column of a row group is hundreds of times its size."""
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    columns = (group.column(i) for group in groups for i in range(group.num_columns))
    largest = max((column.total_uncompressed_size for column in columns), default=0)
    # An eighth of what other files may: those go by in blocks, while a page of a column is unpacked whole.
    if largest > BOMB_BYTES // 8 and largest > BOMB_RATIO * size:
        raise ReadError(
            path.name,
            None,
            f"a column of it unpacks to more than {BOMB_RATIO} times the file, as a bomb does; write it anew yourself "
            "if it is to be trusted.",
        )


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """The rows as Python values; rows that share one stored text share one string.

    A dictionary may name one huge text a thousand times: what no row may hold is never copied, only named once by a
    text that is too long by a letter, so that the reader rejects these rows as it rejects others.
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
    """The schema of a Parquet or Arrow file. Errors: ReadError if it is neither."""
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
        raise ReadError(path.name, None, f"not a readable Parquet or Arrow file ({short(error)}).") from error
    except MemoryError as error:
        raise _too_large(path) from error
