"""Word vectors in the text formats of word2vec, GloVe and fastText, and errors that name the line."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from core.corpora.formats import source
from core.errors import ReadError
from core.importing.add_vectors import VectorTable, read_vectors


def read(path: Path, content: bytes, most_words: int = 0) -> tuple[VectorTable, list[list[float]]]:
    path.write_bytes(content)
    rows = io.BytesIO()
    table = read_vectors(path, rows, most_words=most_words)
    values = np.frombuffer(rows.getvalue(), np.float32).reshape(len(table.words), table.dimension)
    return table, values.tolist()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("word2vec.txt", b"2 2\nRome 1 -2.5 \nund 0.25 1e-1 \n"),
        ("glove.txt", b"Rome 1 -2.5\nund 0.25 1e-1\n"),
        ("fasttext.vec", b"\xef\xbb\xbf2 2\r\nRome\t1\t-2.5\r\nund\t0.25\t1e-1\r\n"),
        ("packed.vec.gz", gzip.compress(b"2 2\nRome 1 -2.5\n\nund .25 1e-1", mtime=0)),
    ],
)
def test_each_format_is_read(tmp_path: Path, name: str, content: bytes) -> None:
    table, values = read(tmp_path / name, content)
    assert (table.words, table.dimension, table.whole) == (["Rome", "und"], 2, True)
    assert np.allclose(values, [[1, -2.5], [0.25, 0.1]])


def test_unusable_and_repeated_words_are_counted(tmp_path: Path) -> None:
    lines = [
        "und 1 2",
        ". . . 3 4",
        "a\xa0b 3 4",
        "\u2028b 3 4",
        " 5 6",
        "x" * 201 + " 7 8",
        "und 9 9",
        "\u00e9 1 1",
        "late 0 0",
    ]
    table, values = read(tmp_path / "few.txt", "\n".join(lines).encode(), most_words=2)
    assert (table.words, values) == (["und", "\u00e9"], [[1, 2], [1, 1]])
    assert (table.again, table.unusable, table.whole) == (1, 5, False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"3 2\na 1 2\nb 3 4\n", "few.txt line 1: announces 3 words, but 2 follow"),
        (b"1 2\na 1 2\nb 3 4\n", "few.txt line 1: announces 1 words, but 2 follow"),
        (b"2 2\na 1 2\nb 3\n", "few.txt line 3: has 1 numbers, expected 2"),
        (b"a 1 2\nb 3 4 5\n", "few.txt line 2: has 3 numbers, expected 2"),
        (b"a 1 2\nb 3 nan\n", "few.txt line 2: a number is not finite"),
        (b"a 1 2\nb 3 -inf\n", "few.txt line 2: a number is not finite"),
        (b"a 1 2\nb 3 1e99\n", "few.txt line 2: a number is not finite"),
        (b"a 1 2\nb 3 4_0\n", "few.txt line 2: '4_0' is not a number; write a word, then 2 numbers"),
        (b"a 1 2\nb 3 \xff\n", "few.txt line 2: '\ufffd' is not a number"),
        (b"a 1 2\n\xff 3 4\n", "few.txt line 2: its word is not UTF-8"),
        (b"2 99999999999\na 1\n", "few.txt line 1: has 99,999,999,999 numbers per word, expected 1 to 10,000"),
        (b"2 0\na\nb\n", "few.txt line 1: has 0 numbers per word"),
        (b"a" + b" 1" * 10_001, "few.txt line 1: has 10,001 numbers per word"),
        (b"word\nother\n", "few.txt line 1: has 0 numbers per word"),
        (b"a 1\nb " + b"1" * 1_000_001, "few.txt line 2: is longer than 1 MB"),
        (b"0 2\n", "few.txt: has no word with a vector"),
        (b"\n\n", "few.txt: has no word with a vector"),
        (b"", "few.txt: the file is empty"),
        (b"PK\x03\x04glove", "few.txt: not a text file but a zip archive"),
        (gzip.compress(b"a 1 2\n" * 99, mtime=0)[:-9], "few.txt: the packed data are damaged or end"),
    ],
)
def test_an_error_names_the_wrong_line(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ReadError) as caught:
        read(tmp_path / "few.txt", content)
    assert str(caught.value).startswith(says)
    assert str(caught.value).endswith(".")


def test_bombs_and_binary_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BOMB_BYTES", 1 << 20)
    with pytest.raises(ReadError, match=r"few.txt: unpacks to more than 200 times its size .* as a gzip bomb does"):
        read(tmp_path / "few.txt", gzip.compress(b"a 1 2\n" * 500_000, mtime=0))
    with pytest.raises(ReadError, match=r"news.bin: has the extension of a binary file; save the vectors as text"):
        read(tmp_path / "news.bin", b"1 2\na \0\0\0\0\0\0\0\0")
