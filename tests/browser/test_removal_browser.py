"""Removing, in a browser: a popover that leads to the run which is in the way; a download of what is gone."""

import re
import shutil

import pytest
from playwright.sync_api import Page, expect

from core.facade import corpora as facade_corpora
from core.facade import runs
from core.facade.home import store
from core.recipes.base import register
from tests.browser.driver import Server, settled
from tests.finished import LINES, at_work, corpora, experiment


def test_the_popover_links_to_the_run_at_work(server: Server, page: Page) -> None:
    made = corpora(server.home)
    recipe = runs.RECIPES["finetune"]
    marks = {name: made[name].fingerprint for name in ("train", "dev")}
    with at_work(register(recipe, recipe.config.parse({"init": "tiny", **marks}), store())) as run:
        page.goto(server.url + "/Corpora")
        settled(page)
        page.get_by_role("button", name="Remove a corpus").click()
        popover = page.get_by_test_id("stPopoverBody")
        popover.get_by_role("combobox").click()
        page.get_by_role("option", name=re.compile("^my train")).click()
        expect(popover.get_by_text("a run at work may need it")).to_be_visible()
        expect(popover.get_by_role("button", name="Remove it")).to_have_count(0)
        settled(page)
        popover.get_by_role("link", name="Fine-tune tiny on my train").click()
        expect(page.get_by_role("heading", name="Training", exact=True)).to_be_visible()
        expect(page).to_have_url(re.compile(rf"/Training\?run={run.id}$"))
        expect(page.get_by_role("button", name="Stop and keep", exact=True)).to_be_visible()
    assert facade_corpora.find("my train")


def test_a_download_of_a_run_that_is_gone_is_told_in_words_of_ours(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    run = experiment(server.home, corpora(server.home), LINES[:2])
    page.goto(f"{server.url}/Results?run={run.id}")
    settled(page)
    page.get_by_role("tab", name="Take away").click()
    settled(page)
    shutil.rmtree(run.path)  # by another window, or by hand
    page.get_by_role("button", name="Table (.csv)").click()
    expect(page.get_by_test_id("stDownloadButtonError")).to_contain_text(f"There is no run '{run.id}' in this project")
    settled(page)
