"""Pages of finished runs after some of their corpora were removed: the stored results are still shown."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.importing import view as corpora
from core.projects import runs
from tests.pages.drawing import opened_on, select, texts

GONE = "No longer on this machine"
Home = tuple[Path, dict[str, str]]


def well(app: AppTest) -> str:
    """Assert that the page shows no error; return its text."""
    assert not app.error
    return texts(app)


@pytest.fixture
def shown(filled_home: Home, copied: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Copy the furnished home with all its corpora; return {page: its run}."""
    monkeypatch.setenv("WINNOW_HOME", str(copied(filled_home[0])))
    return filled_home[1]


def test_results_names_the_missing_corpora_on_the_tabs_that_need_their_text(
    home_without_corpora: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(home_without_corpora[0]))
    app = opened_on("pages/6_Results.py", runs.listed("experiment")[0].id)
    for tab in ("By type", "Sentences", "Curves", "Download"):
        app.session_state["results.tab"] = tab
        page_text = well(app.run())
        assert ("the corpus was removed" in page_text or "no corpus of this name" in page_text) == (
            tab in ("By type", "Sentences")
        )


def test_selection_without_its_domain_corpus_keeps_its_map_and_scores(shown: dict[str, str]) -> None:
    task = corpora.find("contracts").fingerprint
    other = select(task=task, domain=corpora.find("orchard").fingerprint)
    corpora.remove(corpora.find("pile").fingerprint)
    app = opened_on("pages/4_Explore.py", shown["Explore"])
    assert f"{GONE}: the " in well(app)
    assert len(app.get("plotly_chart")) == 1  # the map
    assert len(app.get("vega_lite_chart")) == 1  # the scores
    assert f"{GONE}: the " in well(opened_on("pages/3_Selection.py", shown["Selection"]))
    app = opened_on("pages/4_Explore.py", other)
    assert GONE not in well(app)
    assert len(app.selectbox(key=f"explore.which.{other}").options) == 2


def test_selection_without_its_task_corpus_can_still_change_its_budget(shown: dict[str, str]) -> None:
    corpora.remove(corpora.find("contracts").fingerprint)
    app = opened_on("pages/3_Selection.py", shown["Selection"])
    assert f"{GONE}: the " in well(app)
    before = app.metric[0].value
    app.number_input(key=f"selection.amount.{shown['Selection']}.sentences").set_value(30).run()
    well(app)
    assert ("30" in [metric.value for metric in app.metric], before) == (True, "60")
