"""Read the sentences of one file of any format."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import cast

from core.corpora.formats import annotated, conll, token_tables, tool_rows, webanno
from core.corpora.formats.detect import FileKind, named_in, place_in, records, suffix, values_in
from core.corpora.formats.documents import read_document
from core.corpora.formats.ledger import NAMES, TOO_LONG, Account, Ledger, ReadOptions, Record, Remembering
from core.corpora.formats.name_lists import read_names
from core.corpora.formats.rows import cells_of_rows
from core.corpora.formats.sentences import from_text
from core.corpora.formats.source import MAX_TEXT, lines, open_stream
from core.processes import in_processes
from core.reporter import Reporter, Silent
from core.text.schemes import Scheme
from core.text.sentence import Counted, Sentence

PAYS = 16 << 20  # minimum bytes of a text file; with fewer, starting processes takes longer than they save
_BATCH = 1 << 20  # bytes that a process reads at a time: about 0.1 s, or 0.5 s if rows are split
_Line = tuple[int, bytes, bool]  # number from 1, line, False if the line is too long
_Part = tuple[list[tuple[str, str, str | None, int]], Account]


def read_lines(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a text file whose rows are lines."""
    if ledger.storing and path.stat().st_size >= PAYS:
        yield from _counted_lines(path, ledger)
        return
    for line, text, at in _decoded(_lines(path, ledger), ledger):
        yield from from_text(text, line, ledger.doc, ledger, at)


