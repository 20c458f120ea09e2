"""Manage temporary copies in the project's folder: `uploads/<token>/<file>`, and unpacked archives `unpacked/<key>/`.

Copies are deleted after the import, or after a day without use. The size and paths of unpacked files are limited.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from zipfile import ZipFile, ZipInfo

from core.corpora.documents.office import opened_zip
from core.corpora.formats.source import ARCHIVE, refuse_known
from core.errors import PathError
from core.files import read_object, write_atomic
from core.paths import home, opened
from core.shown import shown

if TYPE_CHECKING:
    from core.runs.store import RunStore

MAX_UNPACKED = 2 << 30  # maximum size of all files in an archive together, unpacked, in bytes
_LEFT_OUT = ".left-out.json"
# Maximum number of bytes in the name of a file or folder.
_LONGEST = 200
# Maximum number of bytes and of folders in a path within an archive. Linux limits the full path to 4,096 bytes.
_LONGEST_PATH, _DEEPEST = 1_000, 40
_BLOCK = 1 << 20
STALE = 24 * 3600  # number of seconds without use after which a copy is deleted
# {folder of an archive's files: descriptor of its lock file}. A process locks each folder until it deletes the folder
# or ends, so that another import of the same archive does not delete files that are still read.
_locks: dict[Path, int] = {}


def unpacked(path: Path, wanted: Callable[[Path], bool]) -> tuple[Path, Mapping[str, str]]:
    """Unpack an archive unless it is unpacked already. Return its folder, and {name: reason} for files left out.

    No other process deletes the folder until this process calls `forget_unpacked` or ends.

    wanted: function that returns True for a file that should be unpacked. Errors: ReadError if the archive is damaged,
    protected by a password or a zip bomb; PathError.
    """
    folder = place(path)
    _lock(folder, fcntl.LOCK_SH)
    while not (folder / _LEFT_OUT).exists():
        # Another process may unpack the same archive now, or may delete its files between the two locks.
        _lock(folder, fcntl.LOCK_EX)
        if not (folder / _LEFT_OUT).exists():
            _unpack_to(folder, path, wanted)
        _lock(folder, fcntl.LOCK_SH)
    return folder, {name: str(why) for name, why in (read_object(folder / _LEFT_OUT) or {}).items()}


def _unpack_to(folder: Path, path: Path, wanted: Callable[[Path], bool]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    draft = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    try:
        draft.mkdir(parents=True)
        left_out = _unpack(path, draft, wanted)
        # Write this file last. If it exists, the whole archive was unpacked.
        write_atomic(draft / _LEFT_OUT, json.dumps(left_out).encode())
        draft.rename(folder)
    except BaseException:
        _delete(folder)
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _lock_file(folder: Path) -> Path:
    return folder.with_suffix(".lock")


def _lock(folder: Path, mode: int) -> None:
    """Lock an archive's folder for this process, or change the lock that it has.

    mode: LOCK_SH to read, LOCK_EX to write. Errors: BlockingIOError if the mode includes LOCK_NB and another process
    has a lock that excludes it.
    """
    file = _lock_file(folder)
    while True:
        if folder not in _locks:
            file.parent.mkdir(parents=True, exist_ok=True)
            _locks[folder] = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(_locks[folder], mode)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(_locks[folder]), file.stat()):
                return
        # Another process deleted the file while this process waited.
        os.close(_locks.pop(folder))


def _delete(folder: Path) -> None:
    """Delete an archive's folder unless another process reads it. Release this process's lock."""
    with suppress(BlockingIOError):
        _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        _lock_file(folder).unlink(missing_ok=True)
    os.close(_locks.pop(folder))


def place(path: Path) -> Path:
    """Return the folder for an archive's files. Its name depends on the archive's path, size and time of change."""
    try:
        stat = path.stat()
    except OSError as error:
        raise PathError(f"{path.name}: cannot be opened ({error.strerror}); check its path and permissions.") from error
    key = blake2b(
        f"{path.resolve()} {stat.st_mtime_ns} {stat.st_size}".encode("utf-8", "surrogateescape"), digest_size=8
    )
    return home() / "unpacked" / key.hexdigest()


def _unpack(path: Path, folder: Path, wanted: Callable[[Path], bool]) -> dict[str, str]:
    left_out = {}
    try:
        with opened(path) as file:
            refuse_known(path.name, file.read(4))
            with opened_zip(file, path.name, MAX_UNPACKED) as archive:
                for member in archive.infolist():
                    if not member.is_dir() and (why := _taken(archive, member, folder, wanted)):
                        left_out[shown(member.filename)[-_LONGEST:]] = why
    except OSError as error:
        raise PathError(
            f"{path.name}: cannot be unpacked ({error.strerror}); free some space, or check its permissions."
        ) from error
    return left_out


def _taken(archive: ZipFile, member: ZipInfo, folder: Path, wanted: Callable[[Path], bool]) -> str:
    """Write one file of an archive. Return the reason if it was left out; "" if it was written or is hidden."""
    inside = PurePosixPath(member.filename.replace("\\", "/"))
    if any(part.startswith((".", "__MACOSX")) and part != ".." for part in inside.parts):
        return ""
    target = folder / shown(str(inside)).lstrip("/")
    if why := _refusal(inside, target, wanted):
        return why
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return "its folder has the same name as another file; rename one of them"
    with archive.open(member) as source, target.open("wb") as out:
        shutil.copyfileobj(source, out, _BLOCK)
    return ""


def _refusal(inside: PurePosixPath, target: Path, wanted: Callable[[Path], bool]) -> str:
    """Return why a file of an archive must not be unpacked, "" if it may be. Only its path and name are checked."""
    if not inside.parts or inside.is_absolute() or ".." in inside.parts or ":" in inside.parts[0]:
        return "its path leads out of the archive"
    if inside.suffix.lower() == ARCHIVE:
        return "a zip archive inside another; unpack it, and add it separately"
    if not wanted(Path(inside)):
        return "this kind of file cannot be imported"
    if len(inside.parts) > _DEEPEST + 1:
        return f"it is more than {_DEEPEST} folders deep; move it up, and pack the archive again"
    lengths = [len(part.encode("utf-8", "replace")) for part in inside.parts]
    if max(lengths) > _LONGEST or sum(lengths) + len(lengths) > _LONGEST_PATH:
        return "its name or path is too long; shorten it, and pack the archive again"
    return "another file of the archive has the same name; rename one of them" if target.exists() else ""


def forget(path: Path, home: Path) -> None:
    """Delete an upload and the unpacked files of its archives. A path outside of `home/uploads` is not deleted."""
    uploads = (home / "uploads").resolve()
    if path.resolve().is_relative_to(uploads) and path.resolve() != uploads:
        forget_unpacked(path)  # their place depends on the archive, so it must still exist
        with suppress(FileNotFoundError):  # another process may have deleted the copy already
            shutil.rmtree(path.parent if path.parent.resolve() != uploads else path)


def keep_only(path: Path, home: Path, names: Collection[str]) -> None:
    """Delete the files of an upload except `names`. Without names, delete the whole upload."""
    if not names:
        forget(path, home)
    elif path.is_dir() and (home / "uploads").resolve() in path.resolve().parents:
        for file in _files(path):
            name = file.relative_to(path)
            # Keep a brat annotation if its text is kept, and an archive if a file in it is kept.
            needed = {str(name), str(name.with_suffix(".txt"))} & set(names)
            within = f"{name.with_suffix('')}/"
            if not needed and not (_is_archive(file) and any(each.startswith(within) for each in names)):
                forget_unpacked(file)
                file.unlink(missing_ok=True)


def forget_unpacked(path: Path) -> None:
    """Delete the unpacked files of an archive, or of each archive in a folder, unless another process reads them."""
    for archive in filter(_is_archive, _files(path) if path.is_dir() else [path]):
        with suppress(PathError):
            folder = place(archive)
            if folder in _locks or folder.exists():
                _delete(folder)


def _is_archive(file: Path) -> bool:
    return file.suffix.lower() == ARCHIVE


def uploaded(path: Path) -> list[Path]:
    """Return the files of an upload that is a folder, sorted by name; [] for any other path."""
    is_upload = path.parent == home() / "uploads" and path.is_dir()
    return _files(path) if is_upload else []


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def still_needed(path: Path) -> None:
    """Mark an upload as in use, so that `sweep` does not delete it."""
    with suppress(OSError):
        os.utime(path if path.is_dir() else path.parent)


def read_now(store: "RunStore") -> set[object]:
    """Return the paths that active imports read, or will read when they start."""
    return {run.manifest.config.get("path") for run in store.list("add", "intake") if run.state().active}


def sweep(home: Path, store: "RunStore") -> None:
    """Delete abandoned uploads, and unfinished corpora, runs and exports of killed processes.

    An upload whose import waits in the queue is kept.
    """
    kept = {Path(str(path)) for path in read_now(store)}
    for path in [*(home / "uploads").glob("*"), *_drafts(home)]:
        if is_stale(path) and kept.isdisjoint((path, *path.glob("*"))):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def is_stale(path: Path) -> bool:
    """Return True if nothing was written to `path` for a day."""
    return time.time() - _last_written(path) > STALE


def _drafts(home: Path) -> Iterator[Path]:
    yield from (home / "corpora").glob(".draft-*")
    yield from (home / "corpora").glob(".removed-*")
    yield from (home / "unpacked").glob("*")
    yield from (home / "runs").glob(".removed-*")
    yield from (home / "runs").glob("*/choices/.*")
    yield from (home / "exports").glob(".*")
    yield from home.glob(".export-*")


def _last_written(path: Path) -> float:
    """Return the time of the last change in a file or folder, in seconds since 1970; the current time if it is gone."""
    try:
        return max(entry.stat().st_mtime for entry in (path, *path.rglob("*")))
    except OSError:
        return time.time()
