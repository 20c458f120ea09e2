"""Files and folders of text, labelled or not, as a stream of sentences and a report of every row."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import cast

from core.corpora.formats import annotated, conll, hf, plain
from core.corpora.formats.detect import Kind, kind_of, named_in, records
from core.corpora.formats.folders import files_of
from core.corpora.formats.ledger import LABELLED, TAGGED, Ledger, Problem, ReadOptions, ReadReport, Record
from core.corpora.formats.sentences import from_text
from core.errors import ConfigError, OptionsError, ReadError
from core.paths import user_path
from core.text.marks import Marks, marks
from core.text.schemes import SCHEMES, Detector, Proposal, Scheme
from core.text.sentence import Sentence

__all__ = ["Preview", "Problem", "ReadOptions", "ReadReport", "labelled", "read", "sniff"]


_DEFAULT = ReadOptions()
_LOOKED_AT, _LOOKED_THROUGH = 1_000, 1_000_000  # rows and characters that the tokens' rule is proposed by, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A look ahead at `read`, from the first rows alone.

    scheme: one that the first rows' tags fit, None where there are none. rows: the first texts, for the
    user's eyes only. encoding: as asked for. marks: how they stand in the first rows, which says what cuts them; None
    where they bring their tokens. problems: rows among these that would not be taken as they come;
    n_undecodable: how many of them are not in the encoding.
    """

    format: str
    labelled: bool
    files: tuple[str, ...]
    encoding: str
    columns: tuple[str, ...] = ()
    text_column: str | None = None
    scheme: Proposal | None = None
    rows: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    n_undecodable: int = 0
    marks: Marks | None = None


def labelled(preview: Preview) -> bool:
    """Whether the sentences will have entities."""
    return preview.labelled


def sniff(path: Path, options: ReadOptions = _DEFAULT) -> Preview:
    """Format, columns, scheme and the first five rows, without reading the file to its end.

    Errors: those of `read` that show in the first rows.
    """
    path = user_path(path)
    files = files_of(path, options)
    kind = kind_of(files[0], options)
    ledger = Ledger(options)
    ledger.file = files[0].name
    scheme = _propose(files[:1], [kind], ledger, limit=2000) if kind.format in TAGGED else None
    fallback = (scheme.scheme or scheme.candidates[0]) if scheme and scheme.candidates else "io"
    shown = tuple(sentence.text for sentence in islice(_sentences(files[0], kind, fallback, ledger), 5))
    return Preview(
        format=kind.format,
        labelled=kind.format in LABELLED,
        files=tuple(str(file.relative_to(path)) if path.is_dir() else file.name for file in files),
        encoding=options.encoding,
        columns=kind.columns,
        text_column=kind.text_column,
        scheme=scheme,
        rows=shown,
        problems=() if scheme and not scheme.candidates else tuple(ledger.report.problems),
        n_undecodable=ledger.n_undecodable,
        marks=None if kind.format in TAGGED else _marks(files, options),
    )


def _marks(files: list[Path], options: ReadOptions) -> Marks:
    """How marks stand in the first rows. What is wrong with one of them, the import says."""
    ledger, texts, left = Ledger(options), list[str](), _LOOKED_THROUGH
    with suppress(ReadError):
        first_rows = (s.text for file in files for s in _sentences(file, kind_of(file, options), "io", ledger))
        for text in islice(first_rows, _LOOKED_AT):
            texts.append(text)
            if (left := left - len(text)) < 0:
                break
    return marks(texts)


def read(
    path: Path,
    options: ReadOptions = _DEFAULT,
    *,
    report: ReadReport | None = None,
    rejects: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stage: Callable[[str], None] = lambda name: None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Sentence]:
    """The sentences of a file or folder, in order, in bounded memory.

    report: filled on the way. rejects: written (JSONL: file, line, kind, reason, raw) if anything is
    rejected. progress: (bytes done, bytes in all), about once a block; check: called as often, may raise. stage: what
    begins, since tags are read twice: for their scheme, then for their sentences.
    Errors: ReadError for what cannot be read at all, for a scheme that is in doubt, and at the end if
    nothing was kept; ConfigError for an option that makes no sense.
    """
    report = report if report is not None else ReadReport()
    files = files_of(path, options)
    done = _BytesDone([user_path(file).stat().st_size for file in files], progress, check)
    ledger = Ledger(options, report, rejects=rejects, tick=done)
    kinds = _kinds(path, files, options, report)
    if options.scheme == "auto" and any(kind.format in TAGGED for kind in kinds):
        stage(f"checking the label scheme of {path.name}")
    scheme = _scheme(path, files, kinds, options, done)
    report.scheme = scheme
    stage(f"reading {path.name} and sealing it")
    try:
        for done.file, (file, kind) in enumerate(zip(files, kinds, strict=True)):
            ledger.file = file.name
            ledger.doc = file.name.split(".")[0] if len(files) > 1 or kind.format == "brat" else None
            yield from _sentences(file, kind, scheme or "io", ledger)
        ledger.judge_encoding()
    finally:
        ledger.close()
    done.end()
    if not report.kept:
        raise _nothing(path, report)


