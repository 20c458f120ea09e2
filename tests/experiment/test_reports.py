"""Reports of experiments and studies: their parts, covers and drawings, in every format."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import docx
import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.cli.main import main
from core.errors import ConfigError
from core.experiment import deliver, results
from core.experiment.cli import write_report
from core.experiment.deliver import LONGEST
from core.experiment.plot import glance
from core.experiment.report.documents import (
    TITLE,
    CorpusRow,
    Report,
    StudyReport,
    examples,
    experiment_document,
    study_document,
)
from core.experiment.report.parts import (
    LABELS,
    ROW,
    Cover,
    Document,
    Dot,
    Interval,
    Items,
    Label,
    Picture,
    Stroke,
    Text,
    intervals,
    width,
)
from core.experiment.report.writers import docx as as_docx
from core.experiment.report.writers import html, pdf
from core.experiment.result import ArmRow, PlannedTest
from core.experiment.words import Finding, line_name, overlap_in_short
from core.kind import as_json
from core.paths import within
from core.project_list import COVER_FILE, INVENTED
from core.projects import runs
from core.projects import view as projects
from core.stats.mistakes import mistakes
from core.tagging.evaluations import TrainInTest
from core.tagging.result import TwoReadings, TypeScores
from core.text.sentence import Entity, Sentence, sentence_id
from tests import finished
from tests.conftest import elsewhere
from tests.finished import ARM_ROW
from tests.pages.drawing import opened
from tests.pages.test_results import PAGE, tab
from tests.test_files_on_disk import wider

TEXT = pypdfium2.raw.FPDF_PAGEOBJ_TEXT
COVER = Cover(firm="Meyer & Söhne", project="Leases <2026>", author="A. Lawyer", date="1 May 2026")


@dataclass(frozen=True)
class Reported:
    """A run and two of its reports."""

    run: str
    pdf: bytes
    docx: bytes


def pages(data: bytes) -> list[str]:
    """Return the text of each page, with its lines joined."""
    with pypdfium2.PdfDocument(data) as file:
        return [" ".join(page.get_textpage().get_text_range().split()) for page in file]


def answer_of(run_id: str) -> str:
    return results.finding(run_id).sentence


def rows(n: int = 2) -> list[ArmRow]:
    none = replace(ARM_ROW, arm="none", verdict="baseline")
    judged = {"verdict": "improves", "delta": 1.5, "interval": (-1.5, 4.5), "sentences": 60, "budget": "10%"}
    return [none, *(replace(ARM_ROW, arm=f"a<b>{i}", **judged) for i in range(n))]  # type: ignore[arg-type]


def report(**fields: Any) -> Report:
    known: Mapping[str, Any] = {
        "rows": rows(),
        "main": rows()[1],
        "task": "leases & <more>",
        "types": [TypeScores(type=f"KIND{i}", mentions=9, a=50.0, b=60.4) for i in range(10)],
        "examples": None,
        "corpora": [CorpusRow(role="T", name="n", sentences=3, fingerprint="f" * 64)],
        "encoder": "e<",
        "preset": "quick",
        "seeds": (1, 2, 3),
        "hours": 2.0,
        "command": "run <x>",
        "begun": "then",
        "finding": Finding(word="Helped", what="Helped: yes <b>.", sure="Quite.", next="Next: go."),
        "version": "1",
        "missing": ("a & b",),
        "overruled": "",
        "sent_to": (),
        "sample": False,
    }
    return Report(**(dict(known) | fields))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Reported]]:
    """Return a home with a finished experiment and a finished study, and their reports."""
    with elsewhere(tmp_path_factory.mktemp("reports") / "home") as home:
        experiment = finished.experiment(home, finished.corpora(home), finished.LINES)
        ids = (experiment.id, finished.study(home, (0.2, 2.0, 0.8)).id)
        return home, [
            Reported(
                run=run,
                pdf=deliver.report(run, "pdf", COVER, examples=True),
                docx=deliver.report(run, "docx", COVER, examples=True),
            )
            for run in ids
        ]


@pytest.fixture
def both(kept: tuple[Path, list[Reported]], monkeypatch: pytest.MonkeyPatch) -> list[Reported]:
    """Return the reports of an experiment and of a study; their home is the current one."""
    monkeypatch.setenv("WINNOW_HOME", str(kept[0]))
    return kept[1]


def test_first_half_page_answers_every_question_in_large_type(
    both: list[Reported],
) -> None:
    for one in both:
        with pypdfium2.PdfDocument(one.pdf) as file:
            assert len(file) == 2
            page = file[0]
            shown = page.get_textpage()
            half = " ".join(shown.get_text_bounded(bottom=page.get_height() / 2).split())
            lines = [each for each in page.get_objects(textpage=shown) if each.type == TEXT]
            texts = [(round(line.get_font_size(), 1), line.extract()) for line in lines]
        largest, larger, large = sorted({size for size, _ in texts}, reverse=True)[:3]
        answer = [text for size, text in texts if size == large]
        word = results.finding(one.run).word
        assert texts[: 2 + len(answer)] == [(larger, TITLE), (largest, word), *((large, text) for text in answer)]
        assert " ".join(" ".join(answer).split()) == answer_of(one.run)
        for words in (answer_of(one.run), "Question", "How sure", "What to do", "Cost", *COVER.line.split(" · ")):
            assert words in half
        assert not re.search(r"\b(T_C|D_C|S_C|L_C|F1|Holm|arm)\b", half)


def test_every_format_has_the_same_verdict_and_its_fonts_and_author(both: list[Reported]) -> None:
    for one in both:
        page = finished.html_report(one.run)
        verdict = [" ".join(part.split()) for part in re.findall(r"<dd>(.*?)</dd>", page)[1:3]]
        assert all(part in pages(one.pdf)[0] for part in [answer_of(one.run), *verdict])
        word = docx.Document(BytesIO(one.docx))
        assert [cell.text for cell in word.tables[0].columns[1].cells][1:3] == verdict
        assert answer_of(one.run) in [paragraph.text for paragraph in word.paragraphs[:4]]
        assert word.core_properties.author == "A. Lawyer"
    assert both[0].pdf.count(b"/FontFile2") == 2
    assert b"/Helvetica" not in both[0].pdf
    [picture] = docx.Document(BytesIO(both[0].docx)).inline_shapes
    assert picture._inline.docPr.get("descr").startswith("Differences of classifier 10: over no further pre-training +")


def test_sentences_of_the_test_set_are_in_a_report_only_on_request(both: list[Reported]) -> None:
    assert "In the text" in pages(both[0].pdf)[0]
    assert "In the text" not in pages(deliver.report(both[0].run, "pdf"))[0]


def test_report_of_an_early_end_counts_the_trainings_that_ran(home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES)
    assert "was trained 3 times, because scores vary by chance (seeds 1, 2, 3)." in finished.html_report(run.id)
    board = results.board(run.id)
    rows = [row if row.arm == "none" else replace(row, micro_f1=row.micro_f1[:2]) for row in board.leaderboard]
    planned = PlannedTest(
        arm="classifier",
        budget="10",
        against="random 10",
        looks=(2, 3),
        replicates=2,
        ended="shown",
        p=0.01,
        bound=0.02,
        effect=1.0,
        chance=0.9,
        why="It ended there, 1 replicate early.",
    )
    finished.returned(run, as_json(replace(board, leaderboard=rows, planned=planned)))
    page = finished.html_report(run.id)
    assert planned.why in page
    assert "was trained 2 times, because scores vary by chance (seeds 1, 2); none 3 times." in page
    with pytest.raises(ConfigError, match="is not a finished experiment or study"):
        deliver.report(board.leaderboard[0].finetune_run)


def test_the_command_writes_the_format_of_the_file_name(
    both: list[Reported], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix, begins in ((".pdf", b"%PDF"), (".docx", b"PK"), (".HTML", b"<!doctype")):
        file = tmp_path / f"new folder {suffix}" / f"out{suffix}"
        main(["report", both[0].run, "--output", str(file), "--firm", "Meyer", "--json"], standalone_mode=False)
        assert json.loads(capsys.readouterr().out) == {"output": str(file)}
        assert file.read_bytes().startswith(begins)
    with pytest.raises(ConfigError, match=r"use a name that ends in \.pdf, \.docx, \.html"):
        deliver.write_report(both[0].run, tmp_path / "out.txt", COVER)
    assert not (tmp_path / "out.txt").exists()
    copy, result = tmp_path / "another" / "result.json", runs.get(both[0].run).result_file
    deliver.take(both[0].run, {result: str(copy)})
    copy.write_text("old")
    copy.chmod(0o644)
    deliver.take(both[0].run, {result: str(copy)})
    assert copy.read_bytes() == result.read_bytes()
    assert wider(copy.parent) == []


def test_report_escapes_markup_and_a_long_one_keeps_every_row() -> None:
    page = html(experiment_document(report(), COVER))
    for words in ("run &lt;x&gt;", "a &amp; b", "a&lt;b&gt;0", "Leases &lt;2026&gt;", "“leases &amp; &lt;more&gt;”"):
        assert words in page
    assert "Total computing time: 2.0 h." in page
    assert "<td class=n>+10.4</td>" in page  # F1 of b minus F1 of a
    assert "2 more on the next page" in page
    assert "Variants that use an encoder start from e&lt;." in page
    further = replace(rows()[1], arm="classifier encoder:other")
    page = html(experiment_document(report(rows=[*rows(), further]), COVER))
    assert "start from e&lt;, or from the encoder in their name." in page
    many = rows(40)
    text = pages(pdf(experiment_document(report(rows=many, main=many[1]), COVER)))
    assert len(text) > 2
    assert all(f"a<b>{i} 10%" in " ".join(text) for i in range(40))
    document = Document(
        title="T\u202e",
        answer="A",
        about="",
        cover=Cover(author="\x00\ud800"),
        first=[Text("a\x07b\ud800"), Items([("n\u2067", "w\u2069")])],
        second=[],
    )
    page = html(document)
    assert not [char for char in "\x00\x07\ud800\u202e\u2067\u2069" if char in page]  # they hide or reorder words
    assert "<h1>T\ufffd</h1>" in page
    assert "a" in pages(pdf(document))[0]
    assert docx.Document(BytesIO(as_docx(document))).paragraphs


@pytest.mark.parametrize(
    ("names", "alike"),
    [(("random", "knn"), True), (("tapt", "dapt"), False), (("random", "gazetteer"), False), (("tapt", "random-only"), False)],
)  # fmt: skip
def test_report_says_that_variants_read_similar_sentences_only_if_all_do(names: tuple[str, ...], alike: bool) -> None:
    none, *_, read = rows(1)
    lines = [none, *(replace(read, arm=name, about=f"About {name}.") for name in names)]
    text = html(experiment_document(report(rows=lines, main=lines[1]), COVER))
    assert ("read sentences of the domain corpus (D_C) that were selected because they are like" in text) == alike
    assert ("All except “none” also read the task corpus." in text) == alike
    assert ("shows the effect of any text of that amount" in text) == alike
    assert all((f"About {name}." in text) == (not alike) for name in names)


def test_report_counts_all_taggers_of_replicates_with_several() -> None:
    lines = [replace(row, micro_f1=(60.0, 61.0, 62.0), taggers=4) for row in rows(1)]
    text = html(experiment_document(report(rows=lines, main=lines[1]), COVER))
    assert "Each score is the mean of 12 trainings." in text
    assert "was trained 3 times with 4 taggers each, because scores vary by chance (seeds 1, 2, 3)." in text
    early = [replace(lines[0], micro_f1=[60.0] * 6), lines[1]]
    text = html(experiment_document(report(rows=early, main=early[1]), COVER))
    assert "Each score with the variant is the mean of 12 trainings, each score without it of 24." in text


def test_report_names_no_condition_of_an_improvement_that_only_some_variants_have() -> None:
    text = html(experiment_document(report(), COVER))
    assert "only if it is better than no further pre-training" not in text
    assert "only if it is better than its baseline and, if it has a control, better than its control." in text


def test_report_of_a_study_asks_about_reading_only_if_its_variant_reads(home: Path) -> None:
    board = results.study_board(finished.study(home, (0.2, 2.0, 0.8)).id)
    known = {field.name: getattr(report(), field.name) for field in fields(StudyReport) if field.name != "result"}
    for tokens, asks in (
        (9, "Does choosing what a program reads make it better"),
        (0, "Is a program with dataaug better"),
    ):
        result = replace(board, arm="dataaug", tasks=[replace(task, tokens=tokens) for task in board.tasks])
        assert result.choosing
        text = html(study_document(StudyReport(**known, result=result), COVER))
        assert asks in text


def test_picture_shows_the_main_variants_differences_to_baseline_and_control_as_the_page_does() -> None:
    first, second = rows()[1:]
    second = replace(second, delta=1.2, interval=(-0.5, 2.9), delta_random=0.4, interval_random=(-8.8, 9.6))
    every = [rows()[0], first, second]
    page = experiment_document(report(rows=every, main=second), COVER)
    (picture,) = (part for part in page.first if isinstance(part, Picture))
    labels = " ".join(shape.text for shape in picture.drawing.shapes if isinstance(shape, Label))
    figure = glance(second, every)
    assert figure
    shown = [(trace.y[0], trace.x[0]) for trace in figure.data if trace.mode == "markers"]
    assert [value for _, value in shown] == [1.2, 0.4]
    assert all(name in labels for name, _ in shown)
    assert picture.words == f"Differences of {line_name(second)}: {shown[0][0]} +1.2; {shown[1][0]} +0.4"


def test_report_of_a_sample_project_begins_by_saying_that_its_texts_are_invented() -> None:
    first = [part.text for part in experiment_document(report(sample=True), COVER).first if isinstance(part, Text)]
    assert first[0] == INVENTED
    own = experiment_document(report(), COVER)
    assert INVENTED not in [part.text for part in own.first if isinstance(part, Text)]


def test_train_test_overlap_is_short_on_page_one_and_full_on_page_two() -> None:
    document = experiment_document(report(overlap="All of it.", overlap_in_short="In short."), COVER)
    assert Text("In short.") in document.first
    assert Text("All of it.") in document.second
    one = replace(ARM_ROW, mean=80.0, unseen_f1=(79.0, 80.6))
    result: Any = SimpleNamespace(train_in_test=TrainInTest(exact=1, near=1), leaderboard=[one])
    assert overlap_in_short(result) == (
        "2 training sentences also occur, word for word or nearly, in the dev or test set; without them, every score "
        "changes by at most 0.2 points."
    )
    for shared in (TrainInTest(), TrainInTest(further=3)):  # verdicts do not use further test sets
        assert not overlap_in_short(SimpleNamespace(train_in_test=shared))  # type: ignore[arg-type]
    assert TrainInTest(further=3).words == "3 training sentences are in further test sets too."


def test_intervals_are_drawn_to_a_scale_with_round_marks() -> None:
    drawing = intervals([Interval(name="a", value=1.5, low=-7.0, high=4.5, colour="#000000")], "points")
    assert drawing
    assert [float(shape.text) for shape in marks(drawing.shapes)] == [-6, -4, -2, 0, 2, 4]
    wide = intervals([Interval(name="a", value=0.1, low=-0.3, high=0.7, colour="#000000")], "points")
    assert wide
    assert [float(shape.text) for shape in marks(wide.shapes)] == [-0.2, 0, 0.2, 0.4, 0.6]
    scale, left = 435 / (11.5 * 1.08), 260 + 0.04 * 435 / 1.08  # 4% of the width are free at both ends
    main = replace(rows()[1], interval=(-7.0, 4.5))
    page = html(experiment_document(report(rows=[rows()[0], main], main=main), COVER))
    assert f'x1="{left:.1f}" x2="{left + 11.5 * scale:.1f}"' in page
    assert f'cx="{left + 8.5 * scale:.1f}"' in page
    assert intervals([], "points") is None


def marks(shapes: Any) -> list[Label]:
    return [shape for shape in shapes if isinstance(shape, Label) and re.fullmatch(r"[+-]?[\d.]+", shape.text)]


def reading(text: str, a: str, b: str, gold: str = "XX") -> TwoReadings:
    """Return a sentence with two predictions. a, b, gold: the types of its first two words, as letters; "." is none."""

    def entities(types: str) -> tuple[Entity, ...]:
        return tuple(Entity(start=i, end=i + 1, type=kind) for i, kind in enumerate(types) if kind != ".")

    tokens = tuple(text.split())
    sentence = Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=entities(gold), file="a.pdf", page=3)
    return TwoReadings(
        sentence=sentence,
        a=entities(a),
        b=entities(b),
        wrong_a=mistakes(entities(gold), entities(a)),
        wrong_b=mistakes(entities(gold), entities(b)),
    )


def test_examples_show_gains_and_losses_shortest_first_with_counts() -> None:
    readings = [
        reading("w0 w1 " * 30, "..", "XX"),
        reading("one w1", "..", "XX"),
        reading("two w1", "X.", "XX"),
        reading("three w1", ".X", "XX"),
        reading("four w1", "XX", "YX"),
        reading("five w1", "XX", "XX"),
        reading("six w1", "..", ".."),
    ]
    found = examples(readings)
    assert (found.sentences, found.better, found.worse) == (7, 4, 1)
    assert [one.text for one in found.shown] == ["one w1", "two w1", "four w1"]
    assert found.shown[0].without == "nothing"
    assert found.shown[2].having == "four (Y), w1 (X)"
    assert found.shown[2].place == "a.pdf, page 3"
    assert "a.pdf, page 3" in html(experiment_document(report(examples=found), COVER))
    assert [one.text for one in examples(readings[:4]).shown] == ["one w1", "two w1", "three w1"]
    assert examples(readings[5:]).shown == []


def first_page(data: bytes | Path) -> str:
    with pypdfium2.PdfDocument(data) as file:
        return " ".join(file[0].get_textpage().get_text_range().split())


def test_cover_typed_on_results_is_kept_and_used_in_every_report(home: Path, tmp_path: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    app = tab(opened(PAGE), "Download")
    app.text_input(key="results.report.firm").set_value("Ottersea & Sons").run()
    assert not app.exception
    assert tab(opened(PAGE), "Download").text_input(key="results.report.firm").value == "Ottersea & Sons"
    assert "Ottersea & Sons" in first_page(deliver.report(run.id, "pdf"))  # the report that Home offers
    write_report.main([run.id, "--output", str(tmp_path / "r.pdf"), "--author", "B. Clerk"], standalone_mode=False)
    page = first_page(tmp_path / "r.pdf")
    assert "Ottersea & Sons" in page
    assert "B. Clerk" in page
    assert deliver.last_cover().author == ""  # an author given on the command line is not stored


def test_cover_belongs_to_one_project_and_is_exported_with_it(home: Path, tmp_path: Path) -> None:
    kept = Cover(firm="Ottersea", project="Leases", author="A. Lawyer", date="1 May 2026")
    deliver.keep_cover(kept)
    assert deliver.last_cover() == replace(kept, date=deliver.today())
    here = projects.current()
    projects.export(here, tmp_path / "p.zip")
    with within(projects.new("Another").slug):
        assert deliver.last_cover() == Cover(date=deliver.today())
    with (tmp_path / "p.zip").open("rb") as file:
        again = projects.bring_in(file, "p.zip", "Leases again")
    with within(again.slug):
        assert deliver.last_cover().firm == "Ottersea"


@pytest.mark.parametrize("data", ["", "[]", '{"firm": 3, "author": {}}', json.dumps({"firm": "x" * 5000})])
def test_damaged_cover_file_is_ignored_and_long_fields_are_cut(home: Path, data: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / COVER_FILE).write_text(data, encoding="utf-8")
    assert len(deliver.last_cover().firm) <= LONGEST
    assert deliver.last_cover().author == ""


LONG_NAME = "the task's own text and all of the domain corpus, from the encoder my-own-legal-encoder ▲"


def bars(*names: str) -> list[Interval]:
    return [
        Interval(name=name, value=1.0, low=-1.0, high=3.0, colour="#000000", bold=i % 2 == 1)
        for i, name in enumerate(names)
    ]


def labels(*names: str) -> list[Label]:
    """Return only the labels with names."""
    drawn = intervals(bars(*names), "points")
    assert drawn
    return [shape for shape in drawn.shapes if isinstance(shape, Label) and shape.anchor == "end"]


def test_long_name_wraps_between_words_and_moves_the_next_row_down() -> None:
    assert [label.text for label in labels("random ▲", "chosen")] == ["random ▲", "chosen"]
    lines = labels(LONG_NAME, "chosen")
    assert " ".join(line.text for line in lines[:-1]) == LONG_NAME
    assert len(lines) > 2
    short, drawn = (intervals(bars(name, "chosen"), "points") for name in ("random ▲", LONG_NAME))
    assert short
    assert [dot.y for dot in short.shapes if isinstance(dot, Dot)] == [ROW / 2, ROW * 1.5]
    assert drawn
    first, second = [dot.y for dot in drawn.shapes if isinstance(dot, Dot)]
    assert lines[0].y < first < lines[-2].y < lines[-1].y
    assert second - first > ROW
    assert max(stroke.y2 for stroke in drawn.shapes if isinstance(stroke, Stroke)) < drawn.height


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=120), min_size=1, max_size=4))
def test_no_label_of_a_picture_loses_text(names: list[str]) -> None:
    lines = labels(*names)
    assert all(width(line.text, line.size, bold=line.bold) <= LABELS for line in lines)
    assert "".join(line.text for line in lines).replace(" ", "") == "".join("".join(name.split()) for name in names)
    heights = [line.y for line in lines]
    assert heights == sorted(heights)


def test_a_picture_of_many_rows_fits_its_page() -> None:
    names = [f"{LONG_NAME.removesuffix(' ▲')} {number}" for number in range(30)]
    drawn = intervals(bars(*names), "points of 100")
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
    with ZipFile(BytesIO(as_docx(document))) as file:
        (high,) = re.findall(r'<wp:extent cx="\d+" cy="(\d+)"', file.read("word/document.xml").decode())
    assert int(high) / 36_000 <= 230  # mm
