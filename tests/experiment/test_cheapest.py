"""The cheapest way to the next point: named only if the intervals show it."""

from math import inf
from pathlib import Path

import numpy as np
import pytest

from core.experiment import cheapest, results, tables
from core.experiment.cheapest import LEAST, LEVEL, Way, found, winner
from core.projects import runs
from core.stats.bootstrap import compare
from core.stats.pooled import Estimate
from tests.experiment.test_experiment import OPTIONS, fill
from tests.stats.test_verdict import World


def way(name: str, gain: float, half: float, seconds: float) -> Way:
    estimate = Estimate(delta=gain, falling=half**2 / 4, fixed=0.0, dof=100.0)
    return Way(name=name, lo=gain - half, hi=gain + half, seconds=seconds, estimate=estimate)


def test_the_line_with_the_lowest_cost_per_point_is_named_if_intervals_separate() -> None:
    quick, slow = way("quick", 4, 1, 100), way("slow", 6, 1, 1000)
    # At worst quick costs 100 / 3 s per point; at best slow costs 1000 / 7.
    assert quick.worst == pytest.approx(100 / 3)
    assert slow.best == pytest.approx(1000 / 7)
    assert winner([slow, quick]) is quick
    assert winner([slow, way("also quick", 4, 1, 110), quick]) is None
    assert winner([way("wide", 4, 4.1, 1), slow]) is None  # the gain of the quickest is not shown
    assert winner([way("loss", -4, 1, 1), quick]) is quick
    assert (way("loss", -4, 1, 1).best, way("open", 1, 2, 1).worst) == (inf, inf)
    assert winner([]) is None


def test_the_sentence_names_a_winner_or_what_would_decide() -> None:
    quick, slow = way("quick", 4, 1, LEAST), way("slow", 6, 1, 1000)
    said = found([quick, slow], ["more labels", "a list of names"])
    assert said.line == "quick"
    assert said.words == (
        "The cheapest way to the next point is quick (+4.0 points [+3.0, +5.0] in less than a minute) of computing more "
        "than none, because every other line here costs more per point, even at the best end of its interval. Not "
        "compared: more labels and a list of names."
    )
    tie = found([way("a", 4, 1, 100), way("b", 4, 1, 150), way("c", 0, 1, 100)])
    # Separate if 100 / (4 - h) < 150 / (4 + h), so if h < 0.8; half widths shrink with the root of the replicates.
    assert tie.line == ""
    assert "Shown to gain: a (+4.0 points [+3.0, +5.0] in 2 min) and b (" in tie.words
    assert "about 2 times as many replicates would decide" in tie.words
    assert (
        "16 times as many replicates would not decide either" in found([way("a", 4, 1, 100), way("b", 4, 1, 100)]).words
    )
    none = "shown to gain over none, so no cheapest way to the next point is named."
    assert found([way("a", 0, 1, 100)]).words == f"The line beside none is not {none}"
    both = found([way("a", 0, 1, 100), way("b", 0, 1, 100)])
    assert both.words == f"After a correction for 2 lines, no line is {none}"


def test_equal_lines_are_named_in_at_most_5_percent() -> None:
    """Four variants with the same gain and cost, compared with one baseline on the same test sentences."""
    rng, lines, named, experiments = np.random.default_rng(3), 4, 0, 300
    level = 1 - (1 - LEVEL) / lines
    for _ in range(experiments):
        world = World(rng, 100, seed=0.1, sentence=0.5, both=0.2)
        none = world.arm(0.1, 3)
        gaps = [compare(world.arm(0.5, 3), none, draws=200) for _ in range(lines)]
        named += winner([cheapest._way(str(i), gap, 600.0, level) for i, gap in enumerate(gaps)]) is not None
    assert named / experiments <= 0.05


def test_a_far_cheaper_line_is_named_often() -> None:
    rng, named, experiments = np.random.default_rng(4), 0, 100
    for _ in range(experiments):
        world = World(rng, 300, seed=0.05, sentence=0.5, both=0.2)
        none = world.arm(0.1, 3)
        costs = {"cheap": 60.0, "dear": 3600.0}
        ways = [
            cheapest._way(name, compare(world.arm(0.6, 3), none, draws=200), cost, 0.975)
            for name, cost in costs.items()
        ]
        first = winner(ways)
        named += first is not None and first.name == "cheap"
    assert named / experiments > 0.8


def test_an_experiment_says_which_way_is_cheapest(home: Path, untrained: None) -> None:
    fill(home)
    run = runs.execute("experiment", {**OPTIONS, "arms": ("none", "random", "classifier", "dictionary")})
    board = results.board(run.id)
    assert board.cheapest
    assert board.cheapest.words in tables.as_markdown(board)
    assert board.cheapest.words.endswith(
        " Not compared: more labels, labels of another corpus, a ready model, a language model and another encoder."
    )
    alone = results.board(runs.execute("experiment", {**OPTIONS, "arms": ("none",)}).id)
    assert alone.cheapest is None
