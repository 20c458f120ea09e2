"""`add`: read a file or folder as a stream, and store it as a corpus."""

import json
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from core import audit_log
from core.config import Config, option
from core.corpora.checks import ContradictionCounter, Contradictions
from core.corpora.corpus import Corpus
from core.corpora.formats.detect import kind_of
from core.corpora.formats.folders import files_of, readable
from core.corpora.formats.ledger import Format
from core.corpora.formats.source import ARCHIVE, PACKED
from core.corpora.preview import dry_run
from core.corpora.readers import Problem, ReadOptions, ReadReport, read, reason_for, sniff
from core.corpora.uploads import forget, forget_unpacked, still_needed, sweep, uploaded
from core.errors import EncodingError, OptionsError, ReadError, ResourceError
from core.files import read_object, write_atomic
from core.importing.result import AddResult, Cut, rejects_path
from core.kind import Job, Kind, Result
from core.models import hub
from core.models.vocabulary_fit import SAMPLE, coverage, unknown_warning
from core.paths import user_path
from core.reporter import Reporter
from core.runs.store import RunStore
from core.shown import count, in_utf8, shown
from core.text.sentence import Sentence
from core.text.words import Marks, unspaced

# File with the result. A resumed run reads it, because the upload may be deleted already.
BEFORE = "sealed.json"
# Maximum number of pages that are listed in the note about pages without text.
_PLACES = 10
# Maximum number of characters. In tables, a longer name would push the numbers out of view.
LONGEST_NAME = 80


def proposed_name(path: Path, n_more: int = 0) -> str:
    """Return a name for a corpus: the name of its file without extensions, shortened to `LONGEST_NAME` characters.

    n_more: number of further files; for a folder, they are counted here.
    """
    files = [file for file in uploaded(path) if readable(file)] or uploaded(path)
    if files:
        path, n_more = files[0], len(files) - 1
    unpacked = path.stem if path.suffix in PACKED else path.name
    name = path.name if path.is_dir() else unpacked.rsplit(".", 1)[0]
    name = shown(name) + (f" and {n_more} more" if n_more else "")
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1].rstrip() + "…"


