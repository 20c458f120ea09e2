"""The steps of an experiment: declared once, in an order in which each can be made."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.corpora.corpus import Corpus
from core.experiment import stages
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.stages import Stages
from core.experiment.steps import CHECK, in_order, lines
from core.kind import Job, plan
from core.kinds import KINDS
from core.models.encoder_options import EncoderOptions
from core.selection import STRATEGIES, strategy_models
from tests.recipes.test_experiment import fill

TEXTS = {"task": "t", "domain": "d", "train": "l", "dev": "e", "test": "s", "assisting": "a"}


def order(**options: Any) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """(kind, line, part of L_C, needs) of every step; no corpus is read for it."""
    config = ExperimentConfig.parse({**TEXTS, "budgets": ("10", "30"), **options})
    (steps,) = in_order(lines(Stages(config, Job(Path(), None, {})), 1.5))  # type: ignore[arg-type]
    at = {step: i for i, step in enumerate(steps)}
    assert all(at[need] < at[step] for step in steps for need in step.needs)
    return [(s.kind, str(s.cell), s.what, [(need.kind, str(need.cell)) for need in s.needs]) for s in steps]


def test_text_and_labels_come_first_then_arm_by_arm_the_training() -> None:
    kinds = [kind for kind, *_ in order(arms=("tapt", "knn", "skl:2", "highc2low:20%"))]
    first = kinds.index("pretrain")
    assert set(kinds[:first]) == {"select", "skl", CHECK, "difficulty", "rebuild", "finetune"}  # `none` is tuned first
    assert set(kinds[first:]) == {"pretrain", "finetune"}
    assert kinds.index("finetune") > max(i for i, kind in enumerate(kinds) if kind in ("select", "rebuild", CHECK))


def test_an_arm_waits_for_its_own_text_alone_unless_all_are_trained_alike() -> None:
    own = {line: needs for kind, line, _, needs in order(arms=("tapt", "knn")) if kind == "pretrain"}
    assert own["tapt"] == []
    assert own["knn 10"] == [("select", "knn 10")]
    alike = {line: needs for kind, line, _, needs in order(arms=("tapt", "knn"), fixed="steps") if kind == "pretrain"}
    assert len({tuple(needs) for needs in alike.values()}) == 1
    assert {("select", "knn 10"), ("select", "knn 30")} <= set(alike["tapt"])


def test_borrowed_labels_are_checked_before_anything_is_trained() -> None:
    steps = order(arms=("all", "skl:2"), train_sizes=(5,), draws=1)
    trained = next(i for i, step in enumerate(steps) if step[0] == "finetune")
    checks = [step for step in steps[:trained] if step[0] == CHECK]
    drawn = [(line, needs) for _, line, _, needs in checks if line == "random-part:2"]
    assert drawn == [("random-part:2", [("skl", "random-part:2")])] * 6  # two sizes, a draw a seed
    assert [(line, needs) for _, line, _, needs in checks if line != "random-part:2"] == [
        ("all", []),
        ("all", []),
        ("skl:2", [("skl", "skl:2")]),
        ("skl:2", [("skl", "skl:2")]),
    ]


def test_keys_and_manifests_hold_every_option_of_runs_and_strategies() -> None:
    configs = [*(recipe.config for recipe in KINDS.values()), *(strategy.Options for strategy in STRATEGIES.values())]
    left_out = [
        (config, name)
        for config in configs
        for name, field in config.model_fields.items()
        if field.exclude or field.exclude_if
    ]
    assert left_out == []


def test_tapt_and_b1_are_one_run_where_their_options_are_equal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1 holds out a part of T_C where TAPT is judged on dev; told to hold out the same, TAPT is B1."""
    task, held, keys = fill(home)["task"], [], []

    def learnt(reference: str, held_out: Sequence[str], job: Job) -> Corpus:
        held.append(held_out)
        return task

    def child(kind: str, **options: Any) -> None:
        keys.append(plan(KINDS[kind], KINDS[kind].config.parse(options), home).key)

    monkeypatch.setattr(stages, "learnable", learnt)
    monkeypatch.setattr(strategy_models, "learnable", learnt)
    job: Any = SimpleNamespace(child=child)
    own = experiments.stage_options(["pretrain.heldout_task=", "pretrain.general="])  # as SOURCES.md tells
    texts = {"task": "task", "train": "train", "dev": "dev", "test": "test"}
    config = ExperimentConfig.parse({**texts, **own, "encoder": "tiny", "arms": ("tapt",)})
    tapt = next(cell for cell in config.cells if cell.arm.pretrains)
    first = config.replicates(tapt)[0]
    child("pretrain", **Stages(config, job).pretrain(tapt, first, {}, 1.5))
    encoder = EncoderOptions(encoder="tiny")
    b1 = {"seed": first.draw, "preset": config.preset, "accumulation": 1}
    strategy_models.language_model(job, "task", (*config.held_out, config.dev), encoder, **b1)
    assert keys[0] == keys[1]
    assert held[0] == held[1]
