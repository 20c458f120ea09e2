"""Read and write files safely. Writes are atomic: temporary file, fsync, rename, fsync of the folder."""

import errno
import json
import os
import re
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from core.errors import PathError, ResourceError, RunError, WinnowError

LARGEST_JSON = 64 << 20  # largest JSON file to read, in bytes; the parsed value takes up to 20 times as much memory

_BLOCK, _LONGEST_LINE = 1 << 20, 16 << 20  # bytes to read at once; longest line, in bytes

_LINE = re.compile(rb"[^\n]+|(?<=\n)\n+|\A\n+")  # one line, or several blank lines

TEMPORARY = ".*.tmp"  # pattern of the file names that a killed writer may leave behind

ARTIFACTS, SUMS = "artifacts", "sums.json"  # names in a run's folder: output folder; file of its checksums
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Messages of a full disk in errors without an error number, from Rust code, numpy's `tofile` and `torch.save`.
_SAYS_FULL = re.compile(
    "No space left on device|Disk quota exceeded|File too large|"
    r"^\d+ requested and \d+ written$|unexpected pos \d+ vs \d+"
)
_BARRED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file to write. It replaces `path` if the block succeeds, and is deleted if the block fails.

    A device or a pipe, such as /dev/stdout, is written itself, because replacing would remove it from the machine.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
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


def disk_is_full(error: BaseException | None) -> bool:
    """Return True if a full disk caused `error`.

    The errors that led to `error` are checked too, because a library may raise a second error while it cleans up.
    """
    while error:
        if (isinstance(error, OSError) and error.errno in _FULL) or _SAYS_FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def on_disk(home: Path) -> Iterator[None]:
    """Raise an error with a message for users if the block fails because of the disk.

    Errors: ResourceError for a full disk or missing permissions; PathError for a name that is too long.
    """
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise ResourceError(
                f"{error.filename or home}: its disk is full; free some space there and try again."
            ) from error
        if error.errno == errno.ENAMETOOLONG:
            raise PathError(f"{str(error.filename)[:80]}...: the name is too long for a file or folder.") from error
        if error.errno in _BARRED:
            raise ResourceError(
                f"{error.filename or home}: cannot be used ({error.strerror}); check its owner and permissions."
            ) from error
        raise


@contextmanager
def read_back(path: Path, *names: str) -> Iterator[None]:
    """Check files of a run's output before the block reads them. path: a file, or the folder of the files `names`.

    Errors: RunError if a file is missing, damaged, or was changed since the run, or if the block fails to read it.
    """
    for file in [path / name for name in names] or [path]:
        _refuse_changed(file)
    try:
        yield
    except WinnowError:
        raise
    except FileNotFoundError as error:
        raise RunError(
            f"{error.filename or path}: is missing; restore it from a copy, or remove the run that wrote it, and "
            "start that run again."
        ) from error
    except Exception as error:  # numpy and Arrow raise many types of errors for damaged files
        raise RunError(
            f"{path}: cannot be read ({type(error).__name__}), perhaps because of a disk error; remove the run that "
            "wrote it, and start that run again."
        ) from error


def sum_up(run: Path) -> None:
    """Store the size and CRC-32 of each output file of a run. `read_back` uses them to detect disk errors."""
    folder = run / ARTIFACTS
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.match(TEMPORARY)]
    sums = {path.relative_to(folder).as_posix(): [path.stat().st_size, _sum_of(path)] for path in files}
    write_atomic(run / SUMS, json.dumps(sums, indent=0).encode())


def forget_sums(run: Path) -> None:
    """Remove a run's checksums before a new attempt writes its output."""
    (run / SUMS).unlink(missing_ok=True)


def refuse_changed(folder: Path) -> None:
    """Check the files in `folder`, such as a model's weights. Errors: RunError if one was changed since its run."""
    for file in folder.iterdir():
        _refuse_changed(file)


