"""An experiment's axis: the same selection and labels under other encoders, each arm against `none` of its own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.experiment import rivals
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.seconds import Seconds
from core.models.fingerprint import fingerprint
from core.projects import runs
from tests.conftest import sentence
from tests.finished import TIMED
from tests.recipes.test_experiment import OPTIONS, fill
from tests.stand_ins import tiny_mlm

SPLITS = {"train": "train", "dev": "dev", "test": "test"}


def config(**options: Any) -> ExperimentConfig:
    return ExperimentConfig.parse({**SPLITS, "task": "t", "domain": "d", **options})


def test_every_arm_is_there_once_an_encoder() -> None:
    axis = ("encoder:minilm", "encoder: a ", "encoder:b", "encoder:a")
    asked = config(arms=("none", "knn", "lpft"), budgets=("10%", "20%"), axis=axis)
    assert asked.axis == ("encoder:minilm", "encoder:a", "encoder:b")
    assert asked.encoders == ["a", "b"]  # the experiment's own is there anyway
    names = [str(cell) for cell in asked.cells]
    usual = [name for name in names if "encoder:" not in name]
    assert usual == ["random 10%", "random 20%", "none", "knn 10%", "knn 20%", "lpft"]
    assert len(names) == len(set(names)) == 3 * len(usual)
    assert names[len(usual)] == "random encoder:a 10%"
    assert config(arms=("none", "knn")).cells == config(arms=("none", "knn"), axis=("encoder:minilm",)).cells


def test_each_is_measured_against_its_own_none_and_control() -> None:
    cells = config(arms=("none", "knn", "tapt"), axis=("encoder:a",)).cells
    against = {str(cell): str(rivals.baseline(cell, cells)) for cell in cells}
    assert against["knn 10%"] == "none"
    assert against["knn encoder:a 10%"] == against["random encoder:a 10%"] == "none encoder:a"
    assert against["none encoder:a"] == against["none"] == "none"
    control = {str(cell): str(rivals.control(cell, cells)) for cell in cells}
    assert control["knn encoder:a 10%"] == "random encoder:a 10%"
    assert control["tapt encoder:a"] == "random-only encoder:a |T_C|"
    assert control["random encoder:a 10%"] == control["none encoder:a"] == "None"
    judged = {str(cell) for cell in cells if cell.arm.judged}
    assert judged == {"knn 10%", "tapt", "none encoder:a", "knn encoder:a 10%", "tapt encoder:a"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"axis": ("minilm",)}, "axis: 'minilm' is not understood; write for example encoder:minilm"),
        ({"axis": ("encoder: ",)}, "is not understood"),
        ({"axis": ("encoder:a",), "finetune": {"network": "bilstm"}}, "axis: a bilstm starts from no encoder"),
    ],
)
def test_what_is_no_axis_is_a_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config(arms=("none",), **options)


def test_the_same_selection_under_another_encoder(home: Path, tmp_path: Path, untrained: None) -> None:
    other = str(tiny_mlm(tmp_path / "other"))
    fill(home)
    options = {**OPTIONS, "arms": ("none", "gazetteer"), "axis": (f"encoder:{other}",), "seeds": (1,)}
    for encoder in ("", *experiments.encoders(options)):
        runs.execute("calibrate", experiments.calibration(options, encoder))
    assert [run.manifest.config["encoder"] for run in runs.listed("calibrate")] == [other, "tiny"]
    before = experiments.cost(options)
    run = runs.execute("experiment", options)
    assert experiments.cost(options).seconds == 0 < before.seconds
    assert run.manifest.config["weights"] == f"tiny-1 {fingerprint(other)}"
    assert not [note for note in run.state().notes if note.startswith("Added") and "encoder:" in note]
    rows = {row["arm"]: row for row in run.result()["leaderboard"]}
    usual = ("none", "random", "gazetteer")
    assert set(rows) == {*usual, *(f"{name} encoder:{other}" for name in usual)}
    for name in usual:
        row, same = rows[name], rows[f"{name} encoder:{other}"]
        assert row["select_run"] == same["select_run"]
        assert (started(row), started(same)) == ("tiny", other)
        assert read(row) == read(same)
    none = rows[f"none encoder:{other}"]
    assert none["why"].startswith("Against the experiment's own encoder")
    assert none["delta"] == pytest.approx(none["mean"] - rows["none"]["mean"], abs=1e-2)
    assert rows[f"random encoder:{other}"]["verdict"] == "control"
    for name in ("random", "gazetteer"):
        row = rows[f"{name} encoder:{other}"]
        assert row["delta"] == pytest.approx(row["mean"] - none["mean"], abs=1e-2)


def options_of(row: dict[str, Any], kind: str) -> Any:
    run_id = row[f"{kind}_run"]
    return runs.get(run_id).manifest.config if run_id else {}


def started(row: dict[str, Any]) -> str:
    """The encoder that a line began with."""
    return str((options_of(row, "pretrain") or options_of(row, "finetune"))["init"])


def read(row: dict[str, Any]) -> list[Any]:
    """What it has read."""
    return [options_of(row, "pretrain").get("corpora"), options_of(row, "finetune")["train"]]


def test_each_encoder_takes_its_own_time(seal: Callable[..., Corpus]) -> None:
    rows = [sentence(f"Ada{i} sues .", [(0, 1, "PER")]) for i in range(200)]
    corpora = {name: seal(rows, name, labelled=True) for name in SPLITS}
    asked = config(arms=("none",), axis=("encoder:a",))
    base, other = asked.cells
    slow = replace(TIMED, tagger=(10 * TIMED.tagger[0], 10 * TIMED.tagger[1]))
    timed = Seconds(asked, TIMED, corpora, others={"a": slow})
    assert timed.finetune(0, base) == timed.finetune(0)
    assert timed.finetune(0, other) > 2 * timed.finetune(0, base)
