"""The switch for what only experts need: it hides and shows, and a reload and another page remember it; and what a
reader sees first on Results and on Home has no word of experts."""

import re

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.facade import corpora, results
from tests import finished
from tests.browser.driver import Server, expert, settled
from tests.conftest import sentence
from tests.patience import until
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
    """A task text and a big corpus in the server's home."""
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
        expect(page.get_by_role("combobox", name="Task text", exact=False).first).to_be_visible()


# last: as far down as the first chart, or the last stop of the road.
@pytest.mark.parametrize(("place", "last"), [("Results", "classifier 10"), ("Home", "The report")])
def test_above_the_fold_no_word_is_an_experts(
    place: str, last: str, server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    run = finished.experiment(server.home, finished.corpora(server.home), finished.LINES)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{server.url}/" + (f"Results?run={run.id}" if place == "Results" else ""))
    settled(page)
    if place == "Results":
        expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()

    def seen() -> str:
        text: str = page.evaluate(ABOVE).replace("\u2060", "")
        return text if last in text and results.finding(run.id).next in text else ""

    above = until(seen, "both stand above the fold")
    assert not re.findall(r".*(?:[TDSL]_C|\b(?:F1|[Aa]rms?|Holm)\b).*", above)