def _refuse_changed(file: Path) -> None:
    """Check one file. Files of runs without checksums (active runs, old versions) always pass.

    Errors: RunError if the file was changed.
    """
    folder = next((parent for parent in file.parents if parent.name == ARTIFACTS), None)
    if folder is None or not file.is_file():
        return
    sums = folder.parent / SUMS
    kept = _kept(sums, sums.stat().st_mtime_ns) if sums.exists() else {}
    status = file.stat()
    then = kept.get(file.relative_to(folder).as_posix())
    now = [status.st_size, _sum_once(file, status.st_size, status.st_mtime_ns, status.st_ino)] if then else None
    if then != now:
        raise changed(file, folder.parent.name)


def changed(file: Path, run: str) -> RunError:
    """Return the error for a file that was changed since its run. run: id of the run."""
    return RunError(
        f"{file}: differs from what run {run} wrote; it was changed, or the disk is failing. Restore it from a "
        "copy, or remove the run and start it again."
    )


@lru_cache(64)
def _kept(sums: Path, changed: int) -> dict[str, object]:
    return read_object(sums) or {}


@lru_cache(4096)
def _sum_once(file: Path, size: int, changed: int, inode: int) -> int:
    """Return the CRC-32 of a file. Cached, because a page checks its files each time it is drawn; 300 MB take 0.1 s."""
    return _sum_of(file)


def _sum_of(file: Path) -> int:
    total = 0
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            total = zlib.crc32(part, total)
    return total


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file. If that fails, the file keeps its previous content."""
    with replacing(path) as file:
        file.write(data)


def save_array_atomic(path: Path, array: npt.NDArray[np.generic]) -> None:
    """Save an array without pickle. path: must end in `.npy`."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def json_bytes(path: Path) -> bytes:
    """Return the content of a JSON file. Errors: OSError; ValueError if the file is too large."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_JSON:
            raise ValueError(f"has {size:,} bytes, but at most {LARGEST_JSON:,} can be read")
        return file.read()


def read_json(path: Path) -> Any:
    """Return the JSON value in a file. Errors: OSError; ValueError if it is not JSON, too large or too deep."""
    try:
        return json.loads(json_bytes(path))
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def read_object(path: Path) -> dict[str, object] | None:
    """Return the JSON object in a file; None if there is no file or it is damaged."""
    try:
        value = read_json(path)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class WholeLines:
    """Iterate over the complete lines of a log. The file is read in blocks, so that a large log takes little memory.

    Several blank lines, or a line longer than _LONGEST_LINE, are yielded as one b"", which callers ignore.
    end: offset of the byte after the last complete line so far. torn: first byte of an incomplete last line, else b"".
    """

    def __init__(self, file: BinaryIO, after: int = 0) -> None:
        self._file, self.end, self.torn = file, after, b""

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(self.end)
        rest, skipped = b"", 0
        while part := self._file.read(_BLOCK):
            data = rest + part
            whole = data.rfind(b"\n") + 1
            if skipped and whole:  # this is the end of a line that is too long
                cut = data.index(b"\n") + 1
                self.end += skipped + cut
                data, whole, skipped = data[cut:], whole - cut, 0
                yield b""
            for match in _LINE.finditer(data, 0, whole):
                yield match[0].strip(b"\n")
            self.end += whole
            rest = data[whole:]
            if skipped or len(rest) > _LONGEST_LINE:
                self.torn = self.torn or rest[:1]
                skipped, rest = skipped + len(rest), b""
            else:
                self.torn = rest[:1]


def append_line(path: Path, line: bytes) -> None:
    """Append a line with one write and an fsync. If the last line is incomplete, first write a newline.

    Errors: OSError, also if the disk has space for only a part of the line; this part is then removed.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"  # the previous writer was killed
        data = (b"\n" if torn else b"") + line + b"\n"
        written = os.write(file, data)
        if written < len(data):
            os.ftruncate(file, os.fstat(file).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(file)
    finally:
        os.close(file)


def bytes_in(path: Path) -> int:
    """Return the size of a file or folder in bytes. Files that are deleted during the count are left out."""
    files = [path] if path.is_file() else [Path(at) / name for at, _, names in os.walk(path) for name in names]
    size = 0
    for file in files:
        with suppress(FileNotFoundError):
            size += file.lstat().st_size
    return size


def sync_all(folder: Path) -> None:
    """Sync a folder and everything in it, see `sync`."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            sync(path)


def sync(path: Path) -> None:
    """Flush a file's content or a folder's entries to the disk. They then survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
