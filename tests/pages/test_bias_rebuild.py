"""The page Bias before a rebuild and beside robustness sets: numbers that hold, files to take away, who is ambiguous."""

from pathlib import Path

import pytest

from core import facade
from core.corpora.corpus import Library
from core.difficulty import mentions as difficulty
from tests.conftest import sentence
from tests.finished import corpora as finished_corpora
from tests.finished_bias import contracts, measured
from tests.pages.test_bias import PAGE, raw_html, tuned_on_both
from tests.pages.test_pages import opened, texts


@pytest.fixture
def run(home: Path) -> str:
    corpus = contracts(home)
    facade.set_role("train", corpus.fingerprint)
    return measured(home, corpus).id


def test_a_measurement_of_some_mentions_is_told_and_the_number_is_of_all(run: str) -> None:
    path = facade.run(run).artifacts / "mentions.parquet"
    difficulty.write(difficulty.read(path)[::2], path)
    said = texts(opened(PAGE))
    assert "Only 62 of 123 mentions were measured" in said
    assert "**25 of 123 mentions** are to be changed; at most" in said


def test_low_share_says_its_sentences_and_stops_where_they_are_too_few(run: str) -> None:
    app = opened(PAGE)
    app.selectbox(key="bias.rebuild.method").set_value("low-share").run()
    assert not app.exception
    assert "Sentences to draw from" in raw_html(app)
    told = facade.rebuild_preview({"train": "my labels", "difficulty": run, "method": "low-share"})
    assert told["bins"] == {"low": 60, "near_zero": 3, "high": 60}
    assert "200 sentences with a low" in " ".join(warning.value for warning in app.warning).replace("&#45;", "-")
    assert app.button(key="bias.rebuild.start").disabled
    app.number_input(key="bias.rebuild.low-share.size").set_value(20).run()
    assert not app.button(key="bias.rebuild.start").disabled
    assert "**20 sentences** are drawn, 4 of them for" in texts(app)
    assert app.slider(key="bias.rate.low-share").value == 20
    app.selectbox(key="bias.rebuild.low-share.add_bin").set_value("high").run()
    assert not app.exception
    assert "bias.rate.low-share" not in {slider.key for slider in app.slider}
    command = next(code.value for code in app.code if "rebuild" in code.value)
    assert "--add-bin high" in command
    assert "--rate" not in command


def test_harder_sets_come_with_their_slots_and_ambiguous_names_are_marked(home: Path) -> None:
    train = contracts(home)
    bare = [sentence("Acme1 Oslo1", [(0, 1, "PARTY"), (1, 2, "DATE")]), sentence("x", [(0, 1, "DATE")])]
    test = Library(home).seal(bare, name="bare", origin={}, labelled=True)
    options = {"test": test.fingerprint, "train": train.fingerprint, "kind": "typos"}
    run = facade.execute("robustness", options)
    app = opened(PAGE)
    assert not app.exception
    labels = [element.proto.label for element in app.get("download_button")]
    assert {"CoNLL", "Log of the edits", "All names, the ambiguous marked"} <= set(labels)
    assert "What holds for renamed names" in raw_html(app)
    (diff,) = facade.edit_diffs(run.id)
    assert diff.unsure == {edit.start for edit in diff.edits} == {0, 1}
    assert raw_html(app).count("ambiguous</small>") == 2


def test_sets_of_one_name_are_both_told_with_whose_names_are_known(home: Path) -> None:
    made = finished_corpora(home)
    options = {"test": made["test"].fingerprint, "train": made["train"].fingerprint, "kind": "oov"}
    library = Library(home)
    hard = library.find(facade.execute("robustness", options).result()["corpus"])
    hard = library.seal(next(hard.batches()), name=made["test"].name, origin={}, labelled=True)
    tuned_on_both(home, made, hard, "tiny", 0.5)
    app = opened(PAGE)
    assert not app.exception
    caption = next(caption.value for caption in app.caption if "the same for all taggers" in caption.value)
    assert caption.count("my test: ") == 2
    assert "by the names of my train" in caption
