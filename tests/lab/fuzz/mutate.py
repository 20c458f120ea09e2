"""Corrupt bytes as failing disks, faulty programs and attackers do, depending on the type of file."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests import documents
from tests.lab.fuzz import seeds

Change = Callable[[Random, bytes], bytes]

PIECES: Sequence[bytes] = (
    *(
        b"\0",
        b"\xff",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n\n",
        b"\t",
        b" ",
        b'"',
        b"'",
        b",",
        b";",
    ),
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"\\",
        b"\\ud800",
        b"\xed\xa0\x80",
        b"\xc3",
        b"-DOCSTART- O",
        b"B-",
        b"I-X",
        b"O",
        b"# x",
    ),
    *(
        b"NaN",
        b"-1",
        b"1e999",
        b"9" * 400,
        b"null",
        b"true",
        b"&a",
        b"*a",
        b": ",
        b"- ",
        b"---",
        b"!!python/object:os.system",
    ),
    *(
        "\u2028\u0085\u200b\u00ad\u202e\u0301\u1161\uffff\U0001f600\u3000".encode(),
        b"\x1f\x8b",
        b"PAR1",
        b"PK\x03\x04",
        b"a" * 70_000,
    ),
)
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
VALUES: Sequence[Any] = (
    *(None, True, False, 0, -1, 3, 2**31, 2**63, 10**400, 1.5, float("nan"), float("inf"), -1e308),
    *(
        "",
        " ",
        "x",
        "\0",
        "\ud800",
        "\u0301",
        "O",
        "B-X",
        "../../etc/passwd",
        "<b>x</b>",
        "9" * 400,
        "e\u0301" * 50,
        "2026-01-01",
    ),
    *([], {}, [[]], [None], ["x", "y"], [0, 9, "ORG"], {"text": "x"}, {"": None}, [1, 2, 3], ["O"] * 50),
)


def flip(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(random: Random, data: bytes) -> bytes:
    """Remove a part; in half of the cases, everything after a random position."""
    start = random.randint(0, len(data))
    end = random.choice((len(data), min(len(data), start + random.randint(1, 40))))
    return data[:start] + data[end:]


def insert(random: Random, data: bytes) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice(PIECES) * random.choice((1, 1, 1, 3)) + data[at + random.choice((0, 0, 1, 4)) :]


def number(random: Random, data: bytes) -> bytes:
    """Overwrite one to eight bytes with a boundary value, in case they hold a length or an offset."""
    size = random.choice((1, 2, 4, 8))
    at = random.randint(0, max(len(data) - size, 0))
    return (
        data[:at]
        + (random.choice(NUMBERS) & (1 << 8 * size) - 1).to_bytes(size, random.choice(("little", "big")))
        + data[at + size :]
    )


def again(random: Random, data: bytes) -> bytes:
    start = random.randint(0, len(data))
    part = data[start : start + random.randint(1, 200)]
    return data[:start] + part * random.choice((2, 3, 50)) + data[start + len(part) :]


def shuffled(random: Random, data: bytes) -> bytes:
    """Swap two lines, insert a copy of one, join two, or delete one."""
    lines = data.splitlines(keepends=True) or [b""]
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            lines[at], lines[other] = lines[other], lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at] = lines[at].rstrip(b"\r\n")
        case _:
            del lines[at]
    return b"".join(lines)


def cell(random: Random, data: bytes) -> bytes:
    """Replace one cell of one line."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    separator = random.choice([mark for mark in (b"\t", b",", b";", b" ", b": ") if mark in lines[at]] or [b" "])
    cells = lines[at].split(separator)
    cells[random.randrange(len(cells))] = random.choice((*PIECES[:-1], random.choice(cells), b""))
    return b"\n".join([*lines[:at], separator.join(cells), *lines[at + 1 :]])


