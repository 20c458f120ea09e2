"""The page Bias before a rebuild and beside robustness sets: numbers that hold, files to take away, who is ambiguous."""

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.artifacts import predictions, spans
from core.artifacts.predictions import PredictResult
from core.artifacts.rebuilt import read_slots
from core.artifacts.spans import TagResult
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.difficulty import mentions as difficulty
from core.errors import Unfinished
from core.facade import corpora, rebuilding, runs
from core.files import sum_up
from core.runs.context import RunContext
from core.selection.spans import SPAN
from tests.conftest import sentence
from tests.finished import TYPES, finish, tuned
from tests.finished import corpora as finished_corpora
from tests.finished_bias import contracts, measured
from tests.pages.test_bias import PAGE, raw_html, tuned_on_both
from tests.pages.test_pages import commands_on, opened, opened_on, texts


@pytest.fixture
def run(home: Path) -> str:
    corpus = contracts(home)
    corpora.set_role("train", corpus.fingerprint)
    return measured(home, corpus).id


def test_a_measurement_of_some_mentions_is_told_and_the_number_is_of_all(run: str) -> None:
    path = runs.get(run).artifacts / "mentions.parquet"
    difficulty.write(difficulty.read(path)[::2], path)
    sum_up(runs.get(run).path)
    said = texts(opened(PAGE))
    assert "Only 62 of 123 mentions were measured" in said
    assert "**25 of 123 mentions** are to be changed; all of them can be." in said


def test_the_form_says_what_the_method_itself_can_do(run: str) -> None:
    """Of a rate that is beyond what there is: the run's own number, and how far "much" was lowered for it."""
    app = opened(PAGE)
    app.selectbox(key="bias.rebuild.method").set_value("redundant2low").run()
    app.slider(key="bias.rate.redundant2low").set_value(90).run()
    options = {"train": "my labels", "difficulty": run, "method": "redundant2low", "rate": 0.9}
    told, made = rebuilding.preview(options), runs.execute("rebuild", options).result()
    assert 0 < told.able == made["changed"] < told.wanted == 111
    assert told.reached == made["reached"] == "0%"
    said = texts(app)
    assert f"to change; **{told.able}** of them can be. For that, names and contexts count as" in said
    assert "from 0% of their type on; low names never do" in said


def test_low_share_says_its_sentences_and_stops_where_they_are_too_few(run: str) -> None:
    app = opened(PAGE)
    app.selectbox(key="bias.rebuild.method").set_value("low-share").run()
    assert not app.exception
    assert "Sentences to draw from" in raw_html(app)
    told = rebuilding.preview({"train": "my labels", "difficulty": run, "method": "low-share"})
    assert told.bins == {"low": 60, "near_zero": 3, "high": 60}
    assert "200 sentences with a low" in " ".join(warning.value for warning in app.warning).replace("&#45;", "-")
    assert app.button(key="bias.rebuild.start").disabled
    app.number_input(key="bias.rebuild.low-share.size").set_value(3).run()
    assert app.button(key="bias.rebuild.start").disabled
    [none] = [box for box in app.checkbox if "has no dev or test set" in box.label]
    none.check().run()
    app.slider(key="bias.rate.low-share").set_value(90).run()  # every sentence of this corpus has a low-CEIM mention
    assert not app.button(key="bias.rebuild.start").disabled
    assert "**3 sentences** are drawn, 3 of them with a low-CEIM mention; the others hold none." in texts(app)
    told = rebuilding.preview({"train": "my labels", "difficulty": run, "method": "low-share", "size": 3, "rate": 0.9})
    assert f"The set has **{told.drawn} measured mentions**, {told.low} of them low-CEIM" in texts(app)
    app.selectbox(key="bias.rebuild.low-share.add_bin").set_value("high").run()
    assert not app.exception
    assert "bias.rate.low-share" not in {slider.key for slider in app.slider}
    command = next(each for each in commands_on(app) if "rebuild" in each)
    assert "--add-bin high" in command
    assert "--rate" not in command


def labels(home: Path, name: str, n: int) -> Corpus:
    """A labelled corpus of `n` sentences, which no other name has."""
    rows = [sentence(f"{name} pays Acme{i}", [(2, 3, "PARTY")]) for i in range(n)]
    return Library(home).seal(rows, name=name, origin={}, labelled=True)


def held_out(app: AppTest) -> list[str]:
    """What is held out as Rebuild opens."""
    [field] = [field for field in app.multiselect if field.label.startswith("Held out")]
    return [name.split(" (")[0] for name in field.value]


