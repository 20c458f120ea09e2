"""The page Assisting as a person uses it: two corpora, a type map, the line moved, the kept sentences taken away; and
whether they help."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.corpora.library import Library
from tests.browser.driver import Server, pick, settled
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
