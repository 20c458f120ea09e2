"""Files that are either whole or not there: temporary file, fsync, rename, fsync of the folder."""

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

from core.errors import ResourceError, RunError, WinnowError

LARGEST_JSON = 64 << 20  # bytes of a JSON file; parsed, it takes up to twenty times as much memory
_BLOCK, _LONGEST_LINE = 1 << 20, 16 << 20  # bytes
_LINE = re.compile(rb"[^\n]+|(?<=\n)\n+|\A\n+")  # a line, or several blank ones
TEMPORARY = ".*.tmp"  # what a killed writer may leave behind
ARTIFACTS, SUMS = "artifacts", "sums.json"  # in the folder of a run: what it left, and what that was like then
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAYS_FULL = re.compile(  # where no number says so: what is written in Rust, numpy's `tofile`, `torch.save`
    "No space left on device|Disk quota exceeded|File too large|"
    r"^\d+ requested and \d+ written$|unexpected pos \d+ vs \d+"
)
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


def disk_is_full(error: BaseException | None) -> bool:
    """Whether that is what `error` says, or what it came of: a library that cleans up fails a second time."""
    while error:
        if (isinstance(error, OSError) and error.errno in _FULL) or _SAYS_FULL.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def on_disk(home: Path) -> Iterator[None]:
    """Around work on files. Errors: ResourceError, in one sentence, where the disk is full or does not let us."""
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise ResourceError(
                f"{error.filename or home}: the disk that holds it is full; free some space there and try again."
            ) from error
        if error.errno in _BARRED:
            raise ResourceError(
                f"{error.filename or home}: cannot be used ({error.strerror}); check whose it is, and its rights."
            ) from error
        raise


@contextmanager
def read_back(path: Path, *names: str) -> Iterator[None]:
    """Around reading what a run left in `path`; names: the files that are read of a folder.

    Errors: RunError where one is gone, is not as the run left it, or is spoilt.
    """
    for file in [path / name for name in names] or [path]:
        _refuse_changed(file)
    try:
        yield
    except WinnowError:
        raise
    except FileNotFoundError as error:
        raise RunError(
            f"{error.filename or path}: is gone; bring it back from a copy, or remove its run and start it again."
        ) from error
    except Exception as error:  # whatever the parsers of numpy and Arrow stumble over: of tokens, zips, codecs
        raise RunError(
            f"{path}: cannot be read ({type(error).__name__}), as a failing disk leaves it; remove its run and start "
            "it again."
        ) from error


def sum_up(run: Path) -> None:
    """Keep size and CRC-32 of all that a run has left, for `read_back`: against failing disks, not against forgers."""
    folder = run / ARTIFACTS
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.match(TEMPORARY)]
    sums = {path.relative_to(folder).as_posix(): [path.stat().st_size, _sum_of(path)] for path in files}
    write_atomic(run / SUMS, json.dumps(sums, indent=0).encode())


def forget_sums(run: Path) -> None:
    """Remove a run's sums: what it leaves is being made anew, or for the first time."""
    (run / SUMS).unlink(missing_ok=True)


def refuse_changed(folder: Path) -> None:
    """Errors: RunError where a file of a folder, such as the weights of a model, is not as its run left it."""
    for file in folder.iterdir():
        _refuse_changed(file)


def _refuse_changed(file: Path) -> None:
    """Errors: RunError. Runs of older versions have no sums, and runs at work none yet."""
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
    """The error to raise where a file is not as a run left it. run: its id."""
    return RunError(
        f"{file}: is not what run {run} left there: it was changed since, or the disk fails; bring it back from a "
        "copy, or remove the run and start it again."
    )


@lru_cache(64)
def _kept(sums: Path, changed: int) -> dict[str, object]:
    return read_object(sums) or {}


@lru_cache(4096)
def _sum_once(file: Path, size: int, changed: int, inode: int) -> int:
    """Reading 300 MB takes a tenth of a second: a page that draws them again does not."""
    return _sum_of(file)


def _sum_of(file: Path) -> int:
    total = 0
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            total = zlib.crc32(part, total)
    return total


def write_atomic(path: Path, data: bytes) -> None:
    """`path` holds `data`, or what it held before."""
    with replacing(path) as file:
        file.write(data)


def save_array_atomic(path: Path, array: npt.NDArray[np.generic]) -> None:
    """`np.save` of any shape, without pickle; `path` ends in `.npy`."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def json_bytes(path: Path) -> bytes:
    """Return the content of a JSON file. Errors: OSError; ValueError if it is larger than any of ours."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_JSON:
            raise ValueError(f"holds {size:,} bytes, more than {LARGEST_JSON:,}")
        return file.read()


def read_json(path: Path) -> Any:
    """Return the JSON value in a file. Errors: OSError; ValueError if it is no JSON, too deep or too large."""
    try:
        return json.loads(json_bytes(path))
    except RecursionError as error:
        raise ValueError("nests too deeply") from error


def read_object(path: Path) -> dict[str, object] | None:
    """Return the JSON object in a file; None if there is none, or it is spoilt."""
    try:
        value = read_json(path)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class WholeLines:
    """Iterate over the lines of a log that end in a newline, in blocks: a log of any size takes little memory.

    A row of blank lines, and a line above _LONGEST_LINE, is one b"", which no reader takes for an entry.
    end: the byte behind the last whole line so far. torn: the beginning of the last line, if that has no newline.
    """

    def __init__(self, file: BinaryIO, after: int = 0) -> None:
        self._file, self.end, self.torn = file, after, b""

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(self.end)
        rest, skipped = b"", 0
        while part := self._file.read(_BLOCK):
            data = rest + part
            whole = data.rfind(b"\n") + 1
            if skipped and whole:  # the end of a line that is too long
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
    """One write and an fsync, so that a reader sees all of the line or none; one that was torn stays alone."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"  # its writer was killed
        os.write(file, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def bytes_in(path: Path) -> int:
    """Bytes of a file, or of all in a folder, whoever writes and deletes there meanwhile."""
    files = [path] if path.is_file() else [Path(at) / name for at, _, names in os.walk(path) for name in names]
    size = 0
    for file in files:
        with suppress(FileNotFoundError):
            size += file.lstat().st_size
    return size


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
