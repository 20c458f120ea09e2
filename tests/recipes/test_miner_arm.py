"""The arm `miner` of an experiment: beside a plain tagger of spans, or on top of what rebuilds L_C."""

from typing import Any

import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import lineup, results, rivals, tables
from core.experiment.arm_words import name_of
from core.experiment.config import ExperimentConfig
from core.experiment.seconds import Seconds
from core.projects import runs
from tests.conftest import sentence
from tests.finished import TIMED
from tests.recipes.test_arms import SPLITS, corpora, made  # noqa: F401  a fixture

GIVEN = {**SPLITS, "also_test": ()}


def test_its_control_is_a_plain_tagger_of_spans() -> None:
    assert lineup.complete(("miner",), {}, "encoder") == ("none", "span", "miner")
    assert lineup.complete(("miner", "lpft"), {}, "span") == ("none", "miner", "lpft")  # where `none` is one
    cells = lineup.cells(("none", "span", "miner"), ())
    assert [str(rivals.control(cell, cells)) for cell in cells] == ["None", "None", "span"]
    assert rivals.against(cells[1]) == "a plain tagger of spans"
    assert [cell.arm.judged for cell in cells] == [False, False, True]
    for name, network in (("span", "span"), ("miner", "charcnn")):
        with pytest.raises(ConfigError, match=f"{name} is for the network encoder"):
            lineup.complete((name,), {}, network)


def test_what_cannot_be_is_said_before_anything_is_trained() -> None:
    for options, words in (
        ({"finetune": {"beta": 0.1}}, "beta, gamma: are of spans"),
        ({"arms": ("miner",), "finetune": {"layers": "mix"}}, "layers: mix is of the network encoder"),
    ):
        with pytest.raises(ConfigError, match=words):
            ExperimentConfig.parse({**GIVEN, "arms": ("none",), **options})


def test_it_joins_what_rebuilds_the_labels_and_keeps_their_preset() -> None:
    spans = {"network": "span", "beta": 0.01, "gamma": 0.001}
    both = ExperimentConfig.parse({**GIVEN, "preset": "paper", "arms": ("highc2low:40%",), "finetune": spans})
    settings = both.tagger_settings
    assert (settings.network, settings.beta, settings.gamma, settings.preset) == ("span", 0.01, 0.001, "paper-bias")
    assert [str(cell) for cell in both.cells] == ["none", "copies:highc2low:40%", "highc2low:40%"]
    alone = ExperimentConfig.parse({**GIVEN, "preset": "paper", "arms": ("miner",), "finetune": {"beta": 0.0}})
    assert alone.tagger_settings.preset == "paper-bias"


def test_an_experiment_trains_it_beside_its_control(corpora: Library) -> None:  # noqa: F811
    long = [sentence("a b c d e f g", [(0, 5, "PARTY"), (6, 7, "END")])]
    held = [*(one for block in corpora.find("test").batches() for one in block), *long]
    test = corpora.seal(iter(held), name="longer", origin={}, labelled=True).fingerprint
    run, rows = made(also_test=(), test=test, arms=("miner",), seeds=(1,), finetune={"epochs": 1})
    own = {
        name: {key: runs.get(row["finetune_run"]).manifest.config.get(key) for key in ("network", "beta", "gamma")}
        for name, row in rows.items()
    }
    plain: dict[str, Any] = {"beta": 0.0, "gamma": 0.0}
    assert own == {
        "none": {"network": "encoder", **plain},
        "span": {"network": "span", **plain},
        "miner": {"network": "span", "beta": 0.01, "gamma": 0.001},
    }
    board = results.board(run.id)
    assert rows["span"]["verdict"] in ("control", "baseline")
    assert (
        board.ceiling_words
        == f"{1 / (2 * len(held)):.1%} of the spans in test are longer than 4 words and cannot be found."
    )
    assert board.ceiling_words in tables.as_markdown(board)
    miner = next(row for row in board.leaderboard if row.arm == "miner")
    assert name_of(miner, board.leaderboard) == "names of a type read alike"
    config = ExperimentConfig.parse({**GIVEN, "arms": ("miner",), "finetune": {"epochs": 1}})
    seconds = Seconds(config, TIMED, {name: corpora.find(name) for name in ("train", "dev", "test")})
    none, span, copied = (seconds.finetune(0, cell) for cell in config.cells)
    assert none == span < copied
