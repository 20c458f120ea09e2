"""A larger encoder on Training: nothing is fetched before the user agrees."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.encoders import view as encoders
from core.importing import view as corpora
from core.projects import runs
from tests.browser.driver import Server, left, settled, tick
from tests.browser.test_buttons_browser import LARGER
from tests.browser.test_spy_browser import guard, talked  # noqa: F401
from tests.browser.test_training_browser import labelled, press
from tests.homes import project_in
from tests.waiting import until


def test_a_larger_encoder_is_fetched_only_if_the_user_agrees(
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
        corpora.set_role(role, labelled(project_in(guard / "home"), f"my-{role}", n).fingerprint)
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

        assert not runs.listed("fetch")
        assert talked(guard) == ""
        expect(page.get_by_text("index.example")).to_be_visible()
        tick(page, "I agree that mpnet is fetched from these hosts")
        press(page, "Get mpnet")
        expect(page.get_by_text("could not be fetched").first).to_be_visible()
        until(lambda: "getaddrinfo ('index.example', 443" in talked(guard), "who agrees is obeyed")
        assert not [each for each in encoders.offered() if each.here]
        left(page)
