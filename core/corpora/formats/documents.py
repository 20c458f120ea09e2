"""Read sentences from documents (PDF, Word, mail ...) with file and page. A separate process reads each document.

While the sentences of one document are stored, the next documents are read, one per core.
"""

import threading
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from itertools import groupby
from pathlib import Path
from typing import Any

from core import isolated
from core.corpora import split
from core.corpora.documents import reading
from core.corpora.documents.extract import Extract
from core.corpora.documents.pdf import restore_from, vocabulary
from core.corpora.formats.ledger import Ledger, ReadOptions, Record
from core.corpora.formats.rows import Heading, is_own, is_own_row
from core.corpora.formats.source import DOCUMENTS, MAX_TEXT, refuse_known
from core.corpora.writers import without_quote
from core.errors import Cancelled, PathError, ReadError, ResourceError
from core.paths import opened
from core.processes import MOST, cores
from core.shown import count, shown
from core.text.sentence import Sentence, sentence_id
from core.text.words import clean

# Time limit for one document.
SECONDS = 600
# Number of pages that a preview reads.
FIRST_PAGES = 10
# Maximum number of documents whose words are collected to restore unmapped letters.
MOST_ASKED = 100
# Maximum total size of documents read at a time, in bytes; a larger document is read alone.
AHEAD = 64 << 20

_reader = isolated.Isolated(reading.__name__, "save it again, or export its text as UTF-8 .txt", SECONDS)


def is_document(path: Path) -> bool:
    """Return True if a file has the extension of a document."""
    return path.suffix.lower() in DOCUMENTS


def document_format(path: Path) -> str:
    """Return the format for a document's extension. Errors: ReadError if the file begins like another format."""
    try:
        with opened(path) as file:
            refuse_known(path.name, file.read(1024))
    except OSError as error:
        raise PathError(f"{path.name}: cannot be opened ({error.strerror}); check its path and permissions.") from error
    return DOCUMENTS[path.suffix.lower()][0]


