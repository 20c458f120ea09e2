"""The result of an experiment: the same answers on Home, on Results and in the reports."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from core.experiment import results
from tests import finished
from tests.browser.driver import Server, left, settled
from tests.browser.test_training_browser import press
from tests.experiment.test_reports import pages

ANSWERS = ("Pre-training helped", "Selection helped")
SHEET: ViewportSize = {"width": 673, "height": 1002}  # printable area of a page, in CSS pixels
HALF = SHEET["height"] / 2  # down to the middle of the sheet
AT_A_GLANCE = 40  # words that take ten seconds to read, at 240 words a minute


@pytest.mark.road
def test_home_results_and_reports_give_the_same_two_answers(
    server: Server, page: Page, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report gives both answers in full on half a page. A download from a deleted run names the missing run."""
    monkeypatch.setitem(finished.SKILL, "random", 0.65)  # pre-training helps, also on random text
    lines = (("none", "", 0), ("classifier", "10", 60), ("random", "10", 60))
    run = finished.experiment(home, finished.corpora(home), lines)
    finding = results.finding(run.id)
    assert finding.what.startswith("Helped, but there is no evidence that the selection helped: ")

    page.goto(server.url)
    settled(page)
    assert f"{finding.what} {finding.next}" in shown(page.locator(".st-key-road-worth"))
    first = pages(downloaded(page, "Report (.pdf)"))[0]
    answer_parts = [finding.word, finding.sentence, finding.next, finding.sure]
    assert [part for part in answer_parts if part not in first] == []

    page.goto(f"{server.url}/Results?run={run.id}")
    settled(page)
    assert [shown(each) for each in page.get_by_role("heading", level=2).all()] == [finding.word]
    assert finding.sentence in [shown(each) for each in page.get_by_role("heading", level=5).all()]
    page.get_by_text("How sure this is").click()
    expect(page.get_by_text(finding.sure.split(". ")[0])).to_be_visible()
    below = shown(page.get_by_test_id("stMain"))
    assert [part for part in answer_parts if part not in below] == []
    answers = answered(page.get_by_role("table", name="Leaderboard: every variant's scores and verdict"))
    assert ["△ yes", "no evidence"] in answers
    page.get_by_role("tab", name="Download").click()
    settled(page)
    report = downloaded(page, "Report (.html)").decode()
    shutil.rmtree(run.path)  # as another window or the user may do
    press(page, "Table (.csv)")
    expect(page.get_by_test_id("stDownloadButtonError")).to_contain_text(f"There is no run '{run.id}' in this project")
    left(page)

    page.emulate_media(media="print")
    page.set_viewport_size(SHEET)
    page.set_content(report)
    assert answered(page.locator("table").filter(has_text="Selection helped")) == answers
    assert page.locator("body > h1 + .word").inner_text() == finding.word
    assert page.locator("body > .word + .answer").inner_text() == finding.sentence
    rows = page.locator("body > svg + dl")
    questions = rows.locator("dt").all_inner_texts()
    assert [each for each in questions if each != "Weak point"] == ["Question", "What to do", "How sure", "Cost"]
    [_, *next_and_sure] = rows.locator("dd").all_inner_texts()
    assert next_and_sure[:2] == [finding.next, f"{finding.sure} {finding.explained}"]
    assert bottom(rows) < HALF
    assert len(finding.what.split()) <= AT_A_GLANCE


def shown(part: Locator) -> str:
    """Return the text of an element on one line, without word joiners."""
    return " ".join(part.inner_text().replace("\u2060", "").split())


def downloaded(page: Page, name: str) -> bytes:
    """Return the file that a button downloads."""
    with page.expect_download() as caught:
        press(page, name)
    return Path(caught.value.path()).read_bytes()


def answered(table: Locator) -> list[list[str]]:
    """Return the two answers of each row of a table."""
    heads = table.locator("thead th").all_text_contents()
    places = [heads.index(head) for head in ANSWERS]
    cells = [row.locator("td").all_text_contents() for row in table.locator("tbody tr").all()]
    return [[row[place] for place in places] for row in cells]


def bottom(part: Locator) -> float:
    """Return the lower edge of an element, in pixels from the top."""
    box = part.bounding_box()
    assert box
    return box["y"] + box["height"]
