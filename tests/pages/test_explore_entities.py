"""Explore where a tagger has read D_C: a colour for predicted entities, and the entities in the looked-at sentence."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from core.facade import corpora, deliver, entities, maps, runs
from pages.ui.explore.controls import COLOURINGS
from tests.conftest import Seal, sentence
from tests.pages.test_explore import PAGE, figure_of, shown
from tests.pages.test_pages import opened, texts
from tests.planted import contracts, kitchen
from tests.stand_ins import found_by_list, tiny_mlm

NAMES = {"supplier": "PARTY", "buyer": "<b>ODD</b>"}


@pytest.fixture
def map_run(seal: Seal) -> str:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)
    options = {"task": "task", "domain": "domain", "strategy": "knn", "encoder": "tiny", "budget": "20"}
    select = runs.execute("select", options).id
    return runs.execute("map", maps.options(select, sample=60, clusters=2)).id


def tag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = SimpleNamespace(
        types=("<b>ODD</b>", "PARTY"),
        predict=lambda some, report: found_by_list(some, NAMES),
        crf=SimpleNamespace(),
        context=0,
        cut=None,
    )
    monkeypatch.setattr("core.models.taggers.load_tagger", lambda folder: tagger)
    runs.execute("tag", {"corpus": "domain", "model": str(tiny_mlm(folder))})


def test_without_a_tagger_the_colour_is_not_offered(map_run: str) -> None:
    app = opened(PAGE)
    assert COLOURINGS["entities"] not in app.segmented_control(key="explore.by").options


def test_a_finished_tagger_is_offered_to_find_them(map_run: str, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Fine-tune a tagger first" in [link.proto.label for link in opened(PAGE).get("page_link")]
    labelled = [sentence("Ada wins", [(0, 1, "PARTY")]), sentence("Nobody wins", [])]
    corpus = seal(labelled, "labels", labelled=True).fingerprint
    tuned = {"train": corpus, "dev": corpus, "init": "tiny", "seeds": (1,), "epochs": 1}
    trained = runs.execute("finetune", tuned).id
    app = opened(PAGE)
    assert app.selectbox(key="explore.tag.model").options == ["tiny on labels"]
    monkeypatch.setattr("core.facade.runs.start", lambda kind, options, on: runs.execute(kind, options).id)
    app.button(key="explore.tag.start").click().run()
    assert not app.exception
    [run] = entities.tag_runs(maps.get(map_run).selection)
    assert run.manifest.config["model"] == str(deliver.model_folder(trained))
    assert COLOURINGS["entities"] in app.segmented_control(key="explore.by").options
    assert not [button for button in app.button if button.key == "explore.tag.start"]


def test_predicted_entities_colour_the_map_and_the_sentence(
    map_run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag(tmp_path / "tagger", monkeypatch)
    app = opened(PAGE)
    app.segmented_control(key="explore.by").set_value("entities").run()
    assert not app.exception
    assert "predicted entities" in json.dumps(figure_of(app)["layout"])
    found = maps.get(map_run)
    counts = entities.entity_counts(map_run, np.arange(len(found)))
    point = int(np.flatnonzero(counts == 1)[0])
    app = shown(app, "point", point, map_run)
    assert not app.exception
    said = " ".join(html.proto.body for html in app.get("html"))
    assert said.count('class="w-entity"') == 1
    assert "<b>ODD" not in said  # a type is a user's text
    assert "not labelled by hand: 1 entity." in texts(app)
    domain = corpora.find("domain").take([int(found.rows[point])])[0]
    (expected,) = found_by_list([sentence(domain.text)], NAMES)
    assert f"{expected.entities[0].type}".replace("<", "&lt;").replace(">", "&gt;") in said
