"""Options of a reader, and the ledger with which a reader counts every row and reports every problem."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from core.corpora.annotators import Agreement, Panel
from core.errors import EncodingError
from core.shown import brief
from core.text.words import Tokens, cutter

Format = Literal[
    "auto",
    "txt",
    "jsonl",
    "csv",
    "tsv",
    "parquet",
    "conll",
    "doccano",
    "labelstudio",
    "prodigy",
    "brat",
    "hf",
    "spacy",
    "argilla",
    "lighttag",
    "rasa",
    "webanno",
    "bioc",
    "pubtator",
    "gate",
    "names",
    "pdf",
    "docx",
    "odt",
    "rtf",
    "html",
    "eml",
    "xlsx",
]
RECORDS: frozenset[str] = frozenset(
    {"doccano", "labelstudio", "prodigy", "spacy", "argilla", "lighttag", "rasa", "bioc"}
)
NAMES: Format = "names"  # format of a list of names; it is never recognised, only chosen by the user
LABELLED: frozenset[str] = RECORDS | {"conll", "brat", "hf", "webanno", "pubtator", "gate", NAMES}
# Labelled formats with tokens and tags.
TAGGED = frozenset({"conll", "hf"})
# Labelled formats with a text and spans.
MARKED = LABELLED - TAGGED - {NAMES}

Record = tuple[int, Mapping[str, object]]  # (number of the line, or of the row in a Parquet file; {column: value})

TOO_LONG = "a line of more than {:,} bytes; break it into lines"
# Maximum number of problems in a report. The reject file has all rejected rows.
MAX_PROBLEMS = 50
# Maximum number of characters of a rejected row that are written to the reject file.
MAX_RAW = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading a file or folder.

    format: "auto" to recognise the format. text_column: column of the text; None to guess it. doc_column: column that
    names the document of a row; None for a column with a usual name. group_column: column with the group of a document.
    tag_column: column of the entity tags, by its number from 1 or by its name. scheme: "auto" or one of
    `schemes.SCHEMES`. encoding: that of files that are not in UTF-8 and have no byte order mark. entity_type: type for
    tags without a type (`B`, `I`) and for listed names without a type; if "", tags without a type get the type
    `ENTITY`. unit: part of a .txt file that is read as a row: a line, or a paragraph that ends with an empty line.
    split: True to split every row into sentences. tokens: rule by which plain text is tokenised.
    repair: True to repair tags that are out of order, False to reject their sentences. keep_lost: True to keep
    sentences with unusable annotations, and texts with only binary answers (Prodigy).
    annotator: name of the annotator whose labels are kept if labels differ. alone: True to read only the labels of
    `annotator`, or only labels without a known annotator if `annotator` is None.
    part: the set (train, dev or test) to read from a labelled folder with several sets. others: further files and
    folders to read. names: names for the user, instead of the names of the first path and of `others`.
    """

    format: Format = "auto"
    text_column: str | None = None
    doc_column: str | None = None
    group_column: str | None = None
    scheme: str = "auto"
    split: bool = False
    unit: Literal["line", "paragraph"] = "line"
    encoding: str = "utf-8"
    repair: bool = True
    part: str | None = None
    tokens: Tokens = "words"
    keep_lost: bool = False
    annotator: str | None = None
    alone: bool = False
    others: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    entity_type: str = ""
    tag_column: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of labelled rows whose names are chosen by the users of a tool; None if they have usual names."""

    text: str | None = None
    spans: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A row or span that was rejected, skipped or repaired. Its text is not stored."""

    kind: Literal["rejected", "repaired", "skipped", "span"]
    file: str
    line: int | None
    reason: str


@dataclass(slots=True, kw_only=True)
class ReadReport:
    """Counts of rows, updated while reading: `read == kept + rejected + skipped`.

    A row is a line, a record or a CoNLL sentence. In documents it is a page (PDF), a paragraph (Word and others) or a
    row of a sheet.

    repaired: number of repaired tags and span borders, in `repaired_rows` rows. rejected_spans: number of annotations
    that could not be used (overlapping, discontinuous, out of range, not matching the text). lost: number of sentences
    that lost an annotation and so are not fully labelled; they are left out unless `keep_lost`. partial: number of
    texts with only binary answers (Prodigy); they are left out unless `keep_lost`. agreement: agreement of several
    annotators. skipped: number of rows without usable content, or marked as unused in the file (Prodigy's reject and
    ignore, tasks without annotation). empty: number of rows without text, which do not count as read. sentences: number
    of sentences, more than `kept` if rows are split.

    pages: number of pages of all PDFs. blank_pages: number of pages without text, listed in `blank_places`. unmapped:
    number of letters that a font maps to no character. restored: number of these letters that were restored from other
    words. margins: number of lines left out as running heads and page numbers. left_out: number of files in a folder or
    an archive that cannot be read. notes: notes on how columns and tags were interpreted.
    """

    format: str = ""
    scheme: str | None = None
    text_column: str | None = None
    encoding: str = ""
    files: int = 0
    read: int = 0
    kept: int = 0
    repaired: int = 0
    repaired_rows: int = 0
    rejected: int = 0
    rejected_spans: int = 0
    lost: int = 0
    partial: int = 0
    agreement: Agreement | None = None
    skipped: int = 0
    empty: int = 0
    sentences: int = 0
    pages: int = 0
    blank_pages: int = 0
    blank_places: list[str] = field(default_factory=list)
    margins: int = 0
    unmapped: int = 0
    restored: int = 0
    left_out: int = 0
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return asdict(self)


