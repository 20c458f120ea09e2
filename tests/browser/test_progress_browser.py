"""A running run in a browser: the strip on other pages, no jumps on its own page, and its end."""

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import Cancelled
from core.importing import view as corpora
from core.kind import Job, as_json
from core.kinds import KINDS
from core.projects import runs
from core.runs.context import RunContext
from core.runs.store import RunStore
from core.text.sentence import Sentence, sentence_id
from core.text.words import tokenize
from tests.browser.driver import Server, loaded, settled, still
from tests.browser.test_training_browser import labelled
from tests.finished import finish
from tests.waiting import WAIT_SECONDS, until

STRIP = ".st-key-strip"
PANEL = ".st-key-selection-run-panel"
WATCH = """selector => {
    window.most = {notes: 0, late: 0};
    const count = (inner, text) => [...document.querySelectorAll(`${selector} ${inner}`)].filter(
        node => node.innerText.includes(text) && node.checkVisibility()).length;
    const look = () => {
        window.most.notes = Math.max(window.most.notes, count('summary', 'Notes and log'));
        const over = document.querySelector(selector)?.innerText.includes('Finished');
        if (over) window.most.late = Math.max(window.most.late, count('button', 'Cancel'));
        requestAnimationFrame(look);
    };
    look();
}"""

# Layout shifts without user input: the shifted share of the window, and the elements.
SHIFTED = """() => {
    window.shifts = [];
    new PerformanceObserver(list => list.getEntries().filter(shift => !shift.hadRecentInput).forEach(shift =>
        window.shifts.push([shift.value, ...shift.sources.map(({ node }) =>
            (node?.closest?.('[class*=st-key-]') ?? node?.parentElement ?? node)?.className ?? '')]))
    ).observe({ type: "layout-shift" });
}"""

# A browser that has not yet been asked for permission to notify, with its window in the background.
NOTIFIED = """
    window.told = [];
    window.Notification = class {
        static permission = "default";
        static async requestPermission() { Notification.permission = "granted"; }
        constructor(title, { body }) { window.told.push(body); }
    };
    Object.defineProperty(document, "hidden", { get: () => true });
"""
SEEN = 0.005  # largest sum of layout shifts; up to 0.1 counts as a stable page


def start_run(
    home: Path, kind: str, options: dict[str, Any], work: Callable[[RunContext], dict[str, Any]]
) -> threading.Thread:
    """Start a run that does `work` in a thread of this process, and wait until it is registered."""

    def attempt() -> None:
        with suppress(Cancelled):
            finish(home, kind, options, work)

    thread = threading.Thread(target=attempt)
    thread.start()
    until(RunStore(home).list, "the run is there")  # a page that has no run does not poll for one
    return thread


@pytest.fixture
def roles(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, Corpus]:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    made = {role: labelled(server.project, f"my-{role}", n) for role, n in (("train", 300), ("dev", 40), ("test", 40))}
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    return made


def test_progress_strip_shows_a_run_and_its_end_without_moving_pages(
    server: Server, page: Page, roles: dict[str, Corpus]
) -> None:
    names = {role: corpus.fingerprint for role, corpus in roles.items()}
    second = threading.Event()

    def work(context: RunContext) -> dict[str, Any]:
        context.part(1, 2, "seed 1")
        assert second.wait(WAIT_SECONDS)
        context.part(2, 2, "seed 2", left=40.0, after=0.0)
        for _ in range(int(20 * WAIT_SECONDS)):
            context.check()  # raises Cancelled once the test has cancelled the run
            threading.Event().wait(0.05)
        raise AssertionError("nobody cancelled this run")

    thread = start_run(server.project, "finetune", {**names, "test": (names["test"],), "init": "tiny"}, work)
    strip = page.locator(STRIP)
    page.add_init_script(NOTIFIED)
    try:
        page.goto(server.url + "/Corpora")
        title = strip.get_by_role("link", name=re.compile("Fine-tune tiny on my-train"))
        expect(title).to_be_visible()
        heading = page.get_by_role("heading", name="Corpora", exact=True)
        expect(strip.get_by_text(re.compile("Part 1 of 2"))).to_be_visible()
        expect(page.get_by_role("heading", name="All corpora")).to_be_visible()
        loaded(page)
        before = still(heading)
        page.evaluate(f"document.querySelector('{STRIP} [data-testid=stProgress]').dataset.mark = 'here'")
        second.set()
        expect(strip.get_by_text(re.compile(r"Part 2 of 2 · \d+ of about \d+ (s|min)"))).to_be_visible()
        assert page.locator(f"{STRIP} [data-mark=here]").count() == 1  # the bar was updated, not replaced
        assert heading.bounding_box() == before
        strip.get_by_role("button", name="Tell me when it ends").click()
        expect(strip.get_by_role("button")).to_have_count(0)
    finally:
        second.set()
        run = RunStore(server.project).list()[0]
        runs.cancel(run.id)
        thread.join()
    expect(strip.get_by_text("Stopped")).to_be_visible()
    page.wait_for_function("window.told.length")
    assert page.evaluate("window.told") == ["Fine-tune tiny on my-train, no further pre-training has ended."]
    strip.get_by_role("link", name=re.compile("Fine-tune tiny")).click()
    expect(page).to_have_url(re.compile(f"/Training.*run={run.id}"))
    expect(page.locator(STRIP).get_by_role("link")).to_have_count(0)


