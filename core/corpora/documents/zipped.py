"""Zip archives, also those that Office documents are, opened within limits."""

import errno
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from core.errors import ReadError

MAX_MEMBERS = 20_000
MAX_RATIO, FREE = 200, 16 << 20  # bytes: unpacked more than 200 times its size, and more than 16 MiB
# Errors of the disk, or of the path that a member is written to: they say nothing about the archive.
_NOT_ITS_FAULT = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EMFILE)
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)


@contextmanager
def opened_zip(file: BinaryIO, name: str, most: int, ending: str = "") -> Iterator[zipfile.ZipFile]:
    """An archive for a block. most: bytes that the members whose names end in `ending` may unpack to in all.

    Errors: ReadError for a damaged or locked archive and for a bomb, also if the block meets the damage; OSError if
    the block cannot write what it unpacks.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _bounded(archive, name, most, ending)
            yield archive
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno in _NOT_ITS_FAULT:
            raise
        raise ReadError(name, None, "is damaged or was cut off; copy it again, or save it anew.") from error


def _bounded(archive: zipfile.ZipFile, name: str, most: int, ending: str) -> None:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise ReadError(name, None, f"holds {len(members):,} files, more than {MAX_MEMBERS:,}; divide it.")
    if any(member.flag_bits & 1 for member in members):
        raise ReadError(name, None, "is protected by a password; save it without one.")
    wanted = [member for member in members if member.filename.endswith(ending)]
    unpacked, packed = (
        (sum(sizes) for sizes in zip(*((m.file_size, m.compress_size) for m in wanted), strict=True))
        if wanted
        else (0, 0)
    )
    if unpacked > most:
        raise ReadError(name, None, f"unpacks to {unpacked:,} bytes, more than {most:,}; divide it.")
    if unpacked > FREE and unpacked > MAX_RATIO * packed:
        raise ReadError(
            name,
            None,
            f"unpacks to more than {MAX_RATIO} times its size ({packed:,} bytes), as a zip bomb does; unpack it"
            " yourself if it is to be trusted.",
        )
