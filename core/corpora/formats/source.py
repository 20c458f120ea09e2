"""Open a file as a stream of UTF-8 lines: unpack it, convert its encoding, and refuse files that are too large."""

import codecs
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, BinaryIO

import pyarrow as pa

from core.errors import ConfigError, EncodingError, PathError, ReadError
from core.paths import opened

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Maximum number of bytes in a line of text. A longer line is rejected, without reading all of it into memory.
MAX_TEXT = 1_000_000
# Maximum number of bytes in a JSON record.
MAX_RECORD = 4_000_000
BLOCK_BYTES = 1 << 18
# (line number from 1, line, False if the line is too long)
Line = tuple[int, bytes, bool]
# Reject a file that unpacks to over 200 times its size and to over 1 GiB.
BOMB_RATIO, BOMB_BYTES = 200, 1 << 30
# Minimum number of characters outside ASCII for reading a file as UTF-8 if a multibyte encoding was requested.
LEAST_WIDE = 10
# Maximum number of consecutive bytes of white space.
MAX_BLANK = 2 << 20

PACKED = (".gz", ".zst", ".zstd")  # extensions of packed files, which are unpacked while they are read
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
# {extension of a document: (format, first bytes of its files, or b"" for a text format)}
DOCUMENTS = {
    ".pdf": ("pdf", b"%PDF"),
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), ("docx", _ZIP)),
    **dict.fromkeys((".odt", ".ott"), ("odt", _ZIP)),
    **dict.fromkeys((".xlsx", ".xlsm"), ("xlsx", _ZIP)),
    **dict.fromkeys((".html", ".htm", ".xhtml"), ("html", b"")),
    ".eml": ("eml", b""),
    ".rtf": ("rtf", b"{\\rtf"),
}
ARCHIVE = ".zip"
_BINARY = {
    b"%PDF": "a PDF; give it the extension .pdf",
    _ZIP: "a zip archive or an Office document; give it the extension .zip, .docx, .xlsx or .odt",
    b"PK\x05\x06": "an empty zip archive",
    _OLE: "an old Office file; save it as .docx or .xlsx",
    b"BZh": "a file packed with bzip2; unpack it, or pack it as .gz or .zst",
    b"\xfd7zXZ": "a file packed with xz; unpack it, or pack it as .gz or .zst",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
    b"{\\rtf": "an RTF document; give it the extension .rtf",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
# Subtitles in WebVTT or SubRip.
_SUBTITLES = re.compile(rb"(?:WEBVTT\b|1\r?\n)[^\0]{0,200}?\d\d:\d\d[,.]\d{3} --> ")
# A tar archive has these bytes at position 257.
_TAR, _TAR_AT = b"ustar", 257
# Kinds of zip archives that only their extension distinguishes.
_OFFICE = {
    (".ods",): "a spreadsheet; save it as .xlsx or .csv",
    (".pptx", ".pptm", ".odp"): "a presentation; save it as .pdf",
    (".pages", ".numbers", ".key"): "an Apple document; save it as .docx, .xlsx or .pdf",
}
# Python lists these as text encodings, but they encode host names or source code.
_NO_FILES = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
_WIDE = ("utf-16", "utf-32")  # ASCII has other bytes here than in UTF-8
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class _Watched(io.RawIOBase):
    """Stream of a file's unpacked bytes. It reports progress in packed bytes, and refuses compression bombs.

    Errors: ReadError.
    """

    def __init__(self, path: Path, tick: Callable[[int], None]) -> None:
        self._file = opened(path)
        self._size = os.fstat(self._file.fileno()).st_size
        self._name, self._tick, self._out, self._blank = path.name, tick, 0, 0
        magic = self._file.read(4)
        self._file.seek(0)
        codec = next((codec for start, codec in _PACKED.items() if magic.startswith(start)), None)
        self.packed = codec is not None
        self._inner: BinaryIO = self._file
        if codec:
            self._inner = pa.CompressedInputStream(pa.PythonFile(self._file, "r"), codec)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        try:
            data = self._inner.read(len(view))
        except OSError as error:  # pyarrow raises this error (ArrowIOError) for damaged data
            raise ReadError(
                self._name,
                None,
                f"the packed data are damaged or end after {self._out:,} bytes of text; copy or pack the file again.",
            ) from error
        self._out += len(data)
        self._blank = self._blank + len(data) if data.isspace() else 0
        if self._blank > MAX_BLANK:
            raise ReadError(self._name, None, f"more than {MAX_BLANK >> 20} MB of empty lines in a row; remove them.")
        if self.packed and self._out > BOMB_BYTES and self._out > BOMB_RATIO * self._size:
            raise ReadError(
                self._name,
                None,
                f"unpacks to more than {BOMB_RATIO} times its size ({self._size:,} bytes), as a gzip bomb does;"
                " if you trust it, unpack it yourself.",
            )
        self._tick(self._file.tell())
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with suppress(OSError):
                self._inner.close()
            self._file.close()
        super().close()


class _Transcoded(io.RawIOBase):
    """Stream that converts text in any encoding to UTF-8. A file that is already in UTF-8 stays as it is.

    Errors: EncodingError with the line of an invalid byte.
    """

    def __init__(self, raw: IO[bytes], encoding: str, name: str) -> None:
        self._raw, self._encoding, self._name = raw, encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready, self._line, self._ended = b"", 1, False
        self._is_utf8: bool | None = None  # None: not known yet, because ASCII has the same bytes in both

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        while not self._ready and not self._ended:
            block = self._raw.read(BLOCK_BYTES)
            self._ended = not block
            if self._is_utf8 is None and (self._encoding.startswith(_WIDE) or not block.isascii()):
                self._is_utf8 = _is_utf8(block, self._encoding)
            if self._is_utf8:
                self._ready = block
                continue
            try:
                text = self._decoder.decode(block, final=self._ended)
                self._ready = text.encode("utf-8")
            except UnicodeError as error:
                before = block[: getattr(error, "start", 0)].decode(self._encoding, "replace")
                line = self._line + before.count("\n")
                raise EncodingError(
                    self._name, line, f"these bytes are not {self._encoding}; give the file's true encoding."
                ) from error
            self._line += text.count("\n")
        part, self._ready = self._ready[: len(view)], self._ready[len(view) :]
        view[: len(part)] = part
        return len(part)


def _is_utf8(block: bytes, encoding: str) -> bool:
    """Return True if a block is in UTF-8, not in `encoding`.

    In encodings of one byte per character, even one character of UTF-8 is an unlikely sequence such as "Ã©", except
    that a capital with an apostrophe ("CAFÉ’S") is a phonetic letter in UTF-8. A few Chinese characters can be valid in
    UTF-8 and in their own encoding, so more are needed there. In UTF-16, blanks and line ends have NUL bytes.
    """
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(block)  # the block may end within a character
    except UnicodeDecodeError:
        return False
    if encoding.startswith(_WIDE):
        return "\0" not in text
    one_byte = len(bytes(range(256)).decode(encoding, "replace")) == 256
    if one_byte and any("\u0180" <= char <= "\u036f" for char in text):
        return False
    return sum(char > "\x7f" for char in text) >= (1 if one_byte else LEAST_WIDE)


class _NewLines(io.RawIOBase):
    """Stream that converts carriage returns, which old Excel versions for Mac write as line breaks, to newlines."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        data = self._raw.read(len(view)).replace(b"\r", b"\n")
        view[: len(data)] = data
        return len(data)


@contextmanager
def open_stream(path: Path, encoding: str, tick: Callable[[int], None] = lambda _: None) -> Iterator[IO[bytes]]:
    """Open a stream of the text of `path` as UTF-8 without a byte order mark.

    Errors: ReadError if the file is empty, binary, cut off or a compression bomb; ConfigError for an unknown encoding.
    """
    with open_bytes(path, tick) as stream:
        head = stream.peek(BLOCK_BYTES)[:BLOCK_BYTES]
        if not head:
            raise ReadError(path.name, None, "the file is empty; choose a file with at least one line of text.")
        encoding = text_encoding(encoding, head)
        _refuse_binary(path.name, head, encoding)
        marked = next((bom for bom, of in _BOMS.items() if head.startswith(bom) and of == encoding), b"")
        stream.read(len(marked))
        text: IO[bytes] = stream
        if encoding != "utf-8":
            text = io.BufferedReader(_Transcoded(stream, encoding, path.name), BLOCK_BYTES)
        start = text.peek(BLOCK_BYTES)  # type: ignore[attr-defined]
        # Ignore a \r at the end of the block, because it may be the first half of a \r\n.
        if b"\r" in start and b"\n" not in start and b"\r" in start.rstrip(b"\r"):
            text = io.BufferedReader(_NewLines(text), BLOCK_BYTES)
        yield text


@contextmanager
def open_bytes(path: Path, tick: Callable[[int], None] = lambda _: None) -> Iterator[io.BufferedReader]:
    """Open the unpacked bytes of `path`. Errors: PathError if it cannot be opened."""
    try:
        raw = _Watched(path, tick)
    except OSError as error:
        raise PathError(f"{path.name}: cannot be opened ({error.strerror}); check its path and permissions.") from error
    with raw:
        yield io.BufferedReader(raw, BLOCK_BYTES)


def text_encoding(encoding: str, head: bytes) -> str:
    """Return the encoding in which to read a file: that of its byte order mark, or else the requested encoding.

    head: first bytes of the file. Errors: ConfigError for an unknown encoding.
    """
    try:
        name = codecs.lookup(encoding).name
        if not codecs.lookup(encoding)._is_text_encoding or name.replace("_", "-") in _NO_FILES:
            raise LookupError(encoding)
    except LookupError as error:
        raise ConfigError(
            f"encoding: {encoding!r} is not known; give for example utf-8, utf-16, cp1252 or latin-1."
        ) from error
    if not name.startswith("utf-32") and (
        marked := next((of for bom, of in _BOMS.items() if head.startswith(bom)), "")
    ):
        return marked
    return {"ascii": "utf-8", "utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(name, name)


def stem(name: str) -> str:
    """Return a file's name without its extension and those of packed files: "report.2019" for "report.2019.csv.gz"."""
    path = PurePath(name)
    while path.suffix.lower() in PACKED:
        path = path.with_suffix("")
    return path.name if path.suffix[1:].isdecimal() else path.stem


def refuse_known(name: str, head: bytes) -> None:
    """Raise ReadError if a document or archive does not fit its extension, or if any other file is in a binary format.

    head: first 1,024 bytes of the file, or all of a shorter file.
    """
    ending = Path(name).suffix.lower()
    begins = _ZIP if ending == ARCHIVE else DOCUMENTS.get(ending, ("", b""))[1]
    if begins:
        _refuse_another(name, head, begins)
        return
    content = next((content for magic, content in _BINARY.items() if head.startswith(magic)), None)
    if head[_TAR_AT:].startswith(_TAR):
        content = "a tar archive; unpack it, or pack its files as .zip"
    if head.startswith(b"PK"):
        content = next((content for endings, content in _OFFICE.items() if name.lower().endswith(endings)), content)
    if content:
        raise ReadError(name, None, f"not a text file but {content}.")


def _refuse_another(name: str, head: bytes, begins: bytes) -> None:
    """Raise ReadError for a file that does not begin with `begins`, as files with its extension should."""
    if not head:
        raise ReadError(name, None, "the file is empty; choose a file with text.")
    if begins == _ZIP and head.startswith(_OLE):
        raise ReadError(
            name, None, "has a password, or is an old Office file; save it without a password as .docx or .xlsx."
        )
    # Headers of a mail or a printer may precede the PDF.
    if head.startswith(begins) or (begins == b"%PDF" and begins in head):
        return
    content = next((content for magic, content in _BINARY.items() if head.startswith(magic)), None)
    if content:
        content = content.partition(";")[0]
        raise ReadError(
            name, None, f"does not fit its extension, because it is {content}; give it the right extension."
        )
    ending = Path(name).suffix
    raise ReadError(
        name,
        None,
        f"its content does not fit the extension {ending}, or is damaged; copy or export it again, or give it the right"
        " extension (.txt for plain text).",
    )


def _refuse_stand_in(name: str, head: bytes) -> None:
    """Raise ReadError for a Git LFS pointer, a web page or subtitles instead of the expected text."""
    start = head[:1024].removeprefix(codecs.BOM_UTF8).lstrip()
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        raise ReadError(name, 1, "a Git LFS pointer, not the file itself; run `git lfs pull`, or download the file.")
    if start[:14].lower().startswith((b"<!doctype html", b"<html")):
        raise ReadError(
            name,
            1,
            "a web page, not the expected file; download the raw file, or give it the extension .html to import the"
            " page's text.",
        )
    if _SUBTITLES.match(start):
        raise ReadError(name, 1, "subtitles with times; save only the spoken lines, one per line, as .txt.")


def _refuse_binary(name: str, head: bytes, encoding: str) -> None:
    refuse_known(name, head)
    _refuse_stand_in(name, head)
    # Tolerate a few NUL bytes. If more than one byte in a hundred is NUL, the file is not text.
    if head.count(b"\0") * 100 > len(head) and not encoding.startswith(("utf-16", "utf-32")):
        raise EncodingError(
            name,
            head[: head.index(b"\0")].count(b"\n") + 1,
            "a binary file, or text in UTF-16 without a byte order mark (NUL bytes); save it as UTF-8 or give the"
            " encoding utf-16-le.",
        )


def lines(stream: IO[bytes], cap: int = MAX_TEXT) -> Iterator[Line]:
    """Yield (line number from 1, line, True if the line has at most `cap` bytes).

    Of a longer line, only the first 10,000 bytes are yielded.
    """
    number = 0
    readline = stream.readline
    while line := readline(cap + 1):
        number += 1
        if len(line) <= cap or line.endswith(b"\n"):
            yield number, line, True
            continue
        head = line[:10_000]
        while line and not line.endswith(b"\n"):
            line = readline(BLOCK_BYTES)
        yield number, head, False
