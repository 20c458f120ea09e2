"""The planned test of an experiment: it says what the leaderboard beside it does, and in words why it ended there."""

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.experiment import collapsed, further_tests, results
from core.experiment.arms import Cell, find
from core.experiment.interim_analysis import in_words, planned_test
from core.experiment.plot import answers
from core.experiment.replicates import Replicate
from core.experiment.result import PlannedTest
from core.experiment.tables import as_csv, as_markdown
from core.results import Evaluation, IntArray
from core.stats.verdict import Arm, verdicts
from tests import finished
from tests.pages.test_pages import opened, texts
from tests.pages.test_results import PAGE, tab

CLAIM, RANDOM, NONE = (
    Cell(arm=find(name), budget=budget) for name, budget in (("classifier", "10"), ("random", "10"), ("none", ""))
)


def arm(rng: np.random.Generator, gold: IntArray, skill: float) -> list[Evaluation]:
    """Three replicates, each of which finds that share."""
    right = [rng.binomial(gold, skill)[:, None].astype(np.int32) for _ in range(3)]
    whole = gold[:, None].astype(np.int32)
    return [Evaluation(types=("X",), tp=tp, predicted=whole, gold=whole) for tp in right]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A claim, its control and `none` on 20 sentences, two of them long, whose p is below .05, and whose interval holds
    0, being wider downwards."""
    rng = np.random.default_rng(122)
    gold = rng.poisson(1.5, 20) + (rng.random(20) < 0.1) * rng.integers(5, 20, 20)
    tables = {CLAIM: arm(rng, gold, 0.75), RANDOM: arm(rng, gold, 0.6)}
    tables[NONE] = tables[RANDOM]
    monkeypatch.setattr(further_tests, "evaluations_of", lambda line: tables[line.cell])
    monkeypatch.setattr(collapsed, "collapsed_seeds", lambda lines: {line.cell: line.collapsed for line in lines})
    chains = [SimpleNamespace(replicate=Replicate(draw=0, seeds=(1, 2, 3), number=1))]
    return [SimpleNamespace(cell=cell, chains=chains, tables=tables[cell], collapsed=[1]) for cell in tables]


def config(**fields: Any) -> Any:
    known = {"claimed": CLAIM, "seeds": (1, 2, 3), "stops": (3,), "effect": 1.0, "draw_seed": 0}
    return SimpleNamespace(**(known | fields))


def test_it_shows_nothing_beside_an_interval_that_holds_0(lines: list[Any]) -> None:
    test = planned_test(config(), lines, 0)
    assert test
    assert test.p < test.bound
    system, random, none = (line.tables for line in lines)
    row = verdicts({"it": Arm(system=system, random=random)}, none, claim="it", bound=test.bound)["it"]
    assert row.random
    assert row.random.lo < 0
    assert (test.ended, row.chose) == ("complete", "no evidence")
    tested = "p = 0.046, asked for is 0.05, but the interval includes 0: not shown. Learnt nothing, and counted"
    assert tested in test.why
    assert planned_test(config(seeds=(1, 2, 3, 4), stops=(3, 4)), lines, 0) is None  # it goes on


def test_where_no_tagger_learnt_anything_nothing_is_tested(lines: list[Any]) -> None:
    for line in lines:
        line.collapsed = [1, 2, 3]
    assert planned_test(config(), lines, 0) is None
    lines[0].collapsed = [1, 2]
    assert planned_test(config(), lines, 0)


@pytest.mark.parametrize(
    ("n", "where", "early"),
    [
        (4, "", "It ended there, 2 replicates early."),
        (5, "", "It ended there, 1 replicate early."),
        (5, " on each of 2 tasks", "It ended there, 1 replicate on each of 2 tasks early."),
        (4, " on each of 2 tasks", "It ended there, 2 replicates on each of 2 tasks early."),
    ],
)
def test_how_much_earlier_it_ended(n: int, where: str, early: str) -> None:
    test = PlannedTest(
        arm="knn",
        budget="9",
        against="random 9",
        looks=(2, n, 6),
        replicates=n,
        ended="shown",
        p=0.001,
        bound=0.02,
        effect=1.0,
        chance=0.9,
        why="",
    )
    assert in_words(test, "replicates", where).endswith(f"shown. {early}")
    assert f"after {n} of 6 replicates{where}: p" in in_words(test, "replicates", where)


def test_lines_that_the_claim_is_not_about_say_so_wherever_they_answer(home: Path) -> None:
    lines = (("none", "", 0), ("random", "10", 60), ("classifier", "10", 60), ("lpft", "", 0))
    run = finished.experiment(home, finished.corpora(home), lines, claim=CLAIM)
    board = results.board(run.id)
    assert [row.arm for row in board.leaderboard if row.exploratory] == ["lpft"]
    [lpft] = [row for row in board.leaderboard if row.exploratory]
    claim = next(row for row in board.leaderboard if row.arm == "classifier")
    assert answers(lpft) == (f"{lpft.helped}, exploratory", "")
    assert answers(claim) == (claim.helped, claim.chose)
    assert f"| {lpft.helped}, exploratory |  |" in as_markdown(board)
    assert [row["exploratory"] for row in csv.DictReader(as_csv(board).splitlines())].count("True") == 1
    assert f"{lpft.helped}, exploratory" in finished.html_report(run.id)
    assert f"{lpft.helped}, exploratory" in texts(tab(opened(PAGE), "Leaderboard"))
