"""Files that a browser sent: on disk until they are imported or left."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from core.corpora import uploads
from core.corpora.formats.source import refuse_known
from core.errors import PathError, ReadError, ResourceError
from core.projects.home import home, store

_LONGEST_NAME = 240  # bytes; a file system takes 255
_DEEPEST = 8  # folders of a dropped folder that are kept: all of them must fit in a path


def spool(name: str, stream: BinaryIO) -> str:
    """Copy an upload to disk, so that the server need not hold it; its token. `add` deletes the copy when sealed.

    Errors: ReadError for what is no text in any encoding (Office, PDF, zip), ResourceError if the disk is full.
    """
    return spool_all([(name, stream)])


def spool_all(files: Sequence[tuple[str, BinaryIO]]) -> str:
    """Copy several uploads to disk; return one token for all. Files of a dropped folder keep its inner folders.

    A name that comes twice is numbered. Errors: as of `spool`, of the first file, if none of them is text; the listing
    of the copies gives the reason for each file that is not read.
    """
    refusals = [refusal for name, stream in files if (refusal := _refusal(name, stream))]
    if refusals and len(refusals) == len(files):  # before any is copied, because that takes long
        raise refusals[0]
    folder = home() / "uploads" / os.urandom(6).hex()
    name = ""
    try:
        folder.mkdir(parents=True)
        for given, stream in files:
            name = free_name(folder, inner_name(given))
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("wb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ResourceError(
            f"{name}: cannot be kept in {folder.parent} ({error.strerror}); make room there."
        ) from error
    return folder.name


def _refusal(name: str, stream: BinaryIO) -> ReadError | None:
    """Reason that an upload is not taken; None for text, and for a file of a folder, which nobody picked alone."""
    if "/" in name:
        return None
    try:
        refuse_known(file_name(name), stream.read(1024))
    except ReadError as error:
        return error
    finally:
        stream.seek(0)
    return None


def free_name(folder: Path, name: str) -> str:
    """`name`, or numbered before its ending where the folder has one of that name."""
    path, n = Path(name), 2
    while (folder / name).exists():
        name, n = str(path.with_stem(f"{path.stem} ({n})")), n + 1
    return name


def inner_name(name: str) -> str:
    """The same of a dropped folder's file, with the folders that it lies in; never a way out of them."""
    parts = [file_name(part) for part in PurePosixPath(name).parts if part.strip("/")]
    inside = [part for part in parts if part not in (".", "..")]  # cleaned before: `.`, a control and `.` make one
    return "/".join(inside[-_DEEPEST - 1 :]) or file_name("")


def file_name(name: str) -> str:
    """An upload's name as a file's: no folder, nothing unprintable, cut where a file system would not take it."""
    name = "".join(char for char in Path(name).name if char.isprintable()) or "upload"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    # Two of them, as of .csv.gz.
    endings = "".join(Path(name).suffixes[-2:])[-20:].encode()
    return (name.encode()[: _LONGEST_NAME - len(endings)] + endings).decode("utf-8", "ignore")


def spooled(token: str) -> Path:
    """An upload on disk by its token: its file or folder, or the folder of several. Errors: PathError if it is gone."""
    folder = home() / "uploads" / token
    files = list(folder.iterdir()) if re.fullmatch(r"[0-9a-f]{12}", token) and folder.is_dir() else []
    if not files:
        raise PathError(f"upload {token[:20]!r}: is no longer here; upload the file again.")
    return files[0] if len(files) == 1 else folder


def called(path: Path) -> str:
    """Name of an upload: its file's name, or the first's and how many more."""
    files = uploads.uploaded(path) or [path]
    return files[0].name + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def waiting() -> dict[str, str]:
    """{token: its file's name, or the first's} of the uploads that no import reads, the newest first."""
    reads = {run.manifest.config.get("path") for run in store().list("add", "intake") if run.state().active}
    folders = sorted((home() / "uploads").glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    held = {folder: sorted(folder.glob("*")) for folder in folders}
    return {
        folder.name: called(files[0] if len(files) == 1 else folder)
        for folder, files in held.items()
        if files and reads.isdisjoint({str(folder), *map(str, files)})
    }


def discard(token: str) -> None:
    """Delete an upload that shall not be imported, and those of days past that nobody came back for."""
    uploads.forget_unpacked(spooled(token))
    shutil.rmtree(home() / "uploads" / token)
    uploads.sweep(home())
