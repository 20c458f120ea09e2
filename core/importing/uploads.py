"""Store uploaded and downloaded files on disk until they are imported or discarded."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from core.corpora import remote, uploads
from core.corpora.formats.source import refuse_known
from core.errors import PathError, ReadError, ResourceError
from core.paths import home
from core.projects.home import store

# Maximum number of bytes of a file name. File systems allow 255.
_LONGEST_NAME = 240
# Maximum number of inner folders in the path of a dropped file, so that the path is not too long.
_DEEPEST = 8


def spool(name: str, stream: BinaryIO) -> str:
    """Copy an upload to disk, so that the server need not keep it in memory. Return its token.

    The `add` run deletes the copy after the import. Errors: ReadError for a known format that cannot be read,
    ResourceError if the disk is full.
    """
    return spool_all([(name, stream)])


def spool_all(files: Sequence[tuple[str, BinaryIO]]) -> str:
    """Copy several uploads to disk, and return one token for all. Files of a dropped folder keep their inner folders.

    Equal names are numbered. Errors: those of `spool` for the first file, if no file can be read. If only some cannot
    be read, `looks` reports them later.
    """
    refusals = [refusal for name, stream in files if (refusal := _refusal(name, stream))]
    # Raise the error before copying, because copying takes long.
    if refusals and len(refusals) == len(files):
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
            f"{name}: cannot be stored in {folder.parent} ({error.strerror}); free some space there."
        ) from error
    return folder.name


def _refusal(name: str, stream: BinaryIO) -> ReadError | None:
    """Return the error if an upload cannot be read, else None. A file of a dropped folder is not checked here."""
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
    """Return `name`. If the folder has a file of this name, add a number before the extension."""
    path, n = Path(name), 2
    while (folder / name).exists():
        name, n = str(path.with_stem(f"{path.stem} ({n})")), n + 1
    return name


def inner_name(name: str) -> str:
    """Return a safe relative path for a file of a dropped folder. The path never leads out of the upload's folder."""
    parts = [file_name(part) for part in PurePosixPath(name).parts if part.strip("/")]
    # Test the cleaned parts, because cleaning turns ".\x00." into "..".
    inside = [part for part in parts if part not in (".", "..")]
    return "/".join(inside[-_DEEPEST - 1 :]) or file_name("")


def file_name(name: str) -> str:
    """Return a safe file name for an upload: without folders, only printable characters, at most 240 bytes."""
    name = "".join(char for char in Path(name).name if char.isprintable()) or "upload"
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    # Keep up to two extensions of a shortened name, as in x.csv.gz.
    endings = "".join(Path(name).suffixes[-2:])[-20:].encode()
    return (name.encode()[: _LONGEST_NAME - len(endings)] + endings).decode("utf-8", "ignore")


def spooled(token: str) -> Path:
    """Return the file or folder of the upload with this token. Errors: PathError if the upload no longer exists."""
    folder = home() / "uploads" / token
    files = list(folder.iterdir()) if re.fullmatch(r"[0-9a-f]{12}", token) and folder.is_dir() else []
    if not files:
        raise PathError(f"upload {token[:20]!r}: no longer exists; upload the file again.")
    return files[0] if len(files) == 1 else folder


def fetched(addresses: Sequence[str], say: Callable[[str], None]) -> Path:
    """Download files from the user's addresses, and store them as an upload.

    Return the path of the file, or of the folder if there are several files.

    say: called with a message for each file. Errors: PathError, ResourceError; the upload is then deleted.
    """
    folder = home() / "uploads" / os.urandom(6).hex()
    try:
        folder.mkdir(parents=True)
        for number, address in enumerate(addresses):
            part = folder / f".{number}"
            for file in remote.fetch(address, part, say):
                file.rename(folder / free_name(folder, file_name(file.name)))
            part.rmdir()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return spooled(folder.name)


def called(path: Path) -> str:
    """Return the name of an upload: the name of its file, or the first file's name and the number of the others."""
    files = uploads.uploaded(path) or [path]
    return files[0].name + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def waiting() -> dict[str, str]:
    """Return {token: name} of the uploads that no active run is importing, newest first."""
    reads = uploads.read_now(store())
    folders = sorted((home() / "uploads").glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    held = {folder: sorted(folder.glob("*")) for folder in folders}
    return {
        folder.name: called(files[0] if len(files) == 1 else folder)
        for folder, files in held.items()
        if files and reads.isdisjoint({str(folder), *map(str, files)})
    }


def discard(token: str) -> None:
    """Delete an upload. Also delete all uploads that were not used for a day.

    An upload that an active run reads is kept; another window may have started its import.
    """
    path, folder = spooled(token), home() / "uploads" / token
    if uploads.read_now(store()).isdisjoint({str(folder), str(path)}):
        uploads.forget_unpacked(path)
        shutil.rmtree(folder)
    uploads.sweep(home(), store())
