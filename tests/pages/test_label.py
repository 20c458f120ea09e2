"""The page Label: its queue, corpora made from labelled sentences, and training again with them."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from core.importing import view as corpora
from core.labelling import view as labelling
from core.projects import runs
from core.projects.home import library, store
from core.stats import bootstrap
from core.tagging import evaluations
from pages.ui.label import editor
from pages.ui.label.setup import MEASURE, REVIEW, TRAIN
from pages.ui.widgets import plain
from tests.conftest import Seal, sentence
from tests.finished import corpora as finished_corpora
from tests.finished import tuned
from tests.finished_bias import contracts, measured
from tests.homes import Names
from tests.labelling.test_answers import sent
from tests.pages.drawing import opened, press, seen, texts

PAGE = "pages/11_Label.py"
StartedRuns = list[tuple[str, Mapping[str, Any]]]
TEXTS = [f"The tenant {i} pays the rent to landlord {i} ." for i in range(12)]


@pytest.fixture
def roles(seal: Seal) -> dict[str, str]:
    marks = {"task": seal(TEXTS[:4], "task").fingerprint, "domain": seal(TEXTS[4:], "domain <i>").fingerprint}
    for role, mark in marks.items():
        corpora.set_role(role, mark)
    return marks


def test_without_dev_and_test_set_random_sentences_come_first(roles: dict[str, str], started_runs: StartedRuns) -> None:
    app = opened(PAGE)
    assert app.radio(key="label.purpose").value == MEASURE
    press(app, "label.start")
    assert started_runs == [("draw", {"task": roles["task"], "known": (), "n": 120})]
    app.radio(key="label.purpose").set_value(TRAIN).run()
    assert "no gain can be measured" in app.warning[0].value
    press(app, "label.start")
    assert started_runs[1] == ("queue", {**roles, "n": 25})


def test_a_page_without_a_task_corpus_says_so(seal: Seal) -> None:
    corpora.set_role("domain", seal(TEXTS, "domain").fingerprint)
    app = opened(PAGE)
    assert "This needs a task corpus in use." in texts(app)
    assert not [button for button in app.button if button.key == "label.start"]


def test_labelled_sentences_become_the_training_set(
    roles: dict[str, str], home: Path, started_runs: StartedRuns
) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 3}).id
    app = opened(PAGE, run=run)
    assert app.button(key="label.seal").disabled
    assert "0 of 3 labelled" in app.get("progress")[-1].proto.text
    labelling.answer(run, [sent(0, 0, (1, 2, "PARTY")), sent(1, 1, action="flag")])
    app.run()
    assert "1 of 3 labelled · 1 flagged · 4 s" in app.get("progress")[-1].proto.text
    press(app, "label.seal")
    made = corpora.find(corpora.roles()["train"])
    assert (made.n_sentences, made.types) == (1, {"PARTY": 1})
    assert plain("1 sentence labelled") in app.success[-1].value
    assert not [button for button in app.button if button.key == "label.again"]  # there is no tagger to train again


def test_drawn_sentences_become_a_dev_and_a_test_set_unless_one_is_in_use(roles: dict[str, str], seal: Seal) -> None:
    kept = seal([sentence("Acme pays", [(0, 1, "ORG")])], "kept", labelled=True).fingerprint
    corpora.set_role("dev", kept)
    run = runs.execute("draw", {"task": roles["domain"], "n": 8}).id
    labelling.answer(run, [sent(n, n, (1, 2, "PARTY")) for n in range(8)])
    app = opened(PAGE, run=run)
    press(app, "label.seal")
    assert corpora.roles()["dev"] == kept
    assert corpora.find(corpora.roles()["test"]).n_sentences == 6
    assert "The dev set in use stays" in app.success[-1].value
    assert "<i>" not in texts(app)


def test_both_drawn_sets_are_undone_together(roles: dict[str, str]) -> None:
    before = corpora.roles()
    assert not before.keys() & {"dev", "test"}
    run = runs.execute("draw", {"task": roles["domain"], "n": 8}).id
    labelling.answer(run, [sent(n, n, (1, 2, "PARTY")) for n in range(8)])
    press(opened(PAGE, run=run), "label.seal")
    assert corpora.roles().keys() == {*before, "dev", "test"}
    corpora.undo_roles()
    assert corpora.roles() == before


def test_the_latest_tagger_is_trained_again_and_scores_are_shown_by_size(
    trained: Names, seal: Seal, started_runs: StartedRuns
) -> None:
    old = runs.own("finetune", state="succeeded")[0]
    marks = {"task": seal(TEXTS[:4], "task").fingerprint, "domain": seal(TEXTS[4:], "domain").fingerprint}
    marks |= {"train": old.manifest.config["train"], "dev": old.manifest.config["dev"]}
    for role, mark in marks.items():
        corpora.set_role(role, mark)
    run = runs.execute("queue", {**labelling.queue_options(2), "encoder": "tiny", "model": ""}).id
    labelling.answer(run, [sent(0, 0)])
    app = opened(PAGE, run=run)
    assert not [button for button in app.button if button.key == "label.again"]
    press(app, "label.seal")
    press(app.run(), "label.again")
    train = corpora.roles()["train"]
    assert started_runs == [("finetune", {**old.manifest.config, "train": train})]


def test_a_tagger_without_its_model_is_not_called_missing(home: Path, roles: dict[str, str]) -> None:
    corpora.set_role("dev", roles["task"])
    corpora.set_role("test", roles["task"])
    assert "There is no tagger yet" in texts(opened(PAGE))
    run = tuned(home, finished_corpora(home), "tiny", 0.6)
    shutil.rmtree(run.artifacts / "model")
    assert "No tagger of this project has its model here" in texts(opened(PAGE))


def test_test_scores_are_drawn_by_number_of_labels_with_their_intervals(home: Path, roles: dict[str, str]) -> None:
    made = finished_corpora(home)
    rows = next(made["train"].batches())
    larger = library().seal([*rows, rows[0]], name="train <i>", origin={}, labelled=True)
    for role in ("train", "dev", "test"):
        corpora.set_role(role, made[role].fingerprint)
    tuned(home, made, "tiny", 0.5)
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 3}).id
    heading = "Test scores by number of labels"
    assert heading not in [header.value for header in opened(PAGE, run=run).subheader]
    tuned(home, {**made, "train": larger}, "tiny", 0.6)
    first, second = labelling.curve()
    assert (first.sentences + 1, second.name) == (second.sentences, "train <i>")
    for point in (first, second):
        assert point.interval == bootstrap.interval(evaluations.read(store().get(point.run)))
        assert 0 < point.interval[0] < point.mean < point.interval[1]
    app = opened(PAGE, run=run)
    assert heading in [header.value for header in app.subheader]
    drawn = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]
    assert drawn["x"] == [first.sentences, second.sentences]
    assert drawn["error_y"]["array"] == pytest.approx([p.interval[1] - p.mean for p in (first, second)])
    assert f"{first.interval[0]:.1f} to {first.interval[1]:.1f}" in texts(app)
    assert "<i>" not in json.dumps(drawn)
    older = store().get(first.run)
    known = {name: value for name, value in older.manifest.config.items() if name not in ("first", "distant")}
    older.manifest = replace(older.manifest, config=known)  # as if made before these options existed
    assert labelling.curve() == [first, second]


def test_the_gain_of_further_labels_is_estimated_from_three_sizes() -> None:
    points = [
        labelling.Point(
            corpus=str(n), run=str(n), name=str(n), sentences=n, f1=[f1, f1 + 1], mean=f1 + 0.5, interval=(f1, 60)
        )
        for n, f1 in ((50, 40.0), (100, 50.0), (200, 57.0))
    ]
    assert labelling.next_labels(points[:2]) == {}
    expected = labelling.next_labels(points)
    assert 0 < expected[25].gain < expected[100].gain < 7
    assert expected[100].upper >= expected[100].gain


def test_differences_of_two_annotators_are_settled_on_the_page(roles: dict[str, str]) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 3}).id
    labelling.answer(run, [sent(0, 0, (1, 2, "PARTY"), annotator="<i>Ann</i>"), sent(1, 1, annotator="<i>Ann</i>")])
    assert "Agreement" not in [header.value for header in opened(PAGE, run=run).subheader]
    labelling.answer(run, [sent(0, 0, (1, 3, "PARTY"), client="b", annotator="Bo")])
    app = opened(PAGE, run=run, by="Bo")
    assert app.text_input(key="label.annotator").value == "Bo"
    assert "1 of 3 labelled" in app.get("progress")[-1].proto.text  # counts only the answers of Bo
    assert "Agreement" in [header.value for header in app.subheader]
    assert "<b><i>" not in texts(app)
    press(app, "label.settle.0.1")
    assert labelling.answered(run).labelled[0][0].end == 3
    assert app.success[-1].value == "All differences are settled."
    app.text_input(key="label.annotator").set_value("settled").run()
    assert "has at most 40 letters" in app.error[0].value


def test_guidelines_of_another_window_are_not_overwritten(roles: dict[str, str]) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 2}).id
    app, other = opened(PAGE, run=run), opened(PAGE, run=run)
    other.text_area(key="label.guidelines").set_value("Newer notes.").run()
    app.run()  # reruns as after an answer
    assert labelling.guidelines() == "Newer notes."


def test_a_refused_answer_is_not_asked_for_again(roles: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 2}).id
    outbox = {"answers": [sent(0, 0, (0, 99, "PARTY")), sent(1, 1)]}
    monkeypatch.setattr(st, "session_state", {})
    assert editor._store(run, outbox) == 2
    assert list(labelling.answered(run).labelled) == [1]
    assert editor._handled(run) == {"tab": 1}
    assert editor._store(run, outbox) == 0


def test_an_answer_about_a_removed_corpus_does_not_replace_the_page(
    roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 2}).id
    corpora.remove(roles["domain"])
    monkeypatch.setattr(st, "session_state", {"key": {"outbox": {"answers": [sent(0, 0)]}}})
    editor._received(run, "key")
    assert labelling.answered(run).history == ()


def test_changes_that_cannot_be_stored_are_explained_on_the_page(roles: dict[str, str], home: Path) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 2}).id
    for name in ("Ann", "Bo"):
        labelling.answer(run, [sent(0, 0, (1, 2, name), client=name, annotator=name)])
    app = opened(PAGE, run=run)
    labelling.answer(run, [sent(1, 0, action="reopen", client="Ann", annotator="Ann")])
    press(app, "label.settle.0.0")
    assert "Ann has not labelled sentence 1" in seen(app)
    (home / "labelling.json").write_text("{")
    app.text_area(key="label.guidelines").set_value("Notes").run()
    assert "cannot be read, so nothing was changed" in seen(app)


def test_the_browser_cuts_a_text_with_emoji_into_the_same_words(roles: dict[str, str], seal: Seal) -> None:
    text = "😀 Ann paid 𝕏, and Bo 🧑‍💻 too ."
    run = runs.execute("draw", {"task": seal([text, *TEXTS[:3]], "odd").fingerprint}).id
    task = next(each for each in labelling.to_label(run) if each.sentence.text == text)
    units = text.encode("utf-16-le")  # JavaScript counts the two-byte units of UTF-16
    places = editor._task(task)["places"]
    assert [units[2 * start : 2 * end].decode("utf-16-le") for start, end in places] == list(task.sentence.tokens)


def test_labels_stay_reachable_if_an_old_training_set_is_removed(roles: dict[str, str], seal: Seal) -> None:
    old = seal([sentence("Acme pays", [(0, 1, "ORG")])], "old", labelled=True).fingerprint
    corpora.set_role("train", old)
    run = runs.execute("queue", {**labelling.queue_options(2), "encoder": "tiny"}).id
    labelling.answer(run, [sent(0, 0)])
    corpora.remove(old)
    assert "1 of 2 labelled" in opened(PAGE, run=run).get("progress")[-1].proto.text
    corpora.remove(roles["domain"])
    assert "the corpus of these sentences was removed" in texts(opened(PAGE, run=run))


def test_a_new_type_and_guidelines_are_kept(roles: dict[str, str]) -> None:
    run = runs.execute("queue", {**roles, "encoder": "tiny", "n": 2}).id
    app = opened(PAGE, run=run)
    assert "Add a type first" in texts(app)
    app.text_input(key="label.type.name").set_value("PARTY")
    press(app, "label.type.add")
    assert labelling.types(run) == ["PARTY"]
    app.text_input(key="label.type.name").set_value("two words")
    press(app, "label.type.add")
    assert "without blanks" in app.error[0].value
    app.text_area(key="label.guidelines").set_value("Label <b>defined</b> terms.").run()
    assert labelling.guidelines() == "Label <b>defined</b> terms."


def test_suspicious_labels_are_looked_for_with_all_checks_that_are_possible(
    roles: dict[str, str], home: Path, started_runs: StartedRuns, seal: Seal
) -> None:
    app = opened(PAGE)
    app.radio(key="label.purpose").set_value(REVIEW).run()
    assert "This needs a labelled corpus" in texts(app)
    made = contracts(home, name="mine <i>")
    corpora.set_role("train", made.fingerprint)
    other = seal([sentence("Acme pays", [(0, 1, "PARTY")])], "other <i>", labelled=True).fingerprint
    unlike = seal([sentence("It rains", [(1, 2, "WEATHER")])], "weather", labelled=True)
    library().seal(next(made.batches())[:9], name="part", origin={"fold": 0}, labelled=True)
    app.run()
    assert unlike.name in app.selectbox(key="label.review.corpus").options
    assert "part" not in app.selectbox(key="label.review.corpus").options
    assert [unlike.name in each.options for each in app.selectbox if "against" in str(each.key)] == [False]
    assert "no tagger checks the labels" in app.warning[0].value
    press(app, "label.review.start")
    corpora.set_role("dev", other)
    second = contracts(home, 30, "second")
    difficulty = measured(home, second).id
    app = opened(PAGE, review=second.fingerprint)  # the address of the link on the page Bias
    app.selectbox(key=f"label.review.against.{second.fingerprint}").set_value(other).run()
    assert plain("other <i>") in app.caption[1].value + app.caption[2].value
    press(app, "label.review.start")
    assert started_runs == [
        ("review", {"corpus": made.fingerprint, "dev": ""}),
        ("review", {"corpus": second.fingerprint, "dev": other, "difficulty": difficulty, "against": other}),
    ]
    app = opened(PAGE, review=other)
    assert "earlier scores cannot be compared" in app.warning[0].value


def test_a_review_without_a_finding_says_so_and_flagged_sentences_come_back(
    roles: dict[str, str], home: Path, seal: Seal
) -> None:
    clean = seal([sentence(f"Acme{i} pays", [(0, 1, "ORG")]) for i in range(3)], "clean", labelled=True).fingerprint
    run = runs.execute("review", {"corpus": clean}).id
    assert "No suspicious label was found" in opened(PAGE, run=run).info[-1].value
    queue = runs.execute("queue", {**roles, "encoder": "tiny", "n": 3}).id
    labelling.answer(queue, [sent(0, 0, action="flag"), sent(1, 1)])
    press(opened(PAGE, run=queue), "label.flagged")
    assert list(labelling.answered(queue).latest) == [1]


def test_corrected_labels_replace_the_training_set_and_their_effect_is_shown(
    home: Path, started_runs: StartedRuns
) -> None:
    made = finished_corpora(home)
    rows = next(made["train"].batches())
    train = library().seal([*rows, replace(rows[0], entities=())], name="train", origin={}, labelled=True)
    for role, corpus in {**made, "train": train}.items():
        if role in ("train", "dev", "test"):
            corpora.set_role(role, corpus.fingerprint)
    tuned(home, {**made, "train": train}, "tiny", 0.5)
    run = runs.execute("review", {"corpus": train.fingerprint}).id
    labelling.answer(run, [{**sent(0, 0), "entities": [[0, 1, "PARTY"]]}])
    app = opened(PAGE, run=run)
    press(app, "label.seal")
    corrected = corpora.find(corpora.roles()["train"])
    assert corrected.parent == train.fingerprint
    assert plain(corrected.name) in app.success[-1].value
    assert "before the corrections" not in texts(app)
    press(app.run(), "label.again")
    assert started_runs[-1][1]["train"] == corrected.fingerprint
    tuned(home, {**made, "train": corrected}, "tiny", 0.6)
    effect = labelling.effect_of_corrections(run)
    assert effect is not None
    assert effect.difference.delta == pytest.approx(effect.after - effect.before, abs=1e-6)
    assert effect.difference.lo < effect.difference.delta < effect.difference.hi
    shown = texts(opened(PAGE, run=run))
    assert f"**{effect.difference.delta:+.1f}**, 95% interval {effect.difference.lo:+.1f}" in shown


def test_a_list_or_a_finished_line_suggests_instead_of_the_tagger(
    roles: dict[str, str], seal: Seal, started_runs: StartedRuns
) -> None:
    app = opened(PAGE)
    app.radio(key="label.purpose").set_value(TRAIN).run()
    assert not [box for box in app.selectbox if box.key == "label.suggest"]  # nothing to choose from
    test = seal([sentence("tenant 3 pays", [(0, 2, "PARTY")])], "test", labelled=True).fingerprint
    rows = [sentence("landlord 7", [(0, 2, "PARTY")])]
    names = library().seal(rows, name="parties <i>", origin={"format": "names"}, labelled=True).fingerprint
    line = runs.execute("dictionary", {"names": (names,), "test": (test,)}).id
    app.run()
    box = app.selectbox(key="label.suggest")
    assert box.options == ["None", "Names of parties <i>", "Look the names of parties <i> up in test"]
    for option, options in (
        (box.options[1], {"names": (names,)}),
        (box.options[2], {"suggest": line}),
        (box.options[0], {}),
    ):
        app.selectbox(key="label.suggest").select(option).run()
        press(app, "label.start")
        assert started_runs[-1] == ("queue", {**roles, **options, "n": 25})
    app.selectbox(key="label.suggest").select(box.options[2]).run()
    assert plain("Score (F1) 0.0 with a dictionary of 1 name, without training") in texts(app)
    app.radio(key="label.purpose").set_value(MEASURE).run()
    assert not [box for box in app.selectbox if box.key == "label.suggest"]  # dev and test get no suggestions
    assert "<b><i>" not in texts(app)


def test_sentences_go_to_another_computer_only_after_the_user_agrees(
    roles: dict[str, str], started_runs: StartedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = "Sentences leave this computer: they go to gpu_box, not encrypted."
    far = labelling.Suggester(name="Ask m", options={"suggest": "r"}, host="gpu_box", warning=warning)
    monkeypatch.setattr(labelling, "suggesters", lambda: [far])
    app = opened(PAGE)
    app.radio(key="label.purpose").set_value(TRAIN).run()
    app.selectbox(key="label.suggest").select("Ask m").run()
    assert plain(warning) in [each.value for each in app.warning]
    assert app.button(key="label.start").disabled
    app.checkbox(key="label.allow.gpu_box").check().run()
    press(app, "label.start")
    assert started_runs == [("queue", {**roles, "suggest": "r", "n": 25, "allow_host": "gpu_box"})]
