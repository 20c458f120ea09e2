"""Make a project from an exported file, which may be forged. If anything is wrong, no project is made."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from core.corpora.formats.rows import look_through
from core.errors import ProjectError, ReadError, ResourceError
from core.files import ARTIFACTS, LARGEST_JSON, read_object, sync_all, write_atomic
from core.isolated import Isolated
from core.project_list import KEPT, LOCK, PROJECTS, Project, free_slug, new_name, read, write
from core.projects.pack import FORMAT, LIST, VERSION, Entry, is_of_the_process, is_pickle
from core.runs.lock import locked
from core.runs.run import BROUGHT
from core.runs.store import MANIFEST, RUN_FOLDERS

_FOLDER = re.compile(rf"corpora|runs(/[^/]+/({'|'.join(RUN_FOLDERS)}))?")  # names that only folders may have
_SAFE = re.compile(r"[^/\\\x00-\x1f\x7f:]{1,255}(/[^/\\\x00-\x1f\x7f:]{1,255}){0,11}")
# Maximum number of files; maximum size of the list of files, in bytes; maximum compression ratio of this list, which is
# low because sha256 sums can hardly be compressed.
_MOST_FILES, _LONGEST_LIST, _LIST_RATIO = 500_000, 64 << 20, 10
_RATIO, _SMALL = 100, 1 << 30  # reject a project that would unpack to more than 100 times its size and more than 1 GiB

_LARGEST_MANIFEST = 4 << 20  # bytes; it has the paths of an import's files, and every page reads all manifests
_SMALL_JSON = 1 << 20  # bytes; each larger JSON file must itself respect _RATIO, because pages read it as a whole
_CHUNK = 1 << 20
_CHECK_SECONDS = 900
_process = Isolated(
    __name__, "export the project again, because its file may be damaged or forged", _CHECK_SECONDS, spare=False
)
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def unpack(file: IO[bytes], label: str, root: Path, name: str = "") -> Project:
    """Make a project from a file that `pack` wrote.

    label: name of the file in error messages. root: home folder of all projects. name: new name of the project; ""
    keeps the packed name.
    Errors: ProjectError if another project has the name, or if the file is damaged, forged or not from Winnow;
    ResourceError if the disk is too small. After an error, no project remains.
    """
    with _opened(file, label) as archive:
        about, entries = _read_list(archive, label)
        wanted = new_name(root, name or about["name"])
        _refuse_bomb(file, label, entries, root)
        return _placed(archive, label, entries, root, wanted)


def name_in(file: IO[bytes], label: str) -> str:
    """Return the name of the project in a file. label: see `unpack`. Errors: ProjectError."""
    with _opened(file, label) as archive:
        return _read_list(archive, label)[0]["name"]


@contextmanager
def _opened(file: IO[bytes], label: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip for a block. Raise ProjectError for every error that a damaged zip can cause in the block."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # the disk caused the error, not the file
            raise
        raise _no_project(label, f"is damaged or not a zip file ({type(error).__name__})") from error


def _no_project(label: str, problem: str) -> ProjectError:
    return ProjectError(f"{label}: {problem}; choose a file that `project export` wrote, or copy it again.")


def _read_list(archive: zipfile.ZipFile, label: str) -> tuple[dict[str, str], Mapping[str, Entry]]:
    """Return a project's description and its list of files. Errors: ProjectError if the list does not fit the zip."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if LIST not in names:
        raise _no_project(label, f"is not a project, because it has no {LIST}")
    listed = archive.getinfo(LIST)
    longest = min(_LONGEST_LIST, max(_SMALL_JSON, _LIST_RATIO * listed.compress_size))
    if len(names) > _MOST_FILES or listed.file_size > longest:
        raise _no_project(label, f"has more than {_MOST_FILES:,} files, or a list of files that is too large")
    if len(set(names)) < len(names):
        raise _no_project(label, "has two files with the same name")
    about, entries = _parsed(archive.read(LIST), label)
    for info in infos:
        if info.filename != LIST:
            _refuse_unsafe(info, entries.get(info.filename), label)
    if missing := entries.keys() - set(names):
        raise _no_project(label, f"lacks {len(missing)} of the files in its list")
    return about, entries


