"""The page Assisting in its states: empty, set up, scored, the line moved, types mapped, a wrong pair of corpora."""

import re
from dataclasses import replace
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.facade import assisting, corpora, runs
from core.facade.errors import CorpusError
from core.text.sentence import Entity
from pages.ui.runs.outcome import outcome
from pages.ui.runs.words import title
from tests.conftest import Seal, sentence
from tests.pages.test_pages import commands_on, opened, texts
from tests.recipes.test_skl_recipe import AWAY, HOME

PAGE = "pages/8_Assisting.py"
NASTY = "<img/src=x/onerror=alert(1)>"  # one token


@pytest.fixture
def pair(seal: Seal) -> tuple[Corpus, Corpus]:
    words = (NASTY, "met", "Ada")
    nasty = replace(sentence("X met Ada"), tokens=words, entities=(Entity(start=2, end=3, type="GPE"),))
    theirs = [replace(each, file="away.pdf", page=7) for each in (*AWAY, nasty)]
    return seal(HOME, "home", labelled=True), seal(theirs, f"away {NASTY}", labelled=True)


@pytest.fixture
def scored(pair: tuple[Corpus, Corpus]) -> str:
    return runs.execute("skl", {"primary": pair[0].fingerprint, "assisting": pair[1].fingerprint}).id


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def commands(app: AppTest) -> str:
    return " ".join(commands_on(app))


def plainly(said: str) -> str:
    """As a reader sees it: without what keeps a user's text from becoming markup."""
    return unescape(said).replace("\u2060", "")


def test_an_empty_page_says_what_it_needs() -> None:
    app = opened(PAGE)
    assert not app.exception
    assert "two labelled corpora" in texts(app)
    assert "Open the legal sample" in [button.label for button in app.button]


def test_a_file_of_types_is_taken_or_refused_in_words(pair: tuple[Corpus, Corpus]) -> None:
    app = opened(PAGE)
    app.selectbox(key="assisting.primary").select(pair[0].fingerprint).run()
    app.selectbox(key=f"assisting.assisting.{pair[0].fingerprint}").select(pair[1].fingerprint).run()
    app.file_uploader(key="assisting.map").upload("types.docx", b"x" * 1_000_001).run()
    assert not app.exception
    assert ["larger than 1 MB" in error.value for error in app.error] == [True]
    assert "Score its sentences" in [button.label for button in app.button]
    assert "nothing like it was finished on this machine yet" in texts(app)
    app.file_uploader(key="assisting.map").upload("types.docx", b"GPE=LOC\n").run()
    assert not app.error
    assert "From the file: GPE=LOC." in plainly(texts(app))


def test_types_of_one_corpus_can_be_mapped(pair: tuple[Corpus, Corpus]) -> None:
    app = opened(PAGE)
    app.selectbox(key="assisting.primary").select(pair[0].fingerprint).run()
    app.selectbox(key=f"assisting.assisting.{pair[0].fingerprint}").select(pair[1].fingerprint).run()
    boxes = {box.label: box for box in app.selectbox if (box.key or "").startswith("assisting.type.")}
    assert [label.split()[0] for label in boxes] == ["GPE", "ORG"]
    assert all(re.fullmatch(r"[A-Z]+ \(\d+\)", label) for label in boxes)  # a corpus's name, escaped, would be spelt
    gpe, org = boxes.values()
    assert gpe.options == ["stays as it is", "is left out", "is LOC", "is ORG", "is PER"]
    assert org.options == ["stays as it is", "is left out"]  # the primary corpus is trained on as it is
    gpe.select("is LOC")
    org.select("is left out").run()
    next(button for button in app.button if button.label == "Score its sentences").click().run()
    assert not app.exception
    assert runs.listed("skl")[0].manifest.config["type_map"] == ["GPE=LOC", "ORG="]


def test_a_moved_line_changes_the_counts_without_a_new_run(scored: str) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert metrics(app)["Kept"] == "3"
    assert metrics(app)["Kept only because nothing is shared"] == "67%"
    said = plainly(texts(app))
    assert "has ORG. Such entities count as drifting as far as they can: leave them out above." in said
    assert "has GPE. Such entities count as drifting as far as they can: map these types above, or leave" in said
    before = [run.id for run in runs.listed()]
    app.slider(key="assisting.line").set_value(9.4).run()
    assert not app.exception
    assert (metrics(app)["Kept"], metrics(app)["Dropped"]) == ("6", "0")
    assert [run.id for run in runs.listed()] == before
    assert "python -m core skl --primary home --assisting" in commands(app)
    assert "--threshold 9.4 --output kept.conll" in commands(app)


def test_drifting_entities_are_marked_and_nobodys_markup_counts(scored: str) -> None:
    app = opened(PAGE)
    said = texts(app)
    assert "LOC · PER · 9.2" in said
    drawn = " ".join(element.proto.body for element in app.get("html"))
    assert '&lt;img/src=x/onerror=alert(1)&gt; met <mark class="w-entity"' in drawn
    assert "away.pdf, page 7</small></li>" in drawn
    assert "<img" not in drawn


def test_the_drift_table_is_filtered(scored: str) -> None:
    app = opened(PAGE)
    assert app.dataframe[0].value["entity"].tolist()[:2] == ["jordan", "chicago"]
    app.text_input(key="assisting.search").set_value("rome").run()
    assert app.dataframe[0].value["entity"].tolist() == ["rome"]
    app.number_input(key="assisting.least").set_value(5.0).run()
    assert "No shared entity is like that" in texts(app)