class Ledger:
    """State of a reader: the report, the reject file, and the current file and row. Readers update it row by row.

    Current file: `file` is its name, `listed` its name with folders, `format` its format. `fields` are the fields of
    its rows. `doc` is the document of its sentences, unless a row names another one. If `placed`, sentences get file
    and page.

    Current row: `named` is (document, group) from the requested columns, `place` is (file, page), and `columns` are the
    row's further columns. In a workbook, `page` is the number of the row's sheet, and `sheet` is the sheet's name if
    there are several sheets.

    Import: `panel` chooses the labels to keep if several annotators labelled a text. `first_pages` is the number of
    pages to read for a preview, None for all. `documents` are all documents of the import. Their words (`vocabulary`,
    collected once) are used to restore unmapped letters. `answer` returns the result of a document's reader, if
    documents are read ahead. If `sources`, sentences also store their text as it is in the file; reading then takes a
    fifth longer. If `storing`, readers of text and tables may return the number of tokens instead of the tokens
    (`Counted`). `tick(bytes)` is called about once per block.
    """

    def __init__(
        self,
        options: ReadOptions,
        report: ReadReport | None = None,
        *,
        rejects: Path | None = None,
        tick: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.options, self.report, self.tick = options, report or ReadReport(), tick
        self.cut = cutter(options.tokens)
        self.file = self.listed = ""
        self.panel: Panel | None = None
        self.doc: str | None = None
        self.named: tuple[str | None, str | None] = (None, None)
        self.place: tuple[str | None, int | None] = (None, None)
        self.columns: tuple[tuple[str, str], ...] = ()
        self.format, self.placed = "", False
        self.fields = Fields()
        self.page: int | None = None
        self.sheet = ""
        self.first_pages: int | None = None
        self.sources = self.storing = False
        self.documents: Sequence[Path] = ()
        self.answer: Callable[[Path], Any] | None = None
        self.vocabulary: Set[str] | None = None
        self._path = rejects
        self._out: TextIO | None = None
        self._undecodable = 0
        self._first_undecodable: tuple[str, int, str] | None = None

    def reject(self, line: int | None, reason: str, raw: str = "") -> None:
        """Count a row that cannot be used, and write it to the reject file."""
        reason = f"sheet {self.sheet!r}: {reason}" if self.sheet else reason
        self.report.read += 1
        self.report.rejected += 1
        self._keep("rejected", line, reason, raw)

    def reject_span(self, line: int | None, reason: str, raw: str = "") -> None:
        """Count an annotation that cannot be used, and write it to the reject file."""
        self.report.rejected_spans += 1
        self._keep("span", line, reason, raw)

    def note(self, texts: Iterable[str]) -> None:
        """Add notes on how the file was interpreted, unless the report has them already."""
        self.report.notes += [text for text in texts if text not in self.report.notes]

    def partial(self, line: int | None) -> None:
        """Count a text that has only binary answers. A binary answer accepts or rejects a single span."""
        self.report.partial += 1
        if self.options.keep_lost:
            reason = "binary answers about one text were joined; spans without an answer are treated as O"
            self._note("repaired", line, reason)

    def keep(self, rows: int) -> None:
        """Count rows that were kept."""
        self.report.read += rows
        self.report.kept += rows

    def skip(self, line: int | None, reason: str, rows: int = 1) -> None:
        """Count rows that have no usable content, or that their file marks as unused."""
        self.report.read += rows
        self.report.skipped += rows
        self._note("skipped", line, reason)

    def remark(self, reason: str) -> None:
        """Report that content outside of rows was left out."""
        self._note("skipped", None, reason)

    def repair(self, line: int | None, count: int, reason: str) -> None:
        """Count a row with `count` repairs, and report the reason."""
        self.report.repaired += count
        self.report.repaired_rows += 1
        self._note("repaired", line, reason)

    @property
    def n_undecodable(self) -> int:
        """Number of lines that could not be decoded."""
        return self._undecodable

    def undecodable(self, line: int, error: UnicodeDecodeError, raw: bytes) -> None:
        """Reject a row that cannot be decoded. Errors: see `judge_encoding`."""
        self.reject(line, self.not_decoded(line, error), raw[:MAX_RAW].decode("utf-8", "backslashreplace"))
        if self._undecodable >= 100:
            self.judge_encoding()

    def not_decoded(self, line: int, error: UnicodeDecodeError) -> str:
        """Count a line that cannot be decoded, and return the reason to reject its row.

        If more than one line in a hundred cannot be decoded, the file has another encoding. `judge_encoding` then
        rejects the file.
        """
        reason = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        self._undecodable += 1
        self._first_undecodable = self._first_undecodable or (self.file, line, reason)
        return f"{reason}; save the file as UTF-8 or give its encoding"

    def judge_encoding(self) -> None:
        """Raise EncodingError if more than one row in a hundred could not be decoded."""
        if self._first_undecodable and self._undecodable * 100 > self.report.read:
            file, line, reason = self._first_undecodable
            raise EncodingError(
                file,
                line,
                f"{reason} ({self._undecodable:,} such lines among {self.report.read:,}); save the file as UTF-8 or"
                " give its encoding, for example cp1252 or latin-1.",
            )

    def _keep(self, kind: Literal["rejected", "span"], line: int | None, reason: str, raw: str) -> None:
        reason = brief(reason)
        self._note(kind, line, reason)
        if self._path is None:
            return
        if self._out is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._out = self._path.open("w", encoding="utf-8")
        row = {"file": self.file, "line": line, "kind": kind, "reason": reason, "raw": raw[:MAX_RAW]}
        self._out.write(json.dumps(row) + "\n")

    def _note(self, kind: Literal["rejected", "repaired", "skipped", "span"], line: int | None, reason: str) -> None:
        # A folder may have thousands of files that cannot be read. They must leave room for rows.
        most = MAX_PROBLEMS if line or kind != "skipped" else MAX_PROBLEMS // 2
        if len(self.report.problems) < most:
            self.report.problems.append(Problem(kind=kind, file=self.file, line=line, reason=brief(reason)))

    def close(self) -> None:
        """Close the reject file."""
        if self._out is not None:
            self._out.close()
            self._out = None


@dataclass(frozen=True, slots=True)
class Account:
    """Counts and rejected rows of a part of a file, to be added to another ledger.

    rejected: (counts before the row, arguments) for each rejected row. The arguments are for `undecodable` if the row
    could not be decoded, else for `reject`. counts: counts after all rows. `_COUNTED` names the counts.
    """

    rejected: list[tuple[tuple[int, ...], tuple[Any, ...]]]
    counts: tuple[int, ...]

    def repeat(self, ledger: Ledger) -> None:
        """Add the counts to `ledger`, and reject the rows there in the same order. Errors: EncodingError."""
        before: tuple[int, ...] = (0,) * len(_COUNTED)
        for counts, arguments in (*self.rejected, (self.counts, ())):
            for name, more, less in zip(_COUNTED, counts, before, strict=True):
                setattr(ledger.report, name, getattr(ledger.report, name) + more - less)
            before = counts
            if arguments and isinstance(arguments[1], UnicodeDecodeError):
                ledger.undecodable(*arguments)
            elif arguments:
                ledger.reject(*arguments)


_COUNTED = ("read", "kept", "empty", "sentences")  # fields of the report that change when rows of text are read


class Remembering(Ledger):
    """Ledger of a process that reads a part of a file. It stores rejected rows, which the main process then rejects."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._rejected: list[tuple[tuple[int, ...], tuple[Any, ...]]] = []

    def reject(self, line: int | None, reason: str, raw: str = "") -> None:
        self._rejected.append((self._counts(), (line, reason, raw)))

    def undecodable(self, line: int, error: UnicodeDecodeError, raw: bytes) -> None:
        self._rejected.append((self._counts(), (line, error, raw)))

    def account(self) -> Account:
        """Return the `Account` of all rows so far."""
        return Account(self._rejected, self._counts())

    def _counts(self) -> tuple[int, ...]:
        return tuple(getattr(self.report, name) for name in _COUNTED)


def short(error: BaseException) -> str:
    """Return the first line of an error message from another library, up to 120 characters."""
    return str(error).split("\n", maxsplit=1)[0][:120]
