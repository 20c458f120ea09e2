"""The cheapest way to the next point: choose lines, run them, read the sentence, follow its button to the form."""

import re
from dataclasses import asdict, replace

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.experiment import next_step, results
from core.experiment.result import Cheapest
from core.importing import view as corpora
from core.kind import as_json
from core.projects import runs
from core.text.sentence import Entity, Sentence, sentence_id
from tests import finished
from tests.browser.driver import Server, pick, settled
from tests.browser.test_training_browser import PANEL, labelled, press
from tests.browser.test_worth_browser import shown
from tests.waiting import until

FIELDS = {"Seeds": "1, 2", "Fine-tuning: epochs, at most": "4", "Fine-tuning: sentences a step": "4"}
OPEN = Cheapest(line="", words="Which way to the next point is the cheapest is not known.", times=2)


@pytest.fixture
def lists(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a training set, a dev set, a test set, and a list with a name of every second test sentence."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for role, n in (("train", 100), ("dev", 30), ("test", 40)):
        corpora.set_role(role, labelled(server.project, f"my-{role}", n).fingerprint)

    def name(i: int) -> Sentence:
        text, entity = f"Ada{i}", Entity(start=0, end=1, type="PER")
        return Sentence(id=sentence_id(text), tokens=(text,), text=text, entities=(entity,))

    origin = {"format": "names"}
    Library(server.project).seal(map(name, range(0, 40, 2)), name="my-names", origin=origin, labelled=True)


def several(page: Page, label: str | re.Pattern[str], key: str, *options: str) -> None:
    """Choose options of a field that takes several; choose again what a rerun on a busy machine has dropped.

    Its open list hides the rest of the page from queries by role, so it is closed after each choice.
    """
    field = page.locator(f".st-key-training-experiment-{key}")

    def chosen() -> bool:
        missing = [option for option in options if option not in field.inner_text()]
        for option in missing:
            pick(page, label, re.compile(re.escape(option)))
            page.keyboard.press("Escape")
            settled(page)
        return not missing

    until(chosen, f"{options} are chosen")


@pytest.mark.usefixtures("lists")
def test_lines_are_chosen_run_and_the_button_of_the_sentence_fills_in_the_form_that_decides(
    server: Server, page: Page
) -> None:
    page.goto(server.url + "/Training")
    settled(page)
    page.get_by_role("radio", name="Experiment: was it worth it?").click()
    settled(page)
    page.get_by_text("Sources, borrowed labels, lists of names").click()
    several(page, re.compile("^Lists of names for the variants"), "dictionary", "my-names")
    page.get_by_text("Other uses of the time: more labels").click()
    several(page, "Also compare other uses of the time", "arms-labels", "(none+dictionary)")
    expect(page.get_by_role("table", name="What each picked variant takes")).to_contain_text("(none+dictionary)")
    page.get_by_text("No training: lists of names").click()
    several(page, "Also compare without training", "arms-ready", "(dictionary)")
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    for label, value in FIELDS.items():
        field = page.get_by_label(label, exact=True).and_(page.locator("input"))
        field.fill(value)
        field.press("Enter")
        settled(page)
    press(page, "Start the experiment")

    expect(page.locator(PANEL).get_by_text("Finished")).to_be_visible(timeout=600_000)
    [run_id] = [run.id for run in runs.listed("experiment")]
    config = runs.get(run_id).manifest.config
    assert (set(config["arms"]), config["encoder"]) == ({"none", "dictionary", "none+dictionary"}, "tiny")

    page.goto(f"{server.url}/Results?run={run_id}")
    settled(page)
    board = results.board(run_id)
    assert board.cheapest
    main = page.get_by_test_id("stMain")
    assert board.cheapest.words in shown(main)
    for row in board.leaderboard:
        assert (row.seconds or 0) > 0
    taken = page.get_by_role("table", name="What each variant takes, once")
    expect(taken.locator("tbody tr")).to_have_count(3)
    expect(taken.get_by_role("row").filter(has_text="none+dictionary")).to_contain_text("100")

    # Chance decides which line such short trainings favour, so the walk goes on with an open question.
    finished.returned(runs.get(run_id), as_json(replace(board, cheapest=OPEN)))
    [step] = next_step.next_steps(run_id)
    page.reload()
    settled(page)
    assert OPEN.words in shown(main)
    press(page, step.words)
    expect(page.get_by_role("heading", name="Training", exact=True)).to_be_visible()
    settled(page)
    for label, value in {**FIELDS, "Seeds": "1, 2, 3, 4"}.items():
        expect(page.get_by_label(label, exact=True).and_(page.locator("input"))).to_have_value(value)
    for group, variant in (("", "none"), ("-ready", "dictionary"), ("-labels", "none+dictionary")):
        expect(page.locator(f".st-key-training-experiment-arms{group}")).to_contain_text(f"({variant})")
    expect(page.get_by_text("Time, about")).to_be_visible()
    before = len(runs.listed("experiment"))
    press(page, "Start the experiment")
    until(lambda: len(runs.listed("experiment")) > before, "the experiment that decides has started")
    decides = next(run for run in runs.listed("experiment") if run.id != run_id)
    assert asdict(OPEN)["times"] * len(config["seeds"]) == len(decides.manifest.config["seeds"])
    assert {**decides.manifest.config, "seeds": [], "edition": ""} == {**config, "seeds": [], "edition": ""}
    runs.cancel(decides.id)
