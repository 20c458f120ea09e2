"""Ordinary text with slashes or markup is not read as tags; tests/imports has text with tags between its words."""

from pathlib import Path

import pytest

from core.corpora.readers import ReadOptions, read, sniff


@pytest.mark.parametrize(
    "line",
    [
        "The km/h of 1/2 and 3/4 and/or n/a and c/o Lind.",
        "snake_case and other_names in some_code here_too",
        "a|b|c d|e|f",
        "<b>Mara</b> left <I>Lyon</I>.",
        "<TITLE>Mara</TITLE> left.",
        "<PERSON> signed at <PLACE>.",
        "Mara said <PERSON>Lind</PERSON> and <br> nothing else.",
    ],
)
def test_ordinary_text_stays_unlabelled(line: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(f"{line}\n{line}s\n")
    assert sniff(path).format == "txt"
    assert [sentence.entities for sentence in read(path)] == [None, None]


def test_a_word_without_its_tag_costs_its_sentence(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    whole = "Mara/PERSON left/O Lyon/PLACE in/O May/O and/O stayed/O in/O Kiel/PLACE ./O\n"
    path.write_text(3 * whole + whole.replace("May/O", "May"))
    assert len(list(read(path, ReadOptions(scheme="io")))) == 3
