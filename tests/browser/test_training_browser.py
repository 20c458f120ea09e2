"""Training in a browser: live curves, a reload, stop, resume, the result."""

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.importing import view as corpora
from core.projects import runs
from core.text.sentence import Entity, Sentence, sentence_id
from tests.browser.driver import Server, expert, pick, settled
from tests.waiting import frozen, within

PANEL = ".st-key-training-run-panel"
CHART = "[data-testid=stVegaLiteChart] svg"
MORE = """before => Number(
    document.body.innerText.match(/Step [\\d,]+ · ([\\d,]+) points/)?.[1].replaceAll(',', '')) > before"""
MOVED = re.compile(r"Step [\d,]+ · ([\d,]+) points")


def labelled(home: Path, name: str, n: int) -> Corpus:
    """Write labelled sentences whose entity types follow from the first letters of the names."""

    def sentence(i: int) -> Sentence:
        tokens = (f"Ada{i}", "of", f"Corp{i}", "signs", "the", "deed", name, ".")
        entities = (Entity(start=0, end=1, type="PER"), Entity(start=2, end=3, type="ORG"))
        text = " ".join(tokens)
        return Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=entities)

    return Library(home).seal(map(sentence, range(n)), name=name, origin={}, labelled=True)


@pytest.fixture
def parts(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a training set, a dev set and a test set into the server's home."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for role, n in (("train", 300), ("dev", 40), ("test", 40)):
        corpora.set_role(role, labelled(server.project, f"my-{role}", n).fingerprint)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def ask(page: Page, seeds: str, epochs: int) -> None:
    """Fill in the form and fine-tune `tiny` for a number of epochs."""
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    expert(page)
    page.get_by_role("radio", name="Custom").click()
    for label, value in (("Seeds", seeds), ("Epochs", str(epochs)), ("Patience", str(epochs))):
        box = page.get_by_label(re.compile(rf"^{label}(?! on the corpus)"), exact=False).and_(page.locator("input"))
        box.fill(value)
    box.press("Enter")
    settled(page)
    press(page, "Fine-tune")


def points(page: Page) -> int:
    """Return the number of points in the curves on the page."""
    shown = MOVED.search(page.get_by_text(MOVED).inner_text())
    assert shown
    return int(shown[1].replace(",", ""))


def worker(run_id: str) -> int:
    """Return the process of the run's worker."""
    found = runs.get(run_id).worker()
    assert found
    return found.pid


@pytest.mark.road
@pytest.mark.usefixtures("parts")
def test_a_training_shows_live_curves_and_can_be_reloaded_stopped_and_resumed(server: Server, page: Page) -> None:
    page.goto(server.url + "/Training")
    settled(page)
    ask(page, "1", 20)  # takes about 15 s, of which two refreshes of the page take at most 5 s
    panel = page.locator(PANEL)
    expect(panel.get_by_text("Running")).to_be_in_viewport()  # the form has closed, so the panel is visible
    expect(page.locator(CHART).first).to_be_visible()
    first = next(run.id for run in runs.listed("finetune"))

    line = page.locator(f"{CHART}[data-mark=here]").first.locator(".mark-line path").first
    with frozen(worker(first)):  # even a fast machine must not finish before the checks below
        page.evaluate(f"document.querySelectorAll('{CHART}').forEach(chart => chart.dataset.mark = 'here')")
        page.evaluate("window.unbroken = true")
        expect(line).to_have_attribute("d", re.compile("."))
        drawn, before = line.get_attribute("d") or "", points(page)
    page.wait_for_function(MORE, arg=before)
    expect(line).not_to_have_attribute("d", drawn)  # the chart was updated, not replaced
    with frozen(worker(first)):
        assert page.evaluate("window.unbroken")  # the page was not reloaded
        page.reload()
        with within(3):
            expect(panel.get_by_text("Running")).to_be_visible()
        expect(page.get_by_role("button", name="Stop and keep", exact=True)).to_have_count(1)
        press(page, "Stop and keep")
        expect(panel.get_by_text("Stopping")).to_be_visible()
    expect(panel.get_by_text("Stopped").first).to_be_visible()
    expect(page.get_by_text("Resume continues from it, and the curve continues too")).to_be_visible()
    kept = points(page)
    press(page, "Resume")
    expect(panel.get_by_text("Finished")).to_be_visible(timeout=600_000)
    page.wait_for_function(MORE, arg=kept)
    expect(page.get_by_text("Test score (F1)", exact=True)).to_be_visible()
    expect(page.get_by_text(str(server.project / "runs" / first / "artifacts" / "model"), exact=True)).to_be_visible()
    page.get_by_role("link", name=re.compile("page Results")).click()
    expect(page.get_by_role("heading", name="Results", exact=True)).to_be_visible()
    settled(page)


@pytest.mark.usefixtures("parts")
def test_a_killed_worker_shows_within_ten_seconds_and_can_be_resumed(server: Server, page: Page) -> None:
    page.goto(server.url + "/Training")
    settled(page)
    ask(page, "1", 200)
    panel = page.locator(PANEL)
    expect(page.locator(CHART).first).to_be_visible()
    [run] = runs.listed("finetune")
    kept = points(page)
    os.kill(worker(run.id), signal.SIGKILL)
    with within(10):
        expect(panel.get_by_text("Interrupted")).to_be_visible()
    expect(page.get_by_text("Notes and log")).to_be_visible()
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(panel.get_by_text("Running")).to_be_visible()
    page.wait_for_function(MORE, arg=kept)
    assert [found.id for found in runs.listed("finetune")] == [run.id]
    assert runs.state(run.id).attempts == 2
    press(page, "Stop and keep")
    expect(panel.get_by_text("Stopped").first).to_be_visible()
