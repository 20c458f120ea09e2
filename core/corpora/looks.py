"""Read the beginning of each of several files in a separate process, so that `proposal` can propose roles for them.

If a file kills this process, each file is read again in a process of its own, to find and report the harmful file.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core.corpora.formats.detect import FileKind, kind_of, suffix
from core.corpora.formats.documents import FIRST_PAGES
from core.corpora.formats.folders import ALL_PARTS, Listing, listed
from core.corpora.formats.ledger import LABELLED, TAGGED, Ledger, ReadOptions
from core.corpora.formats.one_file import sentences_of
from core.corpora.proposal import Look
from core.corpora.readers import proposed_scheme, reason_for, turned_to
from core.errors import ReadError, ResourceError, WinnowError
from core.isolated import Isolated
from core.text.content import is_content
from core.text.schemes import Scheme
from core.text.sentence import Sentence

SECONDS = 60  # time limit for all files together
MOST_FILES = 2_000
# Maximum number of files to read again, each in its own process, after the shared process has died.
MOST_ALONE = 30
# Number of files to read of a folder that has more than 24 files with one extension.
LOOKED_INTO = 8
# Maximum number of sentences to read per file.
_READ = 8_000
# Time limit per file.
_SECONDS = 1.5
# Number of sentences per file whose words are counted, and number of most frequent words that are kept per file.
_SAMPLE, _WORDS = 500, 1_500
# If half of a file's rows have more than 80 tokens, they are taken for documents, not sentences.
_LONG = 80

_process = Isolated(__name__, "import this file alone, with the form for all options", SECONDS)
ready = _process.ready


def looks(paths: Sequence[Path], encoding: str = "utf-8") -> list[Look]:
    """Return a `Look` (first findings) for every file in `paths`, which may be files, folders and archives.

    encoding: that of files that are not in UTF-8. Errors: those of `files_of`; ResourceError.
    """
    try:
        return _asked(paths, encoding, None)
    except ResourceError:
        names = [each.name for each in _asked(paths, encoding, ())]
        if len(names) > MOST_ALONE:
            raise
    found = list[Look]()
    for name in names:
        try:
            found.append(next(each for each in _asked(paths, encoding, (name,)) if each.name == name))
        except WinnowError as error:
            found.append(Look(name=name, bytes=0, problem=reason_for(error, paths[0].name)))
    return found


def _asked(paths: Sequence[Path], encoding: str, only: Sequence[str] | None) -> list[Look]:
    from pydantic import TypeAdapter  # imported here, so that the separate process starts faster

    answered = _process.ask(paths[0].name, paths=list(map(str, paths)), encoding=encoding, only=only)
    return TypeAdapter(list[Look]).validate_python(answered)


def answer(paths: Sequence[str], encoding: str, only: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return a `Look` for every file in `paths`, as JSON values. Called in the separate process.

    only: names of the files to read; None to read a few files of each kind.
    """
    listing, options = files_of([Path(path) for path in paths]), ReadOptions(encoding=encoding)
    ends, seen = time.monotonic() + SECONDS / 2, dict[Path, Look]()
    for file in _few_of_each(listing) if only is None else listing.files:
        if (only is None and time.monotonic() < ends) or listing.names[file] in (only or ()):
            seen[file] = look(file, listing, options)
    unread = list[Look]()
    for name, why in listing.left_out.items():
        inside = (Path(path) / name for path in paths)  # no path exists for a file in an archive, so its size is 0
        size = next((file.stat().st_size for file in inside if file.is_file()), 0)
        unread.append(Look(name=name, bytes=size, problem=why))
    return [asdict(each) for each in (*_with_others(seen, listing), *unread)]


def files_of(paths: Sequence[Path]) -> Listing:
    """List all files in `paths` (files, folders, archives). Errors: those of `listed`; ReadError for too many files."""
    options = ReadOptions(others=tuple(str(path) for path in paths[1:]), part=ALL_PARTS)
    listing = listed(paths[0], options)
    if len(listing.files) > MOST_FILES:
        n = len(listing.files)
        raise ReadError(
            paths[0].name, None, f"has {n:,} files, more than {MOST_FILES:,}; import the folder as one corpus."
        )
    return listing


