"""The page Label in a browser: labelling by keyboard alone; answers survive reloads and kills of the server."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.importing import view as corpora
from core.labelling import queue
from core.labelling import view as labelling
from core.labelling.queue import Queued
from core.projects import runs
from core.text.sentence import Entity
from tests.browser.driver import Server, left, settled, watched
from tests.conftest import Seal, sentence
from tests.waiting import until

N = 25
SLOWEST = """() => new Promise(resolve => {
    window.slow = [];
    new PerformanceObserver(list => window.slow.push(...list.getEntries().filter(e => e.name === 'keydown')
        .map(e => e.duration))).observe({type: 'event', durationThreshold: 16});
    resolve();
})"""


@pytest.fixture
def queued(server: Server, monkeypatch: pytest.MonkeyPatch, seal: Seal) -> str:
    """Make a queue of 25 sentences, each with one suggestion. Return its run."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    rows = [f"Tenant {i} owes Acme Ltd the rent for week {i} ." for i in range(N)]
    domain = seal([*rows, *(f"A film number {i} with a soundtrack ." for i in range(10))], "domain").fingerprint
    task = seal(["Tenant 99 owes Bolt Ltd the rent for week 99 ."], "task").fingerprint
    for role, mark in (("task", task), ("domain", domain)):
        corpora.set_role(role, mark)
    run = runs.execute("queue", {"task": task, "domain": domain, "encoder": "tiny", "n": N})
    suggested = (Entity(start=3, end=5, type="PARTY"),)
    queue.write(
        run,
        [
            Queued(row=row, id=sentence(text).id, similarity=1.0, uncertainty=0.1, entities=suggested)
            for row, text in enumerate(rows)
        ],
    )
    return run.id


def opened(page: Page, server: Server, run: str) -> Locator:
    page.goto(f"{server.url}/Label?run={run}")
    settled(page)
    editor = page.get_by_role("group", name=re.compile("^Sentence"))
    expect(editor).to_be_visible()
    return editor


def stored(run: str) -> dict[int, str]:
    return {place: answer.action for place, answer in labelling.answered(run).latest.items()}


def test_sentences_are_labelled_by_keyboard_alone_and_a_reload_loses_nothing(
    page: Page, server: Server, queued: str
) -> None:
    opened(page, server, queued)
    page.evaluate(SLOWEST)
    for _ in range(10):
        page.keyboard.press("Enter")
    page.keyboard.press("s")
    page.keyboard.press("f")
    page.reload()
    settled(page)
    expect(page.get_by_text("10 of 25 labelled · 1 skipped · 1 flagged")).to_be_visible()
    assert stored(queued) == {**dict.fromkeys(range(10), "label"), 10: "skip", 11: "flag"}
    page.evaluate(SLOWEST)
    page.keyboard.press("ArrowLeft")  # moves from the suggestion to the word before it
    page.keyboard.press("1")
    page.keyboard.press("ArrowDown")  # moves to the next entity
    page.keyboard.press("Shift+ArrowRight")  # moves the entity's end
    page.keyboard.press("Enter")
    until(lambda: 12 in stored(queued), "the answer is stored")
    assert labelling.answered(queued).labelled[12] == (
        Entity(start=2, end=3, type="PARTY"),
        Entity(start=3, end=6, type="PARTY"),
    )
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    until(lambda: labelling.answered(queued).labelled.get(13) == (), "a sentence without entities is stored")
    page.keyboard.press("u")
    until(lambda: 13 not in stored(queued), "the answer is undone")
    for _ in range(12):
        page.keyboard.press("Enter")
    expect(page.get_by_text("Every sentence has an answer.").first).to_be_visible()
    until(lambda: len(stored(queued)) == N, "all answers are stored")
    assert median([0, *page.evaluate("window.slow")]) < 100  # milliseconds from a key press to the next frame
    expect(page.get_by_text(re.compile("too fast to read"))).to_be_visible()


def test_words_are_marked_by_mouse_and_a_new_type_gets_a_key(page: Page, server: Server, queued: str) -> None:
    editor = opened(page, server, queued)
    page.get_by_label("New type").fill("WEEK")
    page.get_by_role("button", name="Add type").click()
    expect(page.get_by_role("button", name="2WEEK")).to_be_visible()
    words = editor.locator(".token")
    words.nth(8).hover()
    page.mouse.down()
    words.nth(9).hover()
    page.mouse.up()
    page.get_by_role("button", name="2WEEK").click()
    page.get_by_role("button", name="Accept").click()
    until(lambda: 0 in stored(queued), "the answer is stored")
    assert labelling.answered(queued).labelled[0] == (
        Entity(start=3, end=5, type="PARTY"),
        Entity(start=8, end=10, type="WEEK"),
    )
    page.get_by_role("button", name="Add to the training set").click()
    expect(page.get_by_text("1 sentence labelled: 1 sentence, now the training set.")).to_be_visible()


def test_marked_words_return_after_a_flag_and_an_undo(page: Page, server: Server, queued: str) -> None:
    marks = opened(page, server, queued).locator("mark")
    for key in ("ArrowLeft", "1", "f"):
        page.keyboard.press(key)
    until(lambda: 0 in stored(queued), "the answer is stored")
    page.keyboard.press("u")
    expect(marks).to_have_count(2)
    until(lambda: not stored(queued), "the undo is stored")
    page.keyboard.press("f")
    until(lambda: 0 in stored(queued), "the second flag is stored")  # else it could arrive after the button's answer
    page.reload()
    settled(page)
    page.get_by_role("button", name="Show 1 flagged again").click()
    until(lambda: not stored(queued), "the flag is removed")
    # The tab may not know yet that its flag was stored. It must not apply the flag again after the reload.
    flag = next(one for one in reversed(labelling.answered(queued).history) if one.action == "flag")
    sent = {"action": "flag", "place": 0, "entities": [], "seconds": 0, "annotator": ""}
    unacknowledged = json.dumps([{**sent, "client": flag.client, "number": flag.number}])
    page.evaluate("outbox => sessionStorage.setItem(...outbox)", [f"winnow.label.{queued}.", unacknowledged])
    page.reload()
    expect(marks).to_have_count(2)
    assert labelling.answered(queued).labelled == {}


