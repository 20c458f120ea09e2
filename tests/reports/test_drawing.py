"""Intervals drawn to scale: every name fits its room, whatever it is called."""

import re
from io import BytesIO
from zipfile import ZipFile

import pypdfium2
from hypothesis import given, settings
from hypothesis import strategies as st

from core.experiment.report.parts import (
    LABELS,
    ROW,
    Cover,
    Document,
    Dot,
    Interval,
    Label,
    Picture,
    Stroke,
    Text,
    intervals,
    width,
)
from core.experiment.report.writers import docx, pdf

LONGEST = "the task's own text and all of the domain corpus, from the encoder my-own-legal-encoder ▲"


def rows(*names: str) -> list[Interval]:
    return [
        Interval(name=name, value=1.0, low=-1.0, high=3.0, colour="#000000", bold=i % 2 == 1)
        for i, name in enumerate(names)
    ]


def labels(*names: str) -> list[Label]:
    """Of the names alone."""
    drawn = intervals(rows(*names), "points")
    assert drawn
    return [shape for shape in drawn.shapes if isinstance(shape, Label) and shape.anchor == "end"]


def test_a_long_name_is_broken_between_words_and_pushes_the_next_row_down() -> None:
    assert [label.text for label in labels("random ▲", "chosen")] == ["random ▲", "chosen"]
    lines = labels(LONGEST, "chosen")
    assert " ".join(line.text for line in lines[:-1]) == LONGEST
    assert len(lines) > 2
    short, drawn = (intervals(rows(name, "chosen"), "points") for name in ("random ▲", LONGEST))
    assert short
    assert [dot.y for dot in short.shapes if isinstance(dot, Dot)] == [ROW / 2, ROW * 1.5]
    assert drawn
    first, second = [dot.y for dot in drawn.shapes if isinstance(dot, Dot)]
    assert lines[0].y < first < lines[-2].y < lines[-1].y
    assert second - first > ROW
    assert max(stroke.y2 for stroke in drawn.shapes if isinstance(stroke, Stroke)) < drawn.height


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=120), min_size=1, max_size=4))
def test_no_name_is_cut(names: list[str]) -> None:
    lines = labels(*names)
    assert all(width(line.text, line.size, bold=line.bold) <= LABELS for line in lines)
    assert "".join(line.text for line in lines).replace(" ", "") == "".join("".join(name.split()) for name in names)
    heights = [line.y for line in lines]
    assert heights == sorted(heights)


def test_a_picture_of_many_rows_fits_its_page() -> None:
    names = [f"{LONGEST.removesuffix(' ▲')} {number}" for number in range(30)]
    drawn = intervals(rows(*names), "points of 100")
    assert drawn
    cover = Cover(firm="", project="", author="", date="")
    document = Document(title="A", answer="", about="", cover=cover, first=[Text("B")], second=[Picture(drawn, "many")])
    with pypdfium2.PdfDocument(pdf(document)) as report:
        page = report[len(report) - 1]
        texts = page.get_textpage()
        places = [texts.get_charbox(i) for i in range(texts.count_chars())]
        assert "points of 100" in texts.get_text_range()
        assert min(bottom for _, bottom, _, _ in places) > 0
        assert max(top for _, _, _, top in places) < page.get_height()
    with ZipFile(BytesIO(docx(document))) as file:
        (high,) = re.findall(r'<wp:extent cx="\d+" cy="(\d+)"', file.read("word/document.xml").decode())
    assert int(high) / 36_000 <= 230  # mm
