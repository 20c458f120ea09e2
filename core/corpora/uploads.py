"""Copies of files that a browser sent: `home/uploads/<token>/<file>`, one folder each, gone once they are of no use."""

import os
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from core.corpora.formats.archives import place
from core.corpora.formats.source import ARCHIVE
from core.errors import PathError
from core.paths import home

STALE = 24 * 3600  # seconds after which what nobody came back for is deleted


def forget(path: Path, home: Path) -> None:
    """Delete an upload's copy; nothing outside `home/uploads` is ever deleted."""
    uploads = (home / "uploads").resolve()
    if path.resolve().is_relative_to(uploads) and path.resolve() != uploads:
        with suppress(FileNotFoundError):  # somebody was killed here before
            shutil.rmtree(path.parent if path.parent.resolve() != uploads else path)


def keep_only(path: Path, home: Path, names: Collection[str]) -> None:
    """Delete the files of an upload of several but for some; all of it where there are none."""
    if not names:
        forget(path, home)
    elif path.is_dir() and (home / "uploads").resolve() in path.resolve().parents:
        for file in _files(path):
            name = file.relative_to(path)
            # brat's annotation stays with its text, and an archive with the files in it.
            needed = {str(name), str(name.with_suffix(".txt"))} & set(names)
            within = f"{name.with_suffix('')}/"
            if not needed and not (_is_archive(file) and any(each.startswith(within) for each in names)):
                file.unlink(missing_ok=True)


def forget_unpacked(path: Path) -> None:
    """Delete what an archive, or each archive of a folder, was unpacked to."""
    for archive in filter(_is_archive, _files(path) if path.is_dir() else [path]):
        with suppress(PathError):
            shutil.rmtree(place(archive), ignore_errors=True)


def _is_archive(file: Path) -> bool:
    return file.suffix.lower() == ARCHIVE


def uploaded(path: Path) -> list[Path]:
    """The files of an upload of several, by name; none for any other path."""
    is_upload = path.parent == home() / "uploads" and path.is_dir()
    return _files(path) if is_upload else []


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def still_needed(path: Path) -> None:
    """An upload that is being read is not abandoned, however long ago it came."""
    with suppress(OSError):
        os.utime(path if path.is_dir() else path.parent)


def sweep(home: Path) -> None:
    """Delete uploads that nobody came back for, and what a killed process left of a corpus, a run or an export."""
    for path in [*(home / "uploads").glob("*"), *_drafts(home)]:
        if is_stale(path):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def is_stale(path: Path) -> bool:
    """Whether nobody has written there for a day."""
    return time.time() - _last_written(path) > STALE


def _drafts(home: Path) -> Iterator[Path]:
    yield from (home / "corpora").glob(".draft-*")
    yield from (home / "corpora").glob(".removed-*")
    yield from (home / "unpacked").glob("*")
    yield from (home / "runs").glob(".removed-*")
    yield from (home / "runs").glob("*/choices/.*")
    yield from (home / "exports").glob(".*")


def _last_written(path: Path) -> float:
    """Seconds since 1970; of a folder, of the newest in it. Now for what is gone."""
    try:
        return max(entry.stat().st_mtime for entry in (path, *path.rglob("*")))
    except OSError:
        return time.time()
