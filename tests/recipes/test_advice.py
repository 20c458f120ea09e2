"""Advice on a board that is written down: what it looks at, and what it leaves out."""

from dataclasses import replace
from math import isinf

import pytest

from core.experiment.advice import labels_spared, next_budget
from core.experiment.result import ArmRow, CurvePoint
from tests.finished import ARM_ROW


def board(dev: list[float], test: list[float], arm: str = "knn") -> list[ArmRow]:
    return [
        replace(
            ARM_ROW,
            arm=arm,
            sentences=n,
            dev_f1=[d] * 3,
            dev_mean=d,
            micro_f1=[t] * 3,
            finetune_runs=("a", "b", "c"),
            hours={"pretrain": n / 1000},
        )
        for n, d, t in zip((1000, 2000, 4000), dev, test, strict=True)
    ]


def test_budgets_are_advised_on_by_dev_alone() -> None:
    flat, rising = [50.0, 50.0, 50.0], [50.0, 55.0, 59.0]
    (stop,), (on,) = next_budget(board(flat, rising), 0.1), next_budget(board(rising, flat), 0.1)
    assert (stop.sentences, stop.hours) == (8000, 8.0)
    assert stop.stop
    assert stop.gain == pytest.approx(0, abs=1e-6)
    assert not on.stop
    assert on.gain > 2


def test_one_pre_training_a_size_never_says_stop() -> None:
    """However well its taggers agree: they share the luck of that pre-training."""
    rows = [replace(row, finetune_runs=("a",)) for row in board([50.0] * 3, [50.0] * 3)]
    (advice,) = next_budget(rows, 1e9)
    assert isinf(advice.upper)
    assert not advice.stop


def test_two_budgets_and_no_pre_training_are_left_out() -> None:
    none = [replace(row, arm="none", sentences=0) for row in board([50.0] * 3, [50.0] * 3)]
    assert next_budget([*none, *board([50.0] * 3, [50.0] * 3)[:2]], 0.1) == []


def test_labels_are_spared_where_the_arm_is_ahead() -> None:
    def curve(arm: str, f1: list[float]) -> list[CurvePoint]:
        return [
            CurvePoint(arm=arm, budget="", train_sentences=n, draw=0, micro_f1=[x, x], finetune_run="")
            for n, x in zip((10, 50, 250), f1, strict=True)
        ]

    rows = [*curve("none", [20.0, 30.0, 38.0]), *curve("tapt", [30.0, 38.0, 44.0])]
    (spared,) = labels_spared(rows, 50)
    assert spared.arm == "tapt"
    assert 100 < spared.spared < 300  # `none` has 38 at 250
    (never,) = labels_spared([*curve("none", [20.0, 20.0, 20.0]), *curve("tapt", [30.0, 38.0, 44.0])], 50)
    assert isinf(never.spared)