class AddConfig(Config):
    """Options of an import: which files to read, and how."""

    path: str = option(..., "A file, a folder of files, or a zip archive of them.")
    others: tuple[str, ...] = option((), "Further files, folders or archives of the same corpus.")
    names: tuple[str, ...] = option((), "Names to show for these files instead of the file names.", hidden=True)
    name: str = option(
        "", f"The corpus's name, up to {LONGEST_NAME} characters; the file's name if left out.", max_length=LONGEST_NAME
    )
    format: Format = option(
        "auto",
        "The file's format. auto recognises it by file name and first lines, except names (a list of names).",
    )
    text_column: str = option("", "The column with the text (jsonl, csv, tsv, parquet, xlsx); guessed if left out.")
    doc_column: str = option(
        "", "The column that names a row's document; if left out, a column doc, doc_id, document_id or docid is used."
    )
    group_column: str = option(
        "", "A further column to keep, for example a contract's kind or a hospital, for `corpus split --by column`."
    )
    scheme: Literal["auto", "iob1", "iob2", "bioes", "bilou", "io"] = option(
        "auto", "The label scheme; auto uses the only scheme that fits, and asks if several fit."
    )
    entity_type: str = option(
        "",
        "Entity type of tags without a type (only B, I and O); ENTITY if left out. In a list of names, the type of "
        "names without a type.",
        max_length=60,
    )
    tag_column: str = option(
        "", "The tag column, by number from 1 or by name, if a file has several or if it is not recognised."
    )
    split: bool = option(False, "Split every row into sentences, if rows are documents.")
    unit: Literal["line", "paragraph"] = option("line", "Part of a .txt file that becomes a row.")
    tokens: Literal["auto", "words", "blanks"] = option(
        "auto",
        "Rule that cuts text into tokens. words: each word and each punctuation mark is a token. blanks: text between "
        "blanks is a token, for text that was tokenised before. auto: blanks if commas and full stops follow blanks.",
    )
    part: str = option("", "The set (train, dev or test) to read from a labelled folder with several sets.")
    encoding: str = option(
        "utf-8", "Encoding of files that are not in UTF-8, such as cp1252. UTF-16 is recognised by its byte order mark."
    )
    keep_lost: bool = option(
        False,
        "Keep labelled sentences that lost an annotation or have only binary answers; all other words are then O. "
        "Otherwise these sentences are left out.",
    )
    annotator: str = option("", "Annotator whose labels are kept if several annotators labelled a text differently.")
    move: bool = option(False, "Delete the file after the import (used for uploads, which are copies).")

    @field_validator("path", "others")
    @classmethod
    def _named_in_utf8(cls, paths: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not in_utf8("".join(paths)):
            raise ValueError("its name is not in UTF-8; rename the file")
        return paths


def run(config: AddConfig, job: Job) -> AddResult | Result:
    """Import files as one corpus. Artifact: `rejects.jsonl`, the rows that could not be used, with line and reason.

    The copy of an upload is deleted after the import. It is also deleted if the file cannot be read with any options. A
    failed import stores no rows.
    """
    before = job.context.run.chunks / BEFORE
    # The file exists if an earlier attempt was killed after the import.
    result: AddResult | Result | None = read_object(before)
    if result is None:
        result = _imported(config, job)
        write_atomic(before, json.dumps(asdict(result), ensure_ascii=False).encode())
    if config.move:
        forget(Path(config.path), job.home)
    return result


def _imported(config: AddConfig, job: Job) -> AddResult:
    path, rejects = user_path(config.path), rejects_path(job.context.run)
    if config.move:
        still_needed(path)
    try:
        return _sealed(config, job, path, rejects)
    except BaseException as error:
        rejects.unlink(missing_ok=True)
        if config.move and isinstance(error, ReadError) and not isinstance(error, OptionsError):
            forget(path, job.home)
        raise
    finally:
        for each in (path, *map(Path, config.others)):
            forget_unpacked(each)
        sweep(job.home, RunStore(job.home))


class _Scripts:
    """Counts sentences in scripts without blanks between words, and samples texts to check an encoder's vocabulary."""

    def __init__(self) -> None:
        self.unspaced = 0
        self.sample: list[str] = []

    def watched(self, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
        """Yield `sentences` unchanged, while counting and sampling them."""
        step = 1
        for i, sentence in enumerate(sentences):
            self.unspaced += unspaced(sentence.text)
            if i % step == 0:
                self.sample.append(sentence.text)
                # The number of sentences is not known in advance. Whenever the sample is full, drop every second text
                # and sample half as often, so that it covers all sentences evenly.
                if len(self.sample) == 2 * SAMPLE:
                    self.sample[:], step = self.sample[::2], 2 * step
            yield sentence


def reading(config: AddConfig) -> ReadOptions:
    """Return the options for reading the file, taken from the options of the import."""
    return ReadOptions(
        **config.model_dump(
            include={"format", "scheme", "split", "unit", "encoding", "entity_type", "tag_column", "keep_lost"}
        ),
        text_column=config.text_column or None,
        doc_column=config.doc_column or None,
        group_column=config.group_column or None,
        part=config.part or None,
        annotator=config.annotator or None,
        others=config.others,
        names=config.names,
    )


def _sealed(config: AddConfig, job: Job, path: Path, rejects: Path) -> AddResult:
    config, path, unread = _readable(config, path)
    name = shown(config.name) or proposed_name(path, len(config.others))
    options = reading(config)
    preview = sniff(path, options)
    cut = _cut(config, preview.marks)
    options = replace(options, tokens="blanks" if cut.rule == "blanks" else "words")
    report, scripts, labels = ReadReport(problems=unread, left_out=len(unread)), _Scripts(), ContradictionCounter()
    sentences = read(
        path,
        options,
        report=report,
        rejects=rejects,
        stage=job.context.stage,
        progress=partial(_progress, job.context),
        check=job.context.check,
        storing=True,
    )
    here = {corpus.fingerprint for corpus in job.library.list() if corpus.origin.get("run") != job.context.run.id}
    sealed = job.library.seal(
        labels.watched(scripts.watched(sentences)),
        name=name,
        origin={"file": _called(path, config), "run": job.context.run.id},
        labelled=preview.labelled,
        tokens=options.tokens,
        describe=report.as_dict,
    )
    audit_log.note("import", runs=[job.context.run.id], corpora=[sealed.fingerprint])
    known = sealed.fingerprint in here
    if known:
        job.context.note(f"This text is already imported as {sealed.name}; that corpus is used.")
    elif sealed.name != name:
        job.context.note(f"Another corpus has the name {name}, so this one is named {sealed.name}.")
    contradictory = labels.found
    for text in (*report.notes, *_of_documents(report), contradictory.in_words):
        if text:
            job.context.note(text)
    covered = coverage(hub.BUNDLED, scripts.sample)
    if covered and (text := unknown_warning(covered.unknown, sealed.name, hub.BUNDLED)):
        job.context.note(text)
    result = _result(sealed, report, cut, labels.found, asked_name=name, was_here=known, unspaced=scripts.unspaced)
    for text in result.of_labels:
        job.context.note(text)
    return result


def _readable(config: AddConfig, path: Path) -> tuple[AddConfig, Path, list[Problem]]:
    """If the user gave several files, return the options without the files that cannot be read.

    The result also has the first readable file, and one problem per file left out. Errors: the first file's error if no
    file can be read; OptionsError if other options would make a file readable.
    """
    options = reading(config)
    if not config.others:
        dry_run(path, options)
        return config, path, []
    alone = replace(options, others=(), names=())
    kept, problems, first = list[tuple[str, str]](), list[Problem](), None
    for given, name in zip_longest((config.path, *config.others), config.names):
        try:
            _try(user_path(given), alone)
        except (ReadError, ResourceError) as error:
            if isinstance(error, OptionsError) and not isinstance(error, EncodingError):
                raise
            first, called = first or error, name or Path(given).name
            problems.append(Problem(kind="skipped", file=called, line=None, reason=reason_for(error, given)))
        else:
            kept.append((given, name))
    if not kept:
        assert first
        raise first
    paths, names = zip(*kept, strict=True)
    update = {"path": paths[0], "others": paths[1:], "names": names if config.names else ()}
    return config.model_copy(update=update), user_path(paths[0]), problems


def _try(path: Path, options: ReadOptions) -> None:
    """Read the beginning of a file. Errors: ReadError or ResourceError if it cannot be read."""
    dry_run(path, options)
    if path.is_file() and path.suffix.lower() != ARCHIVE:
        kind_of(files_of(path, options)[0], options)


def _called(path: Path, config: AddConfig) -> str:
    """Return the name of the file. For several files, return the first file's name and the number of the others."""
    files = uploaded(path) or [path, *map(Path, config.others)]
    return files[0].name + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _of_documents(report: ReadReport) -> Iterator[str]:
    """Yield notes for the user: pages without text, removed headers and footers, unmapped letters, unread files."""
    if report.blank_pages:
        places = ", ".join(report.blank_places[:_PLACES]) + (" ..." if len(report.blank_places) > _PLACES else "")
        yield f"{report.blank_pages:,} of {report.pages:,} pages have no text (scanned?): {places}."
    if report.margins:
        yield f"{report.margins:,} running heads, footers and page numbers were left out."
    if report.unmapped:
        left = report.unmapped - report.restored
        yield (
            f"{report.unmapped:,} letters of PDFs map to no character; {report.restored:,} were restored by "
            "comparison with other words"
            + (f", {left:,} remain unreadable; the report names the files." if left else ".")
        )
    if report.left_out:
        yield f"{count(report.left_out, 'file')} left out; the report gives the reason."


def _cut(config: AddConfig, marks: Marks | None) -> Cut:
    """Return the rule that cuts the text into tokens, and the reason for it.

    marks: counts from which the rule is guessed; None if the file has its own tokens.
    """
    if marks is None:
        return Cut(rule="own", why="the file has them")
    if config.tokens != "auto":
        return Cut(rule=config.tokens, why="by option")
    return Cut(rule=marks.tokens, why=marks.why)


def _result(
    sealed: Corpus,
    report: ReadReport,
    cut: Cut,
    contradictory: Contradictions,
    *,
    asked_name: str,
    was_here: bool,
    unspaced: int,
) -> AddResult:
    counted = {each.name for each in fields(AddResult)} & {each.name for each in fields(ReadReport)}
    read: dict[str, Any] = {name: getattr(report, name) for name in counted}
    return AddResult(
        **{
            **read,
            # Files that were left out come last, because lists show only the first problems.
            "problems": tuple(sorted(report.problems, key=lambda one: one.kind == "skipped" and one.line is None)),
            "cut": cut,
            "corpus": sealed.fingerprint,
            "name": sealed.name,
            "sentences": sealed.n_sentences,
            "tokens": sealed.n_tokens,
            "types": dict(sealed.types),
            "asked_name": asked_name,
            "was_here": was_here,
            "unspaced": unspaced,
            "contradictory_texts": contradictory.texts,
            "contradictory_sentences": contradictory.sentences,
        }
    )


def _progress(report: Reporter, done: int, total: int) -> None:
    """Report the progress in MB for files from 10 MB on, else in KB."""
    unit, size = ("MB", 1_000_000) if total >= 10_000_000 else ("KB", 1_000)
    report.progress(done // size, max(total // size, 1), unit)


KIND = Kind(
    "add",
    AddConfig,
    run,
    AddResult,
    title=lambda run: f"Import {run.config['name'] or run.config['path'].rsplit('/', 1)[-1]}",
    outcome=lambda result, _: f"{count(result.sentences, 'sentence')}, {count(result.tokens, 'token')}",
    page="Corpora",
    opens=True,
    command=("corpus", "add"),
    positional=("path", "others"),
    reuse=False,
)
