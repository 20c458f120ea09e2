"""Read files and folders of text, labelled or not, as a stream of sentences, and report every problem."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import cast

from core import isolated
from core.corpora.annotators import Agreement, Labels, Panel, annotators_of, is_annotator
from core.corpora.formats import conll, token_tables
from core.corpora.formats.detect import FileKind, kind_of, records
from core.corpora.formats.documents import FIRST_PAGES, Ahead, is_document
from core.corpora.formats.folders import Listing, listed
from core.corpora.formats.ledger import LABELLED, MARKED, NAMES, TAGGED, Ledger, Problem, ReadOptions, ReadReport
from core.corpora.formats.one_file import names_of, sentences_of
from core.corpora.formats.source import stem
from core.errors import ConfigError, OptionsError, PathError, ReadError, ResourceError
from core.paths import user_path
from core.text.schemes import SCHEMES, Detector, Proposal, Scheme
from core.text.sentence import Sentence
from core.text.words import Marks, marks

__all__ = ["Preview", "Problem", "ReadOptions", "ReadReport", "read", "reason_for", "sniff"]


_DEFAULT = ReadOptions()
Known = Sequence[tuple[Path, FileKind]]
# Number of sentences at the start of each file that are compared with the other files.
_COMPARED = 200
# A preview measures the annotators' agreement only if all files together have up to 20 MB.
_HEARD = 20_000_000
# Maximum numbers of rows and characters read to propose a token rule.
_LOOKED_AT, _LOOKED_THROUGH = 1_000, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Preview of what `read` will return, from the first rows only.

    encoding: encoding that the user requested. scheme: label schemes that fit the first tags, None without tags. rows:
    first texts, to show to the user. problems: first rows that would be rejected, skipped or repaired. n_undecodable:
    number of lines that cannot be decoded. marks: counts of punctuation in the first rows, from which the token rule is
    proposed; None if the file has its own tokens. agreement: agreement of several annotators; None for one annotator,
    and for files that are too large. notes: notes on how columns and tags were interpreted.
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
    agreement: Agreement | None = None
    notes: tuple[str, ...] = ()


def sniff(path: Path, options: ReadOptions = _DEFAULT) -> Preview:
    """Return a preview of a file or folder: format, columns, label scheme and the first five rows.

    Files are read to their end only if they are small and may have several annotators to compare.

    Errors: those of `read` that occur in the first rows.
    """
    path = user_path(path)
    listing = listed(path, options)
    files = list(listing.files)
    kind, readable = _first_readable(listing, options)
    ledger = turned_to(readable, kind, listing, Ledger(options))
    ledger.first_pages = FIRST_PAGES
    scheme = proposed_scheme([readable], [kind], ledger, limit=2000) if kind.format in TAGGED else None
    fallback = (scheme.scheme or scheme.candidates[0]) if scheme and scheme.candidates else "io"
    agreement = _agreement(listing, options, fallback) if kind.format in LABELLED or len(files) > 1 else None
    shown = tuple(map(_shown, islice(sentences_of(readable, kind, fallback, ledger), 5), repeat(kind.format)))
    return Preview(
        format=kind.format,
        labelled=kind.format in LABELLED,
        files=tuple(listing.names[file] for file in files),
        encoding=options.encoding,
        columns=kind.columns,
        text_column=kind.text_column,
        scheme=scheme,
        rows=shown,
        problems=() if scheme and not scheme.candidates else tuple(ledger.report.problems),
        n_undecodable=ledger.n_undecodable,
        marks=None if kind.format in (*TAGGED, NAMES) else _marks(files, options),
        agreement=agreement,
        notes=tuple(ledger.report.notes),
    )


def _shown(sentence: Sentence, format: str) -> str:
    """Return a row of the preview: the text of a sentence or, for a list of names, a name with its type."""
    types = [entity.type for entity in sentence.entities or ()] if format == NAMES else []
    return f"{sentence.text} ({', '.join(types)})" if types else sentence.text


def annotators(path: Path, options: ReadOptions = _DEFAULT) -> tuple[str, ...]:
    """Return the sorted names of the annotators of a labelled file, folder or archive; () if no name is known.

    To read the labels of one annotator, use the options `annotator` and `alone`. Errors: those of `sniff`.
    """
    path = user_path(path)
    listing = listed(path, options)
    panel = Panel(None)
    _heard(panel, _readable(listing, options), listing, options, scheme="io")
    return tuple(sorted(panel.people))


def _agreement(listing: Listing, options: ReadOptions, scheme: Scheme) -> Agreement | None:
    """Return the agreement of several annotators; None for one annotator, or if the files are larger than `_HEARD`."""
    if sum(file.stat().st_size for file in listing.files) > _HEARD:
        return None
    return _heard(Panel(None), _readable(listing, options), listing, options, scheme=scheme)


def _readable(listing: Listing, options: ReadOptions) -> list[tuple[Path, FileKind]]:
    """Return (file, kind) of each file whose kind can be recognised. The import reports the other files."""
    known = list[tuple[Path, FileKind]]()
    for file in listing.files:
        with suppress(ReadError, PathError, ResourceError):
            known.append((file, kind_of(file, options)))
    return known


def _marks(files: list[Path], options: ReadOptions) -> Marks:
    """Return counts of punctuation in the first rows. Unreadable files are skipped, because the import reports them."""
    ledger, texts, left = Ledger(options), list[str](), _LOOKED_THROUGH
    ledger.first_pages = FIRST_PAGES
    for file in files:
        with suppress(ReadError, ResourceError):
            for sentence in sentences_of(file, kind_of(file, options), "io", ledger):
                texts.append(sentence.text)
                left -= len(sentence.text)
                if left < 0 or len(texts) == _LOOKED_AT:
                    return marks(texts)
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
    sources: bool = False,
    storing: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences of a file or folder, in order, in bounded memory.

    report: updated while reading. rejects: file for rejected rows (JSONL: file, line, kind, reason, raw), created only
    if a row is rejected. progress: called about once per block with (bytes done, total bytes). stage: called with the
    name of each stage; tags are read twice, first to find the scheme, then for the sentences. check: called once per
    block; it may raise an error to cancel. sources: True to also store each sentence's text as it is in the file.
    storing: True if the sentences are only stored. One process per core may then read a large file of lines or rows of
    text, and count the tokens (`Counted`).
    Errors: ReadError for a file that cannot be read, for a scheme in doubt, and at the end if no row was kept;
    ConfigError for an unknown scheme.
    """
    report = report if report is not None else ReadReport()
    listing = listed(path, options)
    files = list(listing.files)
    done = _BytesDone([user_path(file).stat().st_size for file in files], progress, check)
    ledger = Ledger(options, report, rejects=rejects, tick=done)
    ledger.sources, ledger.storing = sources, storing
    kinds = _kinds(path, listing, options, ledger)
    known = [(file, kind) for file, kind in zip(files, kinds, strict=True) if kind is not None]
    ledger.documents = [file for file, kind in known if kind.container == "document"]
    scheme = report.scheme = _scheme(path, known, options, done, stage)
    ledger.panel, report.agreement = _panel(path, known, listing, options, scheme=scheme or "io", stage=stage)
    stage(f"reading {path.name} and storing it")
    ahead = Ahead(ledger.documents, options, check)
    if len(ledger.documents) > 1 and not isolated.is_isolated():
        ledger.answer = ahead.take
    try:
        for done.file, (file, kind) in enumerate(zip(files, kinds, strict=True)):
            if kind is not None:
                sentences = sentences_of(file, kind, scheme or "io", turned_to(file, kind, listing, ledger))
                yield from sentences if len(files) == 1 else _noting_errors(sentences, kind, ledger)
        ledger.judge_encoding()
    finally:
        ahead.close()
        ledger.close()
    done.end()
    if not report.read:
        raise ReadError(path.name, None, "it has no text; choose a file with at least one line of text.")
    if not report.kept:
        first = report.problems[0]
        why = f"{first.reason}; none of the {report.read:,} rows could be kept."
        raise OptionsError(first.file, first.line, why)


