"""Estimated time of a training or an experiment: timed steps, sizes, epochs, seeds, and a published table."""

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

from core import cards
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import WinnowError
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.cost import Clock, Priced, Seconds
from core.experiment.leaderboard import gain_per_hour
from core.importing import view as facade_corpora
from core.models.mlm import MaskedLM
from core.pretraining.pretrain import PretrainConfig
from core.reporter import Silent
from core.runs.context import RunContext
from core.tagging import calibrate
from core.tagging import view as training
from core.tagging.calibrate import CalibrateResult
from core.tagging.config import FinetuneConfig
from core.tagging.estimate import START, Estimate, Read, Speed, _finetune, _pretrain, pseudo, usual_epochs
from core.text.sentence import Sentence
from core.training.settings import TaggerSettings
from tests.conftest import ROOT, Seal
from tests.experiment.test_experiment import OPTIONS, fill
from tests.finished import TIMED, finish
from tests.homes import done


def test_step_time_is_a_line_through_two_batch_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of n sentences has 10 n pieces and takes 0.3 s + 0.002 s per piece; the first step of a size is slower."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def step(size: int, i: int) -> int:
        disturbed = 0.5 if i == 2 else 0.0
        now[0] += 100 if i == 0 else 0.3 + 0.002 * 10 * size + disturbed
        return 10 * size

    assert calibrate._line(step, (4, 32), Silent()) == pytest.approx((0.3, 0.002))


def test_calibration_runs_once_per_encoder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    fill(home)
    with pytest.raises(WinnowError, match="run the calibration first"):
        experiments.cost(OPTIONS)
    options = experiments.calibrations(OPTIONS)[0]
    run = done("calibrate", options)
    found = experiments.calibrated(run)
    for step, piece in (found.mlm, found.tagger, found.embed):
        assert step >= 0
        assert piece > 0
    assert found.pieces["task"] > 3  # `tiny` reads single characters
    long = Sentence(id="0" * 16, tokens=("a" * 9,) * 40, text=" ".join(["a" * 9] * 40))
    assert calibrate._pieces(MaskedLM.load("tiny", device="cpu"), [long]) == 362  # nothing is truncated
    assert found.memory_gb > 0.1
    assert done("calibrate", options) == run
    assert experiments.cost(OPTIONS).seconds > 0


SPLITS = {"train": "train", "dev": "dev", "test": "test"}


def seconds(home: Path, options: dict[str, Any] = OPTIONS, **changed: Any) -> tuple[Seconds, ExperimentConfig]:
    corpora = {c.name: c for c in facade_corpora.listed()} or fill(home)
    config = ExperimentConfig.parse({**options, **changed})
    return Seconds(config, TIMED, corpora), config


def cell(config: ExperimentConfig, name: str) -> Any:
    return next(cell for cell in config.cells if str(cell) == name)


