"""Results, Try it: real taggers on a pasted clause and on files, alone and side by side."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from streamlit.testing.v1 import AppTest

from core import paths
from core.corpora.library import Library
from core.experiment import deliver
from core.kind import register
from core.kinds import KINDS
from core.projects import runs
from core.projects.home import store
from core.runs.store import RunStore
from core.tagging import result as tables
from core.tagging import trial, trial_process
from core.tagging import view as views
from pages.ui.results.take import NO_MODELS
from pages.ui.results.try_it import TRIED, query
from pages.ui.widgets import plain
from tests import finished
from tests.homes import Homes
from tests.pages.drawing import opened, press, texts
from tests.pages.test_results import PAGE, on_tab
from tests.training.test_finetune import labelled
from tests.word_search import holding

FAST = {"init": "tiny", "learning_rate": 3e-3, "head_learning_rate": 3e-2, "batch_size": 8, "precision": "fp32"}
CLAUSE = "Px a Ly. b <b> c Zyxname17\n\nb b Zyxname18"


def build_tried(home: Path) -> dict[str, str]:
    """Train a tagger of PER and LOC (`good`) and one whose learning rate is too small (`bad`)."""
    parts = {}
    for number, role in enumerate(("train", "dev", "test"), start=1):
        rows = labelled(40 if role == "train" else 12, number)
        parts[role] = Library(home).seal(rows, name=role, origin={}, labelled=True).fingerprint
    options = {**FAST, **parts, "test": (parts["test"],), "seeds": (1,)}
    good = runs.execute("finetune", {**options, "epochs": 6})
    bad = runs.execute("finetune", {**options, "epochs": 1, "learning_rate": 1e-9, "head_learning_rate": 1e-9})
    return {"good": good.id, "bad": bad.id}


@pytest.fixture
def taggers(homes: Homes, home: Path, in_this_process: None) -> tuple[str, str]:
    """Copy the home with two taggers."""
    made = homes.copy(build_tried, home)
    return made["good"], made["bad"]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tag in this process. `tests/tagging/test_trial.py` tests the separate process."""

    def ask(what: str, check: object, /, **request: Any) -> object:
        return trial_process.answer(**request)

    monkeypatch.setattr(trial._process, "ask", ask)
    monkeypatch.setattr(trial._process, "ready", lambda: None)


def tried(tagger: str, second: str | None = None, text: str = "", file: tuple[str, bytes] | None = None) -> AppTest:
    """Draw the page after a user has pasted a text or dropped a file, and pressed the button."""
    app = on_tab("Try it")
    app.selectbox(key="results.try.model").set_value(tagger)
    app.selectbox(key="results.try.other").set_value(second)
    app.text_area(key="results.try.text").set_value(text)
    if file:
        app.file_uploader(key="results.try.file").upload(*file)
    press(app, "results.try.start")
    assert not app.error
    return app


def shown(app: AppTest) -> str:
    """Return the HTML of the text in which entities are marked."""
    return next(str(html.proto.body) for html in app.get("html") if "w-document" in html.proto.body)


def test_a_typed_clause_is_shown_escaped_and_stored_in_no_file(taggers: tuple[str, str], home: Path) -> None:
    app = tried(taggers[0], text=CLAUSE)
    body = shown(app)
    assert re.search(r'<mark class="w-entity[^"]*" style="--c:[^"]+" title="PER, confidence \d+%">Px <small>PER', body)
    assert "</mark> a <mark" in body
    assert "&lt;" in body
    assert "b&gt; c Zyxname17" in body
    assert body.count("<p>") == 2
    assert "<b>" not in body
    assert re.search(r"\*\*\d entities\*\*", texts(app))
    assert holding(home, ["Zyxname17", "Zyxname18"]) == []
    assert not runs.listed("predict", "tag")


