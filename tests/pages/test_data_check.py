"""The data check on the pages: its problems in words, and no start without the user's consent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.importing import view as corpora
from core.projects import runs
from tests.conftest import Seal, sentence
from tests.pages.drawing import add, audit, opened, opened_on, press, seen
from tests.planted import contracts, kitchen

RED = "The task corpus (T_C) has 1 sentence; the strategy classifier is not reliable with fewer than 5."


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Return the list of runs that a page starts, as (kind, runs anyway). Only the data check is executed."""
    started_runs: list[tuple[str, bool]] = []

    def start(kind: str, options: Mapping[str, Any], on: str = "", *, run_anyway: bool = False) -> str:
        started_runs.append((kind, run_anyway))
        return audit(corpora.roles()["domain"])

    monkeypatch.setattr(runs, "start", start)
    return started_runs


@pytest.fixture
def one_sentence(seal: Seal) -> None:
    """Set up a project whose task corpus has one sentence."""
    corpora.set_role("task", seal(contracts(1, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)


def test_selection_starts_a_run_that_the_data_check_refuses_only_with_consent(
    one_sentence: None, started: list[tuple[str, bool]]
) -> None:
    app = opened("pages/3_Selection.py")
    assert RED in seen(app)
    assert app.button(key="selection.start").disabled
    app.checkbox(key="selection.anyway").check().run()
    press(app, "selection.start")
    assert started == [("select", True)]


def test_selection_page_offers_a_valid_budget_for_one_that_is_too_large(
    seal: Seal, started: list[tuple[str, bool]]
) -> None:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)
    app = opened("pages/3_Selection.py", {"selection.budget": "lots"})
    assert "budget: 'lots' is not understood" in seen(app)
    assert app.button(key="selection.start").disabled
    app.text_input(key="selection.budget").input("81").run()
    assert app.button(key="selection.start").disabled
    assert "The budget asks for 81 sentences, but the domain corpus (D_C) has 80." in seen(app)
    assert not [box for box in app.checkbox if box.key == "selection.anyway"]
    press(app, "selection.cure.budget")
    assert app.text_input(key="selection.budget").value == "10%"
    press(app, "selection.start")
    assert started == [("select", False)]


def test_training_starts_a_run_that_the_data_check_refuses_only_with_consent(
    seal: Seal, started: list[tuple[str, bool]]
) -> None:
    none = seal([sentence(text, []) for text in contracts(20, seed=1)], "none", labelled=True).fingerprint
    for role in ("train", "dev"):
        corpora.set_role(role, none)
    corpora.set_role("domain", none)
    app = opened("pages/5_Training.py")
    assert "The training set and dev set have no entity" in seen(app)
    assert app.button(key="training.start").disabled
    assert not app.checkbox  # the training would certainly fail
    labels = [sentence(text, [(0, 1, "PARTY")]) for text in contracts(20, seed=2)]
    corpora.set_role("train", seal(labels, "train", labelled=True).fingerprint)
    app = opened("pages/5_Training.py")
    assert "The dev set has no entity" in seen(app)
    app.checkbox(key="training.anyway").check().run()
    press(app, "training.start")
    assert started == [("finetune", True)]


def test_consent_to_one_red_item_is_no_consent_to_another(seal: Seal) -> None:
    for role, seed in (("train", 1), ("domain", 2)):
        labels = [sentence(text, [(0, 1, "PARTY")]) for text in contracts(20, seed=seed)]
        corpora.set_role(role, seal(labels, role, labelled=True).fingerprint)
    train = corpora.roles()["train"]
    none = seal([sentence(text, []) for text in contracts(20, seed=3)], "none", labelled=True).fingerprint
    corpora.set_role("dev", none)
    app = opened("pages/5_Training.py")
    app.checkbox(key="training.anyway").check().run()
    app.text_input(key="training.finetune.seeds").input("1, 2").run()
    assert app.checkbox(key="training.anyway").value
    app.selectbox(key=f"training.finetune.dev.{none}").set_value(train)
    app.selectbox(key="training.finetune.test.None").set_value(none).run()
    assert "The test set has no entity" in seen(app)
    assert not app.checkbox(key="training.anyway").value
    assert app.button(key="training.start").disabled


def test_training_page_offers_a_valid_budget_for_one_that_is_too_large(
    seal: Seal, started: list[tuple[str, bool]]
) -> None:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)
    for seed, role in enumerate(("train", "dev", "test"), 3):
        labels = [sentence(text, [(0, 1, "PARTY")]) for text in contracts(20, seed=seed)]
        corpora.set_role(role, seal(labels, role, labelled=True).fingerprint)
    app = opened("pages/5_Training.py", {"training.kind": "experiment", "training.experiment.budgets": "81"})
    assert "The budget asks for 81 sentences, but the domain corpus (D_C) has 80." in seen(app)
    assert app.button(key="training.start").disabled
    press(app, "training.cure.budget")
    assert app.text_input(key="training.experiment.budgets").value == "10%"
    press(app, "training.start")
    assert started == [("experiment", False)]


def test_home_shows_the_result_of_the_data_check_beside_the_texts(one_sentence: None, seal: Seal) -> None:
    app = opened("home.py")
    assert RED in seen(app)
    assert [each.value[:16] for each in app.markdown if "Your texts" in each.value] == [":material/error:"]
    corpora.set_role("task", seal(contracts(40, seed=1), "larger").fingerprint)
    app = opened("home.py")
    assert "The task corpus (T_C) has 40 sentences; with fewer than 100" in seen(app)
    assert [":material/warning:" in each.value for each in app.markdown if "Your texts" in each.value] == [True]
    corpora.set_role("task", seal(contracts(100, seed=4), "enough").fingerprint)
    corpora.set_role("domain", seal([*contracts(200, seed=5), *kitchen(200)], "other").fingerprint)
    app = opened("home.py")
    assert [":material/check_circle:" in each.value for each in app.markdown if "Your texts" in each.value] == [True]


def test_similarity_and_corpora_pages_show_the_data_check(one_sentence: None, tmp_path: Path) -> None:
    assert "The task corpus (T_C) has 1 sentence; with fewer than 100" in seen(opened("pages/2_Similarity.py"))
    none = tmp_path / "none.jsonl"
    none.write_text("".join(f'{{"tokens": ["Rent", "{i}"], "ner_tags": ["O", "O"]}}\n' for i in range(20)))
    app = opened_on("pages/1_Corpora.py", add(none).id)
    assert RED in seen(app)
    assert "The corpus none has no entity" in seen(app)


def test_home_forecasts_nothing_from_labels_without_entities(seal: Seal) -> None:
    """Home gives the reason and a link to import other labels, and no forecast and no advice to borrow labels."""
    texts = contracts(60, seed=1)
    none = seal([sentence(text, []) for text in texts], "none", labelled=True).fingerprint
    given = {"task": seal(texts, "task"), "domain": seal(contracts(200, seed=2), "domain")}
    for role, mark in (
        {r: c.fingerprint for r, c in given.items()} | dict.fromkeys(("train", "dev", "test"), none)
    ).items():
        corpora.set_role(role, mark)
    app = opened("home.py")
    assert "There are no entities in the training set, the dev set and the test set." in seen(app)
    assert "you can detect gains" not in seen(app)
    assert "another labelled corpus may help" not in seen(app)
    assert "home.find" not in [button.key for button in app.button]
    assert "Import labelled data with entities" in [link.proto.label for link in app.get("page_link")]