class _BytesDone:
    """Progress over all files from what is done of one, number `file` from 0; and a look whether to stop."""

    def __init__(self, sizes: list[int], progress: Callable[[int, int], None], check: Callable[[], None]) -> None:
        self.sizes, self.progress, self.check, self.file = sizes, progress, check, 0

    def __call__(self, done: int) -> None:
        self.check()
        # At most all of them: a file that somebody still writes to may have grown since it was measured.
        self.progress(min(sum(self.sizes[: self.file]) + done, sum(self.sizes)), sum(self.sizes))

    def end(self) -> None:
        self.progress(sum(self.sizes), sum(self.sizes))


def _kinds(path: Path, files: list[Path], options: ReadOptions, report: ReadReport) -> list[Kind]:
    """The kind of each file, which goes into the report. Errors: ReadError where labelled ones lie among others."""
    kinds = [kind_of(file, options) for file in files]
    report.format = "+".join(dict.fromkeys(kind.format for kind in kinds))
    if len({kind.format in LABELLED for kind in kinds}) > 1:
        raise ReadError(
            path.name, None, f"labelled and unlabelled files lie together ({report.format}); add them apart."
        )
    report.text_column = kinds[0].text_column
    report.encoding, report.files = options.encoding, len(files)
    return kinds


def _nothing(path: Path, report: ReadReport) -> ReadError:
    if not report.read:
        return ReadError(path.name, None, "it holds no text; choose a file with at least one line of text.")
    first = report.problems[0]
    return OptionsError(first.file, first.line, f"{first.reason}; none of the {report.read:,} rows read could be kept.")


def _scheme(
    path: Path, files: list[Path], kinds: list[Kind], options: ReadOptions, tick: Callable[[int], None]
) -> Scheme | None:
    """The scheme asked for, or the only one that all tags fit. Errors: ReadError if they leave a doubt."""
    if options.scheme not in ("auto", *SCHEMES):
        raise ConfigError(f"scheme: {options.scheme!r} is none of auto, {', '.join(SCHEMES)}.")
    if not any(kind.format in TAGGED for kind in kinds):
        return None
    if options.scheme != "auto":
        return cast(Scheme, options.scheme)
    ledger = Ledger(options, tick=tick)
    proposal = _propose(files, kinds, ledger)
    if proposal.scheme is None:
        raise OptionsError(ledger.file, proposal.where, f"{proposal.problem}.")
    return proposal.scheme


def _propose(files: list[Path], kinds: list[Kind], ledger: Ledger, limit: int | None = None) -> Proposal:
    detector = Detector()
    for file, kind in zip(files, kinds, strict=True):
        ledger.file = file.name
        if kind.format == "conll":
            conll.detect(file, ledger, detector, limit)
        elif kind.format == "hf":
            hf.detect(islice(records(file, kind, ledger), limit), _names(file, kind), ledger, detector)
        if detector.proposal().scheme is None:
            break
    return detector.proposal()


def _names(file: Path, kind: Kind) -> hf.Names:
    columns = hf.tag_columns(kind.columns)
    return cache(lambda: hf.tag_names(file, columns[1]) if columns else None)


_RECORDS: dict[str, Callable[[Iterator[Record], Ledger], Iterator[Sentence]]] = {
    "doccano": annotated.read_doccano,
    "prodigy": annotated.read_prodigy,
    "labelstudio": annotated.read_label_studio,
}


def _sentences(file: Path, kind: Kind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    if kind.format == "txt":
        return (
            plain.read_paragraphs(file, ledger)
            if ledger.options.unit == "paragraph"
            else plain.read_lines(file, ledger)
        )
    if kind.format == "conll":
        return conll.read_conll(file, scheme, ledger)
    if kind.format == "brat":
        return annotated.read_brat(file, ledger)
    rows = records(file, kind, ledger)
    if not (ledger.options.doc_column or ledger.options.group_column):
        return _of_rows(rows, file, kind, scheme, ledger)
    return _named(_of_rows(_noted(rows, kind, ledger), file, kind, scheme, ledger), ledger)


def _of_rows(rows: Iterator[Record], file: Path, kind: Kind, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    if kind.format == "hf":
        return hf.read_hf(rows, _names(file, kind), scheme, ledger)
    if kind.format in _RECORDS:
        return _RECORDS[kind.format](rows, ledger)
    return _texts(rows, kind, ledger)


def _noted(rows: Iterator[Record], kind: Kind, ledger: Ledger) -> Iterator[Record]:
    """The same rows; what the columns that were asked for say of the one that is read stands in the ledger."""
    for line, record in rows:
        ledger.named = named_in(record, kind.doc_column), named_in(record, kind.group_column)
        yield line, record


def _named(sentences: Iterator[Sentence], ledger: Ledger) -> Iterator[Sentence]:
    """The sentences under the document and the group of their row."""
    for sentence in sentences:
        doc, group = ledger.named
        yield replace(sentence, doc=sentence.doc if doc is None else doc, group=group)


def _texts(rows: Iterator[Record], kind: Kind, ledger: Ledger) -> Iterator[Sentence]:
    for line, record in rows:
        value = record.get(cast(str, kind.text_column))
        if value is None:
            if kind.text_column in record:
                ledger.report.empty += 1
            else:
                ledger.reject(line, f"there is no {kind.text_column!r} in it", str(dict(record)))
        elif isinstance(value, str):
            named = record.get(kind.doc_column) if kind.doc_column else None
            yield from from_text(value, line, ledger.doc if named is None else str(named), ledger)
        else:
            ledger.reject(line, f"its {kind.text_column!r} is not text but {type(value).__name__}", str(dict(record)))