def test_estimated_seconds_grow_with_the_work(home: Path) -> None:
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
    pieces = 1.5 * (corpora["task"].n_tokens + 30 * corpora["domain"].n_tokens / len(corpora["domain"]))
    steps = -(-(len(corpora["task"]) + 30) // 64)
    assert trained == pytest.approx(4 * (0.1 * steps + 0.001 * pieces), rel=0.25)  # plus one evaluation per epoch
    timed, config = seconds(home, arms=("classifier", "knn"), budgets=("10", "30"))
    cells = [cell(config, name) for name in ("classifier 10", "classifier 30", "knn 10")]
    first, again, other = (timed.select(one, *config.replicates(one)) for one in cells)
    embedding = 1.5 * timed.corpora["domain"].n_tokens * 0.0001
    assert first > other + embedding / 2 > again + embedding / 2  # shared work is counted once
    timed, config = seconds(home, arms=("tapt", "classifier"), fixed="steps")
    assert len({round(timed.pretrain(c), 6) for c in config.cells if c.arm.pretrains}) == 1


def test_remaining_time_adapts_to_elapsed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, heard = [0.0], Mock()
    monkeypatch.setattr(sys.modules[Clock.__module__], "time", SimpleNamespace(monotonic=lambda: now[0]))
    planned = (("select", 0.0), ("pretrain", 30.0), ("finetune", 100.0))
    steps = [Priced(kind=k, line="knn 10", what="", seconds=s, finished=k == "select") for k, s in planned]
    clock = Clock(steps, heard)
    clock.next(0)
    clock.next(1)
    now[0] += 60  # twice as slow as planned
    clock.next(2)
    assert [call.args[:2] for call in heard.metric.call_args_list] == [
        ("seconds_left", left) for left in (130, 130, 200)
    ]
    assert heard.stage.call_args_list[1].args == ("[2 of 3] knn 10: pre-training",)
    parts = [(*call.args, call.kwargs["left"], call.kwargs["after"]) for call in heard.part.call_args_list]
    assert parts == [
        (1, 3, "knn 10: selecting", 130, 130),
        (2, 3, "knn 10: pre-training", 130, 100),
        (3, 3, "knn 10: fine-tuning", 200, 0),
    ]


def test_each_kind_of_step_has_its_own_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now, heard = [0.0], Mock()
    monkeypatch.setattr(sys.modules[Clock.__module__], "time", SimpleNamespace(monotonic=lambda: now[0]))
    planned = (("pretrain", 30.0), ("finetune", 30.0), ("pretrain", 30.0), ("finetune", 30.0), ("llm", 30.0))
    steps = [Priced(kind=k, line="knn 10", what="", seconds=s, finished=False) for k, s in planned]
    clock = Clock(steps, heard)
    for at, seconds in ((0, 30), (1, 90), (2, 30)):
        clock.next(at)
        now[0] += seconds
    clock.next(3)
    # Pre-training took as long as planned, fine-tuning three times as long; together 150 s for 90 planned ones.
    lefts = [call.args[1] for call in heard.metric.call_args_list]
    assert lefts == pytest.approx([150, 120, 30 + 90 + 30 * 120 / 60, 90 + 30 * 150 / 90])
    assert heard.part.call_args.kwargs["after"] == pytest.approx(30 * 150 / 90)


@pytest.mark.parametrize(("shared", "first"), [(True, 240), (False, 120)])
def test_remaining_time_of_parallel_steps_goes_by_how_many_have_finished(
    shared: bool, first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that share a device are planned to be no faster together than one after the other."""
    now, heard = [0.0], Mock()
    monkeypatch.setattr(sys.modules[Clock.__module__], "time", SimpleNamespace(monotonic=lambda: now[0]))
    steps = [Priced(kind="pretrain", line="knn 10", what="", seconds=60, finished=False) for _ in range(4)]
    clock = Clock(steps, heard, shared=shared)
    clock.next(0, set(), 2)
    clock.next(1, set(), 2)
    now[0] += 80  # two planned minutes in 80 seconds
    clock.next(2, {0, 1}, 2)
    clock.next(3, {0, 1}, 2)
    assert [call.args[1] for call in heard.metric.call_args_list] == pytest.approx([first, first, 80, 80])


def test_trainings_end_about_as_early_as_those_that_were_measured() -> None:
    """80 trainings with 30 epochs and a patience of 10; and all points of a plan as the best epoch, one by one."""
    lines = [
        json.loads(line)
        for name in ("epochs.jsonl", "variance.jsonl")
        for line in (ROOT / "tests" / "lab" / "benchmarks" / name).read_text(encoding="utf-8").splitlines()
    ]
    measured = [len(line["dev_f1"]) for line in lines]
    quick = TaggerSettings().training(300)
    assert (quick.epochs, quick.patience, len(measured)) == (30, 10, 80)
    assert usual_epochs(quick) == pytest.approx(np.mean(measured), rel=0.15)
    for epochs, patience in ((30, 10), (20, 10), (200, 20), (8, 10)):
        ends = np.minimum(np.linspace(0, epochs, 10_001) + patience, epochs)
        settings = replace(quick, epochs=epochs, patience=patience, min_epochs=1)
        assert usual_epochs(settings) == pytest.approx(ends.mean(), rel=1e-3)
    assert usual_epochs(replace(quick, epochs=12, patience=2, min_epochs=11)) == 11


def test_pseudo_labels_are_costed_for_the_rounds_that_are_usual() -> None:
    """A second per piece; a text of 40 pieces, labels of 10, dev of 6; a batch holds all sentences."""
    speed, quick = Speed(a=0.0, b=1.0, load=0.0, pieces=1.0), replace(TaggerSettings().training(4), dev_sentences=0)
    parts = {"train": Read(sentences=4, pieces=10.0), "unlabelled": Read(sentences=8, pieces=40.0)}
    dev = Read(sentences=2, pieces=6.0)
    time = pseudo(speed, quick, 2, **parts, dev=dev, distant=True)
    # Epochs of 40 pieces and a third of dev: 3 on half of the text or all of it, then 2 per round; 1.5 rounds or 2.
    # A round reads the text twice, and dev is read once more per round, and twice.
    assert time.most == pytest.approx(2 * ((3 + 4) * 42 + 4 * 40 / 3 + 4 * 6 / 3))
    assert time.expected == pytest.approx(2 * ((1.5 + 3) * 42 + 3 * 40 / 3 + 3.5 * 6 / 3))
    time = pseudo(speed, replace(quick, epochs=9), 1, **parts, dev=dev, distant=False)
    # Students have 5 epochs of 10 pieces and as many pseudo-labelled sentences: two in the first round, then one.
    assert time.most == pytest.approx(3 * 5 * (10 + 20 + 2) + 4 * 40 / 3 + 4 * 6 / 3)
    assert time.expected == pytest.approx(2.5 * 5 * (10 + 20 + 2) + 3 * 40 / 3 + 3.5 * 6 / 3)


PLAIN = {**SPLITS, "task": "task", "domain": "domain"}


def alone(home: Path, **options: Any) -> Estimate:
    """Return the estimate of a fine-tuning outside an experiment."""
    config = FinetuneConfig.parse({**SPLITS, "test": ("test",), **options})
    return _finetune(config, Library(home)).time(Speed.measured(TIMED, "tagger", "train"))


@pytest.mark.parametrize("options", [{"preset": "paper"}, {"preset": "quick", "network": "bilstm"}])
def test_fine_tuning_estimate_is_the_same_in_an_experiment(home: Path, options: dict[str, Any]) -> None:
    own = {name: value for name, value in options.items() if name == "network"}
    timed, config = seconds(home, PLAIN, arms=("none",), seeds=(1, 2), preset=options["preset"], finetune=own)
    assert alone(home, seeds=(1, 2), **options).expected == pytest.approx(timed.finetune(0, cell(config, "none")))
    early, whole = (alone(home, epochs=100, min_epochs=n) for n in (1, 100))  # early stopping
    assert early.expected < early.most == whole.most == whole.expected


def test_fine_tuning_estimate_counts_assisting_sentences(home: Path) -> None:
    """Each step has as many assisting sentences as primary ones. With `in_turn`, the smaller corpus is repeated."""
    fill(home)
    corpora = {corpus.name: corpus for corpus in Library(home).list()}
    train, other = corpora["train"], corpora["dev"]
    plain, both = (alone(home, seeds=(1,), assisting=name).most for name in ("", "dev"))
    share = other.n_tokens / len(other) / (train.n_tokens / len(train))
    a, b = TIMED.tagger
    epochs = TaggerSettings().training(len(train)).planned(len(train)).epochs
    added = epochs * share * train.n_tokens * TIMED.pieces["train"] * b
    assert both - plain == pytest.approx(added)
    turns = {"network": "charcnn", "in_turn": True, "assisting": "dev", "seeds": (1,)}
    config = FinetuneConfig.parse({**SPLITS, "test": ("test",), **turns})
    n = max(len(train), len(other))
    assert _finetune(config, Library(home)).steps == 200 * 2 * n
    assert alone(home, **turns).most > 200 * 2 * n * a


def test_pretraining_estimate_is_the_same_in_an_experiment(home: Path) -> None:
    timed, config = seconds(home, PLAIN, arms=("tapt",), pretrain={"epochs": 3})
    same = PretrainConfig.parse({"corpora": ("task",), "epochs": 3, "heldout_task": "dev"})
    time = _pretrain(same, Library(home)).time(Speed.measured(TIMED, "mlm", "task"))
    assert time.expected == time.most == pytest.approx(timed.pretrain(cell(config, "tapt")))


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, 3 * 17),
        ({"balance": "upsample_TC"}, 3 * 23),
        ({"balance": "downsample_SC"}, 3 * 10),
        ({"packed": True}, 3),
        ({"max_pieces": 1000}, 14),
        ({"max_steps": 5}, 5),
    ],
)
def test_pretraining_estimate_has_the_steps_of_the_run(
    home: Path, seal: Seal, options: dict[str, Any], steps: int
) -> None:
    """Corpora of 40 and 90 sentences of 10 words, with a piece per word, in batches of 8 for 3 epochs."""
    corpora = [
        seal([f"{name} {i} c d e f g h i j" for i in range(n)], name).fingerprint
        for name, n in (("task", 40), ("domain", 90))
    ]
    config = PretrainConfig.parse({"corpora": corpora, "epochs": 3, "batch_size": 8, **options})
    work, speed = _pretrain(config, Library(home)), Speed(a=1.0, b=0.0, load=0.0, pieces=1.0)
    assert work.time(speed).expected == pytest.approx(START + steps)
    if "max_pieces" not in options:
        assert work.steps == steps
    else:  # without a measured speed, a word is assumed to have 1.3 pieces
        assert work.steps == 11


ASKED = {**PLAIN, "arms": ("none", "tapt"), "seeds": (1,)}
SLOW = replace(TIMED, mlm=(1.0, 1.0), tagger=(1.0, 1.0))


def timed(home: Path, result: CalibrateResult, **options: Any) -> None:
    """Store a finished calibration of this machine."""
    finish(home, "calibrate", {"task": "task", "train": "train", "domain": "domain", **options}, lambda _: result)


def trained(home: Path, kind: str, rate: float, **options: Any) -> None:
    """Store a finished training with a speed of `rate` pieces per second."""

    def work(context: RunContext) -> dict[str, object]:
        context.runs_on("cpu", cards.machine())
        context.metric("tokens_per_second@1" if kind == "finetune" else "tokens_per_second", rate, 3)
        return {}

    given = {"train": "train", "dev": "dev"} if kind == "finetune" else {"corpora": ("domain",)}
    finish(home, kind, {**given, **options}, work)


def seconds_of(kind: str, line: str, *, experiment: dict[str, Any], **options: Any) -> float:
    """Return the estimated seconds of a training; assert the same estimate alone (`options`) and in an experiment."""
    cost, alone = experiments.cost({**ASKED, **experiment}), training.preflight(kind, options)
    (planned,) = (step.seconds for step in cost.steps if (step.kind, step.line) == (kind, line))
    assert alone.seconds == pytest.approx(planned)
    assert alone.basis in cost.basis
    return planned


def tuning(network: str = "encoder") -> float:
    experiment = {"arms": ("none",), "finetune": {"network": network}}
    options = {**SPLITS, "test": ("test",), "seeds": (1,), "network": network}
    return seconds_of("finetune", "none", experiment=experiment, **options)


def reading() -> float:
    return seconds_of("pretrain", "tapt", experiment={}, corpora=("task",), heldout_task="dev")


def test_training_and_experiment_use_the_same_measured_speed(home: Path) -> None:
    """An estimate uses the last training of its kind; otherwise a calibration, if possible on the same text."""
    fill(home)
    timed(home, TIMED)
    tuned, read = tuning(), reading()
    timed(home, SLOW, task="dev", train="dev", domain="")  # newer, but on other text
    assert (tuning(), reading()) == (tuned, read)
    timed(home, replace(SLOW, mlm=TIMED.mlm), network="bilstm")
    assert tuning("bilstm") > 2 * tuned
    trained(home, "finetune", 50.0, network="bilstm")
    assert tuning("bilstm") > 2 * tuned == 2 * tuning()
    trained(home, "finetune", 50.0)
    assert tuning() > 2 * tuned
    assert reading() == read
    trained(home, "pretrain", 50.0)
    assert reading() > 2 * read


@pytest.mark.parametrize("other", [{"network": "bilstm"}, {"lora": 4}, {"layers": "1"}, {"init": "tiny"}], ids=str)
def test_speed_of_another_kind_of_training_is_not_used(home: Path, other: dict[str, Any]) -> None:
    fill(home)
    options = {**SPLITS, "test": ("test",)}
    trained(home, "finetune", 50.0, **other)
    assert training.preflight("finetune", options).seconds is None
    assert training.preflight("finetune", {**options, **other}).seconds
    trained(home, "finetune", 70.0, preset="paper", batch_size=8)
    known = training.preflight("finetune", options)
    assert known.seconds
    assert known.basis == "From your last fine-tuning of this kind on this machine, 70 pieces per second."


def test_experiment_on_new_text_uses_timings_of_other_text(home: Path) -> None:
    """After one calibration of this machine, every experiment with this encoder has an estimate."""
    fill(home)
    assert experiments.cost_if_known(ASKED) is None
    timed(home, TIMED, task="dev", train="dev", domain="")
    cost = experiments.cost_if_known({**ASKED, "arms": ("none", "classifier")})
    assert cost
    assert cost.seconds > 0
    assert cost.basis == "A training of this kind was timed on this machine for a few seconds."
    assert experiments.cost_if_known({**ASKED, "encoder": "tiny"}) is None
    assert experiments.cost_if_known({**ASKED, "axis": ("encoder:tiny",)}) is None


def test_classifier_estimate_uses_the_speed_of_its_encoder(home: Path) -> None:
    fill(home)
    timed(home, TIMED)
    alone = training.difficulty_estimate({"train": "train"})
    timed(home, SLOW, network="bilstm")
    assert training.difficulty_estimate({"train": "train"}) == alone
    cost = experiments.cost({**SPLITS, "arms": ("none", "random2low:20%"), "seeds": (1,)})
    assert sum(step.seconds for step in cost.steps if step.kind == "difficulty") == pytest.approx(alone)  # shared


PIECES, TOKENS = 1.3, 25.0  # per token, per sentence; any values give the same times per sentence
BARE = {"Literature": 61.35, "Music": 67.13}
SIZES = {"Literature": (429_000, 3_320_000), "Music": (826_000, 4_460_000)}  # T_C, D_C
TABLE = [  # domain, variant, sentences, F1, time, points per hour if recomputed
    ("Literature", "tapt", 429_000, 62.33, "6:24:23", 0.153),
    ("Literature", "random", 439_000, 62.77, "6:33:26", 0.217),
    ("Literature", "random", 682_000, 63.45, "10:11:01", 0.206),
    ("Literature", "random", 935_000, 63.97, "13:57:40", 0.188),
    ("Literature", "random", 1_440_000, 64.74, "21:31:01", 0.158),
    ("Literature", "dapt", 3_320_000, 63.2, "48:14:33", 0.038),
    ("Literature", "tapt+dapt", 3_750_000, 64.57, "56:02:13", 0.057),
    ("Music", "tapt", 826_000, 70.61, "11:10:30", None),
    ("Music", "random", 838_000, 70.98, "11:20:13", None),
    ("Music", "random", 1_120_000, 71.29, "15:12:55", None),
    ("Music", "random", 1_420_000, 72.24, "21:37:12", None),
    ("Music", "random", 2_020_000, 73.55, "30:41:35", None),
    ("Music", "dapt", 4_460_000, 71.35, "62:14:29", None),
    ("Music", "tapt+dapt", 5_290_000, 71.58, "80:24:54", None),
]


@dataclass
class Sized:
    """Stand in for a corpus of `n` sentences."""

    n: int

    def __len__(self) -> int:
        return self.n

    @property
    def n_tokens(self) -> float:
        return TOKENS * self.n


def seconds_of_time(time: str) -> int:
    hours, minutes, rest = map(int, time.split(":"))
    return 3600 * hours + 60 * minutes + rest


def a_sentence() -> float:
    """Return the seconds per sentence for all five epochs, from a line through the origin."""
    n, t = np.array([(row[2], seconds_of_time(row[4])) for row in TABLE], dtype=np.float64).T
    return float(n @ t / (n @ n))


@pytest.mark.parametrize(("domain", "arm", "sentences", "f1", "time", "rate"), TABLE)
def test_times_and_gain_per_hour_reproduce_table_5(
    domain: str, arm: str, sentences: int, f1: float, time: str, rate: float | None
) -> None:
    """A constant time per sentence has an error of at most 8.8%; all else in a run takes seconds."""
    task, whole = SIZES[domain]
    names = {name: name for name in ("task", "domain", "train", "dev", "test")}
    budgets = (str(sentences - task),) if arm == "random" else ("1",)
    config = ExperimentConfig.parse(names | {"arms": (arm,), "budgets": budgets, "preset": "paper"})
    assert 1000 * a_sentence() == pytest.approx(52.993, abs=5e-4)
    measured = replace(TIMED, mlm=(0.0, a_sentence() / 5 / TOKENS / PIECES), load=0.0, pieces={"task": PIECES})
    corpora = {"task": Sized(task), "domain": Sized(whole), "dev": Sized(400)}
    timed = Seconds(config, measured, cast(dict[str, Corpus], corpora))
    (cell,) = (cell for cell in config.cells if cell.arm.name == arm)
    assert timed.pretrain(cell) == pytest.approx(sentences * a_sentence(), rel=0.01)
    assert timed.pretrain(cell) == pytest.approx(seconds_of_time(time), rel=0.089)
    if rate is not None:
        assert gain_per_hour(f1 - BARE[domain], seconds_of_time(time)) == pytest.approx(rate, abs=5e-4)
    assert gain_per_hour(1.0, 0.0) is None