def value(random: Random, data: bytes) -> bytes:
    """Change one node of the file's JSON, or of one line's. If neither is JSON (any more), replace a cell."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    for part, before, after in ((data, [], []), (lines[at], lines[:at], lines[at + 1 :])):
        try:
            document = node(random, json.loads(part))
            written = json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
            return b"\n".join([*before, written, *after])
        except (ValueError, RecursionError):
            continue
    return cell(random, data)


def node(random: Random, document: Any) -> Any:
    """Return `document` with one random node replaced, deleted, duplicated, renamed or wrapped."""
    places = list(_places(document))
    if not places or random.random() < 0.03:
        return random.choice(VALUES)
    parent, key = random.choice(places)
    match random.randrange(8):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.insert(key, parent[key])
        case 1:
            parent[f"{key}x"] = parent.pop(key)
        case 2:
            parent[key] = [parent[key]]
        case 3:
            for _ in range(random.choice((2, 900))):
                parent[key] = {"a": parent[key]}
        case 4:
            other, at = random.choice(places)
            parent[key] = json.loads(json.dumps(other[at]))
        case _:
            parent[key] = random.choice(VALUES)
    return document


def _places(value: Any) -> Any:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from _places(inner)


def packed(random: Random, data: bytes) -> bytes:
    """Corrupt the content of a compressed file, and sometimes append 3 MB of blanks."""
    codec = "gzip" if data[:2] == b"\x1f\x8b" else "zstd"
    try:
        inside = pa.CompressedInputStream(pa.BufferReader(data), codec).read()
    except OSError:
        return flip(random, data)
    more = seeds.packed(b" " * 1_000_000, codec) * 3 if random.random() < 0.1 else b""
    return seeds.packed(random.choice(TEXT)(random, inside), codec) + more


def table(random: Random, data: bytes) -> bytes:
    """Change the cells, types or metadata of a Parquet or Arrow file."""
    write = seeds.parquet if data[:4] == b"PAR1" else seeds.stream
    try:
        # A corrupted file may claim millions of elements.
        few = partial(pq.read_table, thrift_container_size_limit=10_000)
        rows = few(pa.BufferReader(data)) if write is seeds.parquet else pa.ipc.open_stream(data).read_all()
        rows.validate(full=True)
        about = dict(rows.schema.metadata or {})
        if about and random.random() < 0.3:
            about = {key: random.choice(JSON)(random, content) for key, content in about.items()}
        columns = {
            name: node(random, column) if random.random() < 0.6 else column for name, column in rows.to_pydict().items()
        }
        if random.random() < 0.2:
            columns = {random.choice(("text", "tags", "tokens", "x", "")): column for column in columns.values()}
        made = pa.table(columns).replace_schema_metadata(about or None)
        return (
            write(
                made.cast(
                    pa.schema([(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in made.schema])
                )
            )
            if random.random() < 0.2
            else write(made)
        )
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        OverflowError,
        KeyError,
        IndexError,
        OSError,
        AttributeError,
        MemoryError,
        SystemError,
    ):
        return number(random, data)


RAW: Sequence[Change] = (flip, cut, insert, number, again)
TEXT: Sequence[Change] = (*RAW, shuffled, shuffled, cell, cell, cell)
JSON: Sequence[Change] = (value, value, value, value, *TEXT)


def member(random: Random, data: bytes) -> bytes:
    """Corrupt one member of a zip archive, and sometimes rename it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {each.filename: archive.read(each) for each in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        return number(random, data)
    if not members:
        return data
    name = random.choice(list(members))
    inside = members.pop(name)
    if random.random() < 0.2:
        name = random.choice(("../x.txt", "/x.txt", "word/document.xml", "in.zip", "x" * 300 + ".txt", ".x", ""))
    try:
        return documents.zipped({**members, name or "x": random.choice(TEXT)(random, inside)})
    except (ValueError, UnicodeError):
        return data


def changes_of(name: str) -> Sequence[Change]:
    """Return the changes that suit a file of this name."""
    if name.endswith((".gz", ".zst")):
        return (*RAW, *[packed] * 8)
    if name.endswith((".parquet", ".arrow")):
        return (*RAW, *[table] * 6)
    if name.endswith((".docx", ".docm", ".odt", ".xlsx", ".zip")):
        return (*RAW, *[member] * 6)
    if name.endswith((".json", ".jsonl")):
        return JSON
    return RAW if name.endswith((".npy", ".npz", ".safetensors", ".bin")) else TEXT


def mutated(random: Random, name: str, data: bytes) -> bytes:
    """Return `data` changed one to four times."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        data = random.choice(changes_of(name))(random, data)
        if len(data) > 3_000_000:
            return data[:3_000_000]
    return data
