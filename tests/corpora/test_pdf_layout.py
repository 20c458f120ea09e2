"""Layout of PDFs: shifted letters, justified and numbered lines, columns, running heads, unmapped letters."""

import io
import time
from pathlib import Path

import pytest

from core.corpora.documents.extract import Extract, Paragraph
from core.corpora.documents.layout import Piece, laid_out
from core.corpora.documents.pdf import read_pdf, restore
from core.importing import view as corpora
from core.importing.result import AddResult
from core.projects import runs
from core.runs.result import read as read_result
from tests import documents as make
from tests.documents import docx, pdf_mapped

PROSE = [
    "The tenant pays the rent by a bank transfer to the account which the",
    "landlord names, and bears what the transfer of the money to a foreign",
    "bank may cost. The deposit is paid back after the lease has ended, not",
    "later than two months of that day, less what is owed by then, and with",
]


def texts(*pages: list[make.Placed]) -> list[str]:
    return [paragraph.text for paragraph in read_pdf(io.BytesIO(make.pdf(pages)), "a.pdf").paragraphs]


def page(lines: list[str], *more: Piece, width: float = 300, left: float = 60, top: float = 700) -> list[Piece]:
    """Set lines 10 points high and 14 points apart that fill a width; add more pieces."""
    return [Piece(text, left, top - 14 * i, left + width, top - 14 * i + 10) for i, text in enumerate(lines)] + [*more]


def read(*pages: list[Piece]) -> list[str]:
    return [paragraph.text for paragraph in laid_out(pages).paragraphs]


def test_a_lowered_letter_does_not_start_a_paragraph() -> None:
    """Logos such as LaTeX have letters below the line, and brackets of another font may be above it."""
    assert texts(
        [
            (60, 760, "Whoever writes contracts in the program L"),
            (248, 756, "A"),
            (254.8, 760, "TEX by hand and by the dozen, as"),
            (60, 747, "notaries seldom do, numbers the clauses of a deed without an error, and"),
            (60, 734, "prints them as they stand."),
        ]
    )[0].endswith("by the dozen, as notaries seldom do, numbers the clauses of a deed without an error, and prints them as they stand.")  # fmt: skip


def test_line_numbers_are_left_out() -> None:
    numbers = [Piece(str(3 * 7 + i), 30, 700 - 14 * i, 40, 708 - 14 * i) for i in range(8)]
    assert read(page(PROSE * 2, *numbers)) == [" ".join(PROSE * 2)]


def test_numbers_of_clauses_and_table_rows_are_kept() -> None:
    clauses = [Piece(str(1 + i), 30, 700 - 42 * i, 40, 710 - 42 * i) for i in range(6)]
    assert [text.split()[0] for text in read(page(PROSE * 5, *clauses))] == list("123456")
    cells = [
        Piece(text, x, 700 - 14 * i, x + 60, 710 - 14 * i) for i in range(8) for x, text in ((60, "Rent"), (300, "9"))
    ]
    rows = [Piece(str(1 + i), 30, 700 - 14 * i, 40, 710 - 14 * i) for i in range(8)]
    assert read([*cells, *rows]) == [f"{1 + i}\tRent\t9" for i in range(8)]


def test_a_justified_line_is_prose_and_a_table_row_is_not() -> None:
    stretched = [Piece("It ends in", 60, 658, 110, 668), Piece("May at the", 124, 658, 200, 668),
                 Piece("latest, unless", 214, 658, 360, 668)]  # fmt: skip
    after = Piece("both agree upon another day.", 60, 644, 250, 654)
    assert read(page(PROSE[:3], *stretched, after)) == [" ".join(PROSE[:3]) + " It ends in May at the latest, unless both agree upon another day."]  # fmt: skip
    row = [Piece("Rent", 60, 658, 110, 668), Piece("900 EUR", 320, 658, 360, 668)]
    assert read(page(PROSE[:3], *row, after))[1] == "Rent\t900 EUR"


def test_a_clause_number_joins_its_first_line() -> None:
    number = Piece("1.", 60, 714, 68, 724)
    first = Piece("The landlord lets the flat to the tenant for five years, and", 96, 714, 360, 724)
    assert read([number, first, *page(PROSE, left=96, width=264)])[0].startswith(
        "1. The landlord lets the flat to the tenant for five years, and The tenant pays"
    )