@pytest.mark.full
def test_words_are_marked_by_a_finger(browser: Browser, server: Server, queued: str) -> None:
    """A drag along the line marks words. The page scrolls only vertically."""
    labelling.add_type("WEEK")
    with watched(browser, has_touch=True, viewport={"width": 900, "height": 900}) as context:
        page = context.new_page()
        words = opened(page, server, queued).locator(".token")
        first, last = (box for at in (8, 9) if (box := words.nth(at).bounding_box()))
        ends = [{"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2} for box in (first, last)]
        finger = context.new_cdp_session(page)
        for kind, points in (("touchStart", ends[:1]), ("touchMove", ends[1:]), ("touchEnd", [])):
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.get_by_role("button", name="2WEEK").click()
        words.nth(3).tap()
        page.get_by_role("button", name="Remove entity").click()
        page.get_by_role("button", name="Accept").click()
        until(lambda: 0 in stored(queued), "the answer is stored")
        left(page)
    assert labelling.answered(queued).labelled[0] == (Entity(start=8, end=10, type="WEEK"),)


def test_suspicious_labels_are_shown_with_their_reasons_and_corrected(
    page: Page, server: Server, monkeypatch: pytest.MonkeyPatch, seal: Seal
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    right = sentence("The tenant pays <b>Corp</b> .", [(3, 11, "ORG")])
    train = seal([right, replace(right, entities=())], "train", labelled=True)
    corpora.set_role("train", train.fingerprint)
    run = runs.execute("review", {"corpus": train.fingerprint}).id
    opened(page, server, run)
    reasons = page.get_by_role("list", name="Reasons to check these labels")
    expect(reasons).to_have_text("“<b>Corp</b>” is ORG in 1 of 2 copies of this sentence.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 1 checked")).to_be_visible()
    expect(reasons).to_be_hidden()
    page.get_by_role("button", name="Use the corrected labels").click()
    expect(page.get_by_text("train, 1 sentence corrected: 2 sentences, now the train set.")).to_be_visible()


@pytest.mark.full
def test_a_server_killed_between_answers_neither_loses_nor_repeats_one(page: Page, server: Server, queued: str) -> None:
    opened(page, server, queued)
    for turn in range(20):
        settled(page)  # on a busy machine, the page may still be drawn again after the restart, and then ignores a key
        page.keyboard.press("Enter")
        server.stop(signal.SIGKILL)
        page.keyboard.press("s" if turn % 4 == 3 else "ArrowLeft")
        server.start()
        n = turn + 1 + (turn + 1) // 4
        until(lambda n=n: len(stored(queued)) == n, f"{n} answers are stored")  # type: ignore[misc]
    history = labelling.answered(queued).history
    assert len(history) == len({(one.client, one.number) for one in history}) == len(stored(queued))


def test_arrow_keys_follow_right_to_left_text_and_unspaced_letters(
    page: Page, server: Server, monkeypatch: pytest.MonkeyPatch, seal: Seal
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    texts = ["المستأجر يدفع الإيجار", "甲方支付租金"]
    domain = seal(texts, "domain").fingerprint
    run = runs.execute("queue", {"task": domain, "domain": domain, "strategy": "random", "encoder": "tiny", "n": 2})
    queue.write(
        run,
        [
            Queued(row=row, id=sentence(text).id, similarity=1.0, uncertainty=0.0, entities=())
            for row, text in enumerate(texts)
        ],
    )
    labelling.add_type("PARTY")
    opened(page, server, run.id)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    until(lambda: len(stored(run.id)) == 2, "both answers are stored")
    found = labelling.answered(run.id).labelled
    assert found[0] == (Entity(start=1, end=2, type="PARTY"),)
    assert found[1] == (Entity(start=0, end=2, type="PARTY"),)


def test_no_text_is_kept_in_the_browser(page: Page, server: Server, queued: str) -> None:
    opened(page, server, queued)
    server.stop(signal.SIGKILL)
    page.keyboard.press("Enter")
    kept = page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
    assert "winnow.label" in kept
    assert "PARTY" in kept
    assert not re.search("Acme|Tenant|rent", kept)
    server.start()
    until(lambda: len(stored(queued)) == 1, "the answer is stored")
    until(lambda: not page.evaluate("Object.keys(sessionStorage).some(key => key.startsWith('winnow.label'))"), "sent")


def test_an_open_editor_follows_the_answers_of_another_window(page: Page, server: Server, queued: str) -> None:
    opened(page, server, queued)
    labelling.answer(
        queued,
        [{"action": "label", "place": n, "entities": [], "seconds": 1, "client": "x", "number": n} for n in (1, 2)],
    )
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 of 25 labelled")).to_be_visible()
    expect(page.get_by_role("group", name=re.compile("^Sentence 4 "))).to_be_visible()
    page.keyboard.press("Enter")
    until(lambda: len(stored(queued)) == 4, "the answer is stored")
    assert labelling.answered(queued).labelled[1] == ()


def test_a_file_of_answers_is_read_only_by_its_owner(server: Server, queued: str) -> None:
    labelling.answer(
        queued, [{"action": "skip", "place": 0, "entities": [], "seconds": 1.0, "client": "t", "number": 0}]
    )
    [file] = Path(server.home).rglob("answers.jsonl")
    assert file.stat().st_mode & 0o077 == 0
