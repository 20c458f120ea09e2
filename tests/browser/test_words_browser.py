"""The switch for expert options hides and shows them, also after a reload and on other pages."""

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.importing import view as corpora
from tests.browser.driver import Server, expert, settled
from tests.conftest import sentence
from tests.planted import contracts


@pytest.fixture
def texts(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a task corpus and a domain corpus into the server's home."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for role, n in (("task", 20), ("domain", 60)):
        corpus = Library(server.home).seal(map(sentence, contracts(n, seed=n)), name=role, origin={}, labelled=False)
        corpora.set_role(role, corpus.fingerprint)


@pytest.mark.usefixtures("texts")
def test_the_expert_switch_is_remembered(server: Server, page: Page) -> None:
    switch = page.locator(".st-key-frame-expert input")
    hidden = {"Selection": "More options", "Similarity": "Sample and details"}
    for shown in (False, True, False):
        page.goto(f"{server.url}/Selection")
        settled(page)
        expert(page, shown)
        for name, what in hidden.items():
            page.goto(f"{server.url}/{name}")
            settled(page)
            expect(switch).to_be_checked(checked=shown)
            expect(page.get_by_text(what, exact=True)).to_have_count(int(shown))
        expect(page.get_by_role("combobox", name="Task corpus", exact=False).first).to_be_visible()
