"""Rows of Parquet and Arrow files, one at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.formats.ledger import Ledger, Record, short
from core.errors import ReadError


def arrow_batches(path: Path, columns: Sequence[str] | None, ledger: Ledger) -> Iterator[Record]:
    """Rows of a Parquet or Arrow file, the named columns alone, a thousand at a time."""
    row, size = 0, path.stat().st_size
    try:
        total = 0 if path.suffix == ".arrow" else pq.read_metadata(path).num_rows
        for batch in _batches(path, columns):
            for record in batch.to_pylist():
                row += 1
                yield row, record
            ledger.tick(size * row // max(total, row, 1) if total else 0)
    except (pa.ArrowException, OSError) as error:
        raise ReadError(path.name, row + 1, f"not a readable Parquet or Arrow file ({short(error)}).") from error


def _batches(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    if path.suffix == ".arrow":
        with pa.OSFile(str(path)) as file:
            try:
                reader: Any = pa.ipc.open_stream(file)
            except pa.ArrowInvalid:
                file.seek(0)
                opened = pa.ipc.open_file(file)
                reader = (opened.get_batch(i) for i in range(opened.num_record_batches))
            for batch in reader:
                kept = batch.select(columns) if columns else batch
                yield from (kept.slice(i, 1024) for i in range(0, len(kept), 1024))
        return
    with pq.ParquetFile(path, buffer_size=1 << 20) as parquet:
        yield from parquet.iter_batches(batch_size=1024, columns=columns)


def arrow_schema(path: Path) -> pa.Schema:
    """The schema of a Parquet or Arrow file. Errors: ReadError if it is neither."""
    try:
        if path.suffix != ".arrow":
            return pq.read_schema(path)
        with pa.OSFile(str(path)) as file:
            try:
                return pa.ipc.open_stream(file).schema
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_file(file).schema
    except (pa.ArrowException, OSError) as error:
        raise ReadError(path.name, None, f"not a readable Parquet or Arrow file ({short(error)}).") from error