class _BytesDone:
    """Callable that takes the number of bytes read from the current file, reports the progress, and calls `check`.

    file: index of the current file.
    """

    def __init__(self, sizes: list[int], progress: Callable[[int, int], None], check: Callable[[], None]) -> None:
        self.sizes, self.progress, self.check, self.file = sizes, progress, check, 0

    def __call__(self, done: int) -> None:
        self.check()
        # Limit the progress to the total, because a file that is still being written may have grown.
        self.progress(min(sum(self.sizes[: self.file]) + done, sum(self.sizes)), sum(self.sizes))

    def end(self) -> None:
        self.progress(sum(self.sizes), sum(self.sizes))


def turned_to(file: Path, kind: FileKind, listing: Listing, ledger: Ledger) -> Ledger:
    """Prepare the ledger for the next file of a listing, and return the ledger."""
    ledger.file, ledger.format, ledger.page, ledger.sheet = file.name, kind.format, None, ""
    ledger.listed = listing.names[file]
    # The document's name includes the folder, because two folders may have files with the same name.
    folder, slash, name = listing.names[file].rpartition("/")
    many = len(listing.files) > 1 or kind.format == "brat"
    ledger.doc = f"{folder}{slash}{stem(name)}" if many else None
    ledger.placed = _among_documents(listing)
    if ledger.placed:
        ledger.file = listing.names[file]
        ledger.doc = ledger.file if kind.container == "document" else ledger.doc
    return ledger


