"""The page Assisting as a person uses it: two corpora, a type map, the line moved, the kept sentences taken away; and
whether they help."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.corpora.library import Library
from tests.browser.driver import Server, expert, pick, settled
from tests.conftest import sentence
from tests.recipes.test_skl_recipe import AWAY, HOME


@pytest.fixture
def stocked(server: Server) -> Server:
    library = Library(server.home)
    library.seal(HOME, name="home", origin={}, labelled=True)
    library.seal(
        [*AWAY, sentence("Ada of Oslo", [(0, 1, "PER"), (2, 3, "GPE")])], name="away", origin={}, labelled=True
    )
    return server


def metric(page: Page, label: str) -> Locator:
    shown = page.get_by_test_id("stMetric").filter(has_text=label).first
    return shown.get_by_test_id("stMetricValue")


def test_pick_map_score_move_export(stocked: Server, page: Page) -> None:
    page.goto(f"{stocked.url}/Assisting")
    settled(page)
    pick(page, "Primary", "home")
    pick(page, "Assisting", "away")
    pick(page, "GPE", "is LOC")
    page.get_by_role("button", name="Score its sentences").click()
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    settled(page)
    expect(metric(page, "Dropped")).to_have_text("2")
    expect(metric(page, "Kept of all")).to_have_text("66.7%")

    with page.expect_download() as caught:
        page.get_by_role("button", name="Kept sentences as CoNLL").click()
    kept = Path(caught.value.path()).read_text(encoding="utf-8")
    assert kept.count("\n\n") == 4
    assert "Oslo\tB-LOC" in kept
    assert "Jordan" not in kept

    page.get_by_role("slider").press("End")
    expect(metric(page, "Dropped")).to_have_text("0")
    expect(metric(page, "Kept of all")).to_have_text("100.0%")
    settled(page)
    expect(page.get_by_role("list", name="Kept sentences").locator("mark").first).to_be_visible()

    page.reload()
    settled(page)
    page.get_by_role("tab", name="Which entities drift").click()
    settled(page)
    page.get_by_role("textbox", name="Entity contains").fill("jord")
    page.get_by_role("textbox", name="Entity contains").press("Enter")
    expect(page.get_by_role("button", name="These 1 as CSV")).to_be_visible()
    settled(page)
    with page.expect_download() as caught:
        page.get_by_role("button", name="These 1 as CSV").click()
    assert "jordan,9.2" in Path(caught.value.path()).read_text(encoding="utf-8-sig")


def fill(page: Page, label: str, value: str) -> None:
    """A field of a form, which nothing is sent of yet."""
    box = page.get_by_label(label).and_(page.locator("input"))
    box.fill(value)
    box.press("Tab")


def test_train_alone_with_all_and_below_a_threshold(stocked: Server, page: Page) -> None:
    library = Library(stocked.home)
    for split in ("dev", "test"):
        library.seal(
            [sentence(f"Ada left Rome for {split} .", [(0, 1, "PER"), (2, 3, "LOC")])],
            name=f"home-{split}",
            origin={},
            labelled=True,
        )
    page.goto(f"{stocked.url}/Assisting")
    settled(page)
    pick(page, "Primary", "home (")
    pick(page, "Assisting", "away (")
    pick(page, "GPE", "is LOC")
    page.get_by_role("button", name="Score its sentences").click()
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    settled(page)
    expert(page)
    page.get_by_role("tab", name="Does it help?").click()
    settled(page)
    for label, choice in (
        ("Labels to decide by, of the primary corpus", "home-dev"),
        ("Labels to test on, of the same", "home-test"),
    ):
        pick(page, label, choice)
    page.get_by_role("combobox", name="Thresholds").press("Escape")
    thresholds = page.locator(".st-key-assisting-thresholds")
    thresholds.get_by_role("button", name="Clear all").click()
    pick(page, "Thresholds", re.compile("^2$"))
    page.get_by_role("combobox", name="Thresholds").press("Escape")
    fill(page, "Seeds", "1")
    page.get_by_text("More options").last.click()
    fill(page, "LSTM units a direction", "4")
    fill(page, "Epochs, at most", "1")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text("better than all of it, p below 0.05")).to_be_visible(timeout=600_000)
    settled(page)
    table = page.get_by_role("table", name="Test score alone, with all, with as many at random, with what was chosen")
    expect(table.locator("tbody td:nth-last-child(2)").last).to_have_text("2")
    expect(table.locator("tbody td").last).to_have_text("4")
    page.get_by_text("The same on the command line").last.click()
    expect(page.locator("code").last).to_contain_text("--thresholds 2")