def test_the_splits_of_the_measured_corpus_are_held_out_whatever_parts_are_given_now(home: Path) -> None:
    mine = contracts(home, name="legal-train")
    run = measured(home, mine)
    other = {role: labels(home, f"music-{role}", n) for n, role in enumerate(("train", "dev", "test"), 3)}
    for role, corpus in other.items():
        corpora.set_role(role, corpus.fingerprint)
    app = opened_on(PAGE, run.id)
    assert not app.exception
    assert held_out(app) == []  # nobody knows: it asks, and begins nothing
    assert app.button(key="bias.rebuild.start").disabled
    assert "Which dev and test sets go with legal" in " ".join(one.value for one in app.warning)

    named = [labels(home, f"legal-{part}", n) for n, part in enumerate(("dev", "test"), 8)]
    app = opened_on(PAGE, run.id)
    assert set(held_out(app)) == {corpus.fingerprint for corpus in named}
    assert not app.button(key="bias.rebuild.start").disabled
    assert "found by their names" in texts(app)

    trained = {"train": mine, "dev": labels(home, "choices", 12), "test": labels(home, "final", 13)}
    tuned(home, trained, "tiny", 0.5)
    app = opened_on(PAGE, run.id)
    assert set(held_out(app)) == {trained["dev"].fingerprint, trained["test"].fingerprint}
    assert "held out in its own trainings" in texts(app)


def test_the_parts_on_corpora_count_for_the_training_part_itself_and_what_is_made_of_it(home: Path) -> None:
    made = finished_corpora(home)
    rows = next(made["train"].batches())[:30]
    own = Library(home).seal(rows, name="half", origin={"from": made["train"].fingerprint}, labelled=True)
    expected = [made["dev"].fingerprint, made["test"].fingerprint]
    assert rebuilding.splits_of(made["train"].fingerprint) == (
        expected,
        "given as dev and test sets, on the page Corpora",
    )
    assert rebuilding.splits_of(own.fingerprint)[0] == expected


def test_new_names_are_a_taggers_finds_first_and_it_is_said_how_many(home: Path) -> None:
    made = finished_corpora(home)
    text = Library(home).seal([sentence("Zorabel met Quillon"), sentence("the Zorabel")], name="more text", origin={})
    records = [(0, 0, 1, 0, 0.9), (0, 2, 3, 1, 0.3), (1, 1, 2, 0, 0.9)]

    def tag(context: RunContext) -> TagResult:
        spans.write(context.run, np.array(records, dtype=SPAN))
        return TagResult(types=TYPES[:2], sentences=2, entities=3)

    def predict(context: RunContext) -> PredictResult:
        found = [sentence("Zorabel met", [(0, 1, TYPES[0])]), sentence("Quillon", [(0, 1, TYPES[1])])]
        predictions.write(context.run, [(found[0], [0.9]), (found[1], [0.3])])
        return PredictResult(sentences=2, entities=2, types={})

    options = {"corpus": text.fingerprint, "model": "tiny"}
    tagged = {"tag": finish(home, "tag", options, tag), "predict": finish(home, "predict", options, predict)}
    given = {"test": made["test"].fingerprint, "train": made["train"].fingerprint, "kind": "oov"}
    before = runs.execute("robustness", given).result()
    assert "finds" not in before["sources"]
    for kind, found in tagged.items():
        run = runs.execute("robustness", {**given, "finds": found.id})
        after = {slot.after for slot in read_slots(run) if slot.source == "finds"}
        assert after == {"Zorabel"}, kind  # of the other it was not sure
        assert run.result()["sources"]["finds"] > 0 < run.result()["sources"]["generated"]
    with pytest.raises(Unfinished, match="is no finished run of predict or tag"):
        runs.execute("robustness", {**given, "finds": run.id})
    app = opened(PAGE)
    assert "found by a tagger, " in raw_html(app)
    app.selectbox(key="bias.finds").set_value(tagged["tag"].id).run()
    assert any(f"--finds {tagged['tag'].id}" in command for command in commands_on(app))


def test_harder_sets_come_with_their_slots_and_ambiguous_names_are_marked(home: Path) -> None:
    train = contracts(home)
    bare = [sentence("Acme1 Oslo1", [(0, 1, "PARTY"), (1, 2, "DATE")]), sentence("x", [(0, 1, "DATE")])]
    test = Library(home).seal(bare, name="bare", origin={}, labelled=True)
    options = {"test": test.fingerprint, "train": train.fingerprint, "kind": "typos"}
    run = runs.execute("robustness", options)
    app = opened(PAGE)
    assert not app.exception
    labels = [element.proto.label for element in app.get("download_button")]
    assert {"CoNLL", "Log of the edits", "All names, the ambiguous marked"} <= set(labels)
    assert "What holds for renamed names" in raw_html(app)
    (diff,) = rebuilding.changed(run.id)
    assert diff.unsure == {edit.start for edit in diff.edits} == {0, 1}
    assert raw_html(app).count("ambiguous</small>") == 2


def test_sets_of_one_name_are_both_told_with_whose_names_are_known(home: Path) -> None:
    made = finished_corpora(home)
    options = {"test": made["test"].fingerprint, "train": made["train"].fingerprint, "kind": "oov"}
    library = Library(home)
    hard = library.find(runs.execute("robustness", options).result()["corpus"])
    about = json.loads((hard.path / "about.json").read_text(encoding="utf-8"))  # of a version that let names be alike
    (hard.path / "about.json").write_text(json.dumps({**about, "names": [made["test"].name]}), encoding="utf-8")
    hard = library.find(hard.fingerprint)
    tuned_on_both(home, made, hard, "tiny", 0.5)
    app = opened(PAGE)
    assert not app.exception
    caption = next(caption.value for caption in app.caption if "the same for all taggers" in caption.value)
    assert caption.count("my test: ") == 2
    assert "by the names of my train" in caption
