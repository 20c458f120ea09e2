"""A sentence per line with its tags between the words is labelled text, and ordinary text is not."""

from pathlib import Path

import pytest

from core.corpora.readers import ReadOptions, read, sniff
from core.text.sentence import Sentence
from tests.conftest import entities_of


def mentions(sentence: Sentence) -> list[tuple[str, str]]:
    return [(" ".join(sentence.tokens[e.start : e.end]), e.type) for e in entities_of(sentence)]


@pytest.mark.parametrize(
    "line",
    [
        "Mara/PERSON Lind/PERSON left/O Lyon/PLACE ./O",
        "Mara_PERSON Lind_PERSON left_O Lyon_PLACE ._O",
        "Mara|NNP|B-PERSON Lind|NNP|I-PERSON left|VBD|O Lyon|NNP|B-PLACE .|.|O",
        "<PERSON>Mara Lind</PERSON> left <PLACE>Lyon</PLACE>.",
        '<ENAMEX TYPE="PERSON">Mara Lind</ENAMEX> left <ENAMEX TYPE="PLACE">Lyon</ENAMEX>.',
    ],
)
def test_tags_between_words_are_labels(line: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(f"{line}\n\n{line}\n")
    found = list(read(path))
    assert [mentions(sentence) for sentence in found] == [[("Mara Lind", "PERSON"), ("Lyon", "PLACE")]] * 2
    assert found[0].text.replace(" ", "") == "MaraLindleftLyon."


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
