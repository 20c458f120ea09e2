"""Where a run computes, asked beside its button where there is a choice."""

from collections.abc import Mapping

import pytest

from core.facade import corpora, runs
from tests.conftest import Seal
from tests.pages.test_pages import opened
from tests.planted import contracts, kitchen

BUTTONS = {"pages/1_Corpora.py": ("corpora.check", "audit"), "pages/3_Selection.py": ("selection.start", "select")}


@pytest.mark.parametrize("page", list(BUTTONS))
def test_a_press_begins_where_it_was_asked_to(page: str, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)
    begun = list[tuple[str, str]]()

    def start(kind: str, options: Mapping[str, object], on: str = "", **others: object) -> str:
        begun.append((kind, on))
        return runs.execute("audit", {"corpus": corpora.roles()["task"]}).id

    monkeypatch.setattr(runs, "places", lambda: ("local", "ray"))
    monkeypatch.setattr(runs, "start", start)
    key, kind = BUTTONS[page]
    app = opened(page)
    app.selectbox(key=f"{key.removesuffix('.start')}.where").select("ray")
    app.button(key=key).click().run()
    assert not app.exception
    assert set(begun) == {(kind, "ray")}


def test_where_there_is_no_choice_nothing_is_asked(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    monkeypatch.setattr(runs, "places", lambda: ("local",))
    assert not [box for box in opened("pages/1_Corpora.py").selectbox if box.key == "corpora.check.where"]
