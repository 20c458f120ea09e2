"""The page Training before a start: a ranking of encoders, a larger encoder to fetch, and the note about a GPU."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from core import cards
from core.cards import hindrance
from core.encoders.rank import EncoderRank, LayerScores, NotRanked, Proposal, RankConfig, RankResult
from core.models.vocabulary_fit import VocabularyFit
from core.projects import preferences, runs
from core.training import events
from pages.ui.widgets import plain
from tests.fake_cards import H100, T4, Driver
from tests.finished import finish
from tests.packages import NAME, offer_small
from tests.pages.drawing import codes, opened, texts
from tests.pages.test_training import PAGE, POINTS, charts, choose, labels, metric, metrics, parts, tuned

__all__ = ["parts"]  # a fixture
StartedRuns = list[tuple[str, Mapping[str, Any]]]
LABEL, GET = "Rank them (seconds each)", f"Get {NAME}"


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
        remarks=["Uncased: 100% of the words with a capital letter are lower-cased."],
        seconds=4.5,
    )


RANK = ranked("tiny", Proposal(layers="last", why="No layer is ahead."))


def test_one_click_ranks_the_bundled_encoder(parts: dict[str, str], started_runs: StartedRuns) -> None:
    app = opened(PAGE)
    next(button for button in app.button if button.label == LABEL).click().run()
    [(kind, options)] = started_runs
    assert (kind, options["train"], options["dev"]) == ("rank", parts["train"], parts["dev"])
    assert RankConfig.parse(dict(options)).encoders == ("minilm",)


def test_ranking_is_a_table_with_a_proposal_that_one_click_applies(
    home: Path, parts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "m: its tokenizer has 196 entries but its embedding table only 193 rows"
    monkeypatch.setattr("core.tagging.estimate._problem", lambda *_: reason)
    why = "Within train a linear probe reads 30.5 F1 from layer 2 and 21.5 from the last of 3 (+9.0, +4.0 to +13.0)."
    ranks = [ranked("tiny", Proposal(layers="2", why=why)), ranked("minilm", Proposal(layers="last", why="No layer."))]
    broken = [NotRanked(encoder="m", reason=reason)]
    result = RankResult(train=20, dev=20, words=90, encoders=ranks, not_ranked=broken)
    other = RankResult(train=1, dev=1, words=1, encoders=[ranked("tiny", Proposal(layers="last", why="Nothing."))])
    options = {"train": parts["train"], "dev": parts["dev"], "encoders": ("tiny", "minilm")}
    finish(home, "rank", options, lambda context: result)
    finish(home, "rank", {**options, "train": parts["test"]}, lambda _: other)
    app = opened(PAGE)
    shown = texts(app)
    for cell in ("31.2", "21.5", "30.5 (layer 2)", "1.38", "1.5%", "1.25", "4.25", "97%", "12%", "4.5"):
        assert cell in shown, cell
    assert plain(why) in shown
    assert "Nothing." not in shown  # the result of a ranking with other labels
    assert [error.value for error in app.error] == [plain(reason)]
    assert plain(reason) in " ".join(warning.value for warning in app.warning)
    [use] = [button for button in app.button if button.label.startswith("Use layer")]
    app.session_state["training.command"] = True
    use.click().run()
    words = shlex.split(app.code[-1].value)
    for name, value in (("--init", "tiny"), ("--layers", "2"), ("--preset", "custom")):
        assert words[words.index(name) + 1] == value
    assert preferences.expert()


@pytest.mark.usefixtures("parts")
def test_a_larger_encoder_is_fetched_only_with_consent_and_can_be_tried_again(
    tmp_path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = offer_small(tmp_path, monkeypatch)
    index.lay()
    assert GET not in labels(opened(PAGE))  # pip's index is looked up only on request
    app = opened(PAGE, {"training.larger": True})
    for words in (plain(str(index.folder)), "Apache"):
        assert words in texts(app), words
    [get] = [button for button in app.button if button.label == GET]
    assert get.disabled
    packages = index.package(0).read_bytes()
    index.package(0).unlink()
    choose(app, ("training.larger.agreed", True))
    next(button for button in app.button if button.label == GET).click().run()
    app = opened(PAGE)
    assert any("could not be fetched" in error.value for error in app.error)
    assert "Resume" in labels(app)
    assert GET not in labels(app)
    index.package(0).write_bytes(packages)
    [failed] = runs.listed("fetch")
    assert dict(failed.manifest.config) == {"encoder": NAME, "allow_download": True}
    runs.go_on(failed.id)
    app = opened(PAGE, {"training.finetune.init": NAME, "training.command": True})
    assert f"--init {NAME}" in codes(app)[-1]


@pytest.mark.usefixtures("parts")
def test_offline_machine_offers_no_larger_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer_small(tmp_path, monkeypatch)
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    assert not [expander for expander in opened(PAGE).expander if "larger encoder" in expander.label]


def test_a_gpu_that_cannot_be_used_is_named_with_the_reason(driver: Driver, parts: dict[str, str]) -> None:
    driver.shows((*H100[:2], "550.54", "9.0"))
    assert "driver 550, this build needs 580" in hindrance()
    for page in ("home.py", PAGE):
        assert plain(hindrance()) in [warning.value for warning in opened(page).warning]
    cards.forget()
    driver.shows(H100)
    assert not hindrance()
    assert not any("No GPU here" in info.value for info in opened(PAGE).info)


def test_memory_and_use_of_a_gpu_are_drawn_as_curves(
    driver: Driver, parts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows_by_library(H100, busy=lambda: 83)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 5_500_000_000)
    points = events._of_card(torch.device("cuda"))
    assert points == {"gpu_memory_gb": 5.5, "gpu_used_gb": 10.0, "gpu_busy": 83.0}
    assert events._of_card(torch.device("cpu")) == {}
    tuned(parts, *POINTS, *(metric(f"{name}@1", value, 40) for name, value in points.items()), ("cancelled", {}))
    app = opened(PAGE)
    assert len([alt for alt in charts(app) if "GPU" in alt]) == 3
    assert "83%" in metrics(app).values()
    cards.forget()
    driver.shows_by_library(H100, T4)
    assert "NVIDIA H100 (70 GB of 80 GB free) and 1 more" in texts(opened("home.py"))


def test_without_the_driver_library_only_torchs_memory_is_recorded(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.shows(H100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 5_500_000_000)
    assert events._of_card(torch.device("cuda")) == {"gpu_memory_gb": 5.5}
