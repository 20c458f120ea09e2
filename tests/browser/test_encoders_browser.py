"""From "which encoder?" to a tagger of it, with nothing fetched that nobody agreed to."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.facade import corpora, encoders, results, runs
from tests.browser.driver import Server, left, pick, settled, tick
from tests.browser.test_buttons_browser import LARGER
from tests.browser.test_every_page import STILL
from tests.browser.test_spy_browser import guard, talked  # noqa: F401
from tests.browser.test_training_browser import PANEL, ask, labelled, press
from tests.patience import until


def test_encoders_are_ranked_one_is_trained_and_a_larger_one_is_fetched_only_where_somebody_agrees(
    guard: Path,  # noqa: F811
    page: Page,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(guard / "home"))
    for name in ("EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    for name, value in {
        "CONFIG_FILE": "/dev/null",
        "INDEX_URL": "https://index.example/simple",
        "RETRIES": "0",
    }.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for role, n in (("train", 60), ("dev", 20), ("test", 20)):
        corpora.set_role(role, labelled(guard / "home", f"my-{role}", n).fingerprint)
    with Server(home=guard / "home", data=guard) as server:
        server.start()
        page.goto(f"{server.url}/Training")
        settled(page)
        page.get_by_text(LARGER, exact=True).click()
        settled(page)
        get = page.get_by_role("button", name="Get mpnet", exact=True)
        expect(get).to_be_disabled()
        get.click(force=True)
        settled(page)

        page.get_by_text("Which encoder, and which of its layers?", exact=True).click()
        pick(page, "Encoders to rank", re.compile("tiny"), typed="tiny")
        page.keyboard.press("Escape")  # the list lies over the button
        press(page, "Rank them (seconds each)")
        ranks = page.get_by_role("table", name="Encoders, the best fit first")
        expect(ranks).to_be_visible(timeout=600_000)
        settled(page)
        [rank] = runs.listed("rank")
        assert sorted(ranks.locator("tbody td:first-child").all_inner_texts()) == sorted(
            rank.manifest.config["encoders"]
        )

        ask(page, "1", 3)
        panel = page.locator(PANEL)
        expect(panel.get_by_text("Finished").first).to_be_visible(timeout=600_000)
        [tuned] = runs.listed("finetune")
        assert tuned.manifest.config["init"] == "tiny"
        test = results.tuned(tuned.id).test
        assert test
        score = page.get_by_test_id("stMetric").filter(has_text="Test score (F1)")
        expect(score.get_by_test_id("stMetricValue")).to_have_text(f"{test.f1:.1f}")
        settled(page)

        assert not runs.listed("fetch")
        assert talked(guard) == ""
        page.goto(f"{server.url}/Training")
        settled(page)
        page.get_by_text("What to train", exact=True).first.click()
        settled(page)
        page.wait_for_function(STILL)  # what moves between the mouse's going down and up is not clicked
        page.get_by_text(LARGER, exact=True).click()
        settled(page)
        expect(page.get_by_text("index.example")).to_be_visible()
        tick(page, "I agree that mpnet is fetched from there")
        press(page, "Get mpnet")
        expect(page.get_by_text("could not be fetched").first).to_be_visible()
        until(lambda: "getaddrinfo ('index.example', 443" in talked(guard), "who agrees is obeyed")
        assert not [each for each in encoders.offered() if each.here]
        left(page)