def _parsed(written: bytes, label: str) -> tuple[dict[str, str], Mapping[str, Entry]]:
    try:
        about = json.loads(written)
        if about["format"] != FORMAT:
            raise ValueError
        if about["version"] != VERSION:
            raise _no_project(label, f"has format version {about['version']!r}, but this Winnow reads only version 1")
        if not all(isinstance(about[key], str) for key in ("name", "created", "winnow")):
            raise TypeError
        entries = {
            str(name): Entry(size=int(size), sha256=str(digest), changed=int(changed))
            for name, (size, digest, changed) in about["files"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise _no_project(label, f"is not a project: its {LIST} cannot be read") from error
    if any(entry.size < 0 or not 0 <= entry.changed < 1 << 63 for entry in entries.values()):
        raise _no_project(label, f"is not a project: its {LIST} cannot be read")
    return {key: about[key] for key in ("name", "created", "winnow")}, entries


def _refuse_unsafe(info: zipfile.ZipInfo, entry: Entry | None, label: str) -> None:
    """Raise ProjectError for an entry of the zip that is unsafe, too large, or different from its entry in the list.

    An entry is unsafe if its path leads outside the project, or if it is not a plain file of a safe format. Only files
    that pages read as a whole can be too large.
    """
    parts = info.filename.split("/")
    inside = _SAFE.fullmatch(info.filename) and parts[0] in KEPT and not any(part[0] == "." for part in parts)
    inside = inside and not _FOLDER.fullmatch(info.filename)
    mode = info.external_attr >> 16
    plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode)
    foreign = is_pickle(info.filename) or is_of_the_process(info.filename)
    if not inside or not plain or foreign or info.flag_bits & 1 or info.compress_type not in _PACKED:
        raise _no_project(label, "has an unsafe file (a link, code, an encrypted file, or a path outside the project)")
    if entry is None or info.file_size != entry.size:
        raise _no_project(label, "has a file that differs from its list of files")
    if _is_read_whole(info.filename) and _is_too_large(info):
        raise _no_project(label, f"has {parts[-1]} of {info.file_size:,} bytes, more than a page can read")


def _is_read_whole(name: str) -> bool:
    """Return True for a file that is read as a whole: JSON, and JSON lines except in a run's artifacts."""
    return name.endswith(".json") or (name.endswith(".jsonl") and name.split("/")[2:3] != [ARTIFACTS])


def _is_too_large(info: zipfile.ZipInfo) -> bool:
    largest = _LARGEST_MANIFEST if info.filename.endswith(f"/{MANIFEST}") else LARGEST_JSON
    return info.file_size > min(largest, max(_SMALL_JSON, _RATIO * info.compress_size))


def _refuse_bomb(file: IO[bytes], label: str, entries: Mapping[str, Entry], root: Path) -> None:
    packed, total = file.seek(0, os.SEEK_END), sum(entry.size for entry in entries.values())
    if total > max(_SMALL, _RATIO * packed):
        raise _no_project(label, f"would unpack to {total:,} bytes, more than {_RATIO} times its size")
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    if total > (free := shutil.disk_usage(root).free):
        raise ResourceError(f"{label}: needs {total:,} bytes, but {root} has {free:,} left; free some space there.")


def _placed(archive: zipfile.ZipFile, label: str, entries: Mapping[str, Entry], root: Path, name: str) -> Project:
    draft = root / PROJECTS / f".import-{secrets.token_hex(6)}"
    draft.mkdir(parents=True, mode=0o700)
    try:
        for entry_name in sorted(entries):
            _write(archive, entry_name, entries[entry_name], draft, label)
        refuse_forged(draft, label)
        _restore_folders(draft)
        _withdraw_consent(draft, label)
        with locked(root / LOCK, patience=30):
            write(draft, new_name(root, name))
            sync_all(draft)
            target = root / PROJECTS / free_slug(root, name)
            draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return read(target)


def _restore_folders(draft: Path) -> None:
    """Restore what the zip does not store: empty folders of runs, and when each corpus folder was last changed.

    Lists of corpora are sorted by these times. Also mark each run as imported. An unfinished imported run can be
    resumed only after a user has agreed to its options.
    """
    for run in filter(Path.is_dir, (draft / "runs").glob("*")):
        for part in RUN_FOLDERS:
            (run / part).mkdir(exist_ok=True)
        (run / BROUGHT).touch(mode=0o600)
    for corpus in filter(Path.is_dir, (draft / "corpora").glob("*")):
        latest = max(file.stat().st_mtime_ns for file in corpus.rglob("*"))
        os.utime(corpus, ns=(latest, latest))


def _withdraw_consent(draft: Path, label: str) -> None:
    """Set `allow_download` to False in the options of every run, because no user here has agreed to a download.

    Pages may start new runs with the options of an imported run, finished or not.
    Errors: ProjectError for options that are nested too deeply.
    """
    for manifest in (draft / "runs").glob(f"*/{MANIFEST}"):
        try:
            options = read_object(manifest)
            refused = _without_consent(options)
            if refused != options:
                write_atomic(manifest, json.dumps(refused).encode())
        except RecursionError as error:
            raise _no_project(label, "has a run whose options are nested too deeply") from error


def _without_consent(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: name != "allow_download" and _without_consent(part) for name, part in value.items()}
    return [_without_consent(part) for part in value] if isinstance(value, list) else value


def _write(archive: zipfile.ZipFile, name: str, entry: Entry, draft: Path, label: str) -> None:
    target, digest, size = draft / name, hashlib.sha256(), 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except (FileExistsError, NotADirectoryError) as error:  # or names that differ only in case, or a file and a folder
        raise _no_project(label, "has two files with the same name") from error
    with os.fdopen(descriptor, "wb") as written, archive.open(name) as source:
        while (part := source.read(_CHUNK)) and size <= entry.size:
            digest.update(part)
            written.write(part)
            size += len(part)
    if size != entry.size or digest.hexdigest() != entry.sha256:
        raise _no_project(label, "was damaged or changed: a file's checksum differs from the list")
    os.utime(target, ns=(entry.changed, entry.changed))


def refuse_forged(folder: Path, label: str) -> None:
    """Read every Parquet table in a separate process, because a forged table may kill its reader.

    Errors: ProjectError if a table cannot be read; ResourceError if the process dies or takes too long.
    """
    if tables := [str(path) for path in sorted(folder.rglob("*.parquet"))]:
        try:
            _process.ask(label, paths=tables)
        except ReadError as error:
            raise ProjectError(f"{label}: a table in it cannot be read; export the project again.") from error


def answer(paths: list[str]) -> None:
    """Read Parquet tables to their end, to find damage. Called in the separate process."""
    for path in paths:
        look_through(Path(path))
