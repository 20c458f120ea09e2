"""One estimator tells times: a training takes as long in the box above Start as in the plan of an experiment."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import cards
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.seconds import Seconds
from core.pretraining.pretrain import PretrainConfig
from core.runs.context import RunContext
from core.tagging import training_view as training
from core.tagging.calibration import CalibrateResult
from core.tagging.estimate import Estimate, Speed
from core.tagging.finetune import FinetuneConfig
from core.tagging.preflight import _finetune, _pretrain
from tests.finished import TIMED, finish
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


ASKED = {**SPLITS, "task": "task", "domain": "domain", "arms": ("none", "tapt"), "seeds": (1,)}
SLOW = replace(TIMED, mlm=(1.0, 1.0), tagger=(1.0, 1.0))


def timed(home: Path, result: CalibrateResult, **options: Any) -> None:
    """This machine was timed."""
    finish(home, "calibrate", {"task": "task", "train": "train", "domain": "domain", **options}, lambda _: result)


def trained(home: Path, kind: str, rate: float, **options: Any) -> None:
    """A training that went at so many pieces a second."""

    def work(context: RunContext) -> dict[str, object]:
        context.runs_on("cpu", cards.machine())
        context.metric("tokens_per_second@1" if kind == "finetune" else "tokens_per_second", rate, 3)
        return {}

    given = {"train": "train", "dev": "dev"} if kind == "finetune" else {"corpora": ("domain",)}
    finish(home, kind, {**given, **options}, work)


def seconds_of(kind: str, line: str, *, experiment: dict[str, Any], **options: Any) -> float:
    """Seconds of a training, the same by itself (`options`) and as a line's step of an experiment."""
    cost, alone = experiments.cost({**ASKED, **experiment}), training.preflight(kind, options)
    (planned,) = (step.seconds for step in cost.steps if (step.kind, step.line) == (kind, line))
    assert alone.seconds == pytest.approx(planned)
    assert alone.basis in cost.basis
    return planned


def tuning(network: str = "encoder") -> float:
    experiment = {"arms": ("none",), "finetune": {"network": network}}
    asked = {**SPLITS, "test": ("test",), "seeds": (1,), "network": network}
    return seconds_of("finetune", "none", experiment=experiment, **asked)


def reading() -> float:
    return seconds_of("pretrain", "tapt", experiment={}, corpora=("task",), heldout_task="dev")


def test_by_itself_and_in_an_experiment_a_training_goes_by_the_same_speed(home: Path) -> None:
    """The last training alike, else what was timed, on its text where that is there."""
    fill(home)
    timed(home, TIMED)
    tuned, read = tuning(), reading()
    timed(home, SLOW, task="dev", train="dev", domain="")  # newer, on other text
    assert (tuning(), reading()) == (tuned, read)
    trained(home, "finetune", 50.0)
    assert tuning() > 2 * tuned
    assert reading() == read
    trained(home, "pretrain", 50.0)
    assert reading() > 2 * read


def test_a_recurrent_tagger_has_a_speed_of_its_own(home: Path) -> None:
    fill(home)
    timed(home, TIMED)
    tuned = tuning()
    timed(home, SLOW, network="bilstm")
    assert tuning("bilstm") > 2 * tuned
    trained(home, "finetune", 50.0, network="bilstm")
    assert tuning() == tuned
    assert tuning("bilstm") > 2 * tuned


@pytest.mark.parametrize("other", [{"network": "bilstm"}, {"lora": 4}, {"layers": "1"}, {"init": "tiny"}], ids=str)
def test_a_training_of_another_kind_says_nothing(home: Path, other: dict[str, Any]) -> None:
    fill(home)
    asked = {**SPLITS, "test": ("test",)}
    trained(home, "finetune", 50.0, **other)
    assert training.preflight("finetune", asked).seconds is None
    assert training.preflight("finetune", {**asked, **other}).seconds
    trained(home, "finetune", 70.0, preset="paper", batch_size=8)
    known = training.preflight("finetune", asked)
    assert known.seconds
    assert known.basis == "From your last fine-tuning of this kind on this machine, 70 pieces a second."


def test_an_experiment_on_new_text_goes_by_what_was_timed_on_other(home: Path) -> None:
    """Whoever timed this machine once sees a time at once, whatever is asked."""
    fill(home)
    assert experiments.cost_if_known(ASKED) is None
    timed(home, TIMED, task="dev", train="dev", domain="")
    cost = experiments.cost_if_known({**ASKED, "arms": ("none", "classifier")})
    assert cost
    assert cost.seconds > 0
    assert cost.basis == "A training of this kind was timed on this machine for a few seconds."
    assert experiments.cost_if_known({**ASKED, "encoder": "tiny"}) is None
    assert experiments.cost_if_known({**ASKED, "axis": ("encoder:tiny",)}) is None


def test_classifiers_go_by_the_speed_of_their_encoder_whatever_network_was_timed_last(home: Path) -> None:
    fill(home)
    timed(home, TIMED)
    alone = training.difficulty_estimate({"train": "train"})
    timed(home, SLOW, network="bilstm")
    assert training.difficulty_estimate({"train": "train"}) == alone
    cost = experiments.cost({**SPLITS, "arms": ("none", "random2low:20%"), "seeds": (1,)})
    assert sum(step.seconds for step in cost.steps if step.kind == "difficulty") == pytest.approx(alone)  # shared
