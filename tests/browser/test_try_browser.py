"""Results, Try a sentence, in a real browser: a sentence typed, its entities in colour, two taggers beside each other."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver import PATIENCE, Server, pick, settled
from tests.pages.test_results_try import two_taggers

COLOUR = "mark => getComputedStyle(mark).borderBottomColor"


def test_a_sentence_is_typed_and_two_taggers_read_it(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    two_taggers(server.home)
    page.goto(f"{server.url}/Results")
    settled(page)
    page.get_by_role("tab", name="Try a sentence").click()
    settled(page)
    for label, place in (("Tagger", 1), ("Beside it", 0)):  # the newest, which did not learn, is the first
        pick(page, label, re.compile("."), nth=place)
    page.get_by_role("textbox", name="Sentences, one a line").fill("Px a Ly\nb b b")
    page.get_by_role("button", name="Find entities").click()
    table = page.get_by_role("table", name="What you typed, with the entities that each of two taggers found")
    expect(table).to_be_visible(timeout=PATIENCE)
    settled(page)
    first = table.get_by_role("row").nth(1).get_by_role("cell")
    expect(first.nth(0)).to_have_text("Px PER a Ly LOC")
    expect(first.nth(1)).not_to_have_text("Px PER a Ly LOC")
    expect(first.nth(2)).to_have_text("no")
    colours = first.nth(0).locator("mark").evaluate_all(f"marks => marks.map({COLOUR})")
    assert len(set(colours)) == 2  # a colour a type
    expect(page.get_by_text("This is a bug in Winnow")).to_have_count(0)
    expect(page.get_by_text("sentences to try")).to_have_count(0)
