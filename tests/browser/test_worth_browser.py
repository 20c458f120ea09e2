"""Was it worth it, as a person asks it: what could come out before it starts, and the answer wherever it stands."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from core.facade import experiments, figures, find_out, results, runs, studies
from tests import finished
from tests.browser.driver import Server, left, pick, settled
from tests.browser.test_training_browser import PANEL, press
from tests.reports.test_reports import pages

ANSWERS = ("Reading helped", "Choosing helped")
SHEET: ViewportSize = {"width": 673, "height": 1002}  # what margins leave of a printed page, in a browser's pixels
HALF = SHEET["height"] / 2  # down to the middle of the sheet
AT_A_GLANCE = 40  # words that are read in ten seconds, at 240 a minute


def test_training_says_what_an_experiment_could_show_and_takes_before_it_starts(
    server: Server, page: Page, home: Path
) -> None:
    finished.corpora(home)
    asked = experiments.calibration(find_out.options(encoder="tiny"))
    finished.finish(home, "calibrate", asked, lambda _: finished.TIMED)
    page.goto(f"{server.url}/Training")
    settled(page)
    page.get_by_role("radio", name="Experiment: was it worth it?").click()
    settled(page)
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    before = page.locator(".st-key-training-preflight")
    chance = r"This plan finds a true \+1 of classifier 10% in \d+ of 100 cases and takes [\d,]+ minutes"
    expect(before.get_by_text(re.compile(chance))).to_be_visible()
    expect(before.get_by_text("not known yet")).to_have_count(0)
    assert not runs.own("experiment")
    press(page, "Start the experiment")
    expect(page.locator(PANEL)).to_be_in_viewport()
    [experiment] = runs.own("experiment")
    assert experiment.manifest.config["effect"] == 1
    runs.cancel(experiment.id)
    expect(page.locator(PANEL).get_by_role("button", name="Resume", exact=True)).to_be_visible()
    settled(page)


@pytest.mark.road
def test_both_answers_are_the_same_on_results_on_the_road_and_in_the_report(
    server: Server, page: Page, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the report has them, whole, on half a page."""
    monkeypatch.setitem(finished.SKILL, "random", 0.65)  # whatever was read has helped
    lines = (("none", "", 0), ("classifier", "10", 60), ("random", "10", 60))
    run = finished.experiment(home, finished.corpora(home), lines)
    finding = results.finding(run.id)
    assert finding.what.startswith("Reading helped, choosing is not shown to: ")

    page.goto(server.url)
    settled(page)
    assert " ".join(finding.parts) in shown(page.locator(".st-key-road-worth"))
    first = pages(downloaded(page, "Report (.pdf)"))[0]
    assert [part for part in finding.parts if part not in first] == []

    page.goto(f"{server.url}/Results?run={run.id}")
    settled(page)
    assert finding.what in [shown(each) for each in page.get_by_role("heading", level=3).all()]
    below = shown(page.get_by_test_id("stMain"))
    assert [part for part in finding.parts if part not in below] == []
    answers = answered(page.get_by_role("table", name="Leaderboard: every variant's scores and verdict"))
    assert ["△ yes", "no evidence"] in answers
    page.get_by_role("tab", name="Take away").click()
    settled(page)
    report = downloaded(page, "Report (.html)").decode()
    left(page)

    page.emulate_media(media="print")
    page.set_viewport_size(SHEET)
    page.set_content(report)
    assert answered(page.locator("table").filter(has_text="Choosing helped")) == answers
    answer = page.locator("body > h1 + *")
    rows = page.locator("body > :not(h1, .answer, .about)").first  # below the title nothing else comes before them
    assert rows.locator("dt").all_inner_texts() == ["Asked", "How sure", "What to do", "Cost"]
    [_, *sure_and_next, _] = rows.locator("dd").all_inner_texts()
    assert [answer.inner_text(), *sure_and_next] == finding.parts
    assert bottom(rows) < HALF
    assert len(finding.what.split()) <= AT_A_GLANCE


def test_a_study_draws_every_task_and_both_means_for_each_question(server: Server, page: Page, home: Path) -> None:
    """In a narrow window too."""
    run = finished.study(home, (0.2, 2.0, 0.8))
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(f"{server.url}/Results?run={run.id}")
    settled(page)
    result = studies.board(run.id)
    assert figures.asked(result) == ["choosing", "reading"]
    for of in figures.asked(result):
        rows = figures.forest_rows(result, of)
        assert [row.name for row in rows[-2:]] == ["These, on average", "Others like these"]
        expect(page.get_by_text("Did choosing help?" if of == "choosing" else "Did reading help?")).to_be_visible()
        plot = page.locator(f".st-key-results-forest-{of}").get_by_role("figure")
        names = plot.locator(".ytick text")
        expect(names).to_have_count(len(rows))
        assert [name[:20] for name in names.all_text_contents()] == [row.name[:20] for row in reversed(rows)]
        expect(plot.locator(".scatterlayer .point")).to_have_count(3 * len(rows))  # a difference, an interval's ends
        alt = plot.get_attribute("aria-label") or ""
        assert alt.startswith(f"Points of the score over {figures.over(result, of)}, ")
        assert [row for row in rows if f"{row.name} {row.points}" not in alt] == []
        whole, title = plot.bounding_box(), plot.locator(".xtitle").bounding_box()
        assert whole
        assert title
        assert whole["x"] <= title["x"] <= title["x"] + title["width"] <= whole["x"] + whole["width"]
    table = page.get_by_role("table", name=re.compile("^The claim on every task"))
    assert table.locator("thead th").all_text_contents()[:3] == ["Task", "Choosing helped", "Reading helped"]


def shown(part: Locator) -> str:
    """What stands there, on one line, without what keeps it from becoming a link."""
    return " ".join(part.inner_text().replace("\u2060", "").split())


def downloaded(page: Page, name: str) -> bytes:
    """What a button hands over."""
    with page.expect_download() as caught:
        press(page, name)
    return Path(caught.value.path()).read_bytes()


def answered(table: Locator) -> list[list[str]]:
    """The two answers as a table has them, a variant a row."""
    heads = table.locator("thead th").all_text_contents()
    places = [heads.index(head) for head in ANSWERS]
    cells = [row.locator("td").all_text_contents() for row in table.locator("tbody tr").all()]
    return [[row[place] for place in places] for row in cells]


def bottom(part: Locator) -> float:
    """Where it ends, in pixels from the top."""
    box = part.bounding_box()
    assert box
    return box["y"] + box["height"]
