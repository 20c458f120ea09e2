"""Try a tagger on a text: paragraphs, positions in the text, the separate process, differences, exports."""

import csv
import json
from collections.abc import Iterator
from io import BytesIO, StringIO
from itertools import chain
from pathlib import Path

import pytest
from docx import Document

from core.corpora.documents.plain import paragraphs
from core.errors import ConfigError, ReadError
from core.importing import uploads
from core.isolated import _end
from core.projects import runs
from core.tagging import trial, trial_exports
from core.tagging.trial import Compared, Found, Span, Text
from core.tagging.view import found_sentences
from tests.documents import pdf
from tests.homes import Names


@pytest.fixture
def no_spare() -> Iterator[None]:
    """End the spare process that a test leaves running."""
    yield
    if trial._process._spare:
        _end(trial._process._spare)
        trial._process._spare = None


def span(start: int, end: int, type: str = "PER", paragraph: int = 0, confidence: float = 0.9) -> Span:
    return Span(paragraph=paragraph, start=start, end=end, type=type, confidence=confidence)


def found(*spans: Span) -> Found:
    return Found(types=("LOC", "PER"), spans=spans)


def test_lines_wrapped_at_a_width_are_one_paragraph_and_headings_are_not() -> None:
    wrapped = "The Tenant shall pay the rent that is due under\nthis lease on each usual quarter day to the Landlord or\nMr Smith."
    text = f"1. RENT\n{wrapped}\n\n2. Term\nTen years.\nThe end\x00."
    assert [each.text for each in paragraphs(text)] == [
        "1. RENT",
        wrapped.replace("\n", " "),
        "2. Term",
        "Ten years.",
        "The end.",
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Müller".encode(), "Müller"),
        ("Müller".encode("utf-16"), "Müller"),
        ("Müller".encode("cp1252"), "Müller"),
    ],
)
def test_text_files_are_read_in_their_encoding_and_deleted(data: bytes, text: str, home: Path) -> None:
    read = trial.read("a.txt", BytesIO(data))
    assert [each.text for each in read.paragraphs] == [text]
    assert not uploads.waiting()


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


def test_a_slow_document_is_stopped_and_deleted(home: Path) -> None:
    with pytest.raises(Stopped):
        trial.read("a.html", BytesIO(b"<!--" * 1_000_000), stop)
    assert not uploads.waiting()


def test_a_pdf_keeps_its_pages_and_a_file_without_text_is_refused(home: Path) -> None:
    text = trial.read("a.pdf", BytesIO(pdf([[(60, 700, "The first page .")], [(60, 700, "The second page .")]])))
    assert [(each.text, each.page(0)) for each in text.paragraphs] == [
        ("The first page .", 1),
        ("The second page .", 2),
    ]
    assert text.name == "a.pdf"
    with pytest.raises(ConfigError, match="scanned"):
        trial.read("b.pdf", BytesIO(pdf([[]])))
    for name, data in (("c.txt", b"a\0b\0c"), ("d.xlsx", b"PK\x03\x04")):
        with pytest.raises(ReadError):
            trial.read(name, BytesIO(data))
    with pytest.raises(ConfigError, match="no text"):
        trial.pasted(" \n ")
    assert not uploads.waiting()


def test_a_long_text_is_cut_at_a_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MOST", 10)
    text = trial.pasted("Seven.\nSeven.\nSeven.")
    assert (len(text.paragraphs), text.left_out, text.cut) == (1, 2, False)


def test_the_process_finds_the_same_entities_as_a_run(
    trained: Names, home: Path, tmp_path: Path, no_spare: None
) -> None:
    pasted = "Px  a Ly. Px a Ly.\n\nb b, Ly."
    taggers = [trained["tagger"], trained["idle"]]
    text = trial.pasted(pasted)
    both = trial.find(taggers, text)
    assert list(both) == taggers
    spans = both[taggers[0]].spans
    assert spans
    (tmp_path / "a.txt").write_text("Px a Ly.\nPx a Ly.\nb b, Ly.\n")
    run = runs.execute("predict", {"model": taggers[0], "corpus": runs.fingerprint_of(str(tmp_path / "a.txt"))})
    by_run = list(chain.from_iterable(each.entities for each in found_sentences(run.id)))
    assert [(one.text, one.type, one.confidence) for one in by_run] == [
        (text.paragraphs[one.paragraph].text[one.start : one.end], one.type, one.confidence) for one in spans
    ]
    assert both[taggers[0]].types == ("LOC", "PER")


