"""Results, Try a sentence: real taggers on typed text, one alone and two beside each other."""

import re
import shutil
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.experiment import deliver
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.projects import runs
from core.projects.titles import title
from core.runs.store import RunStore
from pages.ui.results.sentences import READ, TRIES
from pages.ui.results.take import NO_MODELS
from tests.homes import Homes
from tests.pages.drawing import press, texts
from tests.pages.test_results import on_tab
from tests.training.test_finetune import labelled
from tests.word_search import holding

FAST = {"init": "tiny", "learning_rate": 3e-3, "head_learning_rate": 3e-2, "batch_size": 8, "precision": "fp32"}


def two_taggers(home: Path) -> tuple[str, str]:
    """Train a tagger of PER and LOC and one whose learning rate is too small; return both `finetune` runs."""
    parts = {}
    for number, role in enumerate(("train", "dev", "test"), start=1):
        rows = labelled(40 if role == "train" else 12, number)
        parts[role] = Library(home).seal(rows, name=role, origin={}, labelled=True).fingerprint
    options = {**FAST, **parts, "test": (parts["test"],), "seeds": (1,)}
    good = runs.execute("finetune", {**options, "epochs": 6})
    bad = runs.execute("finetune", {**options, "epochs": 1, "learning_rate": 1e-9, "head_learning_rate": 1e-9})
    return good.id, bad.id


def build_tried(home: Path) -> dict[str, str]:
    """Two taggers: `good` and `bad`."""
    return dict(zip(("good", "bad"), two_taggers(home), strict=True))


@pytest.fixture
def taggers(homes: Homes, home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Copy the home with two taggers; sentences are tagged in this process and not in a worker."""
    monkeypatch.setattr("core.experiment.deliver.start", lambda kind, options: runs.execute(kind, options).id)
    made = homes.copy(build_tried, home)
    return made["good"], made["bad"]


def typed(text: str, tagger: str, second: str | None = None) -> AppTest:
    """Draw the page after somebody has typed `text` and pressed the button."""
    app = on_tab("Try a sentence")
    app.selectbox(key="results.try.model").set_value(tagger)
    app.selectbox(key="results.try.other").set_value(second)
    app.text_area(key="results.try.text").set_value(text)
    press(app, "results.try.start")
    assert not app.error
    return app


def test_typed_sentences_are_tagged_by_two_taggers_and_stay_in_no_file(taggers: tuple[str, str], home: Path) -> None:
    good, bad = taggers
    app = typed("Px a Ly\nb <b> c Zyxname17\nb b Zyxname18", good, bad)
    said = texts(app)
    assert re.search(r'<mark class="w-entity" style="--c:[^"]+">Px <small>PER</small></mark> a', said)
    assert said.count(">Ly <small>LOC</small></mark>") == 1
    assert "<b>" not in said
    read = app.session_state[READ]
    assert len(read[good][0].entities or ()) == 2
    assert [s.tokens for s in read[good]] == [s.tokens for s in read[bad]]
    assert read[good] != read[bad]
    same = sum(a == b for a, b in zip(read[good], read[bad], strict=True))
    assert f"{same} of 3 sentences" in said
    assert "epochs (6 against 1)" in unescape(said)
    assert holding(home, ["Zyxname17", "Zyxname18"]) == []
    assert not runs.listed("predict")
    assert not runs.listed("tag")
    assert "Zyxname18" in texts(app.run())  # shown as long as the page is open
    colour = re.findall(r'--c:([^"]+)">Ly', said)
    app = typed("Ly a a", good, good)
    assert re.findall(r'--c:([^"]+)">Ly', texts(app)) == colour[:1] != []  # the colour depends only on the type
    assert list(app.session_state[TRIES]) == list(app.session_state[READ]) == [good]  # the same tagger twice is one try


def test_tagger_without_its_model_is_not_offered_and_can_be_trained_again(
    taggers: tuple[str, str], begun: list[tuple[str, Mapping[str, Any]]]
) -> None:
    good, bad = taggers
    shutil.rmtree(deliver.model_folder(good))
    for name, key in (("Try a sentence", "results.try.model"), ("Download", "results.take.model")):
        box = on_tab(name).selectbox(key=key)
        assert (len(box.options), box.value) == (1, bad)
    shutil.rmtree(deliver.model_folder(bad))
    for name in ("Try a sentence", "Download"):
        app = on_tab(name)
        assert [info.value for info in app.info] == [NO_MODELS]
        assert not app.error
        assert not app.get("download_button")
    press(app, "results.again.start")
    assert [kind for kind, _ in begun] == ["finetune"]


def test_typed_sentences_are_deleted_after_the_last_tagger_but_not_a_users_corpus_of_the_same_text(
    taggers: tuple[str, str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = deliver.try_sentences(taggers[0], "Zyxname17 a Ly")
    assert title(runs.get(first)) == "Find entities with tiny on train"
    files = {line.split("/")[-1] for line in holding(home, ["Zyxname17"])}
    assert files == {"sentences.parquet: Zyxname17", "predictions.jsonl: Zyxname17", "predictions.conll: Zyxname17"}
    monkeypatch.setattr(
        "core.experiment.deliver.start",
        lambda kind, options: register(KINDS[kind], KINDS[kind].config.parse(options), RunStore(home)).id,
    )
    second = deliver.try_sentences(taggers[1], "Zyxname17 a Ly")  # registered, not begun
    corpus = runs.get(second).manifest.config["corpus"]
    deliver.forget_try(first)
    assert corpora.find(corpus)
    runs.go_on(second)
    for _ in range(2):
        deliver.forget_try(second)
    with pytest.raises(CorpusError):
        corpora.find(corpus)
    assert holding(home, ["Zyxname17"]) == []
    with pytest.raises(ConfigError, match="no sentence"):
        deliver.try_sentences(taggers[0], "  \n ")
    third = deliver.try_sentences(taggers[0], "Px a Ly")
    runs.go_on(third)
    typed_corpus = corpora.find(runs.get(third).manifest.config["corpus"])
    Library(home).seal(next(typed_corpus.batches()), name="mine", origin={"file": "mine.txt"})
    deliver.forget_try(third)
    assert corpora.find("mine")
    assert runs.get(third).state().state == "succeeded"
