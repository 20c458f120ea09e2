"""A reader's options, and its account of what became of every row."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TextIO

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
LABELLED: frozenset[str] = RECORDS | {"conll", "brat", "hf", "webanno", "pubtator", "gate"}
TAGGED = frozenset({"conll", "hf"})  # those of them that bring their tokens
MARKED = LABELLED - TAGGED  # those of them that mark spans of a text

Record = tuple[int, Mapping[str, object]]  # line (or row of a Parquet file) from 1, values by column

TOO_LONG = "a line of more than {:,} bytes; break it into lines"
MAX_PROBLEMS = 50  # kept in memory and shown; the reject file has them all
MAX_RAW = 10_000  # characters of a rejected row that the reject file keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of how a file or folder is read.

    text_column: None guesses one. doc_column, group_column: that name a row's document, and what this is of; None
    takes a column of a usual name for the document, and none for the other. scheme: "auto" or one of
    `schemes.SCHEMES`. split: cut every row (a document) into sentences. unit: what a row of a .txt is: a line, or the
    lines up to an empty one.
    encoding: "utf-8" also takes UTF-8 and UTF-16 that begin with a byte order mark. repair: False rejects
    a sentence with tags out of order instead of repairing it. part: which of train, dev (validation) and
    test to take from a labelled folder that holds several. tokens: what cuts text that comes without tokens.
    entity_type: of tags that name no type (`B`, `I`); "" for `ENTITY`. tag_column: the column of the tags, by its
    number from 1 or its name, if the first rows leave a doubt.
    keep_lost: keep a labelled sentence that lost an annotation or has binary answers only; it is left out otherwise.
    annotator: whose labels to take where several people labelled a text differently.
    others: further files and folders that are read with the first. names: what the first and the others go by, where
    they are files that are known by other names than their own.
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
    others: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    entity_type: str = ""
    tag_column: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One row or span that was not taken as it came. Never its text."""

    kind: Literal["rejected", "repaired", "skipped", "span"]
    file: str
    line: int | None
    reason: str


@dataclass(slots=True, kw_only=True)
class ReadReport:
    """Filled while reading; `read == kept + rejected + skipped`, all in rows (lines, records, CoNLL sentences).

    repaired: tags and span borders that were put right; repaired_rows: the rows they stand in.
    rejected_spans: annotations that could not be used (overlapping, discontinuous, out of range, of another text).
    lost: sentences left out because they lost one of these: what is not labelled in full is not gold.
    skipped: rows left out because the file says so (Prodigy's reject and ignore, tasks without annotation).
    partial: texts of which only some spans were answered (Prodigy's binary answers), left out unless `keep_lost`.
    agreement: of several annotators.
    empty: rows without text, not counted as read. sentences: what came out (more than `kept` if split).

    Of documents rows are pages (PDF), paragraphs (Word and the like) or rows of a sheet. pages: of all PDFs;
    blank_pages: those without text, in `blank_places`; unmapped: letters that map to no character, restored: those of
    them that other words told; margins: lines left out as running heads and page numbers.
    left_out: files of a folder or an archive that are none to read. notes: how columns and tags were understood, where
    that is not plain.
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
        """JSON-ready."""
        return asdict(self)


class Ledger:
    """Keeps the report and the reject file; formats write into it row by row.

    file: name of the file being read; listed: its name with its folders; panel: says whose labels are taken where
    several people labelled a text; doc: what its sentences come from if it does not say more itself; named: what
    the columns that were asked for say of the present row: its document, and what this is of; place: the file and page
    that it says it is of; columns: what else it says. format: of the file; page: the number of the present row's sheet;
    sheet: its name, if the workbook has several; placed: whether sentences keep file and page; first_pages: how many a
    look ahead reads, None for all. documents: all of the import, whose words tell what unmapped letters of one are;
    vocabulary: these words once they were asked for. sources: whether sentences keep the file's own text, which takes
    a fifth of the time of reading.
    `tick(bytes)` is called about once a block.
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
        self.page: int | None = None
        self.sheet = ""
        self.first_pages: int | None = None
        self.sources = False
        self.documents: Sequence[Path] = ()
        self.vocabulary: Set[str] | None = None
        self._path = rejects
        self._out: TextIO | None = None
        self._undecodable = 0
        self._first_undecodable: tuple[str, int, str] | None = None

    def reject(self, line: int | None, reason: str, raw: str = "") -> None:
        """A row that cannot be used."""
        reason = f"sheet {self.sheet!r}: {reason}" if self.sheet else reason
        self.report.read += 1
        self.report.rejected += 1
        self._keep("rejected", line, reason, raw)

    def reject_span(self, line: int | None, reason: str, raw: str = "") -> None:
        """An annotation that cannot be used."""
        self.report.rejected_spans += 1
        self._keep("span", line, reason, raw)

    def note(self, texts: Iterable[str]) -> None:
        """Say once how the file was understood."""
        self.report.notes += [text for text in texts if text not in self.report.notes]

    def partial(self, line: int | None) -> None:
        """Count a sentence of which only some spans were answered."""
        self.report.partial += 1
        if self.options.keep_lost:
            reason = "binary answers about one text were gathered; unanswered spans count as O"
            self._note("repaired", line, reason)

    def keep(self, rows: int) -> None:
        """Rows that were taken."""
        self.report.read += rows
        self.report.kept += rows

    def skip(self, line: int | None, reason: str, rows: int = 1) -> None:
        """Rows that hold nothing, or that their own file says to leave out."""
        self.report.read += rows
        self.report.skipped += rows
        self._note("skipped", line, reason)

    def remark(self, reason: str) -> None:
        """Something of the file that is no row and was left out."""
        self._note("skipped", None, reason)

    def repair(self, line: int | None, count: int, reason: str) -> None:
        """`count` things put right in the row at `line`."""
        self.report.repaired += count
        self.report.repaired_rows += 1
        self._note("repaired", line, reason)

    @property
    def n_undecodable(self) -> int:
        """Lines that are not in the encoding."""
        return self._undecodable

    def undecodable(self, line: int, error: UnicodeDecodeError, raw: bytes) -> None:
        """A row that is not in the encoding."""
        self.reject(line, self.not_decoded(line, error), raw[:MAX_RAW].decode("utf-8", "backslashreplace"))
        if self._undecodable >= 100:
            self.judge_encoding()

    def not_decoded(self, line: int, error: UnicodeDecodeError) -> str:
        """Count a line that is not in the encoding; the reason to reject its row with.

        A few such lines are rejected; more than one in a hundred mean that the encoding is another one.
        """
        reason = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        self._undecodable += 1
        self._first_undecodable = self._first_undecodable or (self.file, line, reason)
        return reason

    def judge_encoding(self) -> None:
        """Errors: EncodingError if more than one row in a hundred could not be decoded."""
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
        if len(self.report.problems) < MAX_PROBLEMS:
            self.report.problems.append(Problem(kind=kind, file=self.file, line=line, reason=brief(reason)))

    def close(self) -> None:
        """Finish the reject file."""
        if self._out is not None:
            self._out.close()
            self._out = None


def short(error: BaseException) -> str:
    """The first line of somebody else's message."""
    return str(error).split("\n", maxsplit=1)[0][:120]
