"""One estimator tells times: a training takes as long in the box above Start as in the plan of an experiment."""

from pathlib import Path
from typing import Any

import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.recipes.experiment.config import ExperimentConfig
from core.recipes.experiment.seconds import Seconds
from core.recipes.finetune import FinetuneConfig
from core.recipes.parts.estimate import Estimate, Speed
from core.recipes.parts.preflight import _finetune, _pretrain
from core.recipes.pretrain import PretrainConfig
from tests.finished import TIMED
from tests.recipes.test_experiment import fill

SPLITS = {"train": "train", "dev": "dev", "test": "test"}


@pytest.fixture
def corpora(home: Path) -> dict[str, Corpus]:
    return fill(home)


def planned(corpora: dict[str, Corpus], **options: Any) -> tuple[Seconds, ExperimentConfig]:
    config = ExperimentConfig.parse({**SPLITS, "task": "task", "domain": "domain", **options})
    return Seconds(config, TIMED, corpora), config


def alone(home: Path, **options: Any) -> Estimate:
    """The same fine-tuning by itself."""
    config = FinetuneConfig.parse({**SPLITS, "test": ("test",), **options})
    return _finetune(config, Library(home)).time(Speed.measured(TIMED, "tagger", "train"))


@pytest.mark.parametrize("options", [{"preset": "paper"}, {"preset": "quick", "network": "bilstm"}])
def test_a_fine_tuning_takes_as_long_alone_as_in_an_experiment(
    home: Path, corpora: dict[str, Corpus], options: dict[str, Any]
) -> None:
    own = {name: value for name, value in options.items() if name == "network"}
    timed, config = planned(corpora, arms=("none",), seeds=(1, 2), preset=options["preset"], finetune=own)
    none = next(cell for cell in config.cells if cell.arm.name == "none")
    assert alone(home, seeds=(1, 2), **options).expected == pytest.approx(timed.finetune(0, none))


def test_early_stopping_makes_the_difference_between_expected_and_most(home: Path, corpora: dict[str, Corpus]) -> None:
    early, whole = alone(home, epochs=100, min_epochs=1), alone(home, epochs=100, min_epochs=100)
    assert early.expected < early.most == whole.most == whole.expected


def test_a_pre_training_takes_as_long_alone_as_in_an_experiment(home: Path, corpora: dict[str, Corpus]) -> None:
    timed, config = planned(corpora, arms=("tapt",), pretrain={"epochs": 3})
    tapt = next(cell for cell in config.cells if cell.arm.name == "tapt")
    same = PretrainConfig.parse({"corpora": ("task",), "epochs": 3, "heldout_task": "dev"})
    time = _pretrain(same, Library(home)).time(Speed.measured(TIMED, "mlm", "task"))
    assert time.expected == time.most == pytest.approx(timed.pretrain(tapt))
