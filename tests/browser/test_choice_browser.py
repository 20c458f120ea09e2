"""A choice that was made is kept, as a person at a browser would see it: reload, other page, folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.facade import choices, corpora, runs, selections
from tests.browser import test_explore_browser as explore
from tests.browser.driver import ROOT, Server, pick, settled
from tests.browser.test_explore_browser import MAP, Points, lasso, press
from tests.conftest import sentence
from tests.planted import contracts, kitchen

built, mapped = explore.built, explore.mapped  # its fixtures


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
    expect(page).to_have_url(re.compile(f"[?]choice={run_id}$"))
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
    folder = server.home / "exports" / f"choice-{select[-4:]}-20.2pct"
    assert (folder / "selected.parquet").exists()
    page.get_by_text("The same on the command line").click()
    command = page.get_by_test_id("stCode").get_by_text("core select")
    expect(command).to_contain_text("--budget 20.2%")
    expect(command).to_contain_text(f"--keep {corpora.FLAGS[0]}")
    expect(command).to_contain_text(f"--output {Path(folder).name} --format folder")


def counts_of(page: Page, n: int) -> None:
    """So many sentences are selected, by the heading's numbers."""
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(f"{n:,}")
    settled(page)


def test_map_health_export_command_and_training_speak_of_the_choice_that_is_taken_up(
    server: Server, page: Page, mapped: tuple[str, Points], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    select, _ = mapped
    page.goto(f"{server.url}/Explore?run={select}")  # an address of an older version
    expect(page.locator(f"{MAP} .nsewdrag.drag").first).to_be_visible()
    settled(page)
    expect(page).to_have_url(re.compile(f"[?]choice={select}$"))
    lasso(page)
    page.keyboard.press("Alt+a")
    expect(page.get_by_text(re.compile("added, 0 removed"))).to_be_visible()
    settled(page)
    n = len(selections.chosen(select).rows)
    assert n > 120
    press(page, f"Keep this choice ({n})")
    page.get_by_role("textbox", name="Its name").fill("With my lasso")
    press(page, re.compile("^Keep$"))
    expect(page.get_by_text("Kept as With my lasso.")).to_be_visible()
    page.keyboard.press("Escape")
    press(page, re.compile("Undo add"))
    expect(page.get_by_text(re.compile("added, 0 removed"))).to_have_count(0)
    [kept] = [each for each in choices.listed() if each.name == "With my lasso"]
    assert (len(selections.chosen(select).rows), len(selections.chosen(kept.id).rows)) == (120, n)

    pick(page, "The choice", re.compile("^With my lasso"), typed="With my")
    expect(page).to_have_url(re.compile(f"[?]choice={kept.id}"))
    expect(page.get_by_text(f"{n - 120} added, 0 removed.")).to_be_visible()
    settled(page)
    page.get_by_role("tab", name="Health of the choice").click()
    expect(page.get_by_text(f"{n} sentences,")).to_be_visible()
    settled(page)
    page.reload()
    expect(page.get_by_text(f"{n - 120} added, 0 removed.")).to_be_visible()
    settled(page)
    page.get_by_role("link", name="Selection").first.click()
    expect(page.get_by_text(re.compile("^With my lasso:.? Select 120 sentences of domain by knn$"))).to_be_visible()
    counts_of(page, n)
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download", exact=True).click()
    assert kept.mark in caught.value.suggested_filename
    page.get_by_text("The same on the command line").click()
    words = shlex.split(page.get_by_test_id("stCode").get_by_text("core export").inner_text())
    assert words[4] == kept.id
    subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    written = tmp_path / caught.value.suggested_filename
    sent, same = Path(caught.value.path()).read_bytes(), written.read_bytes()
    assert sent == same
    assert len(sent.splitlines()) == n

    page.get_by_role("link", name="Train on this choice").click()
    picker = page.get_by_role("combobox", name="Choice", exact=True)
    expect(picker).to_have_value(re.compile("^With my lasso"))
    settled(page)
    assert len(selections.seal(kept.id)) == n
    page.goto(f"{server.url}/Explore?choice={select}.0000")
    expect(page.get_by_text(re.compile("is not here"))).to_be_visible()
