"""The page Bias as a person uses it: measure, watch, click a bar, review five labels, undo, export, rebuild, compare."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.facade import bias, corpora, runs
from tests.browser.driver import PATIENCE, Server, expert, insisting, pick, settled, still


@pytest.fixture
def stocked(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    corpora.open_sample("legal")
    return server


def measure(page: Page) -> None:
    """As quick as it gets: the tiny encoder, two folds, an epoch."""
    pick(page, "Encoder", re.compile("tiny"), typed="tiny")
    expert(page)
    page.get_by_role("radio", name="Custom").click()
    for label, value in (("Folds", "2"), ("Entity epochs", "1"), ("Context epochs", "1")):
        box = page.get_by_label(re.compile(f"^{label}")).and_(page.locator("input"))
        box.fill(value)
        box.press("Enter")
        settled(page)
    page.get_by_role("button", name="Measure", exact=True).click()


def click_a_bar(page: Page) -> None:
    """The tallest one, where a person would click it. All three bins are drawn as bars of one panel."""
    chart = page.locator("[class*=st-key-bias-ceim] .stPlotlyChart")
    expect(chart.locator(".bars .point path").first).to_be_visible()

    def click() -> None:
        still(chart)
        boxes = [bar.bounding_box() for bar in chart.locator(".bars .point path").all()]
        tallest = max((box for box in boxes if box), key=lambda box: box["height"])
        page.mouse.click(tallest["x"] + tallest["width"] / 2, tallest["y"] + tallest["height"] / 2)

    insisting(page, click)


def test_measure_watch_click_review_undo_export_rebuild(stocked: Server, page: Page) -> None:
    page.goto(f"{stocked.url}/Bias")
    settled(page)
    measure(page)
    panel = page.locator(".st-key-bias-run-panel")
    expect(panel.get_by_text("Running")).to_be_visible()
    expect(panel.get_by_text("Finished")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("What tells the type, mention by mention")).to_be_visible()
    settled(page)

    click_a_bar(page)
    listed = page.get_by_role("list", name="Sentences with the mention highlighted")
    expect(listed.locator("mark").first).to_be_visible()
    settled(page)
    run = runs.listed("difficulty", state="succeeded")[0].id
    found = bias.measured(run)
    sizes = [int((found.bars == bar).sum()) for bar in set(found.bars.tolist())]
    expect(page.get_by_text(re.compile(rf"^{max(sizes):,} mentions? with a name less context"))).to_be_visible()

    page.get_by_role("tab", name="Suspicious labels").click()
    for number in range(1, 5):
        page.get_by_role("button", name="Label is right").click()
        expect(page.get_by_text(re.compile(f"^{number} of [0-9,]+ reviewed, 0 changed"))).to_be_visible()
        settled(page)
    pick(page, "It should be", "no entity here")
    page.get_by_role("button", name="Fix", exact=True).click()
    expect(page.get_by_text(re.compile("^5 of [0-9,]+ reviewed, 1 changed"))).to_be_visible()
    settled(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(re.compile("^4 of [0-9,]+ reviewed, 0 changed"))).to_be_visible()
    settled(page)
    with page.expect_download() as caught:
        page.get_by_role("button", name="Corrected labels as CoNLL").click()
    assert Path(caught.value.path()).read_text(encoding="utf-8").count("\n\n") == len(found.corpus)
    with page.expect_download() as caught:
        page.get_by_role("button", name="Log of the reviews as CSV").click()
    assert Path(caught.value.path()).read_text(encoding="utf-8-sig").count(",accept,") == 4

    page.get_by_role("tab", name="Rebuild").click()
    pick(page, "Method", re.compile("random2low"))
    expect(page.get_by_role("region", name="Mentions to draw from, by type")).to_be_visible()
    page.get_by_role("button", name="Rebuild", exact=True).click()
    expect(page.get_by_role("list", name="Changes").get_by_text("before").first).to_be_visible(timeout=PATIENCE)
    settled(page)
    with page.expect_download() as caught:
        page.get_by_role("button", name="CoNLL", exact=True).click()
    made = runs.get(runs.listed("rebuild")[0].id).result()
    assert Path(caught.value.path()).read_text(encoding="utf-8").count("\n\n") == made["sentences"]
    assert made["changed"] > 0