def test_kept_sentences_become_a_corpus(scored: str) -> None:
    app = opened(PAGE)
    app.button(key="assisting.seal").click().run()
    assert not app.exception
    assert any(len(corpus) == 3 and corpus.origin.get("run") == scored for corpus in corpora.listed())


def test_corpora_that_share_no_type_become_a_card(seal: Seal) -> None:
    mine = seal(HOME, "home", labelled=True)
    theirs = seal([sentence("Ada came .", [(0, 1, "person")])], "theirs", labelled=True)
    with pytest.raises(CorpusError):
        runs.execute("skl", {"primary": mine.fingerprint, "assisting": theirs.fingerprint})
    app = opened(PAGE)
    assert not app.exception
    assert "shares no type with home" in app.error[0].value


def test_a_sweep_is_drawn(scored: str, pair: tuple[Corpus, Corpus]) -> None:
    fingerprint = pair[0].fingerprint
    given = dict(runs.get(scored).manifest.config)
    runs.execute(
        "assist",
        {
            **given,
            "dev": fingerprint,
            "test": fingerprint,
            "thresholds": (1,),
            "seeds": (1, 2),
            "hidden": 4,
            "epochs": 1,
        },
    )
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    said = texts(app)
    assert "the dev set chose the threshold 1" in said
    assert "beside borrowing none (no tagger learnt anything, so that says nothing" in plainly(said)  # after 1 epoch
    assert "Every variant made 1 steps, 1 passes over the primary sentences, on the same batches" in said
    assert len(app.get("plotly_chart")) == 2
    assert ">Selected by SKL<" in said
    assert "python -m core assist --primary home" in commands(app)


@pytest.mark.usefixtures("expert")
def test_the_form_of_a_sweep_starts_what_it_says(
    scored: str, pair: tuple[Corpus, Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)
    app = opened(PAGE)
    for split in ("dev", "test"):
        app.selectbox(key=f"assisting.{split}").select(pair[0].fingerprint)
    app.multiselect(key="assisting.thresholds").set_value([1, 9])
    app.multiselect(key="assisting.sweep.shares").set_value(["sub-word"])
    app.number_input(key="assisting.seeds").set_value(1)
    app.number_input(key="assisting.sweep.hidden").set_value(4)
    app.number_input(key="assisting.sweep.epochs").set_value(1)
    next(button for button in app.button if button.label == "Train").click().run()
    assert not app.exception
    (run,) = runs.listed("assist")
    config = run.manifest.config
    assert (config["thresholds"], config["shares"], config["seeds"]) == ([1.0, 9.0], ["sub-word"], [1])
    assert (config["dev"], config["hidden"], config["assisting_weight"]) == (pair[0].fingerprint, 4, 0.1)
    assert "With only the spelling of words shared, the dev set chose the threshold" in plainly(texts(app))


@pytest.mark.usefixtures("expert")
def test_small_numbers_are_shown_and_an_open_bound_is_not_offered(pair: tuple[Corpus, Corpus]) -> None:
    app = opened(PAGE)
    app.selectbox(key="assisting.primary").select(pair[0].fingerprint).run()
    app.selectbox(key=f"assisting.assisting.{pair[0].fingerprint}").select(pair[1].fingerprint).run()
    least = app.number_input(key="assisting.floor")
    assert least.label == "Least probability of a type"
    assert least.proto.format == "%g"
    assert (least.value, least.step) == pytest.approx((1e-4, 1e-5))
    assert least.min is not None
    assert 0 < least.min < 1e-6
    assert least.max is not None
    assert 1 - 1e-6 < least.max < 1
    assert app.number_input(key="assisting.add_k").min == 0


def test_scores_that_another_run_made_are_shown(pair: tuple[Corpus, Corpus], seal: Seal) -> None:
    """`runs.start` hands out a finished part of another run; the page was about the latest one of its own."""
    dev = seal([sentence("Ada went home .", [(0, 1, "PER")])], "dev", labelled=True).fingerprint
    given = {"primary": pair[0].fingerprint, "assisting": pair[1].fingerprint}
    runs.execute(
        "assist", {**given, "dev": dev, "test": dev, "thresholds": (1,), "seeds": (1,), "hidden": 4, "epochs": 1}
    )
    runs.execute("skl", {**given, "unit": "surface"})
    swept = runs.listed("assist")[0]
    assert outcome(swept) == assisting.in_words(assisting.swept(swept.id).tables[0])
    app = opened(PAGE)
    assert "--unit surface" in commands(app)
    app.selectbox(key="assisting.primary").select(given["primary"]).run()
    app.selectbox(key=f"assisting.assisting.{given['primary']}").select(given["assisting"]).run()
    assert "The latest one here" in plainly(texts(app))
    next(button for button in app.button if button.label == "Score its sentences").click().run()
    assert not app.exception
    assert "skl --primary home" in commands(app)
    assert "--unit" not in commands(app)
    assert len(runs.listed("skl")) == 2


def test_a_tagger_without_an_encoder_is_not_called_fine_tuned(pair: tuple[Corpus, Corpus]) -> None:
    fingerprint = pair[0].fingerprint
    small = {"train": fingerprint, "dev": fingerprint, "seeds": (1,), "hidden": 4, "epochs": 1, "network": "charcnn"}
    run = runs.execute("finetune", small)
    assert title(run) == "Train a charcnn tagger on home"
