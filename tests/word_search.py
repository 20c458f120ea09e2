"""Search for words in every file of a folder, also in packed files."""

import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "cp1252")  # numpy keeps text as utf-32
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})")


def holding(folder: Path, words: Iterable[str]) -> list[str]:
    """Return the words found in names or contents of files, such as ["runs/x/map.parquet: Zyxname17"]."""
    sought = {word: _forms(word) for word in words}
    common = _forms(_beginning(list(sought)))  # few files contain it, so the others are searched only once
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        where = str(path.relative_to(folder))
        content = b"\n".join([where.encode(), *_unpacked(path.read_bytes())])
        if any(form in content for form in common):
            found += [f"{where}: {word}" for word, forms in sought.items() if any(form in content for form in forms)]
    return found


def _beginning(words: list[str]) -> str:
    """Return the common prefix."""
    return "".join(
        letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*words, strict=False))
    )


def _forms(word: str) -> list[bytes]:
    return [word.encode(encoding, "ignore") for encoding in ENCODINGS]


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the bytes, and their unpacked text."""
    yield data
    yield _ESCAPE.sub(lambda match: chr(int(match[1], 16)).encode("utf-8", "replace"), data)
    if data[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(data))
        yield json.dumps(table.to_pylist(), ensure_ascii=False, default=str).encode()
        yield repr(table.schema.metadata).encode()
    elif data[:2] == b"\x1f\x8b":
        yield from _unpacked(gzip.decompress(data))
    elif data[:4] == b"PK\x03\x04":  # .npz files are zip archives too
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for name in packed.namelist():
                yield name.encode()
                yield from _unpacked(packed.read(name))
    elif data[:6] == b"\x93NUMPY":
        array = np.load(io.BytesIO(data), allow_pickle=False)
        yield repr(array.tolist()).encode() if array.dtype.kind in "USV" else b""
