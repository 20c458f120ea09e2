"""Results, Try a sentence: real taggers on typed text, one alone and two beside each other."""

import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.library import Library
from core.errors import CorpusError
from core.facade import corpora, deliver, runs
from core.facade import taggers as taggers_facade
from core.facade.home import home
from pages.ui.results.take import NO_MODELS
from pages.ui.results.trial import READ, TRIES
from pages.ui.runs.words import title
from tests.pages.test_pages import opened, texts
from tests.pages.test_results import tab
from tests.searched import holding
from tests.training.test_finetune import labelled

PAGE = "pages/6_Results.py"
FAST = {"init": "tiny", "learning_rate": 3e-3, "head_learning_rate": 3e-2, "batch_size": 8, "precision": "fp32"}


def two_taggers(home: Path) -> tuple[str, str]:
    """`finetune` runs of a tagger that learnt PER and LOC and of one whose steps were too small to learn."""
    parts = {}
    for number, role in enumerate(("train", "dev", "test"), start=1):
        rows = labelled(40 if role == "train" else 12, number)
        parts[role] = Library(home).seal(rows, name=role, origin={}, labelled=True).fingerprint
    options = {**FAST, **parts, "test": (parts["test"],), "seeds": (1,)}
    good = runs.execute("finetune", {**options, "epochs": 6})
    bad = runs.execute("finetune", {**options, "epochs": 1, "learning_rate": 1e-9, "head_learning_rate": 1e-9})
    return good.id, bad.id


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A home with the two, and their runs."""
    home = tmp_path_factory.mktemp("tried") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        return home, *two_taggers(home)


@pytest.fixture
def taggers(trained: tuple[Path, str, str], home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The two in a copy of that home, where a try is done at once and not in a process of its own."""
    shutil.copytree(trained[0], home)
    monkeypatch.setattr("core.facade.deliver.start", lambda kind, options: runs.execute(kind, options).id)
    return trained[1:]


def typed(text: str, tagger: str, second: str | None = None) -> AppTest:
    """The page after somebody has typed `text` and pressed the button."""
    app = tab(opened(PAGE), "Try a sentence")
    app.selectbox(key="results.try.model").set_value(tagger)
    app.selectbox(key="results.try.other").set_value(second)
    app.text_area(key="results.try.text").set_value(text)
    app.button(key="results.try.start").click().run()
    assert not app.exception
    assert not app.error
    return app


def test_a_typed_sentence_comes_back_with_its_entities_in_colour(taggers: tuple[str, str]) -> None:
    said = texts(typed("Px a Ly\nb <b> c", taggers[0]))
    assert re.search(r'<mark class="w-entity" style="--c:[^"]+">Px <small>PER</small></mark> a', said)
    assert re.search(r'<mark class="w-entity" style="--c:[^"]+">Ly <small>LOC</small></mark>', said)
    assert "&lt;" in said
    assert "<b>" not in said


