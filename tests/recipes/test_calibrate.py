"""What an experiment will cost: lines through timed steps, and seconds that follow from sizes, epochs and seeds."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import WinnowError
from core.experiment import view as experiments
from core.experiment.clock import Clock
from core.experiment.config import ExperimentConfig
from core.experiment.cost import Priced
from core.experiment.seconds import Seconds
from core.importing import view as facade_corpora
from core.models.mlm import MaskedLM
from core.projects import runs
from core.reporter import Silent
from core.tagging import calibrate
from core.text.sentence import Sentence
from tests.finished import TIMED
from tests.recipes.test_experiment import OPTIONS, fill


def test_a_line_through_two_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of n sentences has 10 n pieces and takes 0.3 + 0.002 pieces seconds; the first of each size far longer."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def step(size: int, i: int) -> int:
        disturbed = 0.5 if i == 2 else 0.0
        now[0] += 100 if i == 0 else 0.3 + 0.002 * 10 * size + disturbed
        return 10 * size

    assert calibrate._line(step, (4, 32), Silent()) == pytest.approx((0.3, 0.002))


def test_calibration_is_made_once_and_speaks_of_this_encoder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    fill(home)
    options = experiments.calibration(OPTIONS)
    run = runs.execute("calibrate", options)
    found = experiments.calibrated(run.id)
    for step, piece in (found.mlm, found.tagger, found.embed):
        assert step >= 0
        assert piece > 0
    assert found.pieces["task"] > 3  # `tiny` reads single characters
    long = Sentence(id="0" * 16, tokens=("a" * 9,) * 40, text=" ".join(["a" * 9] * 40))
    assert calibrate._pieces(MaskedLM.load("tiny", device="cpu"), [long]) == 362  # none is cut
    assert found.memory_gb > 0.1
    assert runs.execute("calibrate", options).id == run.id
    assert experiments.cost(OPTIONS).seconds > 0


def test_a_cost_needs_its_calibration(home: Path) -> None:
    fill(home)
    with pytest.raises(WinnowError, match="run the calibration first"):
        experiments.cost(OPTIONS)


def seconds(home: Path, **changed: Any) -> tuple[Seconds, ExperimentConfig]:
    corpora = {c.name: c for c in facade_corpora.listed()} or fill(home)
    config = ExperimentConfig.parse({**OPTIONS, **changed})
    return Seconds(config, TIMED, corpora), config


def cell(config: ExperimentConfig, name: str) -> Any:
    return next(cell for cell in config.cells if str(cell) == name)


def test_seconds_grow_with_the_work(home: Path) -> None:
    one, config = seconds(home, finetune={"epochs": 10}, seeds=(1,))
    many, _ = seconds(home, finetune={"epochs": 10}, seeds=(1, 2, 3, 4))
    longer, _ = seconds(home, finetune={"epochs": 100, "min_epochs": 100}, seeds=(1,))
    assert many.finetune(0) > 3 * (one.finetune(0) - 3)
    assert longer.finetune(0) > 8 * one.finetune(0) - 60
    assert one.finetune(5) < one.finetune(0)
    short, _ = seconds(home, pretrain={"epochs": 1})
    long, _ = seconds(home, pretrain={"epochs": 5})
    random = cell(config, "random 30")
    trained = long.pretrain(random) - short.pretrain(random)
    corpora = short.corpora
    mean = corpora["domain"].n_tokens / len(corpora["domain"])
    pieces = 1.5 * (corpora["task"].n_tokens + 30 * mean)
    steps = -(-(len(corpora["task"]) + 30) // 64)
    assert trained == pytest.approx(4 * (0.1 * steps + 0.001 * pieces), rel=0.25)  # and an evaluation an epoch


def test_what_is_shared_is_counted_once(home: Path) -> None:
    timed, config = seconds(home, arms=("classifier", "knn"), budgets=("10", "30"))
    asked = [cell(config, name) for name in ("classifier 10", "classifier 30", "knn 10")]
    first, again, other = (timed.select(one, *config.replicates(one)) for one in asked)
    embedding = 1.5 * timed.corpora["domain"].n_tokens * 0.0001
    assert first > other + embedding / 2 > again + embedding / 2


def test_equal_steps_cost_every_arm_alike(home: Path) -> None:
    timed, config = seconds(home, arms=("tapt", "classifier"), fixed="steps")
    alike = {round(timed.pretrain(c), 6) for c in config.cells if c.arm.pretrains}
    assert len(alike) == 1


class Heard(Silent):
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.left: list[float] = []
        self.parts: list[tuple[Any, ...]] = []

    def part(self, number: int, of: int, name: str, *, left: float | None = None, after: float | None = None) -> None:
        self.parts.append((number, of, name, left, after))

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        assert name == "seconds_left"
        self.left.append(value)


def test_the_clock_learns_from_what_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(sys.modules[Clock.__module__], "time", SimpleNamespace(monotonic=lambda: now[0]))
    steps = [
        Priced(kind="select", line="knn 10", what="", seconds=0.0, finished=True),
        Priced(kind="pretrain", line="knn 10", what="", seconds=30.0, finished=False),
        Priced(kind="finetune", line="knn 10", what="", seconds=100.0, finished=False),
    ]
    heard = Heard()
    clock = Clock(steps, heard)
    clock.next(0)
    clock.next(1)
    now[0] += 60  # twice as slow as planned
    clock.next(2)
    assert heard.left == [130, 130, 200]
    assert heard.stages[1] == "[2 of 3] knn 10: pre-training"
    assert heard.parts == [
        (1, 3, "knn 10: selecting", 130, 130),
        (2, 3, "knn 10: pre-training", 130, 100),
        (3, 3, "knn 10: fine-tuning", 200, 0),
    ]
