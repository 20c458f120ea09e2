"""An experiment that knows before its end: it stops at a look, and says so wherever one looks for its answer."""

import pytest
from playwright.sync_api import Page, expect

from core.facade import corpora, results, runs
from tests.browser.driver import Server, settled
from tests.browser.test_training_browser import PANEL
from tests.recipes.test_experiment import OPTIONS, fill


def test_an_experiment_that_ends_early_says_so(server: Server, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody shows a thousandth of a point: the fourth replicate is not made."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    sealed = fill(server.home)
    for role in corpora.ROLES:
        corpora.set_role(role, sealed[role].fingerprint)
    early = {"repeat": "pipeline", "seeds": (1, 2, 3, 4), "looks": (3, 4), "effect": 0.001}
    run = runs.start("experiment", {**OPTIONS, **early})
    page.goto(f"{server.url}/Training?run={run}")
    panel = page.locator(PANEL)
    expect(panel.get_by_text("Running").first).to_be_visible()
    expect(panel.get_by_text("Finished").first).to_be_visible(timeout=600_000)
    settled(page)
    planned = results.board(run).planned
    assert planned
    assert "It ended there, 1 replicate early." in planned.why
    for address, words in (("Results", [*results.finding(run).parts, planned.why]), ("", results.finding(run).parts)):
        page.goto(f"{server.url}/{address}?run={run}")
        settled(page)
        shown = " ".join(page.get_by_test_id("stMain").inner_text().replace("\u2060", "").split())
        assert [part for part in words if part not in shown] == []
