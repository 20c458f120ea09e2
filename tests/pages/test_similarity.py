"""The page Similarity: its form, the table of a comparison, a pasted table."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.library import Library
from core.importing import view as corpora
from core.projects import runs
from core.runs.result import read
from core.shown import duration
from core.similarity.kind import SimilarityConfig
from core.similarity.result import SimilarityResult
from pages.ui.widgets import plain
from tests.conftest import Seal, sealer
from tests.homes import Homes
from tests.pages.drawing import NASTY, codes, opened, texts
from tests.similarity.test_measures import FRUIT, METAL, chained

PAGE = "pages/2_Similarity.py"
DRAWN = {"draws": 1, "sizes": 0, "min_source_tokens": 1}


def lines(words: list[str], n: int, seed: int) -> list[str]:
    return [" ".join(sentence) for sentence in chained(words, n, seed)]


def build_compared(home: Path) -> Mapping[str, str]:
    """Finish a comparison of two sources, one with markup in its name; return {"run": its id}."""
    seal = sealer(home)
    task = seal(lines(FRUIT, 40, 1), "my-task")
    sources = [seal(lines(FRUIT, 200, 2), "orchard").fingerprint, seal(lines(METAL, 200, 3), NASTY).fingerprint]
    config = {"target": (task.fingerprint,), "source": sources, "draws": 2, "sizes": 1, "parts": 4}
    return {"run": runs.execute("similarity", {**config, "skipgram_epochs": 1, "min_source_tokens": 1_000}).id}


@pytest.fixture
def compared(homes: Homes, home: Path) -> str:
    return homes.copy(build_compared, home)["run"]


def well(app: AppTest) -> AppTest:
    assert not app.error
    return app


def press_labelled(app: AppTest, label: str) -> AppTest:
    next(each for each in app.button if each.label == label).click()
    return well(app.run())


def test_form_starts_from_the_roles_and_leaves_out_derived_corpora(
    seal: Seal, home: Path, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    task, near, far = (seal(lines(FRUIT, 30, n), name) for n, name in enumerate(("task", "near", "far")))
    corpora.set_role("task", task.fingerprint)
    Library(home).subset(near, np.arange(3), name="S_C near", origin={"from": near.fingerprint})
    press_labelled(well(opened(PAGE)), "Compare")
    [(kind, options)] = started_runs
    assert (kind, options["target"]) == ("similarity", [task.fingerprint])
    assert set(options["source"]) == {near.fingerprint, far.fingerprint}
    assert SimilarityConfig.parse(dict(options)).cap_tokens == "equal"


@pytest.mark.usefixtures("expert")
def test_a_corpus_that_is_no_source_cannot_be_joined(
    seal: Seal, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    marks = [seal(lines(FRUIT, 30, n), name).fingerprint for n, name in enumerate(("task", "near", "far"))]
    corpora.set_role("task", marks[0])
    app = opened(PAGE)
    app.multiselect(key="similarity.source").set_value(marks[1:2])
    app.multiselect(key="similarity.together").set_value(marks[1:])
    assert "Only sources can be joined" in press_labelled(app, "Compare").info[0].value
    assert not started_runs
    app.multiselect(key="similarity.source").set_value(marks[1:])
    press_labelled(app, "Compare")
    [(_, options)] = started_runs
    assert options["together"] == ["1+2"]


def test_comparison_shows_the_closest_source_first_and_no_name_as_markup(compared: str) -> None:
    app = well(opened(PAGE, {"similarity.command": True}))
    shown = texts(app)
    assert "orchard is closest to my&#45;task" in app.success[0].value
    assert shown.count("<small>closest</small>") >= 3
    assert shown.index(">orchard</th>") < shown.index(">&lt;img")  # sorted by closeness, in any order of the options
    for symbol in ("PPL", "WVV", "TVcC"):
        assert f'<small class="w-symbol">{symbol}</small>' in shown
    assert {shown.count(f"<small>{words}</small>") > 0 for words in ("higher is closer", "lower is closer")} == {True}
    found = read(runs.get(compared), SimilarityResult)
    for row in found.measurements:
        assert f'<td class="w-number">{row.sample_tokens:,}</td>' in shown
        assert row.convention
        assert escape(row.convention) in shown  # how it was measured, and by which model
    marked = [each.value for kind in ("markdown", "caption", "warning", "success") for each in getattr(app, kind)]
    assert "<img" not in " ".join([*marked, *(each.proto.body for each in app.get("html"))])
    assert "nan" not in shown.lower().replace("finance", "")
    [lasted] = [caption.value for caption in app.caption if "The latest such run here" in caption.value]
    assert plain(f"took {duration(runs.state(compared).seconds)}.") in lasted
    [command] = [text for text in codes(app) if text.startswith("python -m core similarity ")]
    assert "--target my-task --source orchard --source" in command
    assert "--draws 2 --sizes 1" in command


@pytest.mark.parametrize("case", ["one source", "too small", "no shared word"])
def test_source_that_cannot_be_compared_has_a_reason(case: str, seal: Seal) -> None:
    near = seal(lines(FRUIT, 200, 2), "near")
    other = {
        "one source": [],
        "too small": [seal(lines(FRUIT, 9, 9), "x" * 300)],
        "no shared word": [seal([f"слово номер {i} за словом" for i in range(60)], "other")],
    }[case]
    options = {"target": (seal(lines(FRUIT, 30, 1), "task").fingerprint,), "source": [near.fingerprint]}
    options["source"] = [each.fingerprint for each in (near, *other)]
    more = {"measure": ("tvc",), "sizes": 1, "min_source_tokens": 1_000} if case != "no shared word" else {}
    runs.execute("similarity", {**options, **DRAWN, **more})
    app = well(opened(PAGE))
    page_text = texts(app)
    assert ">nan" not in page_text
    if case == "one source":
        assert "one source cannot be compared" in app.info[0].value
    elif case == "too small":
        assert "too small to compare" in page_text
    else:
        assert "not measured" in page_text
        assert any("shares no word" in warning.value for warning in app.warning)


def test_pasted_table_is_correlated_and_an_invalid_line_is_named() -> None:
    app = press_labelled(opened(PAGE), "Insert Table 3 of Dai et al. 2019")
    page_text = texts(app)
    for r in ("-0.618", "-0.748", "0.667", "0.739", "**48 of 60**", "6 of 6", "+3.42 [+3.02, +3.82]"):
        assert r in page_text
    assert plain("15 of 23 sources (by chance 11.7, p = 0.12)") in page_text
    assert not any(each.proto.expanded for each in app.expander if "correlation" in each.label)
    app.text_area[0].set_value("target,source,ppl\na,x,close\na,y,2")
    next(each for each in app.button if each.label == "Correlate").click().run()
    assert "line 2" in app.error[0].value