def _among_documents(listing: Listing) -> bool:
    """Return True if any file is a document. Sentences then have file and page, and unreadable files are left out."""
    return any(map(is_document, listing.files))


def _first_readable(listing: Listing, options: ReadOptions) -> tuple[FileKind, Path]:
    """Return the kind and path of the first readable file.

    Errors: ReadError or ResourceError of the first file if no file is readable.
    """
    first: ReadError | ResourceError | None = None
    for file in listing.files:
        try:
            kind = kind_of(file, options)
            if len(listing.files) > 1 and kind.container == "document":
                # Read the first sentence, because damage to a document shows only when its reader opens it.
                ledger = turned_to(file, kind, listing, Ledger(options))
                ledger.first_pages = FIRST_PAGES
                next(sentences_of(file, kind, "io", ledger), None)
            return kind, file
        except (ReadError, ResourceError) as error:
            first = first or error
            if not _among_documents(listing):
                raise
    assert first
    raise first


def _noting_errors(sentences: Iterator[Sentence], kind: FileKind, ledger: Ledger) -> Iterator[Sentence]:
    """Yield the sentences of one of several files. Count an unreadable document as one rejected row."""
    try:
        yield from sentences
    except (ReadError, ResourceError) as error:
        if kind.container not in ("document", "xlsx"):
            raise
        ledger.reject(None, reason_for(error, ledger.file))


def reason_for(error: Exception, file: str) -> str:
    """Return the message of an error without the file's name at its start."""
    reason = error.problem if isinstance(error, ReadError) else str(error)
    return reason.removeprefix(f"{Path(file).name}: ").removesuffix(".")


def _kinds(path: Path, listing: Listing, options: ReadOptions, ledger: Ledger) -> list[FileKind | None]:
    """Return the kind of each file, and add the formats to the report.

    The kind is None for an unreadable file among documents, which is counted as a rejected row. Errors: ReadError for
    any other unreadable file, and if labelled and unlabelled files are mixed.
    """
    kinds, report = list[FileKind | None](), ledger.report
    report.left_out += len(listing.left_out)
    for ledger.file, why in listing.left_out.items():
        ledger.remark(why)
    for file in listing.files:
        try:
            kinds.append(kind_of(file, options))
        except (ReadError, PathError, ResourceError) as error:
            if len(listing.files) == 1 or not _among_documents(listing):
                raise
            ledger.file = listing.names[file]
            ledger.reject(None, reason_for(error, ledger.file))
            kinds.append(None)
    known = [kind for kind in kinds if kind is not None]
    report.format = "+".join(dict.fromkeys(kind.format for kind in known))
    if len({kind.format in LABELLED for kind in known}) > 1:
        raise ReadError(
            path.name, None, f"it has labelled and unlabelled files ({report.format}); add them separately."
        )
    report.text_column = next((kind.text_column for kind in known if kind.text_column), None)
    report.encoding, report.files = options.encoding, len(listing.files)
    return kinds


def _scheme(
    path: Path,
    known: list[tuple[Path, FileKind]],
    options: ReadOptions,
    tick: Callable[[int], None],
    stage: Callable[[str], None],
) -> Scheme | None:
    """Return the requested label scheme, else the only scheme that fits all tags; None if no file has tags.

    Errors: OptionsError if several schemes or none fit; ConfigError for an unknown scheme.
    """
    if options.scheme not in ("auto", *SCHEMES):
        raise ConfigError(f"scheme: {options.scheme!r} is unknown; choose one of auto, {', '.join(SCHEMES)}.")
    if not any(kind.format in TAGGED for _, kind in known):
        return None
    if options.scheme != "auto":
        return cast(Scheme, options.scheme)
    stage(f"checking the label scheme of {path.name}")
    ledger = Ledger(options, tick=tick)
    proposal = proposed_scheme([file for file, _ in known], [kind for _, kind in known], ledger)
    if proposal.scheme is None:
        raise OptionsError(ledger.file, proposal.where, f"{proposal.problem}.")
    return proposal.scheme


