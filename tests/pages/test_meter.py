"""Beside the budget: what is like the task is counted at a press, told, and taken as the budget."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.facade import corpora, prevalence, runs, selections
from tests.pages.test_pages import ROOT
from tests.planted import contracts, kitchen

Seal = Callable[..., Corpus]
GIVEN = {"encoder": "tiny", "strategy": "knn", "budget": "200"}


def opened(run_id: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page("pages/3_Selection.py")
    app.query_params["run"] = run_id
    return app.run()


def test_the_count_is_begun_told_and_taken(home: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    for role, texts in (("task", contracts(100, seed=1)), ("domain", [*contracts(60, seed=2), *kitchen(300)])):
        corpora.set_role(role, seal(texts, role).fingerprint)
    select = runs.execute("select", {"task": "task", "domain": "domain", **GIVEN}).id
    started = []
    monkeypatch.setattr(runs, "start", lambda kind, options: started.append((kind, options)))
    opened(select).button(key="selection.count").click().run()
    [(kind, options)] = started
    assert (kind, options["encoder"]) == ("prevalence", "tiny")
    count = prevalence.result(runs.execute(kind, options).id)
    app = opened(select)
    line = f"{count.about:,} of the domain corpus's 360 distinct sentences.*; you ask for 200"
    assert any(re.search(line, part.value) for part in app.markdown)
    app.button(key="selection.counted").click().run()
    assert not app.exception
    assert selections.kept_budget(select) == str(count.about)
    assert not [button for button in app.button if button.key == "selection.counted"]