def read_document(path: Path, format: str, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a document, in order. In the report, a row is a page of a PDF, or else a paragraph."""
    extract = Extract.read(ledger.answer(path) if ledger.answer else _answer(path, format, ledger))
    if extract.restored < extract.unmapped and ledger.first_pages is None:
        restore_from(extract, _words_of_all(ledger))
    _account(extract, ledger)
    for paragraph in extract.paragraphs:
        for start, end in _pieces(paragraph.text):
            if text := clean(paragraph.text[start:end]):
                ledger.report.sentences += 1
                yield Sentence(
                    id=sentence_id(text),
                    tokens=ledger.cut(text),
                    text=text,
                    doc=ledger.doc,
                    file=ledger.file,
                    page=paragraph.page(start),
                )


class Ahead:
    """Reads the documents of an import ahead of their use, several at a time, each in a process of its own.

    Call `take` once per document, in the order of `documents`. Call `close` at the end, also after an error. All
    readers then end within a second.
    """

    def __init__(self, documents: Sequence[Path], options: ReadOptions, check: Callable[[], object]) -> None:
        """documents: in the order of the import. check: called every second; it may raise an error to stop readers."""
        self._documents, self._options, self._check = documents, options, check
        self._places = {path: i for i, path in enumerate(documents)}
        self._closed, self._coming = threading.Event(), dict[Path, Future[Any]]()
        self._at_once = min(cores(), MOST)
        self._pool = ThreadPoolExecutor(self._at_once, "reads-documents")

    def take(self, path: Path) -> Any:
        """Return the content of a document, see `reading.answer`, and start reading the next ones.

        Errors: see `_asked`.
        """
        room = AHEAD
        for following in self._documents[self._places[path] :][: self._at_once]:
            room -= following.stat().st_size
            if room < 0 and following != path:
                break
            if following not in self._coming:
                self._coming[following] = self._pool.submit(copy_context().run, self._read, following)
        return self._coming.pop(path).result()

    def close(self) -> None:
        """End all readers."""
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)

    def _read(self, path: Path) -> Any:
        return _asked(path, document_format(path), self._options, None, self._still_wanted)

    def _still_wanted(self) -> None:
        if self._closed.is_set():
            raise Cancelled("the import has ended")
        self._check()


def extracted(path: Path, check: Callable[[], object] = lambda: None) -> Extract:
    """Return the paragraphs of a document, or of a text file, with their pages.

    check: called every second; it may raise an error to stop the reader. Errors: ReadError, ResourceError.
    """
    format = document_format(path) if is_document(path) else "txt"
    if format == "xlsx":
        raise ReadError(path.name, None, "is a workbook, which has no running text; import it as a corpus instead.")
    asked: Any = _reader.ask(path.name, check, path=str(path), format=format, encoding=None, most=None)
    return Extract.read(asked)


def _words_of_all(ledger: Ledger) -> Set[str]:
    """Return the words of the first `MOST_ASKED` documents of an import. They are collected at the first call."""
    if ledger.vocabulary is None:
        words = set[str]()
        for file in ledger.documents[:MOST_ASKED]:
            with suppress(ReadError, PathError, ResourceError):  # the import reports the error later
                words |= vocabulary(Extract.read(_answer(file, document_format(file), ledger)))
        ledger.vocabulary = words
    return ledger.vocabulary


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence. A sentence that is too long to be stored is cut into pieces."""
    for start, end in split.sentences(text):
        for at in range(start, end, MAX_TEXT):
            yield at, min(at + MAX_TEXT, end)


def _account(extract: Extract, ledger: Ledger) -> None:
    report, n_blank = ledger.report, len(extract.blank)
    for remark in extract.remarks:
        ledger.remark(remark)
    if ledger.format == "pdf":
        report.pages += extract.pages or 0
        ledger.keep((extract.pages or 0) - n_blank)
        report.margins += extract.margins
        report.unmapped += extract.unmapped
        report.restored += extract.restored
        if extract.unmapped:
            lost = f"{extract.unmapped:,} letters map to no character (private use, NUL or U+FFFD)"
            cure = "; to read the other letters, print the file to PDF again or recognise its text (OCR)"
            restored = f"{extract.restored:,} were restored by comparison with other words"
            ledger.remark(f"{lost}; {restored}{'' if extract.restored == extract.unmapped else cure}")
        if n_blank:
            pages = _ranges(extract.blank)
            report.blank_pages += n_blank
            report.blank_places.append(f"{ledger.file} {pages}")
            ledger.skip(
                None,
                f"{n_blank:,} of {extract.pages:,} pages have no text (scanned?): {pages}; recognise their text (OCR)"
                " first",
                rows=n_blank,
            )
    elif extract.paragraphs:
        ledger.keep(len(extract.paragraphs))
    else:
        ledger.skip(None, "has no text")


def _ranges(numbers: Sequence[int]) -> str:
    """Return page numbers as text with ranges: `page 3`, `pages 3-9, 12`."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    words = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:20])
    return f"page{'s' * (len(numbers) > 1)} {words}" + (" ..." if len(runs) > 20 else "")


def sheet_rows(path: Path, ledger: Ledger) -> Iterator[Record]:
    """Yield the rows of all sheets as {column: value}, and set `ledger.page` to the sheet's number.

    The first row of a sheet names the columns or is data, as in a CSV file. In a sheet that was a CSV file of Winnow,
    the quotes before formulas are removed.
    """
    workbook = _answer(path, "xlsx", ledger)
    for remark in workbook["remarks"]:
        ledger.remark(remark)
    for ledger.page, (name, rows) in enumerate(workbook["sheets"], 1):
        ledger.sheet = shown(str(name)) if len(workbook["sheets"]) > 1 else ""
        names, rest = _header(rows)
        own = is_own(names)
        for number, cells in rest:
            if len(cells) <= len(names):
                as_meant = without_quote if own and all(cells[:2]) and is_own_row(cells) else str
                named = zip(names, cells, strict=False)
                yield number, {name: as_meant(cell) for name, cell in named if cell is not None}
            else:
                have = f"{count(len(cells), 'column')}, but the header of sheet {ledger.page} has {len(names)}"
                ledger.reject(number, f"{have}; name every column", str(cells))
    ledger.sheet = ""


def _header(rows: Sequence[Any]) -> tuple[list[str], Sequence[Any]]:
    if not rows:
        return [], []
    head = Heading.of([(number, [cell or "" for cell in cells]) for number, cells in rows[:2]], "")
    if not head.line:
        return [str(i + 1) for i in range(max(len(cells) for _, cells in rows))], rows
    return [name or str(i + 1) for i, name in enumerate(head.names)], rows[1:]


def _answer(path: Path, format: str, ledger: Ledger) -> Any:
    """Return the result of `reading.answer` for a document. The last result is cached.

    A separate process reads the document, unless the current process was itself started to read untrusted files.
    """
    stat = path.stat()
    # All rows of a workbook are read to recognise its columns, so a preview uses them too.
    most = None if format == "xlsx" else ledger.first_pages
    request = (str(path), stat.st_mtime_ns, stat.st_size, format, ledger.options.encoding, most)
    if (known := _last.get(request)) is not None:
        return known
    # Keep only one result, because a document may have 50 million characters.
    _last.clear()
    answer = _last[request] = _asked(path, format, ledger.options, most, lambda: ledger.tick(0))
    return answer


# Cache of the last result, because a preview needs it twice: for the columns and for the punctuation.
_last: dict[object, Any] = {}


def _asked(path: Path, format: str, options: ReadOptions, most: int | None, check: Callable[[], object]) -> Any:
    """Return the result of `reading.answer` for a document.

    A separate process reads the document, unless the current process was itself started to read untrusted files.
    most: number of pages to read, None for all. Errors: ReadError, ResourceError; any error of `check`.
    """
    encoding = options.encoding if options.encoding != "utf-8" else None
    values: dict[str, Any] = {"path": str(path), "format": format, "encoding": encoding, "most": most}
    return reading.answer(**values) if isolated.is_isolated() else _reader.ask(path.name, check, **values)
