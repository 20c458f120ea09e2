"""Read the sentences of one file of any format."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import cast

from core.corpora.formats import annotated, conll, token_tables, tool_rows, webanno
from core.corpora.formats.detect import FileKind, named_in, place_in, records, suffix, values_in
from core.corpora.formats.documents import read_document
from core.corpora.formats.in_parts import in_parts, pays
from core.corpora.formats.ledger import NAMES, TOO_LONG, Ledger, Record
from core.corpora.formats.name_lists import read_names
from core.corpora.formats.other_tools import adapted
from core.corpora.formats.rows import Heading, cells_of_rows, heading, json_rows, rows_under, rows_with_lines
from core.corpora.formats.sentences import from_text
from core.corpora.formats.source import MAX_RECORD, MAX_TEXT, Line, lines, open_stream
from core.text.schemes import Scheme
from core.text.sentence import Sentence

# Formats of tables with one text per row.
_TABLES = frozenset({"jsonl", "csv", "tsv", "parquet"})
# Estimated size of a table row in bytes, without its texts.
_ROW = 64
_Records = Callable[[Iterable[Record], Ledger], Iterator[Sentence]]


def read_lines(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a text file whose rows are lines."""
    rows = _lines(path, ledger)
    return in_parts(_of_lines, rows, _line_size, ledger) if pays(path, ledger) else _of_lines(rows, ledger)


def _of_lines(rows: Iterable[Line], ledger: Ledger) -> Iterator[Sentence]:
    for line, text, at in _decoded(rows, ledger):
        yield from from_text(text, line, ledger.doc, ledger, at)


def _line_size(line: Line) -> int:
    return len(line[1])


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


def _lines(path: Path, ledger: Ledger, cap: int = MAX_TEXT) -> Iterator[Line]:
    with open_stream(path, ledger.options.encoding, ledger.tick) as stream:
        yield from lines(stream, cap)


def _decoded(rows: Iterable[Line], ledger: Ledger) -> Iterator[tuple[int, str, int | None]]:
    """Yield (line number, text, number of characters before the line) per line.

    rows: lines as `source.lines` yields them. After a line that is too long, the number of characters is None, because
    it is not known.
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
    """Return a function that returns the class names of a file's numeric tags. Its first call reads these names."""
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
    ledger.fields = kind.fields
    ledger.note(kind.notes())
    if kind.container == "document":
        return read_document(file, kind.format, ledger)
    sentences = _of_lines_or_rows(file, kind, scheme, ledger)
    return _in_file(sentences, ledger) if ledger.placed else sentences


def _in_file(sentences: Iterator[Sentence], ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences. If a sentence names no file, add the ledger's file and page (for folders with documents)."""
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
    if kind.format in _TABLES and kind.container != "json" and pays(file, ledger):
        return _large_table(file, kind, scheme, ledger)
    rows = records(file, kind, ledger)
    if kind.format in _RECORDS:
        rows = ((line, annotated.with_lists(record)) for line, record in rows)
    return _of_records(file, kind, scheme, rows, ledger)


def _large_table(file: Path, kind: FileKind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of a large table of texts, which one process per core reads."""
    read = partial(_of_records, file, kind, scheme)
    if kind.container == "arrow":
        return in_parts(read, records(file, kind, ledger), _record_size, ledger)
    if kind.container == "jsonl":
        return in_parts(partial(_of_json, read), _lines(file, ledger, MAX_RECORD), _line_size, ledger)
    head = heading(file, kind.encoding, "\t" if kind.container == "tsv" else None)
    rows = rows_with_lines(_lines(file, ledger), head.separator)
    return in_parts(partial(_of_cells, read, head), rows, _row_size, ledger)


def _of_json(read: _Records, rows: Iterable[Line], ledger: Ledger) -> Iterator[Sentence]:
    return read(adapted(json_rows(rows, ledger)), ledger)


def _of_cells(read: _Records, head: Heading, rows: Iterable[Sequence[Line]], ledger: Ledger) -> Iterator[Sentence]:
    return read(rows_under(head, chain.from_iterable(rows), ledger), ledger)


def _row_size(row: Sequence[Line]) -> int:
    return sum(map(_line_size, row))


def _record_size(record: Record) -> int:
    return _ROW + sum(len(value) for value in record[1].values() if isinstance(value, str))


def _of_records(
    file: Path, kind: FileKind, scheme: Scheme, rows: Iterable[Record], ledger: Ledger
) -> Iterator[Sentence]:
    if not (kind.doc_column or kind.group_column or kind.placed or kind.others):
        return _of_rows(iter(rows), file, kind, scheme, ledger)
    return _named(_of_rows(_noted(rows, kind, ledger), file, kind, scheme, ledger), ledger)


def _of_rows(rows: Iterator[Record], file: Path, kind: FileKind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    if kind.format == "hf":
        return token_tables.read_hf(rows, names_of(file, kind), scheme, ledger)
    if kind.format in _RECORDS:
        return _RECORDS[kind.format](rows, ledger)
    return _texts(rows, kind, ledger)


def _noted(rows: Iterable[Record], kind: FileKind, ledger: Ledger) -> Iterator[Record]:
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
                ledger.reject(
                    line, f"it has no {kind.text_column!r}; add it, or choose another text column", str(dict(record))
                )
        elif isinstance(value, str):
            yield from from_text(value, line, ledger.doc, ledger)
        else:
            ledger.reject(
                line,
                f"its {kind.text_column!r} is not text but {type(value).__name__}; write a text there",
                str(dict(record)),
            )
