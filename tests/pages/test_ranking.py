"""Encoders ranked on the page Training: asked in one click, and the answer in a table with a reason."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.artifacts.rank import EncoderRank, LayerScores, NotRanked, Proposal, RankResult
from core.corpora.corpus import Corpus
from core.facade import corpora, preferences, runs
from core.models.vocabulary_fit import VocabularyFit
from core.recipes.rank import RankConfig
from pages.ui.widgets import plain
from tests.finished import finish
from tests.pages.test_pages import opened, texts
from tests.training.test_finetune import labelled

PAGE, LABEL = "pages/5_Training.py", "Rank them (seconds each)"


@pytest.fixture
def parts(seal: Callable[..., Corpus]) -> dict[str, str]:
    for seed, role in enumerate(("train", "dev", "test")):
        corpora.set_role(role, seal(labelled(20, seed), f"my-{role}", labelled=True).fingerprint)
    return corpora.roles()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    started: list[tuple[str, Mapping[str, Any]]] = []

    def start(kind: str, options: Mapping[str, Any]) -> str:
        started.append((kind, options))
        return ""

    monkeypatch.setattr(runs, "start", start)
    return started


def button(app: AppTest) -> Any:
    return next(button for button in app.button if button.label == LABEL)


def scores(layer: int, f1: float) -> LayerScores:
    return LayerScores(layer=layer, h_score=1.25 + layer, log_me=0.5, f1=f1)


def ranked(name: str, proposal: Proposal) -> EncoderRank:
    fit = VocabularyFit(unknown=0.015, pieces=1.375, case_lost=0.97, cased=False, max_length=128, longer=0.125)
    return EncoderRank(
        encoder=name,
        mean=scores(0, 31.25),
        layers=[scores(1, 20.0), scores(2, 30.5), scores(3, 21.5)],
        proposal=proposal,
        fit=fit,
        remarks=["Uncased: of the words with a capital 100% are read as if they had none."],
        seconds=4.5,
    )


RANK = ranked("tiny", Proposal(layers="last", why="No layer is ahead."))


def test_one_click_asks_for_the_bundled_one_and_what_was_picked(
    parts: dict[str, str], asked: list[tuple[str, Mapping[str, Any]]]
) -> None:
    app = opened(PAGE)
    assert not app.exception
    button(app).click().run()
    [(kind, options)] = asked
    assert (kind, options["train"], options["dev"]) == ("rank", parts["train"], parts["dev"])
    assert list(options["encoders"]) == ["minilm"]
    assert RankConfig.parse(options).encoders == ("minilm",)


def test_the_answer_is_a_table_and_a_reason(home: Path, parts: dict[str, str]) -> None:
    why = "Within train a linear probe reads 30.5 F1 from layer 2 and 21.5 from the last of 3 (+9.0, +4.0 to +13.0)."
    ranks = [ranked("tiny", Proposal(layers="2", why=why)), ranked("minilm", Proposal(layers="last", why="No layer."))]
    result = RankResult(train=20, dev=20, words=90, encoders=ranks)
    options = {"train": parts["train"], "dev": parts["dev"], "encoders": ("tiny", "minilm")}
    finish(home, "rank", options, lambda context: result)
    app = opened(PAGE)
    assert not app.exception
    shown = " ".join([texts(app), *(str(html.proto.body) for html in app.get("html"))])
    for cell in ("31.2", "21.5", "30.5 (layer 2)", "1.38", "1.5%", "1.25", "4.25", "97%", "12%", "4.5"):
        assert cell in shown, cell
    assert '<td class="w-number">31.2</td>' in shown
    assert plain(why) in shown
    [use] = [button for button in app.button if button.label.startswith("Use layer")]
    app.session_state["training.command"] = True
    use.click().run()
    assert not app.exception
    words = shlex.split(app.code[-1].value)
    for name, value in (("--init", "tiny"), ("--layers", "2"), ("--preset", "custom")):
        assert words[words.index(name) + 1] == value
    assert preferences.expert()


def test_a_ranking_of_other_labels_is_not_shown(home: Path, parts: dict[str, str]) -> None:
    result = RankResult(train=1, dev=1, words=1, encoders=[ranked("tiny", Proposal(layers="last", why="Nothing."))])
    finish(home, "rank", {"train": parts["test"], "dev": parts["dev"], "encoders": ("tiny",)}, lambda _: result)
    assert "Nothing." not in texts(opened(PAGE))


def test_an_encoder_that_cannot_be_read_is_named_beside_the_others_and_before_a_start(
    home: Path, parts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "m: its tokenizer has 196 entries but its embedding table only 193 rows"
    monkeypatch.setattr("core.recipes.parts.preflight._problem", lambda *_: reason)
    broken = [NotRanked(encoder="m", reason=reason)]
    result = RankResult(train=20, dev=20, words=100, encoders=[RANK], not_ranked=broken)
    options = {"train": parts["train"], "dev": parts["dev"], "encoders": ("tiny",)}
    finish(home, "rank", options, lambda _: result)
    app = opened(PAGE)
    assert [error.value for error in app.error] == [plain(reason)]
    assert plain(f"Not ranked: {reason}") in [warning.value for warning in app.warning]