def test_types_are_switched_off_and_unsure_entities_left_out(
    taggers: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = trial_process.answer

    def unsure(**request: Any) -> list[trial_process.Told]:
        """Return the answer with a confidence of 40% for each PER."""
        found = answer(**request)
        for spans in found[0]["spans"]:
            spans[:] = [(a, b, type, 0.4 if type == "PER" else 0.9) for a, b, type, _ in spans]
        return found

    monkeypatch.setattr(trial_process, "answer", unsure)
    app = tried(taggers[0], text=CLAUSE)
    assert '<mark class="w-entity w-unsure"' in shown(app)
    assert "<small>PER 40%</small>" in shown(app)
    assert "<small>LOC</small>" in shown(app)
    assert "1 of them with a confidence below 70%" in texts(app)
    app.slider(key="results.try.least").set_value(50).run()
    assert "PER" not in shown(app)
    app.slider(key="results.try.least").set_value(0).run()
    app.pills(key="results.try.types.LOC.PER").set_value(["PER"]).run()
    assert "LOC" not in shown(app)
    app.pills(key="results.try.types.LOC.PER").set_value([]).run()
    assert "<mark" not in shown(app)
    assert not app.get("download_button")


def test_types_that_were_not_found_are_named_and_those_often_missed_with_their_share(
    taggers: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = views.shares_found(taggers[0])
    assert set(known) == {"PER", "LOC"}
    assert all(0.5 < share <= 1 for share in known.values())
    assert plain("The tagger marked no LOC in this text.") in texts(tried(taggers[0], text="Px a"))
    assert "The tagger marked no" not in texts(tried(taggers[0], text="Px a Ly."))
    monkeypatch.setattr(views, "shares_found", lambda _: {"PER": 0.9, "LOC": 0.1})
    absent = "The tagger marked no LOC in this text. On its test set, this tagger finds LOC in 10 of 100 cases."
    assert plain(absent) in texts(tried(taggers[0], text="Px a"))


def test_two_taggers_are_shown_side_by_side_with_their_differences(taggers: tuple[str, str]) -> None:
    good, bad = taggers
    app = tried(good, bad, CLAUSE)
    found = app.session_state[TRIED][1]
    assert list(found) == [good, bad]
    a, b = trial.compared(list(found.values()))
    assert any(one.difference for one in (*a, *b))
    body, page_text = shown(app), unescape(texts(app))
    assert body.count("<tr>") == 1 + 2
    assert all(f'<th scope="col">{letter}: Tagger (tiny) on ' in body for letter in "AB")
    counts = [Counter(span.type for span in each.spans) for each in found.values()]
    [shown_types] = app.pills
    assert list(shown_types.options) == [
        f"{type} {counts[0][type]} / {counts[1][type]}" for type in shown_types.value or ()
    ]
    assert body.count("· not B") == sum(one.difference == "only here" for one in a)
    assert body.count("· not A") == sum(one.difference == "only here" for one in b)
    assert f"**{sum(not one.difference for one in a)} found by both**" in page_text
    assert "epochs (6 against 1)" in page_text
    app.toggle(key="results.try.differing").set_value(True).run()
    differing = {one.span.paragraph for one in (*a, *b) if one.difference}
    assert shown(app).count("<tr>") == 1 + len(differing)
    app.toggle(key="results.try.differing").set_value(False).run()
    [pills] = app.pills
    pills.set_value(["PER"]).run()
    # A type that is not shown was still found.
    assert shown(app).count("· not B") == sum(one.difference == "only here" for one in a if one.span.type == "PER")
    path = runs.get(good).path / "manifest.json"  # as if made before these options existed
    manifest = json.loads(path.read_text())
    for name in ("first", "distant", "type_map"):
        del manifest["config"][name]
    path.write_text(json.dumps(manifest))
    fresh = RunStore(paths.home())  # reads the manifests again
    older, newer = fresh.get(good), fresh.get(bad)
    assert "distant" in newer.manifest.config
    assert "distant" not in older.manifest.config
    rows = [*tables.differing_settings(older, newer), *tables.config_differences(older, newer)]
    assert not {"first", "distant", "type_map"} & {row.option for row in rows}
    app = tried(good, good, CLAUSE)
    assert list(app.session_state[TRIED][1]) == [good]  # the same tagger, chosen twice, is shown once


def test_a_dropped_file_replaces_the_text_field_and_can_be_exported(taggers: tuple[str, str], home: Path) -> None:
    word = Document()
    for line in ("Px a Ly Zyxname19.", "b <b> c"):
        word.add_paragraph(line)
    word.save(data := BytesIO())
    app = tried(taggers[0], text="Zyxname17", file=("deed.docm", data.getvalue()))  # a document with macros
    assert "a <mark" in shown(app)
    assert "Zyxname17" not in shown(app)
    assert "in deed&#46;docm" in texts(app)
    assert holding(home, ["Zyxname19"]) == []
    files = {button.proto.label: button.proto.id for button in app.get("download_button")}
    assert list(files) == ["Word with comments (.docx)", "Table (.csv)", "Data (.json)"]
    app = on_tab("Try it")
    app.file_uploader(key="results.try.file").upload("deed.docx", b"PK\x03\x04 no archive")
    press(app, "results.try.start")
    assert "deed" in app.error[0].value


def test_a_text_of_one_long_paragraph_is_said_to_be_cut(
    taggers: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "MOST", 20)
    for written, further in (("Px a Ly b b c Px a Ly", ""), ("Px a Ly b b c Px a Ly.\nPx", "; 1 paragraph left out")):
        app = tried(taggers[0], file=("talk.txt", written.encode()))
        assert f"The text was cut after 20 characters{further}. To read all of it" in app.warning[0].value
    assert not tried(taggers[0], file=("talk.txt", b"Px a Ly b b c Px a L")).warning


def leads_there(app: AppTest) -> bool:
    return any("Try it on a document" in link.proto.label for link in app.get("page_link"))


def test_home_links_to_the_tab_try_it_if_there_is_a_tagger(taggers: tuple[str, str]) -> None:
    assert leads_there(opened("home.py"))
    assert opened(PAGE, None, **query()).text_area(key="results.try.text")
    for run in taggers:
        shutil.rmtree(deliver.model_folder(run))
    assert not leads_there(opened("home.py"))


def test_project_without_a_tagger_gets_one_sentence_and_leads_to_training(home: Path) -> None:
    marks = {role: corpus.fingerprint for role, corpus in finished.corpora(home).items()}
    recipe = KINDS["experiment"]
    register(recipe, recipe.config.parse({"arms": ["none"], **marks}), store())
    app = opened(PAGE, {"results.tab.waiting": "Try it"})
    assert [info.value for info in app.info] == ["This project has no tagger yet. Train one to try it here."]
    assert "Train a tagger" in [link.proto.label for link in app.get("page_link")]
    assert not app.text_area


def test_tagger_without_its_model_is_not_offered_and_can_be_trained_again(
    taggers: tuple[str, str], started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    good, bad = taggers
    shutil.rmtree(deliver.model_folder(good))
    for name, key in (("Try it", "results.try.model"), ("Download", "results.take.model")):
        box = on_tab(name).selectbox(key=key)
        assert (len(box.options), box.value) == (1, bad)
    shutil.rmtree(deliver.model_folder(bad))
    for name in ("Try it", "Download"):
        app = on_tab(name)
        assert [info.value for info in app.info] == [NO_MODELS]
        assert not app.error
        assert not app.get("download_button")
    press(app, "results.again.start")
    assert [kind for kind, _ in started_runs] == ["finetune"]
