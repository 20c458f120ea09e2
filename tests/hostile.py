"""Small files that crash a careless reader, fill its memory or stall it."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FORGED = (2_000_000_000, 4_000, 5, -7)


def forged(tmp_path: Path, value: int) -> Path:
    """Write an Arrow stream whose third string offset is `value`."""
    path = tmp_path / "forged.arrow"
    table = pa.table({"text": ["one sentence here", "another sentence there", "a third one"]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = path.read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 17, 39, 50))
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, offsets[:8] + value.to_bytes(4, "little", signed=True) + offsets[12:]))
    return path


def yaml_aliases(folder: Path) -> Path:
    """Write a data set whose card has eleven levels of YAML aliases: billions of paths to few nodes."""
    lines = ["a0: &a0 {x: 1}"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    (folder / "README.md").write_text("---\n" + "\n".join(lines) + "\n---\n", encoding="utf-8")
    row = {"tokens": ["a", "b"], "ner_tags": [0, 1]}
    (folder / "train.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder


def many_spans(folder: Path) -> Path:
    """Write 60,000 entities on one line."""
    words = [f"w{i}" for i in range(60_000)]
    text, at, spans = " ".join(words) + " .", 0, []
    for word in words:
        spans.append([at, at + len(word), "X"])
        at += len(word) + 1
    path = folder / "many.jsonl"
    path.write_text(json.dumps({"text": text, "label": spans}) + "\n", encoding="utf-8")
    return path


def empty_lines(folder: Path) -> Path:
    """Write 100 million empty lines in 97 KB."""
    path = folder / "lines.txt.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(100):
            file.write(b"\n" * 1_000_000)
    return path


def dictionary_bomb(folder: Path) -> Path:
    """Write 2 KB of Parquet in which a thousand rows refer to one text of 20 MB."""
    path = folder / "bomb.parquet"
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 1_000 + [1], pa.int32()), pa.array(["x" * 20_000_000, "a short one"])
    )
    pq.write_table(pa.table({"text": texts}), path, compression="zstd")
    return path


def page_bomb(folder: Path) -> Path:
    """Write less than 20 KB of Parquet with a page that unpacks to 200 MB."""
    path = folder / "page.parquet"
    pq.write_table(pa.table({"text": ["z" * 200_000_000]}), path, compression="zstd", use_dictionary=False)
    return path


def aborting(folder: Path) -> Path:
    """Write Parquet whose column of texts is declared BOOLEAN but has text statistics, which crashes pyarrow."""
    path = folder / "aborting.parquet"
    pq.write_table(pa.table({"text": ["a sentence .", "another one ."]}), path, compression="none")
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    kind = data.index(b"\x15\x0c", footer) + 1
    path.write_bytes(data[:kind] + b"\0" + data[kind + 1 :])
    return path