def _panel(
    path: Path,
    known: Known,
    listing: Listing,
    options: ReadOptions,
    *,
    scheme: Scheme,
    stage: Callable[[str], None],
) -> tuple[Panel | None, Agreement | None]:
    """Return the `Panel` that chooses labels, and the agreement. Both are None if no text has several annotators.

    Errors: OptionsError if annotators disagree and the options do not choose one of them.
    """
    if not any(kind.format in LABELLED for _, kind in known):
        return None, None
    panel = Panel(options.annotator, alone=options.alone)
    agreement = _heard(panel, known, listing, options, scheme=scheme, stage=stage)
    if options.alone:
        return panel, agreement
    if options.annotator and options.annotator not in (agreement.annotators if agreement else ()):
        names = ", ".join(agreement.annotators) if agreement else ""
        why = (
            f"labelled no text here; choose one of {names}."
            if names
            else "cannot be chosen, because no text here has several named annotators; leave it out."
        )
        raise OptionsError(path.name, None, f"annotator: {options.annotator!r} {why}")
    if agreement is None:
        return None, None
    if agreement.equal < agreement.shared and not agreement.taken:
        names = ", ".join(list(agreement.annotators)[:8])
        raise OptionsError(
            path.name,
            None,
            f"{agreement.in_words} Choose the annotator whose labels are kept if they differ: --annotator NAME, or the"
            f" field Annotator on the page ({names}).",
        )
    return panel, agreement


def _heard(
    panel: Panel,
    known: Known,
    listing: Listing,
    options: ReadOptions,
    *,
    scheme: Scheme,
    stage: Callable[[str], None] = lambda name: None,
) -> Agreement | None:
    """Pass every annotated text to `panel`. Return the agreement, None if no text has several annotators.

    This takes as long as the import. Files with their own tokens are therefore read only if they name annotators, or if
    they share many of their first sentences.
    """
    marked = [each for each in known if each[1].format in MARKED]
    tagged = [each for each in known if each[1].format in TAGGED]
    named = any(_names_annotators(file, kind, options) for file, kind in tagged)
    if not named and not _recur(tagged, listing, options, scheme):
        tagged = []
    if not (marked or tagged):
        return None
    ledger = Ledger(options)
    ledger.panel = panel
    for file, kind in (*marked, *tagged):
        stage(f"checking for several annotators in {file.name}")
        with suppress(ReadError):  # the error is raised again when the sentences are read
            deque(sentences_of(file, kind, scheme, turned_to(file, kind, listing, ledger)), maxlen=0)
    agreement = panel.settle()
    copies = agreement is not None and not (marked or named) and agreement.equal == agreement.shared
    return None if copies else agreement


def _names_annotators(file: Path, kind: FileKind, options: ReadOptions) -> bool:
    with suppress(ReadError):  # the error is raised again when the sentences are read
        return any(map(is_annotator, kind.columns)) or (
            kind.format == "conll" and conll.names_annotators(file, options)
        )
    return False


def _recur(tagged: Known, listing: Listing, options: ReadOptions, scheme: Scheme) -> bool:
    """Return True if some files share many of their first sentences."""
    if len(tagged) < 2:
        return False
    ledger = Ledger(options)
    by_file: dict[bytes, dict[str, Labels]] = {}
    for file, kind in tagged:
        sentences = sentences_of(file, kind, scheme, turned_to(file, kind, listing, ledger))
        with suppress(ReadError):
            for sentence in islice(sentences, _COMPARED):
                by_file.setdefault(sentence.id.encode(), {})[ledger.listed] = frozenset()
    return bool(annotators_of(by_file))


def proposed_scheme(files: list[Path], kinds: list[FileKind], ledger: Ledger, limit: int | None = None) -> Proposal:
    """Return the label schemes that fit the tags. limit: number of sentences to read per file; None for all."""
    detector = Detector()
    for file, kind in zip(files, kinds, strict=True):
        ledger.file = file.name
        if kind.format == "conll":
            conll.detect(file, ledger, detector, limit)
        elif kind.format == "hf":
            token_tables.detect(islice(records(file, kind, ledger), limit), names_of(file, kind), ledger, detector)
        if detector.proposal().scheme is None:
            break
    return detector.proposal()