def _counted_lines(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a text file whose rows are lines. One process per core reads the lines."""
    work = partial(_count, ledger.options, ledger.file, ledger.doc)
    # A silent reporter is enough, because `ledger.tick` calls `check` for each block of the file.
    with closing(in_processes(work, _batches(_lines(path, ledger)), Silent(), pays=True)) as parts:
        for sentences, account in parts:
            account.repeat(ledger)
            for id_, text, doc, counted in sentences:
                yield Counted(id=id_, tokens=(), text=text, doc=doc, counted=counted)


def _batches(rows: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Yield the lines in lists of at least `_BATCH` bytes."""
    batch, size = list[_Line](), 0
    for row in rows:
        batch.append(row)
        size += len(row[1])
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _count(options: ReadOptions, file: str, doc: str | None, batch: Sequence[_Line], _: Reporter) -> _Part:
    """Return the sentences of some lines as (id, text, document, number of tokens), and the account of these lines."""
    ledger = Remembering(options)
    ledger.file = file
    rows = ((text, line) for line, text, _ in _decoded(batch, ledger))
    sentences = chain.from_iterable(from_text(text, line, doc, ledger) for text, line in rows)
    found = [(each.id, each.text, each.doc, len(each.tokens)) for each in sentences]
    return found, ledger.account()


def read_paragraphs(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a text file whose rows are paragraphs. An empty line ends a paragraph.

    A paragraph of more than `MAX_TEXT` characters is cut between lines.
    """
    first, begins, parts, size = 1, None, list[str](), 0
    for line, text, at in _decoded(_lines(path, ledger), ledger):
        if parts and (not text.strip() or size + len(text) > MAX_TEXT):
            if text.strip():
                ledger.repair(first, 1, f"a paragraph of more than {MAX_TEXT:,} characters was cut")
            yield from from_text("".join(parts), first, ledger.doc, ledger, begins)
            parts, size = [], 0
        if text.strip():
            first, begins = (first, begins) if parts else (line, at)
            parts.append(text)
            size += len(text)
    if parts:
        yield from from_text("".join(parts), first, ledger.doc, ledger, begins)


def _lines(path: Path, ledger: Ledger) -> Iterator[_Line]:
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        yield from lines(stream)


def _decoded(rows: Iterable[_Line], ledger: Ledger) -> Iterator[tuple[int, str, int | None]]:
    """Yield (line number, text, number of characters before the line) per line.

    rows: lines as `source.lines` yields them. After a line that is too long, the number of characters is None.
    """
    at: int | None = 0
    for line, raw, fits in rows:
        if not fits:
            at = None
            ledger.reject(line, TOO_LONG.format(MAX_TEXT), raw.decode("utf-8", "replace"))
            continue
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            ledger.undecodable(line, error, raw)
            at = None if at is None else at + len(raw.decode("utf-8", "replace"))
            continue
        yield line, text, at
        at = None if at is None else at + len(text)


def names_of(file: Path, kind: FileKind) -> token_tables.Names:
    """Return a function that returns the names of a file's class numbers. It reads them at its first call."""
    columns = (kind.cells.tokens, kind.cells.tags) if kind.cells else token_tables.tag_columns(kind.columns)
    style = kind.cells.style if kind.cells and kind.cells.numbers else None

    def names() -> list[str] | None:
        found = token_tables.tag_names(file, columns[1]) if columns else None
        return [style.canonical(name) for name in found] if found and style else found

    return cache(names)


_RECORDS: dict[str, Callable[[Iterator[Record], Ledger], Iterator[Sentence]]] = {
    "doccano": annotated.read_doccano,
    "prodigy": annotated.read_prodigy,
    "labelstudio": annotated.read_label_studio,
    "spacy": tool_rows.read_spacy,
    "argilla": tool_rows.read_argilla,
    "lighttag": tool_rows.read_lighttag,
    "rasa": annotated.read_doccano,
    "bioc": tool_rows.read_bioc,
}
_FILES: dict[str, Callable[[Path, Ledger], Iterator[Sentence]]] = {
    "brat": annotated.read_brat,
    "webanno": webanno.read_webanno,
    "pubtator": tool_rows.read_pubtator,
    "gate": tool_rows.read_gate,
    "bioc": tool_rows.read_bioc_xml,
}


def sentences_of(file: Path, kind: FileKind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a file. scheme: label scheme of its tags, if it has any."""
    if kind.container == "document":
        return read_document(file, kind.format, ledger)
    sentences = _of_lines_or_rows(file, kind, scheme, ledger)
    return _in_file(sentences, ledger) if ledger.placed else sentences


def _in_file(sentences: Iterator[Sentence], ledger: Ledger) -> Iterator[Sentence]:
    """Yield each sentence with the ledger's file and page, unless it has a file. Used for folders with documents."""
    for sentence in sentences:
        yield sentence if sentence.file else replace(sentence, file=ledger.file, page=ledger.page)


def _of_lines_or_rows(file: Path, kind: FileKind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    if kind.format == "txt":
        return read_paragraphs(file, ledger) if ledger.options.unit == "paragraph" else read_lines(file, ledger)
    if kind.format == "conll":
        return conll.read_conll(file, scheme, ledger)
    if kind.format == NAMES:
        split = ((line, text.split("\t")) for line, text, _ in _decoded(_lines(file, ledger), ledger))
        table = suffix(file) == ".csv"
        return read_names(cells_of_rows(file, kind.encoding, ledger) if table else split, ledger, table=table)
    if kind.container in ("brat", "whole"):
        return _FILES[kind.format](file, ledger)
    rows = records(file, kind, ledger)
    if kind.container in ("csv", "tsv") and kind.format in _RECORDS:
        rows = ((line, annotated.with_lists(record)) for line, record in rows)
    if not (ledger.options.doc_column or ledger.options.group_column or kind.placed or kind.others):
        return _of_rows(rows, file, kind, scheme, ledger)
    return _named(_of_rows(_noted(rows, kind, ledger), file, kind, scheme, ledger), ledger)


def _of_rows(rows: Iterator[Record], file: Path, kind: FileKind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    if kind.format == "hf":
        return token_tables.read_hf(rows, names_of(file, kind), scheme, ledger)
    if kind.format in _RECORDS:
        return _RECORDS[kind.format](rows, ledger)
    return _texts(rows, kind, ledger)


def _noted(rows: Iterator[Record], kind: FileKind, ledger: Ledger) -> Iterator[Record]:
    """Yield the rows, and store each row's document, group, file, page and further columns in the ledger."""
    for line, record in rows:
        ledger.named = named_in(record, kind.doc_column), named_in(record, kind.group_column)
        ledger.place = place_in(record) if kind.placed else (None, None)
        ledger.columns = values_in(record, kind.others)
        yield line, record


def _named(sentences: Iterator[Sentence], ledger: Ledger) -> Iterator[Sentence]:
    """Yield each sentence with the document, group, file, page and further columns of its row."""
    for sentence in sentences:
        (doc, group), (file, page) = ledger.named, ledger.place
        doc = sentence.doc if doc is None else doc
        yield replace(sentence, doc=doc, group=group, file=file, page=page, columns=ledger.columns)


def _texts(rows: Iterator[Record], kind: FileKind, ledger: Ledger) -> Iterator[Sentence]:
    for line, record in rows:
        value = record.get(cast(str, kind.text_column))
        if value is None:
            if kind.text_column in record:
                ledger.report.empty += 1
            else:
                ledger.reject(line, f"it has no {kind.text_column!r}", str(dict(record)))
        elif isinstance(value, str):
            named = record.get(kind.doc_column) if kind.doc_column else None
            yield from from_text(value, line, ledger.doc if named is None else str(named), ledger)
        else:
            ledger.reject(line, f"its {kind.text_column!r} is not text but {type(value).__name__}", str(dict(record)))
