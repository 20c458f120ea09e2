"""A list of names: what it becomes, and which line is wrong."""

from pathlib import Path

import pytest

from core.bias import training_sentences as names
from core.bias.training_sentences import read_names
from core.errors import PathError, ReadError
from core.text.sentence import Entity


def test_a_line_a_name(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes("\ufeffNew  York\tLOC\r\n\r\n Ørsted A/S \t ORG \n".encode())
    assert [(one.tokens, one.text, one.entities) for one in read_names(path)] == [
        (("New", "York"), "New York", (Entity(start=0, end=2, type="LOC"),)),
        (("Ørsted", "A/S"), "Ørsted A/S", (Entity(start=0, end=2, type="ORG"),)),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"Oslo\tLOC\nRome\n", "names.txt line 2: is not a name, one tab and a type"),
        (b"Oslo\tLOC\textra\n", "names.txt line 1: is not a name"),
        (b"\tLOC\n", "names.txt line 1: is not a name"),
        (b"Oslo\tA CITY\n", "names.txt line 1: is not a name"),
        (b"Oslo\tLOC\n\xff\tLOC\n", "names.txt line 2: is not UTF-8"),
        (b"x" * 600 + b"\tLOC\n", "names.txt line 1: is longer than 500 letters"),
        (b"\n \n", "names.txt: holds no name"),
        (b"Oslo\tLOC\n" * 20, "names.txt: is larger than"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, says: str) -> None:
    monkeypatch.setattr(names, "MOST_BYTES", 700)
    path = tmp_path / "names.txt"
    path.write_bytes(content * (5 if "larger" in says else 1))
    with pytest.raises(ReadError, match=says):
        read_names(path)
    with pytest.raises(PathError, match="there is no such file"):
        read_names(tmp_path / "no.txt")
