"""Read a large file of rows with one process per core. Sentences and counts are the same as with one process.

One process reads the file. It sends batches of rows to the other processes, which clean the texts and count tokens.
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

# Minimum size of a file in bytes. For a smaller file, starting processes takes more time than they save.
PAYS = 16 << 20
# Bytes per batch. A process takes about 0.1 s per batch, or 0.5 s if it splits rows into sentences.
_BATCH = 1 << 20
_Columns = tuple[tuple[str, str], ...]
_Stored = tuple[str, str, str | None, str | None, str | None, int | None, _Columns, int]
_Part = tuple[list[_Stored], Account]
Row = TypeVar("Row")
_Read = Callable[[Iterable[Row], Ledger], Iterator[Sentence]]


def pays(path: Path, ledger: Ledger) -> bool:
    """Return True if several processes may read a file (`ledger.storing`), and would be faster than one process."""
    return ledger.storing and path.stat().st_size >= PAYS


def in_parts(read: _Read[Row], rows: Iterable[Row], size: Callable[[Row], int], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a file's rows, in order.

    read: function that yields the sentences of some rows; it must be picklable. size: function that returns the
    approximate number of bytes of a row. Errors: EncodingError, and errors that `rows` raises. They are raised after
    the sentences of all earlier rows.
    """
    work = partial(_count, ledger.options, ledger.file, ledger.doc, read)
    # The processes need no reporter, because `check` is called for each block of the file that is read.
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
    """Return the sentences of a batch as tuples, and the `Account` of its rows.

    A tuple is (id, text, document, group, file, page, further columns, number of tokens).
    """
    ledger = Remembering(options)
    ledger.file, ledger.doc = file, doc
    found = [
        (each.id, each.text, each.doc, each.group, each.file, each.page, each.columns, len(each.tokens))
        for each in read(batch, ledger)
    ]
    return found, ledger.account()


def _batches(rows: Iterable[Row], size: Callable[[Row], int]) -> Iterator[list[Row]]:
    """Yield the rows in lists of at least `_BATCH` bytes. If `rows` raises ReadError, yield all earlier rows first."""
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