def test_columns_of_short_lines_are_read_one_after_the_other() -> None:
    """A column may have many list items and formulas, if enough of its lines are full."""
    items = [Piece(f"{i}) a term", 60, 580 - 14 * i, 110, 590 - 14 * i) for i in range(14)]
    left = page([f"The left column's line {i} goes on and" for i in range(9)], *items, width=230)
    right = page([f"the right column's line {i} goes on and" for i in range(20)], left=310, width=230)
    text = " ".join(read([*left, *right]))
    assert text.index("left column's line 8") < text.index("13) a term") < text.index("right column's line 0")


def test_a_divided_word_in_capitals_is_joined() -> None:
    """Licences print disclaimers in capitals. Elsewhere capitals before a hyphen belong to a name."""
    lines = [
        "There is no warranty but what is written, and NON-INFRINGEMENT is none",
        "of it. THE WORK IS OFFERED AS IT IS, SO FAR AS THE LAW HAS PER-",
        "MITTED IT, WITHOUT ANY WARRANTY OF MERCHANTABILITY OR OF NON-",
        "INFRINGEMENT, AND WHOEVER USES IT BEARS THE COST. It follows the ISO-",
        "IEC standard, which the parties have read.",
    ]
    [text] = read(page(lines))
    assert "THE LAW HAS PERMITTED IT" in text
    assert "OR OF NON-INFRINGEMENT, AND" in text
    assert "the ISO-IEC standard" in text


def test_a_running_foot_of_many_numbers_is_left_out() -> None:
    foot = Piece("MNRAS 000, 1-10 (2020)", 60, 40, 160, 50)
    others = [[f"Page {i} has its own words here, {line}" for line in PROSE] for i in "abc"]
    assert not any("MNRAS" in text for text in read(*(page(lines, foot) for lines in others)))


def restored(*texts: str) -> tuple[list[str], int, int]:
    extract = Extract([Paragraph(text) for text in texts])
    restore(extract)
    return [each.text for each in extract.paragraphs], extract.unmapped, extract.restored


def test_a_private_use_character_stands_for_one_ligature_everywhere() -> None:
    texts, unmapped, mended = restored("The of\ue080ce has its \ue080ne rule.", "con\ue080rms", "office and fine")
    assert texts == ["The office has its fine rule.", "confirms", "office and fine"]
    assert (unmapped, mended) == (3, 3)


def test_words_with_two_readings_or_none_stay_and_are_counted() -> None:
    texts, unmapped, mended = restored("a \ufffdat and a \ufffdux and \ufffd 7", "flat fiat")
    assert texts[0] == "a \ufffdat and a \ufffdux and \ufffd 7"
    assert (unmapped, mended) == (2, 0)


def test_bullets_of_a_private_font_are_not_letters() -> None:
    assert restored("\uf0b7 The office") == (["\uf0b7 The office"], 0, 0)


def test_page_breaks_of_a_restored_paragraph_move_with_its_text() -> None:
    paragraph = Paragraph("The o\ufffdce is shut. It opens.", [(0, 1), (18, 2)])
    restore(Extract([paragraph, Paragraph("office")]))
    assert paragraph.text == "The office is shut. It opens."
    assert paragraph.pages == [(0, 1), (20, 2)]


def test_letters_are_restored_from_another_document_of_the_import(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf_mapped(["The o\x01ce opens on the \x01rst day."], 1, "FFFD"))
    (folder / "b.docx").write_bytes(docx(["The office is shut on the first of May."]))
    (folder / "c.pdf").write_bytes(b"%PDF-1.7\n1 0 obj")  # damaged; only this file is left out
    run = runs.execute("add", {"path": str(folder)})
    result = read_result(runs.get(run.id), AddResult)
    texts = [text for row in corpora.find(result.corpus).batches() for text in [each.text for each in row]]
    assert texts == ["The office opens on the first day.", "The office is shut on the first of May."]
    assert (result.unmapped, result.restored, result.rejected) == (2, 2, 1)
    assert "2 letters of PDFs map to no character; 2 were restored by comparison with other words." in run.state().notes


@pytest.mark.parametrize("text", ["1" * 1_000_000, "a" * 1_000_000 + "\ufffd", "\ufffd" * 1_000_000])
def test_a_million_equal_characters_take_linear_time(text: str) -> None:
    started = time.monotonic()
    restored(text)
    assert time.monotonic() - started < 20


def test_letters_of_a_script_from_right_to_left_are_reported() -> None:
    [remark] = read_pdf(io.BytesIO(pdf_mapped(["\x01\x01\x01 and more"], 1, "05D0")), "a.pdf").remarks
    assert remark.startswith("3 letters of a script from right to left, which are probably in the wrong order")
    assert not read_pdf(io.BytesIO(pdf_mapped(["\x01\x01\x01 and more"], 1, "03B1")), "a.pdf").remarks
