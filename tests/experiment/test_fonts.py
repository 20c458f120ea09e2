"""Scripts that the body font lacks: Winnow's or the machine's fonts draw them in order; missing characters are counted."""

from io import BytesIO
from pathlib import Path

import docx
import pypdfium2
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from core.experiment.report import parts
from core.experiment.report.parts import Cover, Document, Facts, Heading, Part, Quote, Table, Text
from core.experiment.report.writers import docx as as_docx
from core.experiment.report.writers import html, pdf
from tests.experiment.test_reports import pages

HINDI, HEBREW, CHINESE = "नमस्ते", "עברית", "合同"


def document(words: str) -> Document:
    parts: list[Part] = [Quote(words), Facts([(words, "b")], leading=True), Table(("a", "b"), [(words, "1")], (1,))]
    return Document(
        title=words, answer=words, about="", cover=Cover(), first=parts, second=[Heading("H"), Text(words, strong=True)]
    )


def font_of(char: str, path: Path) -> Path:
    """Write a font whose only character is a box; return its path."""
    pen = TTGlyphPen(None)
    for command, point in ((pen.moveTo, (0, 0)), (pen.lineTo, (500, 0)), (pen.lineTo, (500, 500))):
        command(point)
    pen.closePath()
    made = FontBuilder(1000)
    made.setupGlyphOrder([".notdef", "box"])
    made.setupCharacterMap({ord(char): "box"})
    made.setupGlyf({".notdef": pen.glyph(), "box": pen.glyph()})
    made.setupHorizontalMetrics({".notdef": (600, 0), "box": (600, 0)})
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": "Box", "styleName": "Regular", "psName": "Box-Regular"})
    made.setupOS2()
    made.setupPost()
    made.save(path)
    return path


@pytest.fixture
def without_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine without fonts."""
    monkeypatch.setattr(parts, "_of_this_machine", lambda code: ())


@pytest.mark.usefixtures("without_fonts")
def test_devanagari_hebrew_and_arabic_need_no_font_of_the_machine() -> None:
    words = f"{HINDI} {HEBREW} العقد café"
    data = pdf(document(words))
    assert parts.MISSING not in " ".join(pages(data))
    assert data.count(b"/FontFile2") == 3  # the two fonts of the body, and one more
    assert HINDI in pages(data)[0]
    only = Document(title="", answer="", about="", cover=Cover(), first=[Quote(f"Art. {HEBREW} (1)")], second=[])
    with pypdfium2.PdfDocument(pdf(only)) as file:
        text = file[0].get_textpage()
        where = {text.get_text_range(i, 1): text.get_charbox(i)[0] for i in range(text.count_chars())}
    assert max(where[letter] for letter in HEBREW) < where["("] < where["1"] < where[")"]


@pytest.mark.usefixtures("without_fonts")
def test_letters_of_devanagari_and_arabic_are_joined() -> None:
    """Joined letters are narrower than the same letters apart."""

    def width(words: str) -> float:
        return right_edge(pdf(document(words)))

    assert width("क्ष " * 6) < width("क ष " * 6) - 20
    assert width("العقد" * 4) < width("ا ل ع ق د " * 4) - 20


def right_edge(data: bytes) -> float:
    """Return the right edge of the first quote of a page, in points."""
    with pypdfium2.PdfDocument(data) as file:
        page = file[0]
        pixels = page.render(scale=1).to_numpy().min(axis=2)
        lines = (pixels < 128).any(axis=1)
        starts = [y for y in range(1, len(lines)) if lines[y] and not lines[y - 1]]
        second = starts[1]
        return float((pixels[second : second + 8] < 128).any(axis=0).nonzero()[0].max())


@pytest.mark.parametrize(
    ("line", "set_as"),
    [
        (f"Art. {HEBREW} (1996) ok", f"Art. {HEBREW}\u200e (1996) ok"),
        (f"of {HEBREW} {HEBREW}, 12", f"of {HEBREW} {HEBREW}\u200e, 12"),
        (f"{HEBREW} ok (1996)", f"{HEBREW} ok (1996)"),  # this whole line runs from right to left
        ("no such (1996)", "no such (1996)"),
    ],
)
def test_text_after_a_right_to_left_word_continues_to_the_right(line: str, set_as: str) -> None:
    assert parts.visual_order(line) == set_as


@pytest.mark.usefixtures("without_fonts")
def test_missing_characters_are_counted_and_system_fonts_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"{CHINESE} café"
    text = " ".join(pages(pdf(document(words))))
    assert "café" in text
    assert "12 characters that no font of Winnow or of this machine has" in text
    assert words in html(document(words))
    assert words in "\n".join(line.text for line in docx.Document(BytesIO(as_docx(document(words)))).paragraphs)
    path = font_of("合", tmp_path / "box.ttf")
    monkeypatch.setattr(parts, "_of_this_machine", lambda code: ((path, 0),))
    data = pdf(document(CHINESE))
    assert data.count(b"/FontFile2") == 3
    assert "6 characters that no font" in " ".join(pages(data))  # the font lacks the other character


def test_fontconfig_finds_fonts_by_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fc-list"
    lines = ["/f/A-Bold.ttf: :style=Bold:index=0", "/f/B.ttc: :style=Regular:index=65538", "/f/C.pcf.gz: :index=0"]
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in [*lines, "$1"]))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    parts._of_this_machine.cache_clear()
    assert parts._of_this_machine(0x5408) == ((Path("/f/B.ttc"), 2), (Path("/f/A-Bold.ttf"), 0))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    parts._of_this_machine.cache_clear()
    assert parts._of_this_machine(0x5408) == ()
    parts._of_this_machine.cache_clear()