def test_the_layout_stays_still_while_a_run_is_in_progress(
    server: Server, page: Page, roles: dict[str, Corpus]
) -> None:
    names = {role: corpus.fingerprint for role, corpus in roles.items()}
    enough = threading.Event()

    def work(context: RunContext) -> dict[str, Any]:
        context.part(1, 2, "seed 1")
        context.stage("training, seed 1")
        for step in range(1, int(20 * WAIT_SECONDS)):
            context.check()
            context.progress(step, 10_000, "steps")
            context.metric("loss@1", 9.0 / step, step)
            if step % 20 == 0:
                context.metric("dev_f1@1", min(step / 10, 90.0), step)
            if enough.wait(0.05):
                break
        raise Cancelled("the test has seen enough.")

    thread = start_run(server.project, "finetune", {**names, "test": (names["test"],), "init": "tiny"}, work)
    try:
        page.goto(server.url + "/Training")
        expect(
            page.locator("[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas").first
        ).to_be_visible()
        steps = page.get_by_text(re.compile(r"\d+ of 10,000 steps")).first
        expect(steps).to_be_visible()
        expect(page.get_by_text(re.compile("^Best")).first).to_be_visible()  # the first one moves its neighbours
        settled(page)
        page.evaluate(SHIFTED)
        for _ in range(8):  # each time, the panel and the curves are redrawn
            before = steps.inner_text()
            expect(steps).not_to_have_text(before)
        moved = page.evaluate("window.shifts")
        assert sum(shift[0] for shift in moved) < SEEN, moved  # an additional digit moves only its own line
        page.evaluate("document.querySelector('[data-testid=stMain] h1').style.marginTop = '80px'")
        page.wait_for_function(f"window.shifts.some(shift => shift[0] > {SEEN})")
    finally:
        enough.set()
        thread.join()


def test_no_panel_is_shown_twice_when_a_run_ends(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch, lines: Callable[[int, int], list[str]]
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    made = {role: texts(server.project, role, lines(n, n)) for role, n in (("task", 40), ("domain", 300))}
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    options = {**{role: corpus.fingerprint for role, corpus in made.items()}, "strategy": "random"}
    go_on = threading.Event()

    def work(context: RunContext) -> dict[str, Any]:
        context.note("A note that stays.")
        context.progress(1, 2, "sentences")
        assert go_on.wait(WAIT_SECONDS)
        recipe = KINDS["select"]
        return as_json(recipe.run(recipe.config.parse(options), Job(server.project, context, KINDS)))

    thread = start_run(server.project, "select", options, work)
    try:
        page.goto(server.url + "/Selection")
        panel = page.locator(PANEL)
        expect(panel.get_by_text("Notes and log")).to_be_visible()
        expect(panel.get_by_role("button", name="Cancel")).to_be_visible()
        page.evaluate(WATCH, PANEL)
    finally:
        go_on.set()
        thread.join()
    expect(panel.get_by_text("Finished")).to_be_visible()
    settled(page)
    expect(panel.get_by_text("Notes and log")).to_be_visible()
    assert page.evaluate("window.most") == {"notes": 1, "late": 0}


def texts(home: Path, name: str, rows: list[str]) -> Corpus:
    sentences = (Sentence(id=sentence_id(text), tokens=tokenize(text), text=text) for text in rows)
    return Library(home).seal(sentences, name=name, origin={})
