"""Letters of a PDF that map to no character are counted, and restored where the document leaves one reading."""

import time
from pathlib import Path

import pytest

from core.corpora.documents.extract import Extract, Paragraph
from core.corpora.documents.pdf import restore
from core.importing import view as corpora
from core.projects import runs
from tests.documents import docx, pdf_mapped


def restored(*texts: str) -> tuple[list[str], int, int]:
    extract = Extract([Paragraph(text) for text in texts])
    restore(extract)
    return [each.text for each in extract.paragraphs], extract.unmapped, extract.restored


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


def test_letters_are_restored_from_another_document_of_the_import(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf_mapped(["The o\x01ce opens on the \x01rst day."], 1, "FFFD"))
    (folder / "b.docx").write_bytes(docx(["The office is shut on the first of May."]))
    (folder / "c.pdf").write_bytes(b"%PDF-1.7\n1 0 obj")  # damaged: it costs itself
    run = runs.execute("add", {"path": str(folder)})
    result = corpora.import_result(run.id)
    texts = [text for row in corpora.find(result.corpus).batches() for text in [each.text for each in row]]
    assert texts == ["The office opens on the first day.", "The office is shut on the first of May."]
    assert (result.unmapped, result.restored, result.rejected) == (2, 2, 1)
    assert "2 letters of PDFs map to no character; 2 were restored from other words." in run.state().notes


@pytest.mark.parametrize("text", ["1" * 1_000_000, "a" * 1_000_000 + "\ufffd", "\ufffd" * 1_000_000])
def test_a_run_without_end_is_read_in_linear_time(text: str) -> None:
    started = time.monotonic()
    restored(text)
    assert time.monotonic() - started < 20
