"""Close source, language model; distant source, word vectors: on the printed table, and on tables of known answers."""

from itertools import permutations

import numpy as np
import pytest

from core.similarity.grid import Grid
from core.similarity.predictive import Outcomes, outcomes_of, rule
from core.similarity.worth import Pasted


def made(closeness: list[float], lm: list[float], vectors: list[float]) -> tuple[Grid, list[Outcomes]]:
    """One target; NaN where a source was not begun from so. Each F1 has three runs, .1 apart."""
    names = tuple(f"s{i}" for i in range(len(lm)))
    values = np.array(closeness, dtype=np.float64).reshape(1, -1, 1)
    grid = Grid(targets=("t",), sources=names, measures=("tvc",), prefer=("high",), values=values)
    outcomes = []
    for name, f1s in (("language model", lm), ("word vectors", vectors)):
        runs = {(0, i): [f1 - 0.1, f1, f1 + 0.1] for i, f1 in enumerate(f1s) if np.isfinite(f1)}
        outcomes.append(outcomes_of(name, runs, np.array([50.0]), len(lm)))
    return grid, outcomes


def test_rule_on_table_3_gives_the_golden_numbers(table_3: Pasted) -> None:
    found = rule(table_3.grid, table_3.outcomes)
    assert found is not None
    assert (found.right, found.advised, found.clear_right, found.clear) == (15, 23, 11, 15)
    assert found.p == pytest.approx(0.125, abs=0.0005)
    by_pair = {(row.target, row.source): row for row in found.rows}
    close = by_pair["CoNLL2003", "1BWB"]
    assert (close.place, close.advice, close.f1, close.clear) == (1, "language model", (89.78, 86.36), True)
    assert close.better == close.advice
    assert by_pair["CoNLL2003", "MIMIC"].advice == by_pair["CoNLL2003", "MIMIC"].better == "word vectors"
    assert by_pair["CADEC", "Wiki"].advice is None  # the middle of five
    level = by_pair["CRAFT", "PubMed"]
    assert (level.better, level.clear) == (None, False)
    assert "two for 15 of 23 sources (chance 11.7, p = 0.12), which may well be chance" in found.sentence


def test_chance_of_the_rule_equals_all_permutations_of_advice() -> None:
    lm, vectors = [60.0, 60.0, 50.0, 60.0], [50.0, 50.0, 60.0, 50.0]
    found = rule(*made([4, 3, 2, 1], lm, vectors))
    assert found is not None
    better = [row.better for row in found.rows]
    lots = [
        sum(a == b for a, b in zip(lot, better, strict=True)) for lot in permutations([r.advice for r in found.rows])
    ]
    assert (found.right, found.advised) == (3, 4)
    assert found.chance == pytest.approx(np.mean(lots)) == 2
    assert found.p == pytest.approx(np.mean([n >= 3 for n in lots]))
    assert "3 of 4 sources (chance 2, p = 0.5), which may well be chance." in found.sentence


def test_rule_needs_four_sources_for_a_test() -> None:
    nan = float("nan")
    found = rule(*made([4, 3, 2, 1], [60, 60, nan, 50], [50, nan, 50, 60]))
    assert found is not None
    assert ([row.source for row in found.rows], found.p) == (["s0", "s3"], None)
    assert "2 of 2 sources (chance 1); with fewer than 4 sources there is no test" in found.sentence
    grid, (lm, _) = made([1, 2], [60, 60], [50, 50])
    assert rule(grid, [lm]) is None
    assert rule(*made([1, 2], [60, nan], [nan, 50])) is None
    runs, none = {(0, 0): [60.0], (0, 1): [50.0]}, np.array([50.0])
    once = rule(grid, [outcomes_of(name, runs, none, 2) for name in ("LM F1", "vectors F1")])
    assert once is not None
    assert [row.interval for row in once.rows] == [None, None]  # a single run has no interval
