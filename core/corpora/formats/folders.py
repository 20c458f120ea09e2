"""List the files that an import reads from a folder or an archive, in order."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from filecmp import cmp
from itertools import chain, count
from pathlib import Path

from core.corpora.formats.ledger import ReadOptions
from core.corpora.formats.source import ARCHIVE, DOCUMENTS, PACKED, open_bytes, refuse_known
from core.corpora.uploads import unpacked
from core.errors import PathError, ReadError
from core.paths import allowed_path, is_there, user_path
from core.shown import in_utf8

TAGTOG = (
    "is an export of tagtog, whose offsets count within parts of a web page, not within a text; convert it to JSONL"
    " with text and character offsets, brat or CoNLL."
)
_BIONLP = "has annotations of a BioNLP shared task; rename the .a1 files to .ann, so that they are read as brat"
# {extension of files with annotations of other files: problem and advice}
APART = {
    ".a1": _BIONLP,
    ".a2": _BIONLP,
    ".con": "has annotations of i2b2 2010, which number the words of each line; convert them to brat or CoNLL",
}
_NO_TEXT = "its text is not beside it; put each .ann file into the folder of the .txt file of the same name"
# Maximum number of entries of a folder that are shown to the user.
MOST_LISTED = 500
# Maximum number of zip archives in a folder, because each may unpack to gigabytes.
MOST_ARCHIVES = 50

COLUMN_SUFFIXES = (
    *(".conll", ".conll2003", ".conll2002", ".conllu", ".conllx", ".gold_conll", ".auto_conll"),
    *(".bio", ".iob", ".iob2", ".bioes", ".bilou", ".ner"),
)
_ROWS = (".txt", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", *COLUMN_SUFFIXES)
# Extensions of annotation tools' exports. Some of these formats are not supported; the error then gives advice.
_TOOLS = (".json1", ".xml", ".bioc", ".pubtator", ".xmi", ".spacy", ".ttl")
_READ = (*_ROWS, *_TOOLS, *DOCUMENTS)
_ABOUT = frozenset(
    {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "label.json", "label2id.json"}
    | {"exportedproject.json"}
    | {"readme.txt", "license.txt"}
)
_PART = re.compile(r"(?:^|[^a-z])(train|validation|valid|dev|test)(?:[^a-z]|$)")
ALL_PARTS = "*"  # value of `options.part` that reads the files of all sets (train, dev and test)
_SAME = {"validation": "dev", "valid": "dev"}


@dataclass(frozen=True, slots=True)
class Listing:
    """Files that an import reads. names: {file: unique name for the user}. left_out: {name: reason} of other files."""

    files: Sequence[Path]
    names: Mapping[Path, str]
    left_out: Mapping[str, str] = field(default_factory=dict)


def files_of(path: Path, options: ReadOptions) -> list[Path]:
    """Return the field `files` of `listed(path, options)` as a list. Errors: those of `listed`."""
    return list(listed(path, options).files)


def listed(path: Path, options: ReadOptions) -> Listing:
    """List the files in `path` and `options.others` (files, folders and zip archives), sorted by name.

    Hidden files, and links that lead out of the folder, are skipped.
    Errors: PathError; ReadError if there is nothing to read, or if a folder has several sets (train, dev, test) and
    `options.part` names none of them.
    """
    roots = [path, *map(Path, options.others)]
    names, taken, left_out = dict[Path, str](), set[str](), dict[str, str]()
    called = dict(zip(roots, options.names, strict=False))
    for root in roots:
        one = _listed(user_path(root), options)
        for file in one.files:
            if file not in names:
                names[file] = _free(called.get(root, one.names[file]), root.parent.name, taken)
                taken.add(names[file])
        left_out |= one.left_out
    return Listing(list(names), names, left_out)


def _free(name: str, folder: str, taken: Collection[str]) -> str:
    """Return the first free name among `name`, `folder/name` and `folder N/name` (N = 2, 3, ...)."""
    numbered = (f"{folder} {number}/{name}" for number in count(2))
    return next(each for each in chain((name, f"{folder}/{name}"), numbered) if each not in taken)


def _listed(path: Path, options: ReadOptions) -> Listing:
    if not path.exists():
        raise PathError(f"{path}: there is no such file or folder; check the path.")
    if path.is_file() and path.suffix.lower() == ARCHIVE:
        folder, left_out = unpacked(path, _wanted)
        return _inside(_offered_in(folder), path.name, options, left_out)
    if path.is_file():
        text = path.with_suffix(".txt")
        file = text if path.suffix == ".ann" and is_there(text) else path
        return Listing([file], {file: file.name})
    return _inside(*_with_archives(path, options))


def _wanted(file: Path) -> bool:
    """Return True if a file of an archive should be unpacked."""
    return readable(file) or file.suffix == ".ann"


def _with_archives(path: Path, options: ReadOptions) -> tuple[dict[Path, str], str, ReadOptions, dict[str, str]]:
    """Return the arguments of `_inside` (names, called, options, left_out) for a folder and the zip archives in it.

    If the folder also has unpacked copies of all files of an archive, the archive is ignored.
    Errors: ReadError for too many archives; ReadError or PathError for a damaged archive. If `options.part` is
    `ALL_PARTS` (files that a user dropped on a page), a damaged archive is left out instead.
    """
    offered, left_out = _offered_in(path), dict[str, str]()
    archives = {file: name for file, name in offered.items() if file.suffix.lower() == ARCHIVE}
    if len(archives) > MOST_ARCHIVES:
        raise ReadError(path.name, None, f"has {len(archives):,} zip archives; unpack them, then add the folder again.")
    for archive, name in archives.items():
        del offered[archive]
        try:
            folder, unread = unpacked(archive, _wanted)
        except (ReadError, PathError) as error:
            if options.part != ALL_PARTS:
                raise
            left_out[name] = str(error).removeprefix(f"{archive.name}: ")
            continue
        inside = _offered_in(folder)
        unpacked_beside = any(  # True if a folder beside the archive has copies of all files of the archive
            all((place / name).is_file() and cmp(file, place / name, shallow=False) for file, name in inside.items())
            for place in (archive.parent, archive.with_suffix(""))
        )
        if not unpacked_beside:
            offered |= {file: f"{name[: -len(ARCHIVE)]}/{inner}" for file, inner in inside.items()}
        left_out |= {f"{name}/{inner}": why for inner, why in unread.items()}
    return dict(sorted(offered.items(), key=lambda each: Path(each[1]))), path.name, options, left_out


def _offered_in(folder: Path) -> dict[Path, str]:
    """Return {file: its path relative to the folder}, without hidden files."""
    root = folder.resolve()
    return {file: str(file.relative_to(folder)) for file in sorted(folder.rglob("*")) if _offered(file, folder, root)}


def _inside(
    names: Mapping[Path, str],
    called: str,
    options: ReadOptions,
    left_out: Mapping[str, str],
) -> Listing:
    """Return the files of a folder that an import reads, and why other files are left out.

    names: {file: name} of all files in the folder. called: name of the folder for the user. left_out: {name: reason} of
    files that are left out already.
    """
    files = [file for file in names if readable(file) and file.name.lower() not in _ABOUT]
    if not files:
        why = next((f" ({name}: {text})" for name, text in left_out.items()), "")
        raise ReadError(called, None, f"has no file that can be read (expected one of {', '.join(_READ)}){why}.")
    if any(file.name.endswith(".ann.json") for file in files):
        raise ReadError(called, None, TAGTOG)
    files = _of_part(files, names, called, options)
    unread = [file for file in names if not (readable(file) or _has_text(file))]
    left_out = {**left_out, **{names[file]: _why_unread(file) for file in unread}}
    return Listing(files, {file: names[file] for file in files}, left_out)


def _why_unread(file: Path) -> str:
    """Return why a file is left out, and what to do.

    It has annotations of another file, its content is of a known binary format, or its extension is not supported.
    """
    ending = file.suffix.lower()
    if ending == ".ann":
        return _NO_TEXT if file.suffix == ".ann" else "its extension is in capital letters; rename it to .ann"
    if ending in APART:
        return APART[ending]
    with suppress(OSError, PathError):
        try:
            with open_bytes(file) as stream:
                refuse_known(file.name, stream.read(1024))
        except ReadError as error:
            return error.problem.removesuffix(".")
    return "this kind of file cannot be imported"


def _of_part(files: list[Path], names: Mapping[Path, str], called: str, options: ReadOptions) -> list[Path]:
    """Return the files of the requested set (train, dev or test).

    Errors: ReadError if the set is missing, or if the folder has several sets and none is requested.
    """
    if options.part == ALL_PARTS:
        return files
    parts = {file: named_part(names[file]) for file in files}
    present = sorted({part for part in parts.values() if part})
    part = _SAME.get(options.part or "", options.part)
    if part:
        files = [file for file in files if parts[file] == part]
        if not files:
            names_present = ", ".join(present) or "none"
            raise ReadError(
                called,
                None,
                f"the folder has no files of the set {options.part!r}; choose another set ({names_present}).",
            )
    elif len(present) > 1 and not any(file.suffix.lower() in DOCUMENTS for file in files):
        raise ReadError(
            called,
            None,
            f"the folder has several sets ({', '.join(present)}); choose one with --part, or choose a single file.",
        )
    return files


def _has_text(file: Path) -> bool:
    """Return True if `file` is a brat annotation file (.ann) whose text is beside it."""
    return file.suffix == ".ann" and is_there(file.with_suffix(".txt"))


def is_brat(path: Path) -> bool:
    """Return True if `path` is a .txt file and its folder has a brat annotation file (.ann) of the same name."""
    return path.suffix == ".txt" and is_there(path.with_suffix(".ann"))


def listing(folder: Path, roots: Sequence[Path] | None = None) -> list[Path]:
    """Return the entries of `folder` that a user can open or import: folders first, then files, up to `MOST_LISTED`.

    Hidden entries, links that lead out of the allowed folders, and names that are not UTF-8 are left out.
    Errors: PathError, see `allowed_path`.
    """
    entries = []
    try:
        for path in sorted(allowed_path(folder, roots).iterdir(), key=lambda path: (path.is_file(), path.name.lower())):
            with suppress(PathError):
                hidden = path.name.startswith(".") or not in_utf8(path.name)
                if (
                    not hidden
                    and allowed_path(path, roots)
                    and (path.is_dir() or readable(path) or path.suffix.lower() == ARCHIVE)
                ):
                    entries.append(path)
    except OSError as error:
        raise PathError(f"{str(folder)[:200]!r}: cannot be opened ({error.strerror}).") from error
    return entries[:MOST_LISTED]


def readable(file: Path) -> bool:
    """Return True if an import of a folder reads files with this extension."""
    endings = [ending.lower() for ending in file.suffixes if ending.lower() not in PACKED]
    return bool(endings) and endings[-1] in _READ


def _offered(file: Path, folder: Path, root: Path) -> bool:
    """Return True if a file is not hidden. If it is a link, its target must be inside `root`."""
    inside = file.relative_to(folder)
    return (
        not any(part.startswith(".") for part in inside.parts)
        and file.is_file()
        and file.resolve().is_relative_to(root)
    )


def named_part(name: str) -> str | None:
    """Return "train", "dev" or "test" if a file's name, or the name of its folder, contains this word; else None."""
    matches = _PART.findall(name.lower())
    # The last match decides: train/old/dev.txt belongs to the dev set.
    return _SAME.get(matches[-1], matches[-1]) if matches else None
