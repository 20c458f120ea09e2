"""Files that a browser sent: on disk until they are imported or left."""

import os
import re
import shutil
from pathlib import Path
from typing import BinaryIO

from core.corpora import uploads
from core.corpora.formats.source import refuse_known
from core.errors import PathError, ResourceError
from core.facade.home import home, store

_LONGEST_NAME = 240  # bytes; a file system takes 255


def spool(name: str, stream: BinaryIO) -> str:
    """Copy an upload to disk, so that the server need not hold it; its token. `add` deletes the copy when sealed.

    Errors: ReadError for what is no text in any encoding (Office, PDF, zip), ResourceError if the disk is full.
    """
    name = _file_name(name)
    refuse_known(name, stream.read(16))
    stream.seek(0)
    folder = home() / "uploads" / os.urandom(6).hex()
    try:
        folder.mkdir(parents=True)
        with (folder / name).open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ResourceError(
            f"{name}: cannot be kept in {folder.parent} ({error.strerror}); make room there."
        ) from error
    return folder.name


def _file_name(name: str) -> str:
    """An upload's name as a file's: no folder, nothing unprintable, cut where a file system would not take it."""
    name = "".join(char for char in Path(name).name if char.isprintable()) or "upload"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    endings = "".join(Path(name).suffixes[-2:])[-20:].encode()
    return (name.encode()[: _LONGEST_NAME - len(endings)] + endings).decode("utf-8", "ignore")


def spooled(token: str) -> Path:
    """An upload on disk by its token (its folder's name). Errors: PathError if it is gone."""
    folder = home() / "uploads" / token
    files = list(folder.iterdir()) if re.fullmatch(r"[0-9a-f]{12}", token) and folder.is_dir() else []
    if not files:
        raise PathError(f"upload {token[:20]!r}: is no longer here; upload the file again.")
    return files[0]


def waiting() -> dict[str, str]:
    """{token: file's name} of the uploads that no import reads, the newest first."""
    reads = {run.manifest.config.get("path") for run in store().list("add") if run.state().active}
    folders = sorted((home() / "uploads").glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    files = [file for folder in folders for file in folder.glob("*") if str(file) not in reads]
    return {file.parent.name: file.name for file in files}


def discard(token: str) -> None:
    """Delete an upload that shall not be imported, and those of days past that nobody came back for."""
    shutil.rmtree(spooled(token).parent)
    uploads.sweep(home())
