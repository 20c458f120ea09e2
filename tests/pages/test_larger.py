"""A larger encoder on the page Training: offered, fetched only where somebody agrees, then among what to start from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.facade import runs
from pages.ui.widgets import plain
from tests.packages import NAME, Index, offer_small
from tests.pages.test_pages import commands_on, opened, texts
from tests.pages.test_training import PAGE, choose, labels, parts  # noqa: F401

GET = f"Get {NAME}"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    index = offer_small(tmp_path, monkeypatch)
    index.lay()
    return index


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """What the page begins, done at once."""
    asked: list[Mapping[str, Any]] = []

    def start(kind: str, options: Mapping[str, Any]) -> str:
        assert kind == "fetch"
        asked.append(options)
        return runs.execute(kind, options).id

    monkeypatch.setattr(runs, "start", start)
    return asked


def opened_offer() -> AppTest:
    app = opened(PAGE)
    assert GET not in labels(app)  # whom pip would ask is not asked for who does not want to know
    app.session_state["training.larger"] = True
    app.run()
    assert not app.exception
    return app


@pytest.mark.usefixtures("parts")
def test_it_is_fetched_only_where_somebody_agrees(index: Index, started: list[Mapping[str, Any]]) -> None:
    app = opened_offer()
    for words in (plain(str(index.folder)), "Apache", "MB are fetched"):
        assert words in texts(app), words
    assert next(button for button in app.button if button.label == GET).disabled
    choose(app, "training.larger.agreed", True)
    next(button for button in app.button if button.label == GET).click().run()
    assert started == [{"encoder": NAME, "allow_download": True}]
    assert not app.exception
    assert not app.error
    assert GET not in labels(app)
    assert "a small one" in app.selectbox(key="training.finetune.init").options
    choose(app, "training.finetune.init", NAME)
    assert f"--init {NAME}" in commands_on(app)[-1]


@pytest.mark.usefixtures("parts")
def test_one_that_failed_says_why_and_can_be_tried_again(index: Index, started: list[Mapping[str, Any]]) -> None:
    index.package(0).unlink()
    app = choose(opened_offer(), "training.larger.agreed", True)
    next(button for button in app.button if button.label == GET).click().run()
    app = opened(PAGE)
    assert any("could not be fetched" in error.value for error in app.error)
    assert "Resume" in labels(app)
    assert GET not in labels(app)


@pytest.mark.usefixtures("parts")
def test_a_machine_kept_offline_offers_none(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    app = opened(PAGE)
    assert not [expander for expander in app.expander if "larger encoder" in expander.label]
