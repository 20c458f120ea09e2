"""The page Assisting: its form, the scores of a pair of corpora, and trainings on the kept sentences."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.assisting.assist import AssistConfig, AssistResult, in_words
from core.importing import view as corpora
from core.projects import runs
from core.projects.titles import outcome
from core.runs.result import read
from core.text.sentence import Entity
from tests.assisting.test_assist import AWAY, HOME
from tests.conftest import sealer, sentence
from tests.homes import Homes
from tests.pages.drawing import codes, opened, press, seen, texts

PAGE = "pages/8_Assisting.py"
NASTY = "<img/src=x/onerror=alert(1)>"  # one token


def build_borrowed(home: Path) -> dict[str, str]:
    """Make two labelled corpora, trainings that borrow from the second by surface form, and default scores."""
    words = (NASTY, "met", "Ada")
    nasty = replace(sentence("X met Ada"), tokens=words, entities=(Entity(start=2, end=3, type="GPE"),))
    theirs = [replace(each, file="away.pdf", page=7) for each in (*AWAY, nasty)]
    given = {
        "primary": sealer(home)(HOME, "home", labelled=True).fingerprint,
        "assisting": sealer(home)(theirs, f"away {NASTY}", labelled=True).fingerprint,
    }
    corpora.set_role("train", given["primary"])
    small = {"thresholds": (1,), "seeds": (1,), "hidden": 4, "epochs": 1, "dev": given["primary"]}
    options = {**given, **small, "test": given["primary"]}
    # Run first; otherwise the trainings would have computed the same scores as a part.
    scored = runs.execute("skl", given).id
    sweeps = {
        name: runs.execute("assist", {**options, **more}).id
        for name, more in (("surface", {"unit": "surface"}), ("sweep", {}))
    }
    return {**given, "skl": scored, **sweeps}


@pytest.fixture
def made(homes: Homes, home: Path) -> Mapping[str, str]:
    return homes.copy(build_borrowed, home)


@pytest.mark.usefixtures("expert")
def test_entity_types_are_mapped_in_the_form_or_by_a_file(
    made: Mapping[str, str], started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    app = opened(PAGE)
    borrowed = app.selectbox(key=f"assisting.assisting.{made['primary']}")
    # The primary corpus is not offered.
    assert len(borrowed.options) == sum(bool(corpus.types) for corpus in corpora.listed()) - 1
    borrowed.select(made["assisting"]).run()
    least = app.number_input(key="assisting.floor")
    assert (least.value, least.step) == pytest.approx((1e-4, 1e-5))
    assert least.min is not None
    assert 0 < least.min < 1e-6  # the interval is open at 0
    boxes = {box.label: box for box in app.selectbox if (box.key or "").startswith("assisting.type.")}
    assert all(re.fullmatch(r"[A-Z]+ \(\d+\)", label) for label in boxes)  # no label contains the name of a corpus
    gpe, org = boxes.values()
    assert gpe.options == ["stays as it is", "is left out", "is LOC", "is ORG", "is PER"]
    assert org.options == ["stays as it is", "is left out"]  # types of the primary corpus are not renamed
    gpe.select("is LOC")
    org.select("is left out")
    press(app, "assisting.start")
    [(kind, options)] = started_runs
    assert (kind, options["type_map"]) == ("skl", ["GPE=LOC", "ORG="])
    app = opened(PAGE)
    app.selectbox(key=f"assisting.assisting.{made['primary']}").select(made["assisting"]).run()
    app.file_uploader(key="assisting.map").upload("types.docx", b"x" * 1_000_001).run()
    assert ["larger than 1 MB" in error.value for error in app.error] == [True]
    app.file_uploader(key="assisting.map").upload("types.docx", b"GPE=LOC\n").run()
    assert not app.error
    assert "GPE=LOC" in seen(app)


def test_threshold_changes_the_counts_without_a_new_run_and_no_text_is_markup(made: Mapping[str, str]) -> None:
    app = opened(PAGE, {"assisting.command": True})
    assert not app.error
    metrics = [metric.value for metric in app.metric]
    assert {"3", "67%"} <= set(metrics)  # number of kept sentences, and share kept because they have no overlap
    assert len([warning for warning in app.warning if "has" in warning.value]) == 2  # types that only one corpus has
    page_text = texts(app)
    assert "LOC · PER · 9.2" in page_text
    drawn = " ".join(element.proto.body for element in app.get("html"))
    assert '&lt;img/src=x/onerror=alert(1)&gt; met <mark class="w-entity"' in drawn
    assert "away.pdf, page 7</small></li>" in drawn
    assert "<img" not in drawn
    assert app.dataframe[0].value["entity"].tolist()[:2] == ["jordan", "chicago"]
    for kept in [corpus for corpus in corpora.listed() if "run" in corpus.origin]:  # corpora that the trainings made
        corpora.remove(kept.fingerprint)
    press(app, "assisting.seal")
    assert any(len(corpus) == 3 and corpus.origin.get("run") == made["skl"] for corpus in corpora.listed())
    before = [run.id for run in runs.listed()]
    app.text_input(key="assisting.search").set_value("rome")
    app.slider(key="assisting.line").set_value(9.4).run()
    assert {"6", "0"} <= {metric.value for metric in app.metric}
    assert app.dataframe[0].value["entity"].tolist() == ["rome"]
    assert "--threshold 9.4 --output kept.conll" in " ".join(codes(app))
    assert [run.id for run in runs.listed()] == before


def test_a_renamed_corpus_is_shown_by_its_new_name(made: Mapping[str, str]) -> None:
    app = opened(PAGE)
    assert any(warning.value.startswith("Only home has") for warning in app.warning)
    corpora.rename(made["primary"], "office")
    corpora.rename(made["assisting"], "abroad")
    app = opened(PAGE)
    said = [warning.value for warning in app.warning if warning.value.startswith("Only ")]
    assert [(words.startswith("Only office"), "map these types" in words) for words in said] == [
        (True, False),
        (False, True),
    ]
    assert "abroad" in said[1]
    assert "share no entity with office" in texts(app)
    press(app, "assisting.seal")
    assert any("abroad for office, SKL below 1" in corpus.names for corpus in corpora.listed())


@pytest.mark.usefixtures("expert")
def test_trainings_on_assisting_sentences_are_shown_and_started(
    made: Mapping[str, str], started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    assert outcome(runs.get(made["sweep"])) == in_words(read(runs.get(made["sweep"]), AssistResult).tables[0])
    app = opened(PAGE)
    assert not app.error
    assert len(app.get("plotly_chart")) == 2
    assert "no tagger learnt anything" in seen(app)  # after one epoch
    for split in ("dev", "test"):
        app.selectbox(key=f"assisting.{split}").select(made["primary"])
    app.multiselect(key="assisting.thresholds").set_value([1, 9])
    app.multiselect(key="assisting.sweep.shares").set_value(["sub-word"])
    app.number_input(key="assisting.seeds").set_value(1)
    app.number_input(key="assisting.sweep.hidden").set_value(4)
    next(button for button in app.button if button.label == "Train").click().run()
    [(kind, options)] = started_runs
    config = AssistConfig.parse(dict(options))
    assert (kind, config.thresholds, config.shares, config.seeds) == ("assist", (1.0, 9.0), ("sub-word",), (1,))
    assert (config.dev, config.hidden) == (made["primary"], 4)


@pytest.mark.usefixtures("expert")
def test_scores_from_another_run_are_shown_on_request(made: Mapping[str, str]) -> None:
    """`runs.start` returns the finished run, which was started as part of another one."""
    app = opened(PAGE, {"assisting.command": True})
    assert "--unit" not in " ".join(codes(app)[:1])
    app.selectbox(key=f"assisting.assisting.{made['primary']}").select(made["assisting"]).run()
    app.selectbox(key="assisting.unit").select("surface")
    press(app, "assisting.start")
    assert [command for command in codes(app) if "skl" in command and "--unit surface" in command]


def test_dev_and_test_set_are_not_offered_to_borrow_from(home: Path) -> None:
    corpora.open_sample("legal")
    app = opened(PAGE)
    assert "because a tagger must not learn from them" in texts(app)
    assert not app.selectbox
    other = sealer(home)(AWAY, "away", labelled=True)
    app = opened(PAGE)
    assert app.selectbox(key=f"assisting.assisting.{corpora.roles()['train']}").options == [
        f"{other.name} ({len(other)} sentences)"
    ]
