"""The switch for what only experts need: it hides and shows, and a reload and another page remember it; and what a
reader sees first on Results and on Home has no word of experts."""

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.facade import corpora
from tests.browser.driver import Server, expert, settled
from tests.conftest import sentence
from tests.planted import contracts

# Whatever is written in the first 900 px, charts included.
ABOVE = """() => {
  const walk = document.createTreeWalker(document.querySelector('[data-testid=stMain]'), NodeFilter.SHOW_TEXT);
  const lines = [];
  while (walk.nextNode()) {
    const box = walk.currentNode.parentElement.getBoundingClientRect();
    if (box.top < 900 && box.height && walk.currentNode.textContent.trim()) lines.push(walk.currentNode.textContent);
  }
  return lines.join("\\n");
}"""


@pytest.fixture
def texts(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task corpus and a domain corpus in the server's home."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for role, n in (("task", 20), ("domain", 60)):
        corpus = Library(server.home).seal(map(sentence, contracts(n, seed=n)), name=role, origin={}, labelled=False)
        corpora.set_role(role, corpus.fingerprint)


@pytest.mark.usefixtures("texts")
def test_the_switch_hides_and_shows_and_is_remembered(server: Server, page: Page) -> None:
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
