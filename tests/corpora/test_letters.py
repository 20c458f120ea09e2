"""Letters of a PDF that map to no character are counted, and restored where the document leaves one reading."""

from pathlib import Path

import pytest

from core.corpora.documents.extract import Extract, Paragraph
from core.corpora.documents.letters import restore
from core.corpora.readers import ReadReport, read
from tests.documents import pdf_mapped

LINES = [
    "The o\x01ce opens at nine.",
    "Its o\x01cer con\x01rms it.",
    "The office and the officer have sta\x01 of their own.",
]


def restored(*texts: str) -> tuple[list[str], int, int]:
    extract = Extract([Paragraph(text) for text in texts])
    restore(extract)
    return [each.text for each in extract.paragraphs], extract.unmapped, extract.restored


@pytest.mark.parametrize("mapped", ["E080", "0000", "FFFD"])
def test_a_ligature_without_a_character_is_restored_from_other_words(mapped: str, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_mapped(LINES, 1, mapped))
    report = ReadReport()
    texts = [sentence.text for sentence in read(tmp_path / "a.pdf", report=report)]
    assert texts[0] == "The office opens at nine."
    assert texts[1].startswith("Its officer con")
    assert report.unmapped == 4
    assert report.restored >= 2
    assert f"4 letters map to no character (private use, NUL or U+FFFD); {report.restored} were" in str(report.problems)


def test_a_private_character_means_one_ligature_throughout() -> None:
    texts, unmapped, mended = restored("The of\ue080ce has its \ue080ne rule.", "con\ue080rms", "office and fine")
    assert texts == ["The office has its fine rule.", "confirms", "office and fine"]
    assert (unmapped, mended) == (3, 3)


def test_a_word_with_two_readings_or_none_stays_and_is_counted() -> None:
    texts, unmapped, mended = restored("a \ufffdat and a \ufffdux and \ufffd 7", "flat fiat")
    assert texts[0] == "a \ufffdat and a \ufffdux and \ufffd 7"
    assert (unmapped, mended) == (2, 0)


def test_bullets_of_a_private_font_are_no_letters() -> None:
    assert restored("\uf0b7 The office") == (["\uf0b7 The office"], 0, 0)


def test_pages_of_a_restored_paragraph_stay_in_place() -> None:
    paragraph = Paragraph("The o\ufffdce is shut. It opens.", [(0, 1), (18, 2)])
    restore(Extract([paragraph, Paragraph("office")]))
    assert paragraph.text == "The office is shut. It opens."
    assert paragraph.pages == [(0, 1), (20, 2)]
