"""Who reports, on what: typed once, kept with the project, and printed by page, Home and command alike."""

import json
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest

from core.experiment import deliver
from core.experiment.cli import write_report
from core.experiment.deliver import LONGEST
from core.experiment.report.parts import Cover
from core.paths import within
from core.project_list import COVER_FILE
from core.projects import view as projects
from tests import finished
from tests.pages.test_pages import opened
from tests.pages.test_results import PAGE, tab


def first_page(data: bytes | Path) -> str:
    with pypdfium2.PdfDocument(data) as file:
        return " ".join(file[0].get_textpage().get_text_range().split())


def test_what_is_typed_on_results_is_there_again_and_in_every_report(home: Path, tmp_path: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    app = tab(opened(PAGE), "Download")
    app.text_input(key="results.report.firm").set_value("Ottersea & Sons").run()
    assert not app.exception
    assert tab(opened(PAGE), "Download").text_input(key="results.report.firm").value == "Ottersea & Sons"
    assert "Ottersea & Sons" in first_page(deliver.report(run.id, "pdf"))  # as Home hands it out
    write_report.main([run.id, "--output", str(tmp_path / "r.pdf"), "--author", "B. Clerk"], standalone_mode=False)
    page = first_page(tmp_path / "r.pdf")
    assert "Ottersea & Sons" in page
    assert "B. Clerk" in page
    assert deliver.last_cover().author == ""  # a command says it of one report


def test_it_is_its_project_s_alone_and_goes_along_with_it(home: Path, tmp_path: Path) -> None:
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
def test_a_spoilt_one_is_nothing_and_a_long_one_is_cut(home: Path, data: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / COVER_FILE).write_text(data, encoding="utf-8")
    assert len(deliver.last_cover().firm) <= LONGEST
    assert deliver.last_cover().author == ""