def test_differences_of_two_taggers_are_named() -> None:
    a = found(span(0, 5), span(10, 15), span(20, 25), span(30, 35), span(0, 5, paragraph=2))
    b = found(span(0, 5, confidence=0.5), span(10, 15, "LOC"), span(20, 27), span(0, 5, paragraph=1))
    of_a, of_b = trial.compared([a, b])
    assert [one.difference for one in of_a] == ["", "other type", "other border", "only here", "only here"]
    assert [one.difference for one in of_b] == ["", "other type", "other border", "only here"]
    assert of_a[1].other == b.spans[1]
    assert [one.difference for one in trial.compared([a])[0]] == [""] * 5


Tried = tuple[list[str], Text, list[list[Compared]], dict[str, str]]


@pytest.fixture
def tried(trained: Names) -> Tried:
    """Return what both taggers of the home might have found in two paragraphs, as the exports get it."""
    taggers = [trained["tagger"], trained["idle"]]
    text = trial.pasted("=cmd pays Ada.\nBo pays.")
    a = found(span(0, 4), span(10, 13), span(0, 2, paragraph=1))
    b = found(span(0, 4, confidence=0.4), span(10, 13, "LOC"))
    return taggers, text, trial.compared([a, b]), dict(zip(taggers, ("one", "two"), strict=True))


def test_csv_and_json_exports_have_offsets_and_no_formulas(tried: Tried) -> None:
    rows = list(csv.DictReader(StringIO(trial_exports.csv(*tried).decode("utf-8-sig"))))
    assert [(row["tagger"], row["text"], row["type"], row["difference"]) for row in rows] == [
        ("one", "'=cmd", "PER", ""),
        ("one", "Ada", "PER", "other type"),
        ("one", "Bo", "PER", "only here"),
        ("two", "'=cmd", "PER", ""),
        ("two", "Ada", "LOC", "other type"),
    ]
    assert (rows[2]["paragraph"], rows[2]["start"], rows[2]["end"], rows[3]["confidence"]) == ("2", "0", "2", "0.4")
    written = json.loads(trial_exports.json(*tried))
    assert written["taggers"] == ["one", "two"]
    for paragraph in written["paragraphs"]:
        for entity in paragraph["entities"]:
            assert paragraph["text"][entity["start"] : entity["end"]] == entity["text"]
    assert [len(each["entities"]) for each in written["paragraphs"]] == [4, 1]


def test_a_word_export_has_one_comment_per_finding(tried: Tried) -> None:
    document = Document(BytesIO(trial_exports.docx(*tried)))
    assert [each.text for each in document.paragraphs] == ["=cmd pays Ada.", "Bo pays."]
    assert [[run.text for run in each.runs if run.font.highlight_color] for each in document.paragraphs] == [
        ["=cmd", "Ada"],
        ["Bo"],
    ]
    comments = sorted((each.author, each.text) for each in document.comments)
    assert comments == [
        ("one", "PER, confidence 90%. The other tagger found nothing here."),
        ("one", "PER, confidence 90%. The other tagger: LOC (other type)."),
        ("one and two", "PER, confidence 90%"),
        ("two", "LOC, confidence 90%. The other tagger: PER (other type)."),
    ]


def test_an_entity_that_a_filter_leaves_out_was_found_all_the_same(tried: Tried) -> None:
    """Nobody may read that a tagger found nothing where it found an entity of another type or of a low confidence."""
    taggers, text, sides, names = tried
    shown = [trial.kept(side, ["PER"], 0.5) for side in sides]
    assert [len(side) for side in shown] == [3, 0]
    document = Document(BytesIO(trial_exports.docx(taggers, text, shown, names)))
    assert sorted((each.author, each.text) for each in document.comments) == [
        ("one", "PER, confidence 90%. The other tagger found nothing here."),
        ("one", "PER, confidence 90%. The other tagger: LOC (other type)."),
        ("one and two", "PER, confidence 90%"),
    ]
    both = Document(BytesIO(trial_exports.docx(taggers[::-1], text, shown[::-1], names)))
    assert [each.author for each in both.comments] == ["two and one", "one", "one"]


def test_a_control_character_in_a_tagger_name_keeps_the_docx_readable(tried: Tried) -> None:
    """Names of corpora in an imported project may contain anything, and names of taggers include them."""
    taggers, text, sides, _ = tried
    alone = trial.compared([found(*(one.span for one in sides[0]))])
    written = trial_exports.docx(taggers[:1], text, alone, {taggers[0]: "minilm on x\x01y"})
    assert {comment.author for comment in Document(BytesIO(written)).comments} == {"minilm on xy"}