def test_a_tagger_whose_model_is_gone_is_not_offered(taggers: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither to be tried nor to be exported; if none is left, one can be trained on the spot."""
    good, bad = taggers
    shutil.rmtree(deliver.model_folder(good))
    for name, key in (("Try a sentence", "results.try.model"), ("Download", "results.take.model")):
        app = tab(opened(PAGE), name)
        box = app.selectbox(key=key)
        assert len(box.options) == 1
        assert box.value == bad
    shutil.rmtree(deliver.model_folder(bad))
    for name in ("Try a sentence", "Download"):
        app = tab(opened(PAGE), name)
        assert [info.value for info in app.info] == [NO_MODELS]
        assert not app.error
        assert not app.get("download_button")
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)
    again = app.button(key="results.again.start")
    assert again.label.startswith("Train one tagger now")
    again.click().run()
    app = tab(opened(PAGE), "Try a sentence")
    assert not app.exception
    assert not app.info
    assert len(app.selectbox(key="results.try.model").options) == 1
    assert taggers_facade.here()


def test_a_colour_is_a_type_whatever_is_typed(taggers: tuple[str, str]) -> None:
    colour = [re.findall(r'--c:([^"]+)">Ly', texts(typed(text, taggers[0]))) for text in ("Px a Ly", "Ly a a")]
    assert colour[0] == colour[1] != []


def test_two_taggers_on_the_same_text_stand_beside_each_other(taggers: tuple[str, str]) -> None:
    good, bad = taggers
    app = typed("Px a Ly\nb b b", good, bad)
    said = texts(app)
    read = app.session_state[READ]
    assert [len(s.entities or ()) for s in read[good]] == [2, 0]
    assert [s.tokens for s in read[good]] == [s.tokens for s in read[bad]]
    assert read[good] != read[bad]
    assert '<th scope="col">A</th><th scope="col">B</th>' in said
    same = sum(a == b for a, b in zip(read[good], read[bad], strict=True))
    assert f"A and B agree on {same} of 2 sentences." in said
    assert said.count(">Px <small>PER</small></mark>") == 1
    assert "epochs (6 against 1)" in unescape(said)


def test_the_same_tagger_twice_is_one_try(taggers: tuple[str, str]) -> None:
    app = typed("Px a Ly", taggers[0], taggers[0])
    assert "A and B agree" not in texts(app)
    assert list(app.session_state[TRIES]) == list(app.session_state[READ]) == [taggers[0]]


def test_what_was_typed_stays_until_both_have_read_it(
    taggers: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.recipes import RECIPES
    from core.recipes.base import register
    from core.runs.store import RunStore

    first = deliver.try_sentences(taggers[0], "Px a Ly")
    monkeypatch.setattr(
        "core.facade.deliver.start",
        lambda kind, options: register(RECIPES[kind], RECIPES[kind].config.parse(options), RunStore(home())).id,
    )
    second = deliver.try_sentences(taggers[1], "Px a Ly")  # registered, not begun
    corpus = runs.get(second).manifest.config["corpus"]
    deliver.forget_try(first)
    assert corpora.find(corpus)
    runs.go_on(second)
    deliver.forget_try(second)
    deliver.forget_try(second)
    with pytest.raises(CorpusError):
        corpora.find(corpus)
    assert not runs.listed("predict")


def test_a_try_is_called_by_its_tagger(taggers: tuple[str, str]) -> None:
    run = deliver.try_sentences(taggers[0], "Px a Ly")
    deliver.forget_try(run)
    run = deliver.try_sentences(taggers[0], "Px a Ly")
    assert title(runs.get(run)) == "Find entities with tiny on train"


@pytest.mark.parametrize("second", [False, True])
def test_no_file_holds_a_try_once_it_was_shown(taggers: tuple[str, str], home: Path, second: bool) -> None:
    app = typed("Zyxname17 a Ly\nb Zyxname18", taggers[0], taggers[1] if second else None)
    assert "Zyxname18" in texts(app)
    assert holding(home, ["Zyxname17", "Zyxname18"]) == []
    assert not runs.listed("predict")
    assert not runs.listed("tag")
    app.run()  # it is shown as long as the page is open
    assert "Zyxname18" in texts(app)
    assert not app.error


def test_a_try_on_disk_can_be_found(taggers: tuple[str, str], home: Path) -> None:
    run = deliver.try_sentences(taggers[0], "Zyxname17 a Ly")
    files = {line.split("/")[-1] for line in holding(home, ["Zyxname17"])}
    assert files == {"sentences.parquet: Zyxname17", "predictions.jsonl: Zyxname17", "predictions.conll: Zyxname17"}
    deliver.forget_try(run)
    assert holding(home, ["Zyxname17"]) == []


def test_a_corpus_of_ones_own_is_no_try(taggers: tuple[str, str], home: Path) -> None:
    run = deliver.try_sentences(taggers[0], "Px a Ly")
    typed_corpus = corpora.find(runs.get(run).manifest.config["corpus"])
    Library(home).seal(next(typed_corpus.batches()), name="mine", origin={"file": "mine.txt"})
    deliver.forget_try(run)
    assert corpora.find("mine")
    assert runs.get(run).state().state == "succeeded"
