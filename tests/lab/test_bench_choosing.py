"""Tests of bench_choosing: its lines are read back, and its summary is computed from these lines alone."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from core.results import Evaluation
from tests.lab.benchmarks import bench_choosing as bench

pytestmark = pytest.mark.full

GIVEN = argparse.Namespace(ground="crossner", budget=None, encoder="minilm", train=100, epochs=20, first=0)


def line(corpus: str, seed: int, better: float) -> bench.Line:
    """Return a random replicate, tested on half of 60 sentences. better: skill of the claim's tagger above random's."""
    rng = np.random.default_rng([seed, sum(map(ord, corpus))])
    gold = np.random.default_rng(len(corpus)).integers(1, 4, size=(60, 1)).astype(np.int32)
    tested = np.arange(60) % 2 == seed % 2
    arms = {}
    for arm, skill in ((bench.NONE, 0.2), (bench.CONTROL, 0.5), (bench.CLAIM, 0.5 + better)):
        tp = rng.binomial(gold, skill).astype(np.int32)
        table = Evaluation(types=("all",), tp=tp, predicted=gold, gold=gold)
        counts = {part: bench.packed(getattr(table, part), tested) for part in ("tp", "predicted")}
        f1 = 100 * tp[tested].sum() / gold[tested].sum()
        arms[arm] = {**counts, "f1": float(f1), "tokens": 9, "seconds": {"finetune": 60.0}}
    alike = bench.settings(GIVEN)
    gold_line = bench.packed(gold, tested)
    return {"corpus": corpus, "replicate": seed, "settings": alike, "run": "r", "arms": arms, "gold": gold_line}


def test_a_ground_without_halves_is_one_task_tested_whole() -> None:
    given = argparse.Namespace(**{**vars(GIVEN), "ground": "bio"})
    alike = bench.settings(given)
    assert (alike["budgets"], "cross" in alike) == (["20000"], False)
    rng, lines = np.random.default_rng(5), {}
    gold = rng.integers(1, 4, size=(80, 1)).astype(np.int32)
    for seed in (1, 2, 3, 4):
        arms = {}
        for arm, skill in ((bench.NONE, 0.2), (bench.CONTROL, 0.5), (bench.CLAIM, 0.9)):
            tp = rng.binomial(gold, skill).astype(np.int32)
            arms[arm] = {"tp": bench.packed(tp, None), "predicted": bench.packed(gold, None), "f1": 1.0, "tokens": 9}
        lines["bc5cdr", seed] = {"run": "r", "arms": arms, "gold": bench.packed(gold, None)}
    assert bench.unpacked(lines["bc5cdr", 1], bench.CLAIM).tested is None
    study = bench.judged(alike, lines, 1)
    assert study
    assert study.choosing
    assert (study.choosing.these.answer, study.choosing.others) == ("yes", None)
    assert study.tasks[0].sentences == 80


def test_lines_are_read_back_and_judged_without_the_runs_behind_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line(corpus, seed, 0.35) for corpus in bench.CORPORA for seed in (1, 2, 3, 4)]
    read = bench.unpacked(rows[0], bench.CLAIM)
    assert read.f1() == pytest.approx(rows[0]["arms"][bench.CLAIM]["f1"])
    assert read.tested is not None
    assert int(read.tested.sum()) == 30
    file = tmp_path / "choosing.jsonl"
    other = {**rows[0], "settings": {**rows[0]["settings"], "encoder": "tiny"}}
    file.write_text("\n".join(map(json.dumps, (other, *rows))) + '\n{"cut off', encoding="utf-8")
    known = bench.read(file, bench.settings(GIVEN))
    assert set(known) == {(row["corpus"], row["replicate"]) for row in rows}
    assert known[rows[0]["corpus"], 1] == rows[0]
    study = bench.judged(bench.settings(GIVEN), known, 1)
    assert study
    assert study.planned
    assert (study.planned.ended, study.replicates) == ("shown", 4)
    assert study.choosing
    assert study.choosing.these.answer == "yes"
    assert study.tasks[0].sentences == 60
    assert bench.judged(bench.settings(GIVEN), known, 2) is None
    bench.show(known, study)
    assert "on each of 3 tasks" in capsys.readouterr().out
