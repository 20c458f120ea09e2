"""A choice that was made is kept, as a person at a browser would see it: reload, other page, folder."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from core.corpora.corpus import Library
from core.facade import corpora, runs
from tests.browser.driver import Server, settled
from tests.conftest import sentence
from tests.planted import contracts, kitchen


@pytest.fixture
def select(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished selection of a fifth of 1,000 sentences, in the server's home."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for name, lines in (("task", contracts(40, seed=1)), ("domain", [*contracts(500, seed=2), *kitchen(500)])):
        corpus = Library(server.home).seal(map(sentence, lines), name=name, origin={}, labelled=False)
        corpora.set_role(name, corpus.fingerprint)
    options = {**corpora.roles(), "strategy": "random", "budget": "20%"}
    return runs.execute("select", {**options, "keep": corpora.FLAGS}).id


def stands(page: Page, run_id: str) -> None:
    """20.2% in the heading, the numbers, the address and the command."""
    expect(page.get_by_text("Select 20.2% of domain by random")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("202")
    expect(page.get_by_test_id("stSliderThumbValue")).to_have_text("20.2%")
    expect(page).to_have_url(re.compile(f"run={run_id}&budget={quote('20.2%')}$"))
    settled(page)


def test_a_moved_slider_outlives_reload_and_page_switch_and_goes_into_a_folder(
    server: Server, page: Page, select: str
) -> None:
    page.goto(f"{server.url}/Selection")
    settled(page)
    label = page.get_by_test_id("stSlider").get_by_test_id("stWidgetLabel").bounding_box()
    value = page.get_by_test_id("stSliderThumbValue").bounding_box()
    assert label
    assert value
    assert label["y"] + label["height"] <= value["y"] + 1
    slider = page.get_by_role("slider")
    for _ in range(2):
        slider.press("ArrowRight")
    stands(page, select)
    page.reload()
    stands(page, select)
    page.get_by_role("link", name="Corpora").first.click()
    expect(page.get_by_role("heading", name="Corpora", exact=True)).to_be_visible()
    settled(page)
    page.get_by_role("link", name="Selection").first.click()
    stands(page, select)
    page.get_by_text("folder for datasets").click()
    settled(page)
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_text("Written to:", exact=True)).to_be_visible()
    folder = server.home / "exports" / f"S_C-{select[-4:]}-20.2pct"
    assert (folder / "selected.parquet").exists()
    page.get_by_text("The same on the command line").click()
    command = page.get_by_test_id("stCode").get_by_text("core select")
    expect(command).to_contain_text("--budget 20.2%")
    expect(command).to_contain_text(f"--keep {corpora.FLAGS[0]}")
    expect(command).to_contain_text(f"--output {Path(folder).name} --format folder")