def _few_of_each(listing: Listing) -> list[Path]:
    """Return the files to read. Of over 24 files with the same folder and extension, read the first `LOOKED_INTO`."""
    kinds = defaultdict[tuple[Path, str], list[Path]](list)
    for file in listing.files:
        kinds[file.parent, suffix(file)].append(file)
    return [file for files in kinds.values() for file in (files if len(files) <= 24 else files[:LOOKED_INTO])]


def _with_others(seen: Mapping[Path, Look], listing: Listing) -> list[Look]:
    """Return a `Look` for every file. For unread files, it is estimated from similar files in the same folder."""
    by_kind = defaultdict[tuple[Path, str], list[Look]](list)
    for file, each in seen.items():
        if not each.problem:
            by_kind[file.parent, suffix(file)].append(each)
    return [
        seen.get(file) or _like(by_kind[file.parent, suffix(file)], file, listing.names[file]) for file in listing.files
    ]


def _like(others: Sequence[Look], file: Path, name: str) -> Look:
    size = file.stat().st_size
    if not others:
        # Assume 100 bytes per sentence if no similar file was read.
        return Look(name=name, bytes=size, sentences=max(size // 100, 1))
    a_byte = sum(each.sentences for each in others) / max(sum(each.bytes for each in others), 1)
    about = max(round(a_byte * size), 1)
    return replace(others[0], name=name, bytes=size, sentences=about, exact=False, words={})


def look(file: Path, listing: Listing, options: ReadOptions) -> Look:
    """Return the findings from the first `_READ` sentences of a file. Reading stops after `_SECONDS`.

    Documents and workbooks are read to their end, except that of a PDF only the first pages are read.
    """
    name, size = listing.names[file], file.stat().st_size
    try:
        kind = kind_of(file, options)
        sentences, share = _first(file, kind, listing, options)
    except (WinnowError, OSError, UnicodeError) as error:
        return Look(name=name, bytes=size, problem=reason_for(error, file.name))
    if not sentences:
        return Look(name=name, bytes=size, problem="it has no text; choose a file with at least one line of text")
    n = len(sentences)
    few = sentences[:: max(n // _SAMPLE, 1)]
    lengths = sorted(len(sentence.tokens) for sentence in few)
    words = Counter(word.casefold() for sentence in few for word in sentence.tokens if is_content(word))
    types = Counter(entity.type for sentence in sentences for entity in sentence.entities or ())
    labelled = kind.format in LABELLED
    return Look(
        name=name,
        bytes=size,
        format=kind.format,
        labelled=labelled,
        sentences=round(n / share),
        exact=share == 1,
        types=dict(types),
        words=dict(words.most_common(_WORDS)),
        long=not labelled and kind.container != "document" and lengths[len(lengths) // 2] > _LONG,
    )


def _first(file: Path, kind: FileKind, listing: Listing, options: ReadOptions) -> tuple[list[Sentence], float]:
    """Return the first sentences of a file, and the share of its bytes or pages that was read."""
    done, size = [0], max(file.stat().st_size, 1)
    ledger = turned_to(file, kind, listing, Ledger(options, tick=done.append))
    ledger.first_pages = FIRST_PAGES
    sentences, ends = list[Sentence](), time.monotonic() + _SECONDS
    for sentence in sentences_of(file, kind, _scheme(file, kind, options), ledger):
        sentences.append(sentence)
        # Stopping early saves no time for a document or workbook, because its reader returns all rows at once. It also
        # reports no number of bytes, from which the number of sentences could be estimated.
        if kind.container not in ("document", "xlsx") and (len(sentences) == _READ or time.monotonic() > ends):
            break
    else:
        ledger.judge_encoding()
        if not sentences and ledger.report.problems:
            first = ledger.report.problems[0]
            raise ReadError(file.name, first.line, f"{first.reason}; none of its rows could be kept.")
        return sentences, min(FIRST_PAGES / max(ledger.report.pages, 1), 1.0)
    # Limit the share to less than 1, because 1 means that all sentences were counted.
    return sentences, min(max(*done, 1) / size, 0.999)


def _scheme(file: Path, kind: FileKind, options: ReadOptions) -> Scheme:
    """Return the first label scheme that fits the tags. Errors: ReadError if none fits."""
    if kind.format not in TAGGED:
        return "io"
    proposal = proposed_scheme([file], [kind], Ledger(options), limit=2_000)
    if not proposal.candidates:
        raise ReadError(file.name, proposal.where, f"{proposal.problem}.")
    return proposal.candidates[0]
