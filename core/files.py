"""Files that are either whole or not there: temporary file, fsync, rename, fsync of the folder."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

TEMPORARY = ".*.tmp"  # what a killed writer may leave behind


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
    sync_folder(path.parent)


def write_atomic(path: Path, data: bytes) -> None:
    """`path` holds `data`, or what it held before."""
    with replacing(path) as file:
        file.write(data)


def save_array_atomic(path: Path, array: npt.NDArray[Any]) -> None:
    """`np.save` of any shape, without pickle; `path` ends in `.npy`."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def append_line(path: Path, line: bytes) -> None:
    """One write and an fsync, so that a reader sees all of the line or none; one that was torn stays alone."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"  # its writer was killed
        os.write(file, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """A rename survives a power cut only once its folder has been synced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
