"""Files that are either whole or not there: temporary file, fsync, rename, fsync of the folder."""

import errno
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from core.errors import ResourceError, RunError, WinnowError

TEMPORARY = ".*.tmp"  # what a killed writer may leave behind
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BARRED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write to the yielded file; it becomes `path` if the block ends well and vanishes if it does not."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


@contextmanager
def on_disk(home: Path) -> Iterator[None]:
    """Around work on files. Errors: ResourceError, in one sentence, where the disk is full or does not let us."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise ResourceError(
                f"{error.filename or home}: the disk that holds it is full; free some space there and try again."
            ) from error
        if error.errno in _BARRED:
            raise ResourceError(
                f"{error.filename or home}: cannot be used ({error.strerror}); check whose it is, and its rights."
            ) from error
        raise


@contextmanager
def read_back(path: Path) -> Iterator[None]:
    """Around reading what a run left in `path`. Errors: RunError where it is spoilt; FileNotFoundError stays."""
    try:
        yield
    except (FileNotFoundError, WinnowError):
        raise
    except Exception as error:  # whatever the parsers of numpy and Arrow stumble over: of tokens, zips, codecs
        raise RunError(
            f"{path}: cannot be read ({type(error).__name__}), as a failing disk leaves it; remove its run and start "
            "it again."
        ) from error


def write_atomic(path: Path, data: bytes) -> None:
    """`path` holds `data`, or what it held before."""
    with replacing(path) as file:
        file.write(data)


def save_array_atomic(path: Path, array: npt.NDArray[np.generic]) -> None:
    """`np.save` of any shape, without pickle; `path` ends in `.npy`."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def read_object(path: Path) -> dict[str, object] | None:
    """A file that holds one JSON object; None where there is none, or it is spoilt."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def append_line(path: Path, line: bytes) -> None:
    """One write and an fsync, so that a reader sees all of the line or none; one that was torn stays alone."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"  # its writer was killed
        os.write(file, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def sync_all(folder: Path) -> None:
    """`sync` of everything in a folder, however deep, and of itself."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            sync(path)


def sync(path: Path) -> None:
    """Bring a file's content, or the names in a folder, to the disk: only then do they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
