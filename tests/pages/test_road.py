"""The road on Home: what is known at each stop, and the one button that goes on."""

from html import unescape
from pathlib import Path

import pytest

from core.facade import corpora, prevalence, results, road, runs
from core.facade.home import store
from core.recipes import RECIPES
from core.recipes.base import register
from core.text.sentence import Sentence, sentence_id
from tests import finished
from tests.conftest import Seal
from tests.pages.test_pages import opened, texts


def on_home() -> tuple[str, list[tuple[str, str, str]]]:
    """What Home says, and its links: page, label, query."""
    app = opened("home.py")
    assert not app.exception
    assert not app.error
    links = [(link.proto.page, link.proto.label, link.proto.query_string) for link in app.main.get("page_link")]
    return unescape(texts(app)).replace("\u2060", ""), links


def test_an_empty_home_says_what_is_missing_and_goes_one_way(home: Path) -> None:
    said, links = on_home()
    assert "None yet: import your own, or open a sample." in said
    assert "Needs text of your task and a big corpus to choose from." in said
    assert "train, dev, test missing" in said
    assert "Comes with the answer." in said
    assert ("Corpora", "**Add your texts**", "") in links
    assert not [label for _, label, _ in links if label.strip("*") in ("Choose", "Find out")]
    assert [row.reason for row in road.closer()] == ["", "", ""]


def test_with_texts_it_goes_to_the_choice_and_with_labels_to_the_question(home: Path) -> None:
    made = finished.corpora(home)
    said, links = on_home()
    assert "50 task sentences, 90 to choose from, 60 labelled to learn from, 190 to check by." in said
    assert ("Selection", "**Choose**", "") in links
    assert ("Training", "Find out", "") in links
    assert "Not asked yet." in said
    corpora.set_role("test", None)
    said, links = on_home()
    assert "(test missing)" in said
    assert "Find out" not in [label.strip("*") for _, label, _ in links]
    corpora.remove(made["domain"].fingerprint)
    assert not road.stops()[0].ready


def test_the_answer_stands_there_word_for_word_with_its_report(home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    app = opened("home.py")
    said, links = on_home()
    assert " ".join(results.finding(run.id).parts) in said
    assert ("Results", "All figures", f"run={run.id}") in links
    assert ("Results", "Word, HTML, tables", f"run={run.id}") in links
    [button] = [one for one in app.get("download_button") if one.proto.label == "Report (.pdf)"]
    assert button


def test_a_choice_is_told_by_its_size_share_leaks_and_hand_edits(
    seal: Seal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"The tenant of house number {i} shall pay the rent on the first day of a month ." for i in range(40)]
    made = {"task": seal(lines[:8], "task"), "domain": seal(lines[4:], "domain")}
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    options = {name: corpus.fingerprint for name, corpus in made.items()}
    run = runs.execute("select", {**options, "strategy": "random", "budget": "9", "keep": ["near_duplicate"]})
    stop = road.stops()[1]
    assert stop.run == run.id
    assert stop.known.startswith("9 of 36 sentences (25.0%), by random.")
    said, links = on_home()
    assert stop.known in said
    assert ("Explore", "Map", f"run={run.id}") in links
    store().remove(run.id)
    assert road.stops()[1].known == "Nothing chosen yet."
    monkeypatch.setattr(prevalence, "counted", lambda task, domain: object())
    monkeypatch.setattr(prevalence, "in_words", lambda count: "About 9 are like your task.")
    assert road.stops()[1].known.endswith("About 9 are like your task.")


def test_an_experiment_at_work_is_said_and_few_labels_or_many_sources_are_reasons_to_look_closer(
    seal: Seal, home: Path
) -> None:
    made = finished.corpora(home)
    recipe = RECIPES["experiment"]
    marks = {role: corpus.fingerprint for role, corpus in made.items()}
    with finished.at_work(register(recipe, recipe.config.parse({"arms": ["none"], **marks}), store())):
        assert road.stops()[2].known == "It is being found out now."
        assert not road.stops()[3].ready
    seal([Sentence(id=sentence_id("More text"), tokens=("More", "text"), text="More text")], "third")
    reasons = {row.name: row.reason for row in road.closer()}
    assert reasons["similarity"] == "2 texts could be chosen from: which is closest?"
    assert "Your labels are few" in reasons["assisting"]
    assert reasons["bias"] == ""
    assert [row.name for row in road.closer()][-1] == "bias"
