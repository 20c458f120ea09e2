"""Read a large file of rows with one process per core, with the sentences and the account of a single process.

One process reads the file. It gives batches of rows to the others, which clean and count their texts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from core.corpora.formats.ledger import Account, Ledger, ReadOptions, Remembering
from core.errors import ReadError
from core.processes import in_processes
from core.reporter import Reporter, Silent
from core.text.sentence import Counted, Sentence

PAYS = 16 << 20  # bytes of a file from which on processes save more time than their start takes
_BATCH = 1 << 20  # bytes that a process reads at a time: about 0.1 s, or 0.5 s if rows are split
_Columns = tuple[tuple[str, str], ...]
_Stored = tuple[str, str, str | None, str | None, str | None, int | None, _Columns, int]
_Part = tuple[list[_Stored], Account]
Row = TypeVar("Row")
_Read = Callable[[Iterable[Row], Ledger], Iterator[Sentence]]


def pays(path: Path, ledger: Ledger) -> bool:
    """Return True if processes save time on a file, and its sentences are only stored."""
    return ledger.storing and path.stat().st_size >= PAYS


def in_parts(read: _Read[Row], rows: Iterable[Row], size: Callable[[Row], int], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of the rows of a file, in order.

    read: yields the sentences of some rows, can be pickled. size: returns about the number of bytes of a row. Errors:
    those of `rows` and EncodingError, each after the rows before it.
    """
    work = partial(_count, ledger.options, ledger.file, ledger.doc, read)
    # `check` is called for each block of the file that the batches are read from.
    with closing(in_processes(work, _batches(rows, size), Silent(), pays=True)) as parts:
        for sentences, account in parts:
            account.repeat(ledger)
            for id_, text, doc, group, file, page, columns, counted in sentences:
                yield Counted(
                    id=id_,
                    tokens=(),
                    text=text,
                    doc=doc,
                    group=group,
                    file=file,
                    page=page,
                    columns=columns,
                    counted=counted,
                )


def _count(
    options: ReadOptions, file: str, doc: str | None, read: _Read[Row], batch: Sequence[Row], _: Reporter
) -> _Part:
    """Return the sentences of a batch, as they are stored, and the account of its rows.

    A sentence is (id, text, document, group, file, page, further columns, number of tokens).
    """
    ledger = Remembering(options)
    ledger.file, ledger.doc = file, doc
    found = [
        (each.id, each.text, each.doc, each.group, each.file, each.page, each.columns, len(each.tokens))
        for each in read(batch, ledger)
    ]
    return found, ledger.account()


def _batches(rows: Iterable[Row], size: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Yield the rows in lists of at least `_BATCH` bytes. ReadError of `rows` is raised after the rows before it."""
    batch, total = list[Row](), 0
    try:
        for row in rows:
            batch.append(row)
            total += size(row)
            if total >= _BATCH:
                yield batch
                batch, total = [], 0
    except ReadError:
        yield batch
        raise
    yield batch
